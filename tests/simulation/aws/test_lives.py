"""The whole controller on EC2 while nothing is wrong: drift and consolidation (D-64, D-98, A-64).

Each life begins with five pods that need one node. Time is virtual: ten minutes take a second.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kerf.engine.record import claim_events as ev
from tests.support.aws.life import MINUTE, Account, AwsLife

pytestmark = pytest.mark.slow

PODS = 5


@pytest.fixture
def life(the_account: Account) -> Iterator[AwsLife]:
    made = AwsLife(the_account)
    made.scale(PODS)
    made.run(2 * MINUTE)
    yield made
    made.end()


def running(life: AwsLife) -> int:
    return len([pod for pod in life.state.facts.pods.values() if pod.node and pod.namespace == "other"])


def described(life: AwsLife) -> list[dict[str, Any]]:
    answer = life.account.operator.ec2.describe_instances(InstanceIds=life.instances())
    return [instance for reservation in answer["Reservations"] for instance in reservation["Instances"]]


def tags(instance: dict[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in instance["Tags"]}


def reasons(life: AwsLife) -> set[str]:
    return {tainted.why for tainted in life.of(ev.Tainted)}


def test_a64_a_changed_class_replaces_its_node_and_nothing_is_left_over(life: AwsLife) -> None:
    (before,) = described(life)
    assert "team" not in tags(before)
    changed = life.objects["EC2NodeClass"]
    spec = changed["spec"]
    life.apply({**changed, "spec": {**spec, "tags": {**spec.get("tags", {}), "team": "payments"}}})
    life.run(10 * MINUTE)
    (after,) = described(life)
    assert after["InstanceId"] != before["InstanceId"]
    assert tags(after)["team"] == "payments"
    assert reasons(life) == {"drifted"}
    assert (running(life), life.instances()) == (PODS, life.held())
    life.run(30 * MINUTE)
    assert [instance["InstanceId"] for instance in described(life)] == [after["InstanceId"]], "it drifts once"


def test_d98_a_node_too_large_for_its_pods_gives_way_to_a_cheaper_one(life: AwsLife) -> None:
    life.scale(4 * PODS)
    life.run(5 * MINUTE)
    assert running(life) == 4 * PODS
    before = sum(claim.price for claim in life.state.facts.claims.values())
    life.scale(1)
    life.run(20 * MINUTE)
    assert reasons(life) == {"empty", "underutilized"}
    (claim,) = life.state.facts.claims.values()
    assert claim.price < before / 2
    assert (running(life), life.instances()) == (1, life.held())
