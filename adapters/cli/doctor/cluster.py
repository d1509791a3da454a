"""What `kerf doctor` asks the API server. Nothing is changed."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from kerf.adapters.cli.doctor.finding import BAD, NOTE, OK, Finding
from kerf.adapters.cli.doctor.rights import NODE_CLASSES, Right, needed
from kerf.adapters.kubernetes.session import Answer, Session
from kerf.adapters.manager.settings import Options

OLDEST = (1, 28)
DEVICES = "resource.k8s.io/v1"
MAX_CLOCK_SKEW = 5.0
"""Seconds between this clock and the API server's that are no cause for concern: dates have whole seconds."""
MAX_PROBLEMS_SHOWN = 5


async def check_cluster(session: Session, mode: str, provider: str, options: Options) -> AsyncIterator[Finding]:
    """Each finding as it comes. Raises ClusterError and Unreachable."""
    answer = (await session.request("GET", "/version")).checked("version of the API server")
    yield _version(answer.json(), session.host)
    yield _clock(answer.date)
    rights = needed(
        mode,
        provider,
        lease_namespace=options.lease_namespace,
        lease_name=options.lease_name,
        metrics_authorization=options.metrics_authorization,
    )
    yield _allowed(rights, [right for right in rights if not await _may(session, right)])
    definitions = [definition async for definition in _definitions(session, provider, options)]
    for definition in definitions:
        yield definition
    if not options.engine.ignore_dra_requests:
        yield await _devices(session)
    if all(definition.level != BAD for definition in definitions):
        yield await _node_pools(session, provider)
    if mode == "control" and options.leader_election:
        yield await _lease(session, options)


# ── the API server ──────────────────────────────────────────────────────────────────────────────────────────────────


def _version(version: dict[str, Any], host: str) -> Finding:
    numbers = [int(re.sub(r"\D", "", str(version.get(part, ""))) or 0) for part in ("major", "minor")]
    text = f"{version.get('gitVersion')} at {host}"
    if tuple(numbers) < OLDEST:
        return Finding("api server", BAD, text, f"kerf needs Kubernetes {OLDEST[0]}.{OLDEST[1]} or newer")
    return Finding("api server", OK, text)


def _clock(date: str) -> Finding:
    try:
        ahead = (datetime.now(UTC) - parsedate_to_datetime(date)).total_seconds()
    except ValueError:
        return Finding("clock", NOTE, "the API server does not tell its time")
    if abs(ahead) > MAX_CLOCK_SKEW:
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
    more = f" and {len(missing) - MAX_PROBLEMS_SHOWN} more" if len(missing) > MAX_PROBLEMS_SHOWN else ""
    text = f"not allowed: {', '.join(map(str, missing[:MAX_PROBLEMS_SHOWN]))}{more}"
    return Finding("rights", BAD, text, "The chart's ClusterRoles and Role give them: deploy/charts/kerf")


# ── objects ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def _definitions(session: Session, provider: str, options: Options) -> AsyncIterator[Finding]:
    """By discovery, which needs no right of its own."""
    group, resource = NODE_CLASSES[provider]
    definitions = {"karpenter.sh/v1": ["nodepools", "nodeclaims"], f"{group}/{_VERSIONS[provider]}": [resource]}
    if options.engine.node_overlays:
        definitions["karpenter.sh/v1alpha1"] = ["nodeoverlays"]
    if options.engine.capacity_buffers:
        definitions["autoscaling.x-k8s.io/v1beta1"] = ["capacitybuffers"]
    for version, resources in definitions.items():
        answer = await session.request("GET", f"/apis/{version}")
        there = {served["name"] for served in answer.json().get("resources", ())} if answer.ok else set()
        missing = [needed_resource for needed_resource in resources if needed_resource not in there]
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
    """NodePools whose NodeClass is not there, or says that it is not ready (L-253)."""
    group, _ = NODE_CLASSES[provider]
    pools = await _items(session, "/apis/karpenter.sh/v1/nodepools")
    classes = await node_class_objects(session, provider)
    ready = {node_class["metadata"]["name"]: _is_ready(node_class) for node_class in classes}
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
        return Finding("nodepools", NOTE, "; ".join(wrong[:MAX_PROBLEMS_SHOWN]))
    return Finding("nodepools", OK, f"{len(pools)}, with NodeClasses that are ready")


async def node_class_objects(session: Session, provider: str) -> list[dict[str, Any]]:
    """The provider's NodeClasses. Raises ClusterError, also where none are served, and Unreachable."""
    group, resource = NODE_CLASSES[provider]
    return await _items(session, f"/apis/{group}/{_VERSIONS[provider]}/{resource}")


async def _items(session: Session, path: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = (await session.request("GET", path)).checked(f"list {path}").json()["items"]
    return items


def _is_ready(node_class: dict[str, Any]) -> bool:
    """One without conditions is not judged by anybody (KWOK)."""
    conditions: Iterable[dict[str, Any]] = node_class.get("status", {}).get("conditions", ())
    return all(condition["status"] == "True" for condition in conditions if condition["type"] == "Ready")


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
