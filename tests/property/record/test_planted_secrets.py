"""Secrets are planted in every text that a stranger may write, and looked for in what kerf keeps and says.

What the record holds of Kubernetes' objects stands on a page, field by field; a secret in any other field is nowhere.
User data, the bodies of messages and passwords of URLs are nowhere at all.
"""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kerf.adapters.aws.interruption import parse
from kerf.adapters.cli.main import main
from kerf.adapters.kubernetes.published_schemas import published_schemas
from kerf.adapters.manager.metrics.exposition import exposition
from kerf.adapters.store.files.bundle import BundleStore, export_bundle
from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.engine.errors import KerfError
from kerf.engine.model.crds.definitions import BY_NAME
from kerf.engine.model.karpenter.nodeclass_terms import recorded
from kerf.engine.model.kinds.watched import WATCHED
from kerf.engine.model.manifests.karpenter.ec2nodeclasses import read_ec2_node_class
from kerf.engine.model.manifests.violations import Report
from kerf.engine.passwords import without_password
from kerf.engine.state.evolve import evolve
from kerf.engine.state.load import empty
from kerf.projections.kubernetes_events.decision_events import DecisionEvents
from kerf.projections.metrics.counters import RecordCounters
from tests.support.records import stored
from tests.support.repository import ROOT
from tests.support.simulation.run import Run, scale, workshop
from tests.support.strategies.whole_objects import WholeObjects

PAGE = ROOT / "docs" / "record-contents.md"
SECRET = re.compile(r"qz\d{5}xy")

# ── objects ────────────────────────────────────────────────────────────────────────────────────────────────────────

_PART_OF_A_FIELD = re.compile(
    r"(affinity|nodeAffinity|topologySpreadConstraints|tolerations|ownerReferences|allowedTopologies|selector|taints"
    r"|startupTaints|requirements|ports|resources|resourceClaims|conditions|budgets|nodeClassRef|podTemplateRef"
    r"|scalableRef)\..*"
)


def field(kind: str, path: str) -> str:
    """Returns the field as the page shows it: without what is in it, and for a template of pods as that of the pod."""
    of_pod = path if kind == "NodePool" else re.sub(r"^(spec\.)?template\.", "", path)
    return _PART_OF_A_FIELD.sub(r"\1", of_pod.replace("[]", ""))


def told() -> dict[str, set[str]]:
    """Returns the fields of each kind that the page says are recorded."""
    found: dict[str, set[str]] = {}
    _, _, table = PAGE.read_text().partition("### Fields of objects")
    for line in table.partition("\n#")[0].splitlines():
        cells = [re.findall(r"`([^`]+)`", cell) for cell in line.strip("|").split("|")]
        for kind in cells[0] if len(cells) > 1 else ():
            found.setdefault(kind, set()).update(cells[1])
    return found


def objects() -> dict[str, set[str]]:
    """Returns, by kind, the fields of whole objects that are recorded."""
    whole, found = WholeObjects(), dict[str, set[str]]()
    for kind in WATCHED:
        for served in kind.served:
            known = BY_NAME.get(served.api)
            schema = published_schemas().schema(served.api) or (known.schema if known else None)
            if schema is None:
                continue
            read = served.read(msgspec.json.encode(whole.document(served.api, schema)), Report())
            kept = kind.trim(read.object) if kind.trim else read.object
            written = msgspec.json.encode([kept, *read.blobs.values()]).decode()
            name = served.api.rpartition("/")[2]
            fields = {field(name, whole.where[secret]) for secret in SECRET.findall(written)} - {"metadata.name"}
            if "spec.template.metadata.annotations" in fields:  # all of them
                fields = {one for one in fields if not one.endswith("]")}
            found[name] = fields
    return found


def test_what_is_recorded_of_each_object_is_what_the_page_says() -> None:
    recorded_fields, page = objects(), told()
    assert len(recorded_fields) > 15
    untold = {f"{kind} {field}" for kind, fields in recorded_fields.items() for field in fields - page.get(kind, set())}
    assert sorted(untold) == []


def test_the_page_tells_no_field_that_is_not_recorded() -> None:
    recorded_fields = objects()
    assert (
        sorted(f"{kind} {field}" for kind, fields in told().items() for field in fields - recorded_fields[kind]) == []
    )


def test_parameters_for_drivers_of_devices_are_not_recorded() -> None:
    """There are no published schemas of these kinds."""
    opaque = {"driver": "gpu.example", "parameters": {"token": "qz00001xy"}}
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    spec = {"devices": {"requests": [request], "config": [{"requests": ["r"], "opaque": opaque}]}}
    for kind in WATCHED:
        for served in (served for served in kind.served if served.group == "resource.k8s.io"):
            document: dict[str, Any] = {"metadata": {"name": "x", "annotations": {"a": "qz00002xy"}}}
            document["spec"] = spec if kind.name == "resourceclaim" else {"config": [{"opaque": opaque}], "driver": "d",
                                                                          "pool": {"name": "p"}}  # fmt: skip
            read = served.read(msgspec.json.encode(document), Report())
            assert SECRET.findall(msgspec.json.encode(read.object).decode()) == []


def test_of_a_node_class_all_is_recorded_but_user_data() -> None:
    whole = WholeObjects()
    document = whole.document("karpenter.k8s.aws/v1/EC2NodeClass", BY_NAME["karpenter.k8s.aws/v1/EC2NodeClass"].schema)
    document["metadata"] = {"name": "default"}
    read = read_ec2_node_class(msgspec.json.encode(document), Report())
    shown = set(SECRET.findall(msgspec.json.encode(recorded(read.object)).decode()))
    secret = {text for text, path in whole.where.items() if path == "spec.userData"}
    assert len(secret) == 1
    assert not secret & shown
    assert {path for text, path in whole.where.items() if text in shown} >= {"spec.role", "spec.tags"}


# ── all that kerf says ─────────────────────────────────────────────────────────────────────────────────────────────

USER_DATA = "#!/bin/sh\nexport TOKEN=qz00001xy\n"
ENCODED = base64.b64encode(b"#!/bin/sh\nexport TOKEN=qz00001xy\n").decode()[30:40]


def with_secrets() -> list[Any]:
    """Returns a world with a secret in each field that kerf does not need."""
    found = workshop(scale("10s", 5), scale("20m", 1), scale("40m", 0))
    for document in found:
        document.setdefault("metadata", {}).setdefault("annotations", {})["note"] = "qz00002xy"
        if document["kind"] == "EC2NodeClass":
            document["spec"]["userData"] = USER_DATA
        if document["kind"] == "Deployment":
            template = document["spec"]["template"]
            template["metadata"].setdefault("annotations", {})["vault"] = "qz00003xy"
            template["spec"]["serviceAccountName"] = "qz00004xy"
            template["spec"]["imagePullSecrets"] = [{"name": "qz00005xy"}]
            for container in template["spec"]["containers"]:
                container["env"] = [{"name": "qz00006xy", "value": "qz00007xy"}]
                container |= {"args": ["qz00008xy"], "command": ["qz00009xy"], "image": "qz00010xy"}
    return found


@pytest.fixture(scope="module")
def run() -> Run:
    return Run(with_secrets())


def secrets_in(text: str) -> set[str]:
    return {*SECRET.findall(text), *([ENCODED] if ENCODED in text else [])}


def test_no_secret_is_in_record_or_bundle(run: Run, tmp_path: Path) -> None:
    source = SQLiteStore(stored(tmp_path / "r.kerf", run.memory), "read")
    export_bundle(source, tmp_path / "b.kerfb")
    source.close()
    bundle = BundleStore(tmp_path / "b.kerfb")
    written = b"".join([*bundle.encoded(), *map(bundle.blob, run.memory.blobs)])
    assert b"karpenter.k8s.aws" in written
    assert secrets_in(written.decode("latin-1")) == set()
    assert secrets_in((tmp_path / "r.kerf").read_bytes().decode("latin-1")) == set()


@pytest.mark.parametrize(
    "command",
    [["log"], ["log", "--json"], ["log", "--karpenter"], ["verify"], ["verify", "--json"], ["at", "--json"],
     ["explain", "nodepool", "default"], ["bundle", "inspect"]],
    ids=" ".join,
)  # fmt: skip
def test_no_command_shows_a_secret(
    run: Run, command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = str(stored(tmp_path / "r.kerf", run.memory))
    words = 2 if command[0] == "bundle" else 1
    main([*command[:words], record, *command[words:]])
    shown = "".join(capsys.readouterr())
    assert shown
    assert secrets_in(shown) == set()


def test_no_secret_is_in_events_and_metrics(run: Run) -> None:
    state = empty(run.store)
    events, metrics = DecisionEvents(state), RecordCounters(state, "aws")
    said = []
    for entry in run.memory.entries:
        evolve(state, entry)
        said += events.apply(entry)
        metrics.apply(entry)
    assert said
    assert secrets_in(f"{said}{exposition(metrics.families()).decode()}") == set()


@pytest.mark.parametrize("kind", ["EC2NodeClass", "Deployment"])
@pytest.mark.parametrize("command", [["--debug", "validate"], ["simulate", "--quiet", "--until", "1m"]], ids=" ".join)
def test_no_error_shows_a_secret_beside_the_fault(
    kind: str, command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A field of a manifest has a wrong type, and the secret stands in another one."""
    found = with_secrets()
    for document in (document for document in found if document["kind"] == kind):
        document["metadata"]["labels"] = "wrong"
        document["metadata"]["name"] = 7
    (tmp_path / "m.yaml").write_text(yaml.safe_dump_all(found))
    assert main([*command, str(tmp_path / "m.yaml")]) != 0
    shown = "".join(capsys.readouterr())
    assert "metadata" in shown
    assert secrets_in(shown) == set()


# ── messages and URLs ──────────────────────────────────────────────────────────────────────────────────────────────

ANYTHING = st.recursive(
    st.sampled_from(["qz00001xy", "2026-qz00001xy", 7, None, True, "", "\ud800qz00001xy"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["qz00001xy", "state"]), inner),
    max_leaves=4,
)
EVENTS = st.fixed_dictionaries(
    {},
    optional={
        "version": st.just("0") | ANYTHING,
        "source": st.sampled_from(["aws.ec2", "aws.health"]) | ANYTHING,
        "detail-type": st.sampled_from(["EC2 Instance State-change Notification", "AWS Health Event"]) | ANYTHING,
        "time": st.just("2026-01-01T00:00:00Z") | ANYTHING,
        "account": ANYTHING,
        "resources": ANYTHING,
        "detail": ANYTHING
        | st.fixed_dictionaries({"instance-id": st.just("i-1"), "state": st.just("stopped") | ANYTHING, "x": ANYTHING}),
    },
)


@given(event=EVENTS | ANYTHING)
def test_a344_nothing_of_a_message_but_ids_and_kinds_is_recorded(event: Any) -> None:
    for body in (json.dumps(event), f"{json.dumps(event)}, qz00001xy", repr(event)):
        assert secrets_in(f"{parse('m-1', body)}") == set()


PASSWORDS = st.text(st.sampled_from("abcXYZ019:/?#@[]%&=+!$,;._~-"), min_size=6, max_size=20).map(
    lambda text: f"qz{text}00001xy"
)


@given(password=PASSWORDS, start=st.sampled_from(["postgresql://", "postgres://", "postgresql+psycopg://", ""]))
def test_no_password_of_a_url_is_shown(password: str, start: str) -> None:
    """However it is written: the beginning and the end of the password would show."""
    url = f"{start}kerf:{password}@db.example/kerf?schema=kerf"
    error = KerfError(f"cannot open {url}", where=url, hint=f"Is {url} right?")
    told = f"{error} {error!r}" if start else ""  # in a sentence nothing else tells that it is a URL
    for shown in (without_password(url), told):
        assert "00001xy" not in shown
        assert "qz" not in shown
