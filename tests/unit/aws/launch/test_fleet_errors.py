"""How fleet errors are taken (A-290, A-291, A-314), and the fault plan that provokes them."""

import pytest

from kerf.adapters.aws.launch.fleet_errors import refusal
from kerf.adapters.aws.mock.faults import Fault as Planned
from kerf.adapters.aws.mock.faults import FaultPlan, Shortage
from kerf.engine.model.karpenter.launch_reasons import NO_SPOT_ROLE
from kerf.engine.record.observations import LaunchError

ICE = LaunchError("InsufficientInstanceCapacity", "none left", "m5.large", "a", "spot")


@pytest.mark.parametrize(
    ("errors", "kind", "code"),
    [
        pytest.param([ICE], "insufficient-capacity", "InsufficientCapacity", id="A-291"),
        pytest.param([ICE, LaunchError(NO_SPOT_ROLE)], "insufficient-capacity", "InsufficientCapacity", id="A-450"),
        pytest.param([ICE, LaunchError("UnauthorizedOperation")], "error", "Unauthorized", id="A-447"),
        pytest.param([], "error", "LaunchFailed", id="A-448"),
    ],
)
def test_a_fleet_that_started_nothing(errors: list[LaunchError], kind: str, code: str) -> None:
    answer = refusal("7.0", "claim", errors)
    assert (answer.kind, answer.code, answer.errors) == (kind, code, tuple(errors))


def test_a_291_equal_texts_are_said_once() -> None:
    assert refusal("7.0", "claim", [ICE, ICE]).message == "InsufficientInstanceCapacity: none left"


def test_a_fault_plan_is_used_up_in_order_and_says_what_struck() -> None:
    plan = FaultPlan([Planned("Describe*", "throttled", 1), Planned("*", "lost", 1)])
    assert [plan.fault("CreateFleet"), plan.fault("DescribeSubnets"), plan.fault("DescribeSubnets")] == [
        "lost",
        "throttled",
        "",
    ]
    assert plan.hits == ["CreateFleet lost", "DescribeSubnets throttled"]


def test_a_shortage_matches_by_pattern() -> None:
    plan = FaultPlan(shortages=[Shortage(instance_type="m5.*", capacity_type="spot", count=1)])
    assert plan.shortage("m5.large", "a", "on-demand") is None
    assert plan.shortage("c5.large", "a", "spot") is None
    assert plan.shortage("m5.large", "a", "spot") is not None
    assert plan.shortage("m5.large", "a", "spot") is None
    plan.clear()
    assert plan == FaultPlan()
