"""Capacity reservations and placement groups of EC2NodeClasses."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.adapters.aws.cloud import AwsCloud
from kerf.adapters.aws.instances import capacity_type
from kerf.adapters.aws.mock.environment import CLUSTER
from kerf.adapters.aws.nodeclass.resolved import DEPENDENTS, RESERVATIONS, condition
from kerf.engine.model import labels
from kerf.engine.model.karpenter.ec2nodeclasses import CapacityReservationTerm, PlacementGroupSelector
from kerf.engine.record.decisions import Offer
from kerf.engine.record.observations import TAKEN_BACK, InterruptionSeen, NodeClassSeen, Observation, ReservationsSeen
from kerf.engine.state.nodeclaims.unavailable import remember
from kerf.engine.state.state import Facts
from tests.contract.cloud_contract import order
from tests.support.servers.aws_world import CLOCK, AwsWorld, Calls, catalogue_of, observed, resolved, with_spec


def reserved(seen: Sequence[Observation]) -> list[tuple[str, int, bool]]:
    """The reserved offerings of all types: reservation, what is left, whether it may be used."""
    offerings = (o for kind in catalogue_of(seen).types for o in kind.offerings if o.capacity_type == labels.RESERVED)
    return [(o.reservation_id, o.reservation_capacity, o.available) for o in offerings]


def told(seen: Sequence[Observation]) -> list[dict[str, int]]:
    """All that was observed, which is what is left of reservations."""
    assert all(isinstance(observation.payload, ReservationsSeen) for observation in seen)
    return [observation.payload.left for observation in seen if isinstance(observation.payload, ReservationsSeen)]


def reservation(id: str, zone: str = "us-west-2a", **more: Any) -> dict[str, Any]:
    return {
        "CapacityReservationId": id, "InstanceType": "m5.large", "AvailabilityZone": zone, "OwnerId": "123456789012",
        "InstanceMatchCriteria": "targeted", "AvailableInstanceCount": 2, "State": "active", **more,
    }  # fmt: skip


def test_a_124_a_209_a_247_a_capacity_reservation_is_offered_and_used(world: AwsWorld) -> None:
    """A-210: what a launch took is not offered again."""
    world.environment.operator.shim.reservations = [
        reservation("cr-1"),
        reservation("cr-2", Interruptible=True),
        reservation("cr-3", EndDate=datetime.fromtimestamp(CLOCK.now / 1000 - 1, UTC)),  # over
    ]
    cloud = with_spec(world, capacity_reservation_selector_terms=(CapacityReservationTerm(tags={"team": "*"}),))
    seen = cloud.observe()
    assert [capacity_reservation.id for capacity_reservation in resolved(seen).status.capacity_reservations] == [
        "cr-1",
        "cr-2",
    ]
    assert reserved(seen) == [("cr-1", 2, True), ("cr-2", 2, True)]
    calls = Calls(world.environment, "CreateFleet", "CreateLaunchTemplate")
    wanted = order(world, "reserved", labels.RESERVED)
    wanted = replace(wanted, reservation="cr-1", offers=(Offer("m5.large", "us-west-2a", 0.0),))
    answer = cloud.launch(wanted, intent="1.0", token="reserved")
    assert (answer.capacity_type, bool(answer.instance)) == (labels.RESERVED, True)
    (fleet,), (template,) = calls.of("CreateFleet"), calls.of("CreateLaunchTemplate")
    assert fleet["TargetCapacitySpecification"]["DefaultTargetCapacityType"] == "on-demand"
    assert template["LaunchTemplateData"]["CapacityReservationSpecification"] == {
        "CapacityReservationPreference": "capacity-reservations-only",
        "CapacityReservationTarget": {"CapacityReservationId": "cr-1"},
    }
    assert told(cloud.observe()) == [{"cr-1": 1, "cr-2": 2}], "and no catalogue: EC2's is some megabytes"
    assert told(cloud.observe()) == []
    world.environment.operator.shim.reservations = [reservation("cr-1", AvailableInstanceCount=0)]
    world.advance(60_000)
    assert reserved(cloud.observe()) == [("cr-1", 0, False)], "one that has none left is in a catalogue of its own"


def test_a_209_a_248_a_274_a_277_an_interruptible_reservation_is_bought_as_one(world: AwsWorld) -> None:
    world.environment.operator.shim.reservations = [reservation("cr-i", Interruptible=True)]
    cloud = with_spec(world, capacity_reservation_selector_terms=(CapacityReservationTerm(id="cr-i"),))
    (kind,) = [kind for kind in catalogue_of(cloud.observe()).types if kind.name == "m5.large"]
    assert kind.requirements[labels.RESERVATION_INTERRUPTIBLE] == ("true",)
    assert [o.interruptible for o in kind.offerings if o.capacity_type == labels.RESERVED] == [True]
    calls = Calls(world.environment, "CreateFleet", "CreateLaunchTemplate")
    wanted = replace(order(world, "lent", labels.RESERVED), reservation="cr-i")
    wanted = replace(wanted, offers=(Offer("m5.large", "us-west-2a", 0.0),))
    assert cloud.launch(wanted, intent="1.0", token="lent").instance
    (fleet,), (template,) = calls.of("CreateFleet"), calls.of("CreateLaunchTemplate")
    assert fleet["TargetCapacitySpecification"]["DefaultTargetCapacityType"] == "reserved-capacity"
    assert fleet["ReservedCapacityOptions"] == {"ReservationTypes": ["interruptible-capacity-reservation"]}
    assert "OnDemandOptions" not in fleet
    data = template["LaunchTemplateData"]
    assert data["InstanceMarketOptions"] == {"MarketType": "interruptible-capacity-reservation"}
    assert data["CapacityReservationSpecification"]["CapacityReservationTarget"] == {"CapacityReservationId": "cr-i"}


def test_a_210_a_360_what_is_left_follows_launches_ends_and_what_the_owner_takes_back(world: AwsWorld) -> None:
    """Between two looks at EC2. An instance that nobody launched into a reservation changes nothing."""
    world.environment.operator.shim.reservations = [reservation("cr-n", AvailableInstanceCount=3)]
    cloud = with_spec(world, capacity_reservation_selector_terms=(CapacityReservationTerm(id="cr-n"),))
    cloud.observe()
    wanted = replace(order(world, "first", labels.RESERVED), reservation="cr-n")
    wanted = replace(wanted, offers=(Offer("m5.large", "us-west-2a", 0.0),))
    started = [
        cloud.launch(replace(wanted, claim=claim), intent="1.0", token=f"a210-{claim}").instance for claim in ("a", "b")
    ]
    assert told(cloud.observe()) == [{"cr-n": 1}]
    cloud.terminate(started[0], intent="2.0")
    world.advance(120_000)
    assert [seen.status for seen in cloud.describe([started[0], "i-00000000000000000"])] == ["gone", "gone"]
    cloud.describe([started[0]])
    assert cloud._classes.reservations._left == {"cr-n": 2}
    cloud.interrupted(
        [Observation(InterruptionSeen(f"m-{name}", TAKEN_BACK, name)) for name in ("i-other", started[1])]
    )
    assert cloud._classes.reservations._left == {"cr-n": 0}


def test_a_360_what_is_left_is_told_anew_after_an_interruption_although_it_is_as_it_was(world: AwsWorld) -> None:
    """The record has nothing left of the reservation since. Else it would not be used again."""
    world.environment.operator.shim.reservations = [reservation("cr-n", AvailableInstanceCount=3)]
    cloud = with_spec(world, capacity_reservation_selector_terms=(CapacityReservationTerm(id="cr-n"),))
    cloud.observe()
    assert told(cloud.observe()) == []
    cloud.interrupted([Observation(InterruptionSeen("m-1", TAKEN_BACK, "i-of-an-earlier-process"))])
    world.advance(60_000)
    assert told(cloud.observe()) == [{"cr-n": 3}]


def test_a_126_a_274_a_375_a_442_a_capacity_block_is_bought_as_one_and_given_up_before_its_end(world: AwsWorld) -> None:
    ends = datetime.fromtimestamp(CLOCK.now / 1000 + 3600, UTC)
    block = reservation("cr-b", EndDate=ends, ReservationType="capacity-block")
    world.environment.operator.shim.reservations = [block]
    cloud = with_spec(world, capacity_reservation_selector_terms=(CapacityReservationTerm(id="cr-b"),))
    assert reserved(cloud.observe()) == [("cr-b", 2, True)]
    calls = Calls(world.environment, "CreateFleet", "CreateLaunchTemplate")
    wanted = replace(order(world, "block", labels.RESERVED), reservation="cr-b")
    assert cloud.launch(wanted, intent="1.0", token="block").instance
    (fleet,), (template, *_) = calls.of("CreateFleet"), calls.of("CreateLaunchTemplate")
    assert fleet["TargetCapacitySpecification"]["DefaultTargetCapacityType"] == "capacity-block"
    assert "OnDemandOptions" not in fleet
    assert template["LaunchTemplateData"]["InstanceMarketOptions"] == {"MarketType": "capacity-block"}
    world.advance(1_199_000)  # 40 minutes and a second before its end
    assert cloud.observe() == []
    world.advance(1_000)
    assert reserved(cloud.observe()) == [("cr-b", 2, False)]
    world.advance(60_000)
    assert resolved(cloud.observe()).status.capacity_reservations[0].state == "expiring"


@pytest.mark.parametrize("told", [True, False])
def test_a_78_a_reservation_that_is_over_is_not_launched_into(world: AwsWorld, told: bool) -> None:
    """EC2 is asked as it ends; also while EC2 does not answer, nobody waits for it."""
    end = CLOCK.now // 1000 + 30  # whole seconds, as in the status
    ends = datetime.fromtimestamp(end, UTC)
    world.environment.operator.shim.reservations = [reservation("cr-s"), reservation("cr-t", EndDate=ends)]
    cloud = with_spec(world, capacity_reservation_selector_terms=(CapacityReservationTerm(tags={"team": "*"}),))
    assert reserved(cloud.observe()) == [("cr-s", 2, True), ("cr-t", 2, True)]
    assert cloud.next_due() == end * 1000
    world.advance(30_000)
    if not told:
        world.environment.operator.fault("DescribeCapacityReservations", "throttled")
    assert reserved(cloud.observe()) == [("cr-s", 2, True), *([] if told else [("cr-t", 0, False)])]


def test_a_375_the_instances_of_a_capacity_block_that_ends_soon_are_told_as_unhealthy(world: AwsWorld) -> None:
    """Those of this cluster alone, and not before 40 minutes are left."""
    ends = datetime.fromtimestamp(CLOCK.now / 1000 + 3600, UTC)
    block = reservation("cr-e", EndDate=ends, ReservationType="capacity-block")
    world.environment.operator.shim.reservations = [block]
    cloud = with_spec(world, capacity_reservation_selector_terms=(CapacityReservationTerm(id="cr-e"),))
    cloud.observe()
    calls = Calls(world.environment, "DescribeInstances")
    assert cloud.in_ending_blocks() == []
    assert calls.of("DescribeInstances") == []
    world.advance(1_260_000)
    cloud.observe()
    del calls.made[:]

    def in_the_block(parsed: dict[str, Any], **_: Any) -> None:
        parsed["Reservations"] = [{"Instances": [{"InstanceId": "i-block-2"}, {"InstanceId": "i-block-1"}]}]

    def unfiltered(params: dict[str, Any], **_: Any) -> dict[str, Any]:
        """moto does not know the filter."""
        return params | {"Filters": [f for f in params["Filters"] if f["Name"] != "capacity-reservation-id"]}

    events = world.environment.operator.ec2.meta.events
    hooks: dict[str, Any] = {
        "after-call.ec2.DescribeInstances": in_the_block,
        "provide-client-params.ec2.DescribeInstances": unfiltered,
    }
    for event, hook in hooks.items():
        events.register(event, hook)
    try:
        assert cloud.in_ending_blocks() == [
            ("i-block-1", "capacity_reservation_expiring"), ("i-block-2", "capacity_reservation_expiring"),
        ]  # fmt: skip
    finally:
        for event, hook in hooks.items():
            events.unregister(event, hook)
    (asked,) = calls.of("DescribeInstances")
    wanted = {asked_filter["Name"]: asked_filter["Values"] for asked_filter in asked["Filters"]}
    assert wanted["capacity-reservation-id"] == ["cr-e"]
    assert wanted["tag:eks:eks-cluster-name"] == [CLUSTER]


def test_a_124_an_unknown_reservation_is_none(world: AwsWorld) -> None:
    world.environment.operator.shim.reservations = []
    cloud = with_spec(world, capacity_reservation_selector_terms=(CapacityReservationTerm(id="cr-0"),))
    seen = cloud.observe()
    assert resolved(seen).ready
    assert not reserved(seen)


def test_a_127_a_141_a_246_instances_start_in_the_placement_group(world: AwsWorld) -> None:
    group = {"GroupId": "pg-1", "GroupName": "close", "Strategy": "cluster", "State": "available"}
    world.environment.operator.shim.placement_groups = [group]
    cloud = with_spec(world, placement_group_selector=PlacementGroupSelector(name="close"))
    seen = cloud.observe()
    (told,) = [o.payload for o in seen if isinstance(o.payload, NodeClassSeen)]
    assert told.terms is not None
    assert (told.ready, told.terms.placement_group) == (True, "pg-1")
    types = {kind.name: kind for kind in catalogue_of(seen).types}
    assert types["m5.large"].requirements["karpenter.k8s.aws/placement-group-id"] == ("pg-1",)
    assert not any(offer.available for offer in types["t3.medium"].offerings)  # T3 may not be in a cluster group
    calls = Calls(world.environment, "CreateLaunchTemplate")
    assert cloud.launch(order(world, "close"), intent="1.0", token="close").instance
    assert {data["LaunchTemplateData"]["Placement"]["GroupId"] for data in calls.of("CreateLaunchTemplate")} == {"pg-1"}
    world.environment.operator.fault("DescribePlacementGroups", "refused", 1)
    world.advance(61_000)
    told = observed(cloud)
    assert told.terms is not None
    assert (told.ready, told.terms.placement_group) == (False, "pg-1")  # not known to be gone: nothing drifts


def test_a_127_a_128_a_group_is_kept_while_ec2_cannot_tell_and_not_once_it_is_gone(world: AwsWorld) -> None:
    group = {"GroupId": "pg-1", "GroupName": "close", "Strategy": "cluster", "State": "available"}
    world.environment.operator.shim.placement_groups = [group]
    cloud = with_spec(world, placement_group_selector=PlacementGroupSelector(name="close"))

    def told() -> tuple[str, str]:
        """The group that launches use, and what the class's condition says of it."""
        seen = cloud.observe()
        terms, status = observation_of(seen).terms, resolved(seen).status
        assert terms is not None
        verdict = condition(status, "PlacementGroupReady")
        assert verdict is not None
        return terms.placement_group, verdict.reason

    assert told() == ("pg-1", "PlacementGroupReady")
    world.environment.operator.fault("DescribePlacementGroups", "throttled")
    world.advance(60_000)
    assert told() == ("pg-1", "PlacementGroupResolutionFailed")
    world.environment.operator.shim.placement_groups = [{**group, "State": "deleting"}]
    world.advance(60_000)
    assert told() == ("", "PlacementGroupNotFound")


def observation_of(seen: Sequence[Observation]) -> NodeClassSeen:
    (found,) = (entry.payload for entry in seen if isinstance(entry.payload, NodeClassSeen))
    return found


def test_a_61_a_class_whose_placement_group_is_not_there_is_not_ready(world: AwsWorld) -> None:
    world.environment.operator.shim.placement_groups = []
    cloud = with_spec(world, placement_group_selector=PlacementGroupSelector(id="pg-0"))
    conditions = {c.type: c for c in resolved(cloud.observe()).status.conditions}
    assert conditions["PlacementGroupReady"].reason == "PlacementGroupResolutionFailed"
    assert conditions["Ready"].status == "False"


def test_a_15_a_55_a_74_a_247_a_331_a_440_with_the_gate_closed_nobody_asks_for_reservations(world: AwsWorld) -> None:
    """ReservedCapacity=false: open reservations may be used up silently, and what runs on one counts as on demand."""
    world.environment.operator.shim.reservations = [reservation("cr-1")]
    selected = {"capacity_reservation_selector_terms": (CapacityReservationTerm(tags={"team": "*"}),)}
    (before,) = world.environment.node_classes
    before = replace(before, status=resolved(with_spec(world, **selected).observe()).status)
    assert before.status.capacity_reservations
    calls = Calls(world.environment, "DescribeCapacityReservations", "CreateLaunchTemplate")
    closed = replace(world.environment.settings, reserved_capacity=False)
    classes = [replace(before, spec=replace(before.spec, detailed_monitoring=True, **selected))]
    cloud = AwsCloud(world.environment.operator.shim, closed, lambda: classes, CLOCK)
    seen = cloud.observe()
    status = resolved(seen).status
    assert status.capacity_reservations == ()
    assert {known.type for known in status.conditions} == {*DEPENDENTS, "Ready"} - {RESERVATIONS}
    assert {known.status for known in status.conditions} == {"True"}
    assert reserved(seen) == []
    assert calls.of("DescribeCapacityReservations") == []
    answer = cloud.launch(order(world, "closed"), intent="1.0", token="closed")
    assert (bool(answer.instance), answer.capacity_type) == (True, labels.ON_DEMAND)
    templates = [made["LaunchTemplateData"] for made in calls.of("CreateLaunchTemplate")]
    assert templates
    assert not any("CapacityReservationSpecification" in data for data in templates)


def test_a_331_only_the_gate_makes_an_instance_a_reserved_one() -> None:
    bound = {"CapacityReservationPreference": "capacity-reservations-only"}
    entry = {"CapacityReservationId": "cr-1", "CapacityReservationSpecification": bound}
    assert [capacity_type(entry, reserved=gate) for gate in (True, False)] == [labels.RESERVED, labels.ON_DEMAND]


def test_a_297_a_full_subnet_says_nothing_of_the_reservation(world: AwsWorld) -> None:
    world.environment.operator.shim.reservations = [reservation("cr-f")]
    cloud = with_spec(world, capacity_reservation_selector_terms=(CapacityReservationTerm(id="cr-f"),))
    cloud.observe()
    world.environment.operator.shortage(code="InsufficientFreeAddressesInSubnet", count=1)
    wanted = replace(order(world, "full", labels.RESERVED), reservation="cr-f")
    wanted = replace(wanted, offers=(Offer("m5.large", "us-west-2a", 0.0),))
    assert cloud.launch(wanted, intent="1.0", token="full").kind == "insufficient-capacity"
    assert cloud._classes.reservations._left == {"cr-f": 2}
    world.environment.operator.shortage(code="ReservationCapacityExceeded", count=1)
    answer = cloud.launch(wanted, intent="1.0", token="full")
    assert [(error.code, error.reservation) for error in answer.errors] == [("ReservationCapacityExceeded", "cr-f")]
    assert cloud._classes.reservations._left == {"cr-f": 0}


def test_a_294_a_295_an_error_names_the_placement_group_and_whether_it_is_full(world: AwsWorld) -> None:
    group = {"GroupName": "apart", "GroupId": "pg-s", "Strategy": "spread", "State": "available"}
    world.environment.operator.shim.placement_groups = [group]
    cloud = with_spec(world, placement_group_selector=PlacementGroupSelector(name="apart"))
    cloud.observe()
    limit = "You have reached the limit of instances in this spread placement group for the Availability Zone."
    world.environment.operator.shortage(count=1)
    world.environment.operator.shortage(message=limit, count=1)
    answer = cloud.launch(order(world, "spread"), intent="1.0", token="spread")
    assert answer.instance
    assert [(error.placement_group, error.full) for error in answer.errors] == [("pg-s", False), ("pg-s", True)]
    facts = Facts()
    for error in answer.errors:
        remember(facts, error, 1)
    first, second = answer.errors
    lacking = {f"on-demand|{first.instance_type}|{first.zone}": 1, f"||{second.zone}": 1}
    assert (facts.unavailable, facts.placement_groups["pg-s"].unavailable) == ({}, lacking)


def test_a_167_a_246_a_partition_that_is_asked_for_is_launched_into(world: AwsWorld) -> None:
    group = {
        "GroupName": "racks",
        "GroupId": "pg-p",
        "Strategy": "partition",
        "PartitionCount": 3,
        "State": "available",
    }
    world.environment.operator.shim.placement_groups = [group]
    cloud = with_spec(world, placement_group_selector=PlacementGroupSelector(name="racks"))
    types = {kind.name: kind for kind in catalogue_of(cloud.observe()).types}
    assert types["m5.large"].requirements[labels.PARTITION] == ("1", "2", "3")
    calls = Calls(world.environment, "CreateLaunchTemplate")
    wanted = order(world, "any")
    assert cloud.launch(wanted, intent="1.0", token="any").instance
    second = replace(wanted, claim="second", labels={**wanted.labels, labels.PARTITION: "2"})
    assert cloud.launch(second, intent="2.0", token="second").instance
    placements = [data["LaunchTemplateData"]["Placement"] for data in calls.of("CreateLaunchTemplate")]
    assert {placement["GroupId"] for placement in placements} == {"pg-p"}
    assert {placement.get("PartitionNumber") for placement in placements} == {None, 2}
