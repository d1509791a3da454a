"""How fleet errors are taken (A-290, A-291, A-314), and the fault plan that provokes them."""

from typing import Any

import pytest

from kerf.adapters.aws.launch.fleet import answered
from kerf.adapters.aws.launch.fleet_errors import SPREAD_LIMIT, denied_by, explained, refusal, says_used_up
from kerf.adapters.aws.mock.faults import Fault as Planned
from kerf.adapters.aws.mock.faults import FaultPlan, Shortage
from kerf.engine.model.karpenter.launch_reasons import NO_SPOT_ROLE
from kerf.engine.model.karpenter.nodepools import NodeClassRef
from kerf.engine.record.decisions import LaunchInstance
from kerf.engine.record.observations import LaunchError
from kerf.engine.state.nodeclaims.unavailable import remember, unavailable
from kerf.engine.state.state import Facts

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


@pytest.mark.parametrize(
    ("code", "message", "used_up"),
    [
        pytest.param("ReservationCapacityExceeded", "The reservation is used up", True, id="A-297"),
        pytest.param("InsufficientInstanceCapacity", "none left", True, id="A-297, any code of A-290"),
        pytest.param("InsufficientInstanceCapacity", f"You have reached the {SPREAD_LIMIT}", False, id="A-295"),
        pytest.param("InsufficientFreeAddressesInSubnet", "There are not enough", False, id="A-293"),
        pytest.param("UnauthorizedOperation", "no", False, id="A-298"),
    ],
)
def test_what_says_that_nothing_is_left_of_a_reservation(code: str, message: str, used_up: bool) -> None:
    assert says_used_up(code, message) == used_up


ORDER = LaunchInstance("claim", "default", NodeClassRef("g", "EC2NodeClass", "default"), "on-demand", (), {})
REQUEST = {"LaunchTemplateConfigs": [{"Overrides": [{"SubnetId": f"subnet-{z}", "AvailabilityZone": z} for z in "ab"]}]}


def entry(*instances: str, zone: str, image: str) -> dict[str, Any]:
    override = {"InstanceType": "m5.large", "SubnetId": f"subnet-{zone}", "ImageId": image}
    return {"InstanceIds": [*instances], "LaunchTemplateAndOverrides": {"Overrides": override}}


def test_a_283_a_446_the_first_instance_counts_and_what_failed_beside_it_is_kept() -> None:
    failed = {**entry(zone="b", image="ami-2"), "ErrorCode": ICE.code}
    answer = {
        "Instances": [
            entry(zone="b", image="ami-0"),
            entry("i-1", "i-2", zone="a", image="ami-1"),
            entry("i-3", zone="b", image="ami-2"),
        ],
        "Errors": [failed],
    }
    found = answered(answer, REQUEST, ORDER, {"a": "az1"}, placement_group="", intent="7.0", now=5)
    assert (found.instance, found.provider_id, found.image, found.zone_id) == ("i-1", "aws:///a/i-1", "ami-1", "az1")
    assert (found.kind, found.code) == ("", "")
    facts = Facts()
    for error in found.errors:
        remember(facts, error, until=2)
    assert unavailable(facts, 1) == {("on-demand", "m5.large", "b")}


@pytest.mark.parametrize(
    "code",
    ["RequestLimitExceeded", "InternalError", "UnauthorizedOperation", "AuthFailure", "InvalidParameterValue", ""],
)
def test_a_298_whatever_else_goes_wrong_makes_nothing_unavailable(code: str) -> None:
    facts = Facts()
    remember(facts, LaunchError(code, "no", "m5.large", "a", "on-demand", subnet="subnet-1"), until=2)
    assert (facts.unavailable, facts.full_subnets, facts.placement_groups) == ({}, {}, {})


def test_a_296_without_the_role_for_spot_nothing_of_spot_is_tried_for_a_while() -> None:
    facts = Facts()
    remember(facts, LaunchError(NO_SPOT_ROLE, "no", "m5.large", "a", "spot"), until=2)
    assert unavailable(facts, 1) == {("spot", "", "")}
    assert unavailable(facts, 2) == set()


def test_a_291_equal_texts_are_said_once() -> None:
    assert refusal("7.0", "claim", [ICE, ICE]).message == "InsufficientInstanceCapacity: none left"


@pytest.mark.parametrize(
    ("said", "by"),
    [
        ("with an explicit deny in a permissions boundary", "not allowed by a permissions boundary"),
        ("because no permissions boundary allows the ec2:RunInstances action", "not allowed by a permissions boundary"),
        ("with an explicit deny in a service control policy", "not allowed by a service control policy"),
        ("because no identity-based policy allows it", "not allowed by an identity-based policy"),
    ],
)
def test_a301_an_account_that_may_not_launch_is_told_what_forbids_it(said: str, by: str) -> None:
    text = f"You are not authorized to perform this operation. User: arn:aws:iam::1:role/kerf {said}"
    answer = refusal("7.0", "claim", [LaunchError("UnauthorizedOperation", text)])
    assert answer.code == "Unauthorized"
    assert answer.message == f"{by}: UnauthorizedOperation: {text}"


def test_a301_of_a_denial_that_names_no_policy_nothing_is_made_up() -> None:
    text = "UnauthorizedOperation: You are not authorized. Encoded authorization failure message: abc"
    assert explained(text) == text
    assert denied_by(text) == ""


def test_a301_only_missing_rights_are_explained_so() -> None:
    text = "InsufficientInstanceCapacity: of a service control policy nobody spoke"
    assert explained(text) == text


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
