"""`kerf doctor`: whether a cluster, and the place of the record, are as `kerf run` needs them."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from kerf.adapters.cli.doctor.finding import BAD, NOTE, OK, Finding
from kerf.adapters.cli.doctor.rights import NODE_CLASSES, Right, needed
from kerf.adapters.cli.parameters import Json, kubeconfig_of_environment
from kerf.adapters.cli.render.notes import print_gate_notes
from kerf.adapters.cli.render.output import Printer, emit_json
from kerf.adapters.kubernetes.errors import ClusterError, NoCluster, Unreachable
from kerf.adapters.kubernetes.session import Answer, Session, connect
from kerf.adapters.manager.flags import Flags
from kerf.adapters.manager.settings import Options, read_settings
from kerf.adapters.store.open import open_record, require_url
from kerf.engine.errors import KerfError
from kerf.engine.record.errors import RecordNotFound, StoreLocked

OLDEST = (1, 28)
DEVICES = "resource.k8s.io/v1"
SKEW = 5.0  # seconds between this clock and the API server's that are no cause for concern: dates have whole seconds
SHOWN = 5
_STYLES = {OK: "good", NOTE: "warning", BAD: "error"}
_FLAGS = Flags()


def doctor(
    *,
    mode: Annotated[Literal["control", "observe"], Parameter(env_var="KERF_MODE")] = "control",
    provider: Annotated[Literal["kwok", "aws"], Parameter(env_var="KERF_PROVIDER")] = "kwok",
    store: Annotated[str, Parameter(env_var="KERF_STORE", help="The record's URL, if that is to be looked at.")] = "",
    kubeconfig: Annotated[Path | None, Parameter(help="Default: this pod's cluster, else KUBECONFIG.")] = None,
    context: str | None = None,
    settings: Annotated[Flags, Parameter(name="*", group="Settings")] = _FLAGS,
    json: Json = False,
) -> int:
    """Look whether everything is there that `kerf run` needs, with the same flags; nothing is changed.

    The API server and its version, this clock against its clock, the rights of whoever asks, the custom resources, the
    NodeClasses that NodePools name, who holds the Lease, whether the record can be written, and with `--provider aws`
    whether EC2, EKS and the queue can be reached. Exit codes: 0 all is
    well, 1 something keeps kerf from running.

    Example: `kubectl exec deploy/kerf -- kerf doctor`
    """
    options = read_settings(settings, os.environ)
    print_gate_notes(options.notes)
    findings = asyncio.run(_all(mode, provider, store, kubeconfig or kubeconfig_of_environment(), context, options))
    if json:
        emit_json(findings)
    else:
        printer = Printer()
        for each in findings:
            printer.line(f"{each.level:<5}{each.what}: {each.text}", _STYLES[each.level])
            if each.hint:
                printer.line(f"     {each.hint}")
    return int(any(each.level == BAD for each in findings))


async def _all(
    mode: str, provider: str, store: str, kubeconfig: Path | None, context: str | None, options: Options
) -> list[Finding]:
    found = _store(store) if store else []
    if provider == "aws":
        found += await asyncio.to_thread(_account, mode, options)
    try:
        session = await connect(kubeconfig, context, qps=options.qps, burst=options.burst)
    except NoCluster as error:
        return [*found, Finding("api server", BAD, str(error))]
    try:
        async for each in _cluster(session, mode, provider, options):
            found.append(each)
    except (ClusterError, Unreachable) as error:
        found.append(Finding("api server", BAD, str(error)))
    finally:
        await session.close()
    return found


def _account(mode: str, options: Options) -> list[Finding]:
    """boto3 is loaded only where it is used."""
    from kerf.adapters.cli.doctor.aws_account import account

    return account(options.aws, observe=mode == "observe")


async def _cluster(session: Session, mode: str, provider: str, options: Options) -> AsyncIterator[Finding]:
    answer = (await session.request("GET", "/version")).checked("version of the API server")
    yield _version(answer.json(), session.host)
    yield _clock(answer.date)
    rights = needed(mode, provider, lease_namespace=options.lease_namespace, lease_name=options.lease_name)
    yield _allowed(rights, [right for right in rights if not await _may(session, right)])
    definitions = [each async for each in _definitions(session, provider, options)]
    for each in definitions:
        yield each
    if not options.engine.ignore_dra_requests:
        yield await _devices(session)
    if all(each.level != BAD for each in definitions):
        yield await _node_pools(session, provider)
    if mode == "control" and options.leader_election:
        yield await _lease(session, options)


# ── the API server ──────────────────────────────────────────────────────────────────────────────────────────────────


def _version(found: dict[str, Any], host: str) -> Finding:
    numbers = [int(re.sub(r"\D", "", str(found.get(part, ""))) or 0) for part in ("major", "minor")]
    text = f"{found.get('gitVersion')} at {host}"
    if tuple(numbers) < OLDEST:
        return Finding("api server", BAD, text, f"kerf needs Kubernetes {OLDEST[0]}.{OLDEST[1]} or newer")
    return Finding("api server", OK, text)


def _clock(date: str) -> Finding:
    try:
        ahead = (datetime.now(UTC) - parsedate_to_datetime(date)).total_seconds()
    except ValueError:
        return Finding("clock", NOTE, "the API server does not tell its time")
    if abs(ahead) > SKEW:
        way = "ahead of" if ahead > 0 else "behind"
        hint = "Set it: ages, deadlines and the Lease are counted by it"
        return Finding("clock", BAD, f"{abs(ahead):.0f} s {way} the API server's", hint)
    return Finding("clock", OK, "as the API server's, to a few seconds")


async def _may(session: Session, right: Right) -> bool:
    resource, _, subresource = right.resource.partition("/")
    attributes = {"group": right.group, "resource": resource, "subresource": subresource, "verb": right.verb}
    attributes |= {"namespace": right.namespace, "name": right.name}
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    answer = (await session.request("POST", path, body=body)).checked("SelfSubjectAccessReview")
    return bool(answer.json().get("status", {}).get("allowed"))


def _allowed(rights: list[Right], missing: list[Right]) -> Finding:
    if not missing:
        return Finding("rights", OK, f"all {len(rights)} are there")
    more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
    text = f"not allowed: {', '.join(map(str, missing[:SHOWN]))}{more}"
    return Finding("rights", BAD, text, "The chart's ClusterRoles and Role give them: deploy/charts/kerf")


# ── objects ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def _definitions(session: Session, provider: str, options: Options) -> AsyncIterator[Finding]:
    """By discovery, which needs no right of its own."""
    group, resource = NODE_CLASSES[provider]
    wanted = {"karpenter.sh/v1": ["nodepools", "nodeclaims"], f"{group}/{_VERSIONS[provider]}": [resource]}
    if options.engine.node_overlays:
        wanted["karpenter.sh/v1alpha1"] = ["nodeoverlays"]
    if options.engine.capacity_buffers:
        wanted["autoscaling.x-k8s.io/v1beta1"] = ["capacitybuffers"]
    for version, resources in wanted.items():
        answer = await session.request("GET", f"/apis/{version}")
        there = {each["name"] for each in answer.json().get("resources", ())} if answer.ok else set()
        missing = [each for each in resources if each not in there]
        hint = "Install deploy/charts/kerf-crd, or `kubectl apply -f deploy/crds`" if missing else ""
        text = f"{version}: {', '.join(missing or resources)} {'not served' if missing else 'served'}"
        yield Finding("definitions", BAD if missing else OK, text, hint)


_VERSIONS = {"kwok": "v1alpha1", "aws": "v1"}


async def _devices(session: Session) -> Finding:
    """Without them pods that ask for devices by ResourceClaims wait, and nothing else does."""
    answer = await session.request("GET", f"/apis/{DEVICES}")
    if answer.ok:
        return Finding("devices", OK, f"{DEVICES} served")
    hint = "Pods with ResourceClaims stay pending; Kubernetes serves it from 1.34 on"
    return Finding("devices", NOTE, f"{DEVICES} not served", hint)


async def _node_pools(session: Session, provider: str) -> Finding:
    """L-253: NodePools whose NodeClass is not there, or says that it is not ready."""
    group, resource = NODE_CLASSES[provider]
    pools = await _items(session, "/apis/karpenter.sh/v1/nodepools")
    classes = await _items(session, f"/apis/{group}/{_VERSIONS[provider]}/{resource}")
    ready = {each["metadata"]["name"]: _is_ready(each) for each in classes}
    if not pools:
        return Finding("nodepools", NOTE, "there is none: nothing will be launched")
    wrong = []
    for pool in pools:
        ref = pool["spec"]["template"]["spec"]["nodeClassRef"]
        name, of = pool["metadata"]["name"], ref["name"]
        if ref["group"] != group:
            wrong.append(f"{name} is of {ref['group']}, and left alone")
        elif of not in ready:
            wrong.append(f"{name} names the NodeClass {of}, which is not there")
        elif not ready[of]:
            wrong.append(f"the NodeClass {of} of {name} is not ready")
    if wrong:
        return Finding("nodepools", NOTE, "; ".join(wrong[:SHOWN]))
    return Finding("nodepools", OK, f"{len(pools)}, with NodeClasses that are ready")


async def _items(session: Session, path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await session.request("GET", path)).checked(f"list {path}").json()["items"]
    return found


def _is_ready(node_class: dict[str, Any]) -> bool:
    """One without conditions is not judged by anybody (KWOK)."""
    conditions: Iterable[dict[str, Any]] = node_class.get("status", {}).get("conditions", ())
    return all(each["status"] == "True" for each in conditions if each["type"] == "Ready")


async def _lease(session: Session, options: Options) -> Finding:
    where = f"{options.lease_namespace}/{options.lease_name}"
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{options.lease_namespace}/leases/{options.lease_name}"
    answer: Answer = await session.request("GET", lease)
    if answer.status == 404:
        return Finding("lease", OK, f"{where} is free")
    if answer.status == 403:  # said under "rights"
        return Finding("lease", NOTE, f"{where} may not be read")
    holder = answer.checked(f"Lease {where}").json().get("spec", {}).get("holderIdentity")
    return Finding("lease", OK, f"{where} is held by {holder}" if holder else f"{where} is free")


# ── the record ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _store(url: str) -> list[Finding]:
    """Nothing is written: a record is opened for writing and closed again."""
    try:
        require_url(url)
        open_record(url, "write").close()
    except RecordNotFound:
        return [_new_record(url)]
    except StoreLocked as error:
        return [Finding("record", NOTE, str(error))]
    except KerfError as error:
        return [Finding("record", BAD, str(error))]
    return [Finding("record", OK, "it is there and can be written")]


def _new_record(url: str) -> Finding:
    """Of a file, whether its folder takes one."""
    if not url.startswith("sqlite://"):
        return Finding("record", OK, "there is none yet; the server can be reached, and kerf makes it")
    folder = Path(url.removeprefix("sqlite://")).parent
    if not os.access(folder, os.W_OK):
        return Finding("record", BAD, f"there is none, and {folder} is no folder that can be written")
    return Finding("record", OK, f"there is none yet; kerf makes it in {folder}")
