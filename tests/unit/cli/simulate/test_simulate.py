"""`kerf simulate` with manifests that are good: what comes out, and what is noted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from kerf.adapters.cli.main import main
from tests.support.simulation.command import (
    CROWD,
    EXAMPLES,
    NODE_CLASS,
    WORKSHOP,
    codes,
    entries,
    example,
    simulated,
    written,
)

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


def test_the_workshop_launches_one_m5_large_and_removes_it(capsys: pytest.CaptureFixture[str]) -> None:
    code, outcome = simulated(capsys, WORKSHOP, example("workshop.yaml"))
    assert code == 0
    assert outcome["types"] == {"on-demand m5.large": 1}
    assert outcome["nodes"] == {"launched": 1, "failed": 0, "removed": {"empty": 1}, "running": 0}
    assert outcome["duration"] == 7_800  # two hours after the last action
    lived = outcome["spent"]["hours"]
    assert outcome["spent"]["total"] == pytest.approx(0.096 * lived, rel=0.01)
    assert "spot prices are a model" in outcome["prices"]


def test_the_story_has_its_time_beside_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", WORKSHOP, example("workshop.yaml")]) == 0
    lines = capsys.readouterr().out.splitlines()
    launched = [line for line in lines if "is launched: m5.large" in line]
    assert len(launched) == 1
    assert launched[0].lstrip().startswith("+0:00:1")
    assert any(line.split() == ["nodes", "removed", "1", "(1", "empty)"] for line in lines)


def test_until_ends_it(capsys: pytest.CaptureFixture[str]) -> None:
    _, outcome = simulated(capsys, WORKSHOP, example("workshop.yaml"), "--until", "5m")
    assert outcome["duration"] == 300
    assert (outcome["nodes"]["running"], outcome["pods"]) == (1, {"Running": 5})


def test_a_morning_with_an_interruption_and_a_lack_of_capacity(capsys: pytest.CaptureFixture[str]) -> None:
    code, outcome = simulated(capsys, example("morning.yaml"))
    assert code == 0
    assert outcome["nodes"]["removed"] == {"empty": 5, "interrupted": 1}
    assert (outcome["nodes"]["running"], outcome["waiting"]) == (0, [])


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
        ("m5.large", "us-west-2a"),  # the lack is forgotten
    ]
    refused = entries(record, "launch.answered")[0].payload.errors
    assert {error.code for error in refused} == {"InsufficientInstanceCapacity"}
    assert len(refused) == 4
    assert (launched[1].at - launched[0].at) < 180_000 < (launched[2].at - launched[0].at)


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
    """A NodeClass whose kubelet is an expression is refused (A-52)."""
    file = written(tmp_path, NODE_CLASS.format(more='  kubelet: {maxPods: "vcpus * 4"}'))
    code, outcome = simulated(capsys, file)
    assert (code, codes(outcome)) == (1, ["KERF522"])


@pytest.mark.parametrize(
    ("kubelet", "code"),
    [
        ("{evictionHard: {memory.available: 100}}", "KERF303"),
        ("{podsPerCore: x}", "KERF303"),
        ('{kubeReserved: {cpu: "-3"}}', "KERF306"),
    ],
)
def test_a50_a_malformed_node_class_is_not_ready_and_the_others_launch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kubelet: str, code: str
) -> None:
    whole = NODE_CLASS.format(more="")
    bad = whole.replace("name: default", "name: aaa").replace("  role: r", f"  role: r\n  kubelet: {kubelet}")
    file = written(tmp_path, bad + whole + CROWD.format(replicas=3))
    record = tmp_path / "run.kerf"
    exit_code, outcome = simulated(capsys, file, "--until", "10m", "--record", str(record))
    assert (exit_code, codes(outcome)) == (1, [code])
    seen = {e.payload.name: (e.payload.ready, e.payload.reason) for e in entries(record, "nodeclass.seen")}
    assert seen == {"aaa": (False, "InvalidKubeletConfiguration"), "default": (True, "")}
    assert [claim.payload.node_pool for claim in entries(record, "claim.requested")] == ["default"]


def test_a50_a_node_class_that_becomes_malformed_launches_no_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = NODE_CLASS.format(more="")
    bad = NODE_CLASS.format(more="  kubelet: {podsPerCore: x}").partition("---")[0]
    timeline = {
        "apiVersion": "kerf.dev/v1alpha1",
        "kind": "Timeline",
        "metadata": {"name": "t"},
        "spec": {
            "actions": [
                {"at": "5m", "action": "apply", "object": yaml.safe_load(bad)},
                {"at": "10m", "action": "scale", "name": "crowd", "replicas": 200},
            ]
        },
    }
    file = written(tmp_path, whole + CROWD.format(replicas=3) + json.dumps(timeline))
    exit_code, outcome = simulated(capsys, file, "--until", "20m")
    assert (exit_code, codes(outcome), outcome["nodes"]["launched"]) == (1, ["KERF303"], 1)


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
    (reason,) = outcome["waiting"][0]["reasons"]
    assert reason["code"] == "no-node-pool"
    assert reason["text"].endswith(" (default: NodeClassNotFound: NodeClass default is not there)")
    assert len(outcome["waiting"][0]["pods"]) == 5
    assert [(note["object"], note["code"]) for note in outcome["notes"]] == [
        ("Timeline workshop", "after-the-end"),
        ("NodePool default", "nodeclass-missing"),
    ]
    assert outcome["notes"][0]["text"].startswith("it has 1 action after the end of the simulation (--until)")


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
