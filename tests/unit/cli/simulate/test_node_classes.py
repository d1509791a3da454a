"""What EC2NodeClasses resolve to in `kerf simulate`: their nodes drift when they change, and zones have ids."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kerf.adapters.aws.catalogue.regions import zone_id
from kerf.adapters.cli.simulate.market import zones_of
from kerf.adapters.cli.simulate.node_classes import resolver
from kerf.engine.model.karpenter.ec2nodeclasses import AMITerm, EC2NodeClass, EC2NodeClassSpec, SubnetTerm
from kerf.engine.model.labels import ZONE_ID
from tests.support.simulation.command import CROWD, NODE_CLASS, entries, simulated, written

ZONES = ("us-west-2a", "us-west-2b", "us-west-2c")


def changing(**spec: Any) -> str:
    """A class, its pool, three pods, and a Timeline that changes the class after half an hour."""
    whole = NODE_CLASS.format(more="")
    changed = yaml.safe_load(whole.partition("---")[0])
    changed["spec"].update(spec)
    timeline = {
        "apiVersion": "kerf.dev/v1alpha1",
        "kind": "Timeline",
        "metadata": {"name": "t"},
        "spec": {"actions": [{"at": "30m", "action": "apply", "object": changed}]},
    }
    return whole.replace("al2023@latest", "al2023@v20240807") + CROWD.format(replicas=3) + json.dumps(timeline)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"amiSelectorTerms": [{"alias": "al2023@v20250807"}]}, "ami-drift"),
        (
            {"amiSelectorTerms": [{"alias": "al2023@v20240807"}], "subnetSelectorTerms": [{"id": "subnet-0123"}]},
            "subnet-drift",
        ),
        (
            {"amiSelectorTerms": [{"alias": "al2023@v20240807"}], "securityGroupSelectorTerms": [{"name": "new"}]},
            "security-group-drift",
        ),
        ({"amiSelectorTerms": [{"alias": "al2023@v20240807"}]}, None),
    ],
)
def test_a335_a336_a337_nodes_drift_when_their_class_selects_something_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], spec: dict[str, Any], reason: str | None
) -> None:
    record = tmp_path / "run.kerf"
    code, outcome = simulated(capsys, written(tmp_path, changing(**spec)), "--record", str(record), "--until", "1h")
    assert code == 0
    decisions = [entry.payload for entry in entries(record, "decision.made") if entry.payload.decider == "drift"]
    drifted = {verdict.reason.code for decision in decisions for verdict in decision.result.verdicts if verdict.reason}
    assert drifted == ({reason} if reason else set())
    assert outcome["nodes"]["removed"] == ({"drifted": 1} if reason else {})
    assert outcome["nodes"]["running"] == 1


def test_a114_each_type_boots_the_image_of_its_alias_and_others_an_alias_of_their_own() -> None:
    def images(alias: str) -> list[str]:
        spec = EC2NodeClassSpec(ami_selector_terms=(AMITerm(alias=alias),))
        return [image.id for image in resolver(ZONES)(EC2NodeClass("a", spec)).status.amis]

    assert images("al2023@latest") == images("al2023@latest")
    assert len(set(images("al2023@latest"))) == 5, "by architecture and accelerator"
    assert not set(images("al2023@latest")) & set(images("al2023@v20240807"))


def test_a95_tags_select_a_subnet_in_each_zone_and_an_id_itself() -> None:
    terms = (SubnetTerm(tags={"a": "b"}), SubnetTerm(id="subnet-0123"))
    status = resolver(ZONES)(EC2NodeClass("a", EC2NodeClassSpec(subnet_selector_terms=terms))).status
    assert [subnet.zone for subnet in status.subnets[1:]] == list(ZONES)
    assert (status.subnets[0].id, status.subnets[0].zone_id) == ("subnet-0123", "usw2-az1")


def test_zones_have_ids(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    zone = "{key: topology.k8s.aws/zone-id, operator: In, values: [euc1-az2]}"
    whole = NODE_CLASS.format(more="").replace("requirements:", f"requirements:\n        - {zone}")
    record = tmp_path / "run.kerf"
    file = written(tmp_path, whole + CROWD.format(replicas=3))
    code, outcome = simulated(capsys, file, "--until", "10m", "--record", str(record))
    assert (code, outcome["pods"]) == (0, {"Running": 3})
    (launched,) = entries(record, "claim.launched")
    assert launched.payload.zone == "eu-central-1b"
    nodes = [entry.payload for entry in entries(record, "node.seen")]
    assert {node.labels[ZONE_ID] for node in nodes} == {"euc1-az2"}


@pytest.mark.parametrize(
    ("zone", "id"),
    [
        ("us-west-2a", "usw2-az1"),
        ("ap-southeast-2c", "apse2-az3"),
        ("cn-northwest-1b", "cnnw1-az2"),
        ("us-gov-west-1a", "usgw1-az1"),
        ("moon", ""),
    ],
)
def test_an_id_follows_from_a_zones_name(zone: str, id: str) -> None:
    assert zone_id(zone) == id


def test_the_region_follows_from_a_zone_id() -> None:
    requirement = {"key": ZONE_ID, "operator": "In", "values": ["eun1-az1", "nonsense"]}
    pool = {"kind": "NodePool", "spec": {"template": {"spec": {"requirements": [requirement]}}}}
    assert zones_of([pool]) == ("eu-north-1", ("eu-north-1a",))
