"""`kerf simulate` tells what may be mistyped, with what may be meant."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from kerf.adapters.cli.simulate.market import zones_of
from tests.support.simulation.command import WORKSHOP, simulated, written

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
    noted = {note["object"]: note["text"].partition(". Is it ")[2] for note in found["notes"]}
    assert noted == {"NodePool zones": "us-west-2a?", "Pod p": "m5.large?"}


def test_zones_that_are_mistyped_sell_nothing() -> None:
    documents = list(yaml.safe_load_all(MISTYPED))
    assert zones_of(documents[1:]) == ("us-west-2", ("my-zone", "us-west-2b"))
    assert zones_of(documents)[1] == ("my-zone", "us-west-2a", "us-west-2b", "us-west-2c")


ZONES = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: zones}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
        - {key: topology.kubernetes.io/zone, operator: In, values: [VALUES]}
"""


@pytest.mark.parametrize(
    ("values", "region", "sold", "near"),
    [
        ("eu-west-1a, eu-wset-1b, eu-west-1c", "eu-west-1", ("eu-west-1a", "eu-west-1c"), "eu-west-1b"),
        ("eu-wset-1b, eu-west-1a", "eu-west-1", ("eu-west-1a",), "eu-west-1b"),
        ("eu-wset-1b", "eu-wset-1", ("eu-wset-1b",), "eu-west-1b"),  # it may be a region that kerf does not know yet
        ("eu-west-1a, eu-west-1d, us-east-1a", "eu-west-1", ("eu-west-1a", "eu-west-1d", "us-east-1a"), ""),
        ("zone-a, zone-b", "us-west-2", ("zone-a", "zone-b"), ""),
    ],
)
def test_a_mistyped_zone_of_a_node_pool_is_noted_and_not_sold_beside_one_that_is_known(
    values: str, region: str, sold: tuple[str, ...], near: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`kerf validate` notes the same."""
    text = ZONES.replace("VALUES", values)
    assert zones_of([yaml.safe_load(text)]) == (region, sold)
    node_class = f"{WORKSHOP}/ec2nodeclass.yaml"
    _, found = simulated(capsys, node_class, written(tmp_path, text), "--until", "1m")
    assert [note["text"].partition(". Is it ")[2] for note in found["notes"]] == ([f"{near}?"] if near else [])


def test_a_mistyped_field_is_refused_with_the_one_that_it_may_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As by `kerf validate`. The API server would leave it out, and the simulation would be one of another NodePool."""
    pool = Path(f"{WORKSHOP}/nodepool.yaml").read_text().replace("  disruption:", "  disrupton:")
    code, outcome = simulated(capsys, written(tmp_path, pool), f"{WORKSHOP}/ec2nodeclass.yaml", "--until", "5m")
    assert code == 1
    (refused,) = outcome["refused"]
    assert (refused["code"], refused["object"], refused["field"]) == ("KERF320", "NodePool default", "spec.disrupton")
    assert refused["message"].endswith("Is it disruption?")
