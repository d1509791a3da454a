"""The whole controller on EC2 while AWS misbehaves: nothing pauses that need not, nothing loops, nothing is lost.

Each life begins with five pods that need one node. Time is virtual: ten minutes take a second.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kerf.adapters.aws.mock.faults import FOREVER
from kerf.adapters.aws.session import CONFIG
from kerf.engine.record import claim_events as ev
from kerf.engine.record.observations import InputRefused, LaunchAnswered
from tests.support.aws.life import MINUTE, SECOND, Account, AwsLife

pytestmark = pytest.mark.slow

PODS = 5
NEEDED = ("CreateFleet", "CreateLaunchTemplate")
"""The calls without which nothing can be launched."""
OTHERS = ("DescribeInstances", "DescribeSubnets", "DescribeSecurityGroups", "DescribeImages", "DeleteLaunchTemplate")
"""What is called in ten minutes, too."""
AT_THE_START = (
    "DescribeSubnets", "DescribeSecurityGroups", "DescribeImages", "GetParameter", "GetInstanceProfile",
    "DescribeInstanceTypes", "DescribeInstanceTypeOfferings", "DescribeSpotPriceHistory", "GetProducts",
    "DescribeLaunchTemplates",
)  # fmt: skip
"""What is called before the first launch, and then kept for long."""


@pytest.fixture
def life(the_account: Account) -> Iterator[AwsLife]:
    made = AwsLife(the_account)
    made.run(5 * SECOND)
    yield made
    made.end()


def served(life: AwsLife) -> bool:
    """Whether all pods run, on the one instance that there is, which its claim knows."""
    running = [pod for pod in life.state.facts.pods.values() if pod.node and pod.namespace == "other"]
    return len(running) == PODS and len(life.instances()) == 1 and life.instances() == life.held()


@pytest.mark.parametrize("call", NEEDED)
def test_ten_minutes_of_throttling_delay_a_launch_and_double_nothing(life: AwsLife, call: str) -> None:
    life.account.operator.fault(call, "throttled", FOREVER)
    life.scale(PODS)
    life.run(4 * MINUTE)
    condition = life.launched_condition()
    assert (condition.status, condition.reason) == ("Unknown", "RequestLimitExceeded")
    life.run(6 * MINUTE)
    assert life.instances() == []
    tries = len(life.account.operator.plan.hits)
    assert 10 < tries < 150, "not given up, and with pauses"
    life.account.operator.plan.clear()
    life.run(3 * MINUTE)
    assert served(life)


@pytest.mark.parametrize("call", OTHERS)
def test_ten_minutes_of_throttling_of_another_api_delay_no_launch(life: AwsLife, call: str) -> None:
    life.account.operator.fault(call, "throttled", FOREVER)
    life.scale(PODS)
    life.run(10 * MINUTE)
    assert 0 < len(life.account.operator.plan.hits) < 150
    life.account.operator.plan.clear()
    assert served(life)
    told = [refused for refused in life.of(InputRefused) if "RequestLimitExceeded" in refused.message]
    assert len(told) <= 2, "once, and not every minute"


@pytest.mark.parametrize("call", AT_THE_START)
def test_ten_minutes_of_throttling_at_the_start_are_made_up_for(the_account: Account, call: str) -> None:
    the_account.operator.fault(call, "throttled", FOREVER)
    life = AwsLife(the_account)
    life.scale(PODS)
    life.run(10 * MINUTE)
    assert 0 < len(the_account.operator.plan.hits) < 150
    the_account.operator.plan.clear()
    life.run(3 * MINUTE)
    assert served(life)
    told = [refused for refused in life.of(InputRefused) if "RequestLimitExceeded" in refused.message]
    assert len(told) == 1, "once, and not with every try"
    life.end()


def test_termination_waits_for_the_end_of_throttling(life: AwsLife) -> None:
    life.scale(PODS)
    life.run(2 * MINUTE)
    life.account.operator.fault("TerminateInstances", "throttled", FOREVER)
    life.scale(0)
    life.run(10 * MINUTE)
    assert len(life.instances()) == 1
    assert len(life.account.operator.plan.hits) < 150
    life.account.operator.plan.clear()
    life.run(3 * MINUTE)
    assert (life.instances(), life.held()) == ([], [])


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        pytest.param("400 RequestExpired Request has expired.", "LaunchFailed", id="credentials expire"),
        pytest.param("400 ExpiredToken The security token is expired", "LaunchFailed", id="token expires"),
        pytest.param("401 AuthFailure AWS was not able to validate the credentials", "Unauthorized", id="clock skew"),
        pytest.param("403 SignatureDoesNotMatch Signature not yet current", "LaunchFailed", id="signature of tomorrow"),
    ],
)
def test_a_launch_whose_credentials_count_no_more_is_told_and_made_up_for(
    life: AwsLife, error: str, reason: str
) -> None:
    """The launch template is made; the fleet is refused for three minutes."""
    life.account.operator.fault("CreateFleet", error, FOREVER)
    life.scale(PODS)
    life.run(3 * MINUTE)
    condition = life.launched_condition()
    assert (condition.status, condition.reason) == ("Unknown", reason)
    assert error.split()[1] in condition.message
    life.account.operator.plan.clear()
    life.run(2 * MINUTE)
    assert served(life)


@pytest.mark.parametrize("kind", ["unreachable", "lost", "unavailable"])
def test_an_endpoint_that_hangs_costs_time_and_no_second_instance(life: AwsLife, kind: str) -> None:
    assert CONFIG.connect_timeout + CONFIG.read_timeout < MINUTE * 2 / SECOND
    life.account.operator.fault("CreateFleet", kind, 9)
    life.scale(PODS)
    life.run(5 * MINUTE)
    assert served(life)
    assert all(error.code in ("KERF502", "") for error in life.of(LaunchAnswered))


def test_a_449_half_of_a_burst_is_launched_and_the_other_half_when_ec2_can(life: AwsLife) -> None:
    """Each claim has a fleet of its own."""
    life.scale(60)
    life.account.operator.shortage(code="InternalError", message="try again", count=9)
    life.run(20 * SECOND)
    asked = len(life.of(ev.Requested))
    assert asked > 1
    assert any(answer.code == "InternalError" for answer in life.of(LaunchAnswered))
    life.run(3 * MINUTE)
    assert len(life.instances()) == len(life.of(ev.Requested)) == asked
    assert life.instances() == life.held()


def test_an_instance_that_is_gone_before_it_was_described_is_replaced(life: AwsLife) -> None:
    life.scale(PODS)
    while not life.instances():
        life.run(SECOND)
    (first,) = life.instances()
    life.account.operator.reclaim(first)
    life.world.cluster.instance_ended(first)
    life.run(20 * MINUTE)  # no message says so: it is given up when its node has not registered for 15 (L-179)
    assert served(life)
    assert first not in life.held()


def test_a_zone_without_addresses_is_left_for_another(life: AwsLife) -> None:
    life.account.operator.shortage(code="InsufficientFreeAddressesInSubnet", zone="us-west-2a")
    life.scale(PODS)
    life.run(2 * MINUTE)
    assert served(life)
    (launched,) = life.of(ev.Launched)
    assert launched.zone != "us-west-2a"
    (subnet,) = life.state.facts.full_subnets
    (answer,) = life.of(LaunchAnswered)
    assert {(error.zone, error.subnet) for error in answer.errors} == {("us-west-2a", subnet)}
    assert life.state.facts.unavailable == {}, "another class may have another subnet there"


def test_a_295_a_zone_where_a_spread_group_is_full_is_left_for_another(life: AwsLife) -> None:
    group = {"GroupName": "apart", "GroupId": "pg-s", "Strategy": "spread", "State": "available"}
    life.account.operator.shim.placement_groups = [group]
    node_class = life.objects["EC2NodeClass"]
    life.apply({**node_class, "spec": {**node_class["spec"], "placementGroupSelector": {"name": "apart"}}})
    life.run(2 * MINUTE)
    limit = "You have reached the limit of instances in this spread placement group."
    life.account.operator.shortage(message=limit, zone="us-west-2[ab]")
    life.scale(PODS)
    life.run(2 * MINUTE)
    assert served(life)
    assert {launched.zone for launched in life.of(ev.Launched)} == {"us-west-2c"}
    lacks = life.state.facts.placement_groups["pg-s"].unavailable
    assert lacks.keys() == {"||us-west-2a", "||us-west-2b"}
    assert life.state.facts.unavailable == {}


def test_a_212_without_any_address_kerf_asks_again_every_three_minutes(life: AwsLife) -> None:
    life.account.operator.shortage(code="InsufficientFreeAddressesInSubnet")
    life.scale(PODS)
    life.run(30 * MINUTE)
    answers: list[Any] = life.of(LaunchAnswered)
    assert {answer.kind for answer in answers} == {"insufficient-capacity"}
    assert 9 <= len(answers) <= 11, "once in three minutes, whatever the type"
    life.account.operator.plan.clear()
    life.run(5 * MINUTE)
    assert served(life)
