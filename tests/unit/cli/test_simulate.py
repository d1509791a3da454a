"""`kerf simulate`: any manifests, bad ones refused one by one (issue, point 12 and "Bad input")."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from kerf.adapters.cli.composition import zones_of
from kerf.adapters.cli.documents import read_documents
from kerf.adapters.cli.main import main
from kerf.adapters.store.sqlite import SQLiteStore

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "docs/examples"
WORKSHOP = str(EXAMPLES / "workshop")

NODE_POOL = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements: []
"""


NODE_CLASS = """
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {{name: default}}
spec:
  amiSelectorTerms: [{{alias: al2023@latest}}]
  role: r
  subnetSelectorTerms: [{{tags: {{a: b}}}}]
  securityGroupSelectorTerms: [{{tags: {{a: b}}}}]
{more}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {{name: default}}
spec:
  template:
    spec:
      nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}
      requirements:
        - {{key: node.kubernetes.io/instance-type, operator: In, values: [m5.xlarge]}}
        - {{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}}
---
"""
CROWD = """
apiVersion: apps/v1
kind: Deployment
metadata: {{name: crowd}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: crowd}}}}
  template:
    metadata: {{labels: {{app: crowd}}}}
    spec:
      containers: [{{name: a, image: x, resources: {{requests: {{cpu: 50m, ephemeral-storage: 1G}}}}}}]
---
"""


def simulated(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    code = main(["simulate", *arguments, "--json"])
    return code, json.loads(capsys.readouterr().out)


def example(name: str) -> str:
    return str(EXAMPLES / "simulations" / name)


def written(folder: Path, text: str, name: str = "given.yaml") -> str:
    file = folder / name
    file.write_text(text)
    return str(file)


def codes(outcome: dict[str, Any]) -> list[str]:
    return [refused["code"] for refused in outcome["refused"]]


def entries(record: Path, kind: str) -> list[Any]:
    store = SQLiteStore(record, "read")
    try:
        return [entry for entry in store.scan() if entry.type == kind]
    finally:
        store.close()


# ── what comes out ──────────────────────────────────────────────────────────────────────────────────────────


def test_the_workshop_launches_one_m5_large_and_removes_it(capsys: pytest.CaptureFixture[str]) -> None:
    code, outcome = simulated(capsys, WORKSHOP, example("workshop.yaml"))
    assert code == 0
    assert outcome["types"] == {"on-demand m5.large": 1}
    assert outcome["nodes"] == {"launched": 1, "failed": 0, "removed": {"empty": 1}, "running": 0}
    assert outcome["duration"] == 7_800  # two hours after the last action
    lived = outcome["spent"]["hours"]
    assert outcome["spent"]["total"] == pytest.approx(0.096 * lived, rel=0.01)
    assert "spot prices are a model" in outcome["prices"]


def test_what_the_kubelet_and_the_disks_of_a_node_class_leave_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Twelve small pods fit one m5.xlarge, but three where each takes five, and two where a disk of 8 GiB (less a tenth
    for eviction and 1 GiB for the kubelet: 6.6 GB) holds six pods of 1 GB."""
    pods = CROWD.format(replicas=12)
    plain = written(tmp_path, NODE_CLASS.format(more="") + pods, "plain.yaml")
    narrow = written(tmp_path, NODE_CLASS.format(more="  kubelet: {maxPods: 5}") + pods, "narrow.yaml")
    disk = "  blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 8Gi}}]"
    small = written(tmp_path, NODE_CLASS.format(more=disk) + pods, "small.yaml")
    launched = [simulated(capsys, file, "--until", "10m")[1]["nodes"]["launched"] for file in (plain, narrow, small)]
    assert launched == [1, 3, 2]


def test_a_node_class_whose_kubelet_is_an_expression_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A-52."""
    file = written(tmp_path, NODE_CLASS.format(more='  kubelet: {maxPods: "vcpus * 4"}'))
    code, outcome = simulated(capsys, file)
    assert (code, codes(outcome)) == (1, ["KERF522"])


def test_the_story_has_its_time_beside_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", WORKSHOP, example("workshop.yaml")]) == 0
    lines = capsys.readouterr().out.splitlines()
    launched = [line for line in lines if "is launched: m5.large" in line]
    assert len(launched) == 1
    assert launched[0].lstrip().startswith("+0:00:1")
    assert any(line.split() == ["nodes", "removed", "1", "(1", "empty)"] for line in lines)


def test_a_morning_with_an_interruption_and_a_lack_of_capacity(capsys: pytest.CaptureFixture[str]) -> None:
    code, outcome = simulated(capsys, example("morning.yaml"))
    assert code == 0
    assert outcome["nodes"]["removed"] == {"empty": 5, "interrupted": 1}
    assert (outcome["nodes"]["running"], outcome["waiting"]) == (0, [])


def test_what_a_simulation_does_without_is_noted_whoever_applies_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"}}
    apply = {"at": "1m", "action": "apply", "object": service | {"kind": "ConfigMap"}}
    timeline = {"apiVersion": "kerf.dev/v1alpha1", "kind": "Timeline", "spec": {"actions": [apply]}}
    file = written(tmp_path, f"{json.dumps(service)}\n---\n{json.dumps(timeline)}")
    code, outcome = simulated(capsys, file)
    assert (code, outcome["refused"]) == (0, [])
    words = "ignored, for this is not simulated"
    assert outcome["notes"] == [{"object": "Service shop/web and 1 more", "code": "not-simulated", "text": words}]


def test_a_mistyped_field_is_noted_with_the_one_that_it_may_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The API server would leave it out, and the simulation would be one of another NodePool without a word."""
    pool = Path(f"{WORKSHOP}/nodepool.yaml").read_text().replace("  disruption:", "  disrupton:")
    code, outcome = simulated(capsys, written(tmp_path, pool), f"{WORKSHOP}/ec2nodeclass.yaml", "--until", "5m")
    assert code == 0
    text = "there is no field spec.disrupton, so that it does nothing. Is it disruption?"
    assert outcome["notes"] == [{"object": "NodePool default", "code": "unknown-field", "text": text}]


def test_until_ends_it(capsys: pytest.CaptureFixture[str]) -> None:
    _, outcome = simulated(capsys, WORKSHOP, example("workshop.yaml"), "--until", "5m")
    assert outcome["duration"] == 300
    assert (outcome["nodes"]["running"], outcome["pods"]) == (1, {"Running": 5})


def test_a_document_that_says_not_what_it_is_is_refused_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = written(tmp_path, "metadata: {name: x}")
    code, outcome = simulated(capsys, files, "--until", "5m")
    assert code == 1
    (refused,) = outcome["refused"]
    assert (refused["code"], refused["object"]) == ("KERF302", f"{files}:1")


@pytest.mark.parametrize("until", ["soon", "-1h", "0s"])
def test_an_until_that_is_no_duration_is_refused(until: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", WORKSHOP, f"--until={until}"]) == 2
    assert capsys.readouterr().err.startswith("KERF332: ")


def test_zones_follow_the_node_pools(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    zone = "{key: topology.kubernetes.io/zone, operator: In, values: [eu-central-1b]}"
    pool = written(tmp_path, NODE_POOL.replace("requirements: []", f"requirements: [{zone}]"))
    record = tmp_path / "run.kerf"
    given = (pool, f"{WORKSHOP}/ec2nodeclass.yaml", example("workshop.yaml"))
    inflate = (EXAMPLES / "workshop/inflate.yaml").read_text().replace("type: karpenter", "kubernetes.io/os: linux")
    deployment = written(tmp_path, inflate, "inflate.yaml")
    code, _ = simulated(capsys, *given, deployment, "--record", str(record))
    assert code == 0
    assert {entry.payload.zone for entry in entries(record, "claim.launched")} == {"eu-central-1b"}


# ── what goes wrong ─────────────────────────────────────────────────────────────────────────────────────────


def test_bad_documents_are_refused_one_by_one_and_the_rest_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Malformed and contradictory manifests, an unknown API version, a bad quantity, an unknown enum, bad actions."""
    record = tmp_path / "run.kerf"
    code, outcome = simulated(capsys, WORKSHOP, example("refused.yaml"), "--record", str(record))
    assert code == 1
    assert outcome["nodes"]["launched"] == 1  # the Deployment's pod got its node all the same
    by_object: dict[str, list[str]] = {}
    for refused in outcome["refused"]:
        by_object.setdefault(refused["object"].partition(" of ")[0], []).append(refused["code"])
    assert by_object == {
        "NodePool from-the-future": ["KERF302"],
        "Pod bad-quantity": ["KERF306"],
        "NodePool contradictory": ["KERF309", "KERF312", "KERF305", "KERF310"],
        "Timeline mixed": ["KERF810", "KERF810", "KERF811"],
        "document 4": ["KERF331"],
        "document 5": ["KERF331"],
    }
    fields = {refused["field"] for refused in outcome["refused"]}
    assert "spec.template.spec.requirements[0].operator" in fields
    assert "spec.containers[0].resources.requests[memory]" in fields
    recorded = [entry.payload.code for entry in entries(record, "input.refused")]
    assert sorted(recorded) == sorted(codes(outcome))


def test_text_that_is_no_manifest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path, "just words\n---\n- a\n- list\n---\n\n---\n# only a comment\n", "a.yaml")
    (tmp_path / "b.yaml").write_bytes(b"\xff\xfe not utf-8 \x80")
    written(tmp_path, '{"kind": "Pod", ', "c.json")
    code, outcome = simulated(capsys, str(tmp_path))
    assert code == 1
    assert codes(outcome) == ["KERF331"] * 4


def test_a_list_refuses_its_items_one_by_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}
    items = [namespace, {"apiVersion": "v1", "kind": "Gizmo", "metadata": {"name": "g"}}]
    file = written(tmp_path, json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), "list.json")
    code, outcome = simulated(capsys, file)
    assert (code, codes(outcome)) == (1, ["KERF302"])


@pytest.mark.parametrize(
    "document",
    [
        "kind: List\nitems: 7",
        "kind: List\nitems: [7, null, [1]]",
        "kind: [a]\nmetadata: {name: x}",
        "apiVersion: v1\nkind: Pod\nmetadata: nobody",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\nspec: {template: 4}",
        "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: x}\nspec: {template: {spec: {requirements: 7}}}",
        "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: x}\nstatus: {conditions: [7]}",
        "apiVersion: kerf.dev/v1alpha1\nkind: Timeline\nspec: {actions: [7, {at: 1s, action: apply, object: {}}]}",
        "apiVersion: kerf.dev/v1alpha1\nkind: Timeline\nmetadata: 3\nspec: 4",
        "? [a, b]\n: c",
        "when: 2026-01-01",
        "{a: &a [*a]}",
    ],
)
def test_documents_of_wrong_shapes_are_refused(
    document: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, outcome = simulated(capsys, WORKSHOP, written(tmp_path, document), example("workshop.yaml"))
    assert code == 1
    assert codes(outcome)
    assert outcome["nodes"]["launched"] == 1


@pytest.mark.parametrize("merged", [False, True])
def test_a_bomb_of_aliases_is_refused_and_the_rest_goes_on(
    merged: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    levels = ["a0: &a0 {x: y}"]
    for level in range(1, 12):
        inside = ", ".join([f"*a{level - 1}"] * 9)
        levels.append(f"a{level}: &a{level} " + (f"{{<<: [{inside}]}}" if merged else f"[{inside}]"))
    bomb = written(tmp_path, "\n".join(["apiVersion: v1", "kind: Namespace", *levels]))
    code, outcome = simulated(capsys, bomb, WORKSHOP, example("workshop.yaml"))
    assert (code, codes(outcome), outcome["nodes"]["launched"]) == (1, ["KERF331"], 1)


def test_a_few_aliases_are_what_they_stand_for(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("a: &a {x: 1}\nb: [*a, *a]\nc: {<<: *a, y: 2}\n")
    found = read_documents([file])
    assert (found.good, found.refused) == ([{"a": {"x": 1}, "b": [{"x": 1}] * 2, "c": {"x": 1, "y": 2}}], [])


def test_a_missing_file_is_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "no/such.yaml"]) == 2
    assert capsys.readouterr().err.startswith("KERF330: cannot read the file")


def test_a_node_pool_without_its_node_class_launches_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    code, outcome = simulated(
        capsys,
        f"{WORKSHOP}/nodepool.yaml",
        f"{WORKSHOP}/inflate.yaml",
        example("workshop.yaml"),
        "--until=5m",
    )
    assert code == 0
    assert outcome["nodes"]["launched"] == 0
    assert [reason["code"] for reason in outcome["waiting"][0]["reasons"]] == ["no-node-pool"]
    assert len(outcome["waiting"][0]["pods"]) == 5
    assert [(note["object"], note["code"]) for note in outcome["notes"]] == [("NodePool default", "nodeclass-missing")]


def test_a_pod_that_no_type_fits_is_explained_by_what_each_reason_ruled_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = str(tmp_path / "run.kerf")
    code, outcome = simulated(capsys, WORKSHOP, example("no-fit.yaml"), "--record", record)
    assert code == 0
    assert [group["pods"] for group in outcome["waiting"]] == [["other/huge"]]
    assert outcome["waiting"][0]["reasons"][0]["code"] == "types-resources"
    assert outcome["pods"] == {"Pending": 1, "Running": 1}
    assert main(["explain", record, "pod", "other/huge", "--json"]) == 0
    pool = json.loads(capsys.readouterr().out)["how"]["pools"][0]
    ruled_out = {(cut["what"], cut["key"]): cut["types"] for cut in pool["cuts"]}
    assert ruled_out["resource", "memory"] == 4
    assert ruled_out["requirement", "node.kubernetes.io/instance-type"] > 1_000
    assert sum(ruled_out.values()) == pool["types"]
    assert pool["left"] == 0


def test_a_lack_of_capacity_falls_to_the_next_and_is_remembered_for_three_minutes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = tmp_path / "run.kerf"
    code, _ = simulated(capsys, WORKSHOP, example("no-capacity.yaml"), "--record", str(record))
    assert code == 0
    launched = entries(record, "claim.launched")
    assert [(e.payload.instance_type, e.payload.zone) for e in launched] == [
        ("r5.large", "us-west-2b"),  # m5.large nowhere, r5.large not in us-west-2a
        ("r5.large", "us-west-2b"),  # capacity is back since a minute, and m5.large still avoided
        ("m5.large", "us-west-2a"),  # instead of the second, as soon as the lack is forgotten
        ("r5.large", "us-west-2a"),
    ]
    refused = entries(record, "launch.answered")[0].payload.errors
    assert {error.code for error in refused} == {"InsufficientInstanceCapacity"}
    assert len(refused) == 4
    assert (launched[1].at - launched[0].at) < 180_000 < (launched[2].at - launched[0].at)


# ── the record ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_record_of_a_simulation_is_replaced_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record, other = tmp_path / "run.kerf", tmp_path / "notes.kerf"
    other.write_text("mine")
    assert main(["simulate", WORKSHOP, "--record", str(record)]) == 0
    assert main(["simulate", WORKSHOP, "--record", str(record)]) == 0
    assert "is replaced" in capsys.readouterr().err
    assert main(["simulate", WORKSHOP, "--record", str(other)]) == 2
    assert capsys.readouterr().err.startswith("KERF114: ")
    assert other.read_text() == "mine"
    assert main(["simulate", WORKSHOP, "--record", str(tmp_path)]) == 2
    assert main(["simulate", WORKSHOP, "--record", str(tmp_path / "no" / "run.kerf")]) == 2
    assert capsys.readouterr().err.count("KERF1") == 2


def test_seeds_differ_and_are_repeatable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    heads = []
    for number, seed in enumerate(("1", "1", "2")):
        record = tmp_path / f"{number}.kerf"
        simulated(capsys, example("morning.yaml"), "--seed", seed, "--record", str(record))
        store = SQLiteStore(record, "read")
        heads.append(store.head().chain)
        store.close()
    assert heads[0] == heads[1] != heads[2]


def _long(actions: int) -> str:
    """Two days of ups and downs, interruptions, and capacity that comes and goes."""
    made = []
    for index in range(actions):
        at = f"{index * 40 + 5}m"
        made.append(f"    - {{at: {at}, action: scale, name: web, replicas: {(index * 7) % 23}}}")
        if index % 5 == 2:
            made.append(f"    - {{at: {at}, action: interrupt, capacityType: spot}}")
        if index % 9 == 4:
            made.append(f"    - {{at: {at}, action: capacity, capacityType: spot}}")
            made.append(f"    - {{at: {index * 40 + 20}m, action: restore-capacity}}")
    head = "apiVersion: kerf.dev/v1alpha1\nkind: Timeline\nmetadata: {name: long}\nspec:\n  actions:\n"
    return head + "\n".join(made)


def run(*arguments: str, seed: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kerf", *arguments],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.slow
def test_a_long_record_verifies_in_other_processes_with_other_hash_seeds(tmp_path: Path) -> None:
    timeline, record = written(tmp_path, _long(60)), tmp_path / "long.kerf"
    manifests = example("morning.yaml")
    made = run("simulate", manifests, timeline, "--until", "48h", "--record", str(record), "--json", seed="7")
    assert made.returncode in (0, 1), made.stderr  # 1: at times there is no spot instance to interrupt
    assert {refused["code"] for refused in json.loads(made.stdout)["refused"]} <= {"KERF811"}
    for seed in ("0", "4242"):
        verified = run("verify", str(record), "--json", seed=seed)
        assert verified.returncode == 0, verified.stdout
        report = json.loads(verified.stdout)
        assert report["decisions"] > 200
        assert report["claim_events"] > 200
    again = run("simulate", manifests, timeline, "--until", "48h", "--json", seed="99")
    assert json.loads(again.stdout) == {**json.loads(made.stdout), "record": None}


def test_a_record_becomes_a_golden_test(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record, case = tmp_path / "run.kerf", tmp_path / "golden" / "workshop"
    simulated(capsys, WORKSHOP, example("workshop.yaml"), "--record", str(record))
    assert main(["bundle", "golden", str(record), str(case), "--guards", "One node for five pods"]) == 0
    assert (case / "README.md").read_text() == "# workshop\n\nOne node for five pods\n"
    assert main(["verify", str(case)]) == 0
    assert main(["bundle", "golden", str(record), str(case), "--guards", "again"]) == 2
    assert capsys.readouterr().err.startswith("KERF114: ")


MISTYPED = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: mistyped}
spec:
  template:
    metadata: {labels: {karpenter.k8s.aws/instance-famly: m5}}
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements: []
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: zones}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
        - {key: topology.kubernetes.io/zone, operator: In, values: [us-west-2b, us-west-2aa, my-zone]}
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {nodeSelector: {node.kubernetes.io/instance-type: m5.lagre}, containers: [{name: c, image: x}]}
"""


def test_what_may_be_mistyped_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = simulated(capsys, WORKSHOP, written(tmp_path, MISTYPED), "--until", "1m")
    assert code == 1
    (refused,) = found["refused"]
    assert refused["message"].endswith(". Is it karpenter.k8s.aws/instance-family?")
    noted = {each["object"]: each["text"].partition(". Is it ")[2] for each in found["notes"]}
    assert noted == {"NodePool zones": "us-west-2a?", "Pod p": "m5.large?"}


def test_zones_that_are_mistyped_sell_nothing() -> None:
    documents = list(yaml.safe_load_all(MISTYPED))
    assert zones_of(documents[1:]) == ("us-west-2", ("my-zone", "us-west-2b"))
    assert zones_of(documents)[1] == ("my-zone", "us-west-2a", "us-west-2b", "us-west-2c")


BUFFER = """
apiVersion: v1
kind: PodTemplate
metadata: {name: spare}
template: {spec: {containers: [{name: a, image: x, resources: {requests: {cpu: "1"}}}]}}
---
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: b}
spec: {podTemplateRef: {name: spare}, replicas: 2}
"""


@pytest.mark.parametrize(("gates", "launched"), [("", 0), ("CapacityBuffer=true,Unknown=true", 2)])
def test_s177_a_buffer_counts_if_its_feature_gate_is_on(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, gates: str, launched: int
) -> None:
    (tmp_path / "buffer.yaml").write_text(BUFFER)
    flags = ["--feature-gates", gates] if gates else []
    code, outcome = simulated(capsys, WORKSHOP, str(tmp_path / "buffer.yaml"), "--until", "5m", *flags)
    assert (code, outcome["nodes"]["launched"]) == (0, launched)
    assert [note["code"] for note in outcome["notes"]].count("gate-off") == (0 if gates else 2)
    assert [note["code"] for note in outcome["notes"]].count("unknown-gate") == bool(gates)


@pytest.mark.parametrize(
    ("flag", "content", "code"),
    [
        ("--feature-gates", "NodeOverlay", "KERF339: 'NodeOverlay' switches nothing on or off"),
        ("--feature-gates", "NodeOverlay=maybe", "KERF339"),
        ("--scheduler-config", "podTopologySpread: {defaultConstraints: [{maxSkew: 0}]}", "KERF338"),
        ("--scheduler-config", "a: [", "KERF331"),
    ],
)
def test_l288_s149_flags_that_the_controller_would_not_start_with(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, flag: str, content: str, code: str
) -> None:
    given = content
    if flag == "--scheduler-config":
        (tmp_path / "config.yaml").write_text(content)
        given = str(tmp_path / "config.yaml")
    assert main(["simulate", WORKSHOP, flag, given]) == 2
    assert code in capsys.readouterr().err
