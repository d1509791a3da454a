"""`kerf whatif` from outside: what it prints, its JSON, and one coded line for each change that does not apply."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.engine.record.decisions import Decision
from tests.support.records import changed, stored, tampered, whole_life
from tests.support.repository import ROOT
from tests.support.simulation.run import Run, scale, workshop
from tests.support.world import World

GOLDEN = ROOT / "tests" / "golden" / "workshop-scale-up-and-down"
POOL = "nodepool/default.spec"
PODS = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: x, resources: {requests: {cpu: 300m}}}]}
"""


@pytest.fixture(scope="module")
def life() -> World:
    return whole_life()


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory, life: World) -> Path:
    return stored(tmp_path_factory.mktemp("records") / "life.kerf", life.store)


def position_of_first(store: Any, decider: str) -> int:
    positions: list[int] = [e.position for e in store.entries if e.stream == f"decision/{decider}"]
    return positions[0]


def test_a_decision_is_made_again_with_a_change_before_it(kerf: Any, record: Path, life: World) -> None:
    first = position_of_first(life.store, "provision")
    code, out, err = kerf("whatif", record, "--at", first, "--set", f"{POOL}.limits.cpu=0")
    assert (code, err) == (0, "")
    assert "spec.limits.cpu: not set → 0" in out
    assert f"as recorded at position {first}: 1 node launched, 5 pods placed" in out
    assert "  - default-" in out
    assert "is not launched" in out
    assert "5 pods (default/a, default/b, default/c and 2 more) without a place" in out
    assert "Exact is this one decision" in out


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("--set", f"{POOL}.disruption.consolidateAfter=60s"), "consolidateAfter: {was} → 60s (no change)"),
        (("--set", f"{POOL}.disruption.consolidateAfter=61s"), "consolidateAfter: {was} → 61s"),
        (("--setting", "batch_idle=1000ms"), "setting batch_idle: 1000 → 1000 (no change)"),
        (("--price", "m5.large=+0%"), "): +0% (no change)"),
        (("--price", "m5.large=+1%"), "): +1%"),
    ],
)
def test_a_change_that_is_none_says_so(kerf: Any, change: tuple[str, str], told: str) -> None:
    answer = json.loads(kerf("whatif", GOLDEN, *change, "--json")[1])
    assert [said.endswith(told.format(was="1m0s")) for said in answer["changes"]] == [True], answer["changes"]


@pytest.mark.parametrize("form", ["", "--markdown"])
def test_what_the_record_changes_later_is_said_to_be_left_out(kerf: Any, tmp_path: Path, form: str) -> None:
    pool = next(document for document in workshop() if document["kind"] == "NodePool")
    pool["spec"]["limits"] = {"cpu": 1}
    run = Run(workshop(scale("10s", 5), {"at": "10500ms", "action": "apply", "object": pool}), until=60_000)
    edited = stored(tmp_path / "edited.kerf", run.memory)
    out = kerf("whatif", edited, "--at", "+10.2s", "--set", f"{POOL}.limits.cpu=1k", *filter(None, [form]))[1]
    assert "The record changes nodepool/default later (+" in out
    assert "With the change that is left out." in out


def test_a_position_within_a_turn_is_answered_for_its_end_and_says_so(kerf: Any, record: Path, life: World) -> None:
    inside = next(e.position for e, after in pairwise(life.store.entries) if e.turn == after.turn > 3)
    code, out, err = kerf("whatif", record, "--at", inside, "--setting", "batch_idle=3s")
    end = max(e.position for e in life.store.entries if e.turn == life.store.entries[inside - 1].turn)
    assert (code, f"(position {end})" in out) == (0, True)
    assert err == f"Note: position {inside} is within a turn: the change is made at its end, {end}\n"


def test_nodes_that_go_already_are_named_and_not_counted(kerf: Any) -> None:
    """`kerf status` counts them until they are gone."""
    code, out, _ = kerf("log", GOLDEN, "--json")
    tainted = next(event["position"] for event in map(json.loads, out.splitlines()) if event["code"] == "claim-tainted")
    code, out, _ = kerf("whatif", GOLDEN, "--at", f"{tainted}", "--setting", "batch_idle=3s")
    assert (code, "not counted, as on the way out already: default-" in out) == (0, True)


def test_json_has_both_decisions_and_the_plan(kerf: Any, record: Path, life: World) -> None:
    first = position_of_first(life.store, "provision")
    code, out, _ = kerf("whatif", record, "--at", first, "--no-capacity", "m5.large", "--json")
    answer = json.loads(out)
    assert code == 0
    assert answer["exact"] == "the next decision alone"
    assert answer["unchanged"]["position"] == first
    assert answer["unchanged"]["launched"][0]["instance_type"] != answer["changed"]["launched"][0]["instance_type"]
    assert [difference["sign"] for difference in answer["differences"]] == ["~"]
    assert answer["changed"]["price"] > answer["unchanged"]["price"]


def test_a_node_that_is_launched_otherwise_has_the_name_that_the_record_knows(
    kerf: Any, record: Path, life: World
) -> None:
    recorded = next(e.payload.claim for e in life.store.entries if e.type == "claim.requested")
    first = position_of_first(life.store, "provision")
    flags = ("whatif", record, "--at", first - 1, "--no-capacity", "m5.large")
    (difference,) = json.loads(kerf(*flags, "--json")[1])["differences"]
    assert difference["old"]["name"] == recorded != difference["name"], "another position is another name"
    assert f"~ {recorded} is launched otherwise, as {difference['name']}: type m5.large → " in kerf(*flags)[1]


def test_pods_that_are_added_get_a_place(kerf: Any, record: Path, tmp_path: Path) -> None:
    manifest = tmp_path / "web.yaml"
    manifest.write_text(PODS)
    code, out, err = kerf("whatif", record, "--at", "+10m", "--add-pods", manifest)
    assert (code, err) == (0, "")
    assert f"{manifest}: 2 more pods" in out
    assert "shop/web-0, shop/web-1" in out


@pytest.mark.parametrize(
    "change",
    [
        {"spec": {"containers": [{"name": "c", "resources": [{"requests": {"cpu": "1"}}]}]}},
        {"spec": {"containers": [{"name": "c", "resources": {"limits": ["cpu"]}}]}},
        {"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}, "requests": 5}}]}},
        {"spec": {"containers": [5]}},
        {"spec": {"containers": 5}},
        {"spec": [5]},
        {"metadata": ["p"]},
        {"status": "Pending"},
    ],
    ids=str,
)
def test_pods_that_are_malformed_are_refused(kerf: Any, record: Path, tmp_path: Path, change: dict[str, Any]) -> None:
    """The fuzz target of what-ifs found the first of these, which was a defect (KERF900)."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": []}, **change}
    manifest = tmp_path / "p.json"
    manifest.write_text(json.dumps(pod))
    code, out, err = kerf("whatif", record, "--at", "+10m", "--add-pods", manifest)
    assert (code, out) == (2, "")
    assert err.startswith("KERF3")


def test_a_removed_node_evicts_its_pods_and_tells_where_they_would_go(kerf: Any, record: Path) -> None:
    code, out, err = kerf("whatif", record, "--at", "+10m", "--remove", "node/n1")
    assert (code, err) == (0, "")
    assert "evicts 5 pods: default/a, default/b, default/c and 2 more" in out
    assert "Then, if nothing else happened (not exact): a provisioning pass" in out


def test_several_changes_are_made_together(kerf: Any, record: Path) -> None:
    _, out, _ = kerf(
        "whatif",
        record,
        "--at",
        "+10m",
        "--setting",
        "batch_idle=3s",
        "--price",
        "m5.large=+10%",
        "--delete",
        "node/n1",
    )
    assert "setting batch_idle: 1000 → 3000" in out
    assert "price of m5.large" in out
    assert "node/n1 deleted" in out


def test_a_number_is_taken_where_a_field_holds_text(kerf: Any, record: Path) -> None:
    code, out, _ = kerf("whatif", record, "--at", "+10m", "--set", f"{POOL}.disruption.budgets[0].nodes=0")
    assert code == 0
    assert "spec.disruption.budgets[0].nodes: 10% → 0" in out


REFUSED = {
    ("--set", "nodepool/defalt.spec.limits.cpu=4"): "KERF208: there is no NodePool defalt",
    ("--set", f"{POOL}.limitz.cpu=4"): "Is it limits?",
    ("--set", f"{POOL}.limits.cpu=much"): '"1.5Gi", 3. It is not set now',
    ("--set", f"{POOL}.limits.nvidia.com/gpu=6"): "Write spec.limits[nvidia.com/gpu]",
    ("--set", f"{POOL}.template.metadata.labels.team.example=a"): "Write spec.template.metadata.labels[team.example]",
    ("--set", f"{POOL}.template.metadata.labels.a.b/c=d"): "Write spec.template.metadata.labels[a.b/c]",
    ("--set", f"{POOL}.template.spec.expireAfter=7d"): 'such as "30m" or "168h", or "Never". It is ',
    ("--set", f"{POOL}.disruption.budgets[7].nodes=1"): "spec.disruption.budgets has no item 7",
    ("--set", f"{POOL}.weight.x=1"): "KERF208",
    ("--set", f"{POOL}.template.spec.nodeClassRef.name=defalt"): "no EC2NodeClass defalt [nodepool/",
    ("--set", f"{POOL}.template.spec.nodeClassRef.kind=EC2NodeClas"): "There is none at this moment",
    ("--set", "pod/a.spec.x=1"): "--apply takes manifests of other kinds",
    ("--set", POOL): "KERF208",
    ("--delete", "pod/zz"): "KERF208: there is no pod zz",
    ("--delete", "pood/a"): "KERF208: there is no kind pood",
    ("--delete", "ec2nodeclass/default"): "What the cloud makes of a NodeClass is not in the record",
    ("--remove", "node/n2"): "KERF208: there is no node n2",
    ("--price", "m5.larg=1"): "Is it m5.large",
    ("--price", "m5.large=dear"): "'dear' is no price",
    ("--price", "m5.large"): "changes nothing",
    ("--no-capacity", "mars"): "KERF208: there is no instance type, zone or capacity type mars",
    ("--setting", "batch_idel=5s"): "Is it batch_idle",
    ("--setting", "batch_idle=soon"): "It is 1000 now",
    ("--setting", "batch_idle=99999999999999999999"): "It is 1000 now",
    ("--setting", "batch_max=-5"): "It is 10000 now",
    ("--set", f"{POOL}.weight=99999999999999999999"): "[spec.weight]",
    ("--set", f"{POOL}.limits={{cpu: -1}}"): "[spec.limits]",
    ("--setting", "observe=true"): "KERF208: there is no setting observe",
    (): "KERF208: nothing is changed",
}


@pytest.mark.parametrize("flags", REFUSED)
def test_a_change_that_does_not_apply_is_refused_with_what_is_there(
    kerf: Any, record: Path, flags: tuple[str, ...]
) -> None:
    code, out, err = kerf("whatif", record, "--at", "+10m", *flags)
    assert (code, out) == (2, "")
    assert err.startswith("KERF208: ")
    assert REFUSED[flags] in err


def test_a_moment_outside_of_the_record_is_refused(kerf: Any, record: Path) -> None:
    code, _, err = kerf("whatif", record, "--at", "2020-01-01T00:00:00Z", "--remove", "node/n1")
    assert (code, err[:7]) == (2, "KERF202")


def test_a_moment_before_the_base_of_a_part_is_refused(kerf: Any, record: Path, tmp_path: Path) -> None:
    part = tmp_path / "part.kerfb"
    assert kerf("bundle", "export", record, part, "--since", "+10m")[0] == 0
    for moment in ("3", "2020-01-01T00:00:00Z"):
        code, out, err = kerf("whatif", part, "--at", moment, "--remove", "node/n1")
        assert (code, out, err[:7]) == (2, "", "KERF202")
    assert kerf("whatif", part, "--at", "end", "--setting", "batch_idle=3s")[0] == 0


def test_a_moment_is_written_as_a_scenario_and_no_file_is_replaced(kerf: Any, record: Path, tmp_path: Path) -> None:
    scenario = tmp_path / "moment.json"
    code, out, err = kerf("whatif", record, "--at", "+10m", "--remove", "node/n1", "--export", scenario)
    assert (code, err) == (0, "")
    assert out == f"Written to {scenario}. Decide it with kerf plan {scenario} or kerf disrupt {scenario}\n"
    assert "5 pods: a, b, c and 2 more" in kerf("plan", scenario)[1]
    code, _, err = kerf("whatif", record, "--export", scenario)
    assert (code, err[:7]) == (2, "KERF114")


def test_manifests_that_only_the_cloud_could_answer_are_refused(kerf: Any) -> None:
    manifest = ROOT / "docs" / "examples" / "workshop" / "ec2nodeclass.yaml"
    code, _, err = kerf("whatif", GOLDEN, "--apply", manifest)
    assert (code, err[:7]) == (2, "KERF208")
    assert "What the cloud makes of a NodeClass is not in the record" in err


def test_a_changed_daemonset_and_a_workload_are_told_in_words(kerf: Any, tmp_path: Path) -> None:
    """No digest of a template, and what to do about a workload, whose pods alone are in the record."""

    def manifest(kind: str, cpu: str) -> Path:
        pod = {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}
        spec = {
            "selector": {"matchLabels": {"app": "a"}},
            "template": {"metadata": {"labels": {"app": "a"}}, "spec": pod},
        }
        file = tmp_path / f"{kind}-{cpu}.json"
        metadata = {"name": "agent", "namespace": "kube-system"}
        file.write_text(json.dumps({"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec}))
        return file

    run = Run([*workshop(scale("10s", 1)), json.loads(manifest("DaemonSet", "700m").read_text())], until=60_000)
    record = stored(tmp_path / "r.kerf", run.memory)
    out = kerf("whatif", record, "--apply", manifest("DaemonSet", "50m"))[1]
    assert "  DaemonSet agent: template.requests.cpu 700m → 50m\n" in out
    err = kerf("whatif", record, "--apply", manifest("Deployment", "50m"))[2]
    assert "--add-pods adds its pods, with --delete deployment/agent in place of those that are there" in err


def test_another_decision_in_the_record_and_an_older_version_are_told(kerf: Any, life: World, tmp_path: Path) -> None:
    first = position_of_first(life.store, "provision")
    decision = next(entry.payload for entry in life.store.scan(first - 1, first))
    otherwise = stored(tmp_path / "otherwise.kerf", tampered(life.store, changed(first, now=decision.now + 1)))
    out = kerf("whatif", otherwise, "--at", first, "--no-capacity", "c5.large")[1]
    assert "The record has another decision there: kerf verify says how they differ." in out
    older = stored(tmp_path / "older.kerf", tampered(life.store, changed(first, version=1)))
    out = kerf("whatif", older, "--at", first, "--no-capacity", "c5.large")[1]
    assert "The record has another version of a decider (provision 1, today's is" in out


def test_a_part_that_a_newer_engine_decided_ends_with_4(kerf: Any, life: World, tmp_path: Path) -> None:
    def newer(entries: list[Any]) -> list[Any]:
        return [
            replace(entry, payload=replace(entry.payload, version=999))
            if isinstance(entry.payload, Decision)
            else entry
            for entry in entries
        ]

    newer_record = stored(tmp_path / "newer.kerf", tampered(life.store, newer))
    first = position_of_first(life.store, "provision")
    code, _, err = kerf("whatif", newer_record, "--at", first, "--set", f"{POOL}.limits.cpu=0")
    assert (code, err[:7]) == (4, "KERF209")
    assert "provision 999" in err


def test_a_file_without_manifests_adds_no_pods_and_says_what_it_lacks(kerf: Any, record: Path, tmp_path: Path) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text("m5.large/spot: 1\n")

    code, _, err = kerf("whatif", record, "--at", "+10m", "--add-pods", prices)

    assert code == 2
    assert "KERF208: a document has no kind, so it makes no pods" in err
