"""Zonal shifts of the cluster (A-11, A-215, A-376, A-381, A-400)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.adapters.aws import zonal_shift
from kerf.adapters.aws.cloud import AwsCloud
from kerf.adapters.aws.zonal_shift import EVERY
from kerf.engine.record.observations import InputRefused, NodeClassSeen
from tests.contract.cloud_contract import order
from tests.support.servers.aws_world import CLOCK, AwsWorld, Calls, catalogue_of

CLUSTER = "arn:aws:eks:us-west-2:123456789012:cluster/eks-workshop"
HOUR = 3_600_000


def following(world: AwsWorld) -> AwsCloud:
    """A new process that follows zonal shifts."""
    environment = world.environment
    facts = replace(environment.settings.facts, arn=CLUSTER)
    settings = replace(environment.settings, facts=facts, zonal_shift=True)
    return AwsCloud(environment.operator.shim, settings, lambda: environment.node_classes, CLOCK)


def shift(zone_id: str, *, lasts: int = HOUR, applied: str = "APPLIED") -> dict[str, Any]:
    at, end = (datetime.fromtimestamp((CLOCK.now + ms) / 1000, UTC) for ms in (0, lasts))
    return {
        "appliedStatus": applied, "zonalShiftId": "0a1b2c3d", "resourceIdentifier": CLUSTER, "awayFrom": zone_id,
        "startTime": at, "expiryTime": end, "comment": "power",
    }  # fmt: skip


def zone_id_of(world: AwsWorld, zone: str) -> str:
    answer = world.environment.operator.ec2.describe_availability_zones(ZoneNames=[zone])
    return str(answer["AvailabilityZones"][0]["ZoneId"])


def open_zones(cloud: AwsCloud) -> set[str]:
    return {o.zone for kind in catalogue_of(cloud.observe()).types for o in kind.offerings if o.available}


def test_a215_nothing_is_on_offer_in_a_shifted_zone_until_its_shift_ends(world: AwsWorld) -> None:
    cloud, shim = following(world), world.environment.operator.shim
    every = {f"us-west-2{letter}" for letter in "abc"}
    assert open_zones(cloud) == every
    shim.zonal_shifts = [shift(zone_id_of(world, "us-west-2a")), shift("other", applied="NOT_APPLIED")]
    CLOCK.now += EVERY
    assert cloud.next_due() <= CLOCK.now
    made = catalogue_of(cloud.observe())
    assert {o.zone for kind in made.types for o in kind.offerings if o.available} == every - {"us-west-2a"}
    assert {o.zone for kind in made.types for o in kind.offerings} == every, "its nodes are of types that still exist"
    assert made.shifted == (zone_id_of(world, "us-west-2a"),)
    CLOCK.now += HOUR  # ARC still lists a shift that has expired
    assert open_zones(cloud) == every


def test_a_shift_without_an_end_keeps_no_class_from_being_resolved(
    world: AwsWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud = following(world)
    monkeypatch.setattr(zonal_shift, "call", lambda *_, **__: {"zonalShifts": [{"appliedStatus": "APPLIED"}]})
    seen = [o.payload for o in cloud.observe()]
    assert [payload.ready for payload in seen if isinstance(payload, NodeClassSeen)] == [True]
    assert [payload.object for payload in seen if isinstance(payload, InputRefused)] == ["zonal shifts"]
    CLOCK.now += EVERY
    assert not any(isinstance(o.payload, InputRefused) for o in cloud.observe()), "told once"


def test_a215_a_shift_that_is_ended_early_is_over(world: AwsWorld) -> None:
    """ARC names it no more, beside another one that lasts."""
    cloud, shim = following(world), world.environment.operator.shim
    first, second = (shift(zone_id_of(world, f"us-west-2{letter}")) for letter in "ab")
    shim.zonal_shifts = [first, second]
    assert open_zones(cloud) == {"us-west-2c"}
    shim.zonal_shifts = [second]
    CLOCK.now += EVERY
    assert open_zones(cloud) == {"us-west-2a", "us-west-2c"}


def test_a381_instances_in_a_shifted_zone_are_left_alone_until_the_shift_ends(world: AwsWorld) -> None:
    cloud, shim = following(world), world.environment.operator.shim
    cloud.observe()
    answer = cloud.launch(order(world, "web-1"), intent="1.0", token="web-1")
    assert answer.instance
    CLOCK.now += 2 * 60_000
    (seen,) = cloud.describe([answer.instance])
    assert seen.capacity_type == "on-demand"
    shim.zonal_shifts = [shift(answer.zone_id)]
    cloud.observe()
    calls = Calls(world.environment, "DescribeInstances", "TerminateInstances", "CreateTags")
    assert cloud.describe([answer.instance]) == [replace(seen, capacity_type="")]
    refused = cloud.terminate(answer.instance, intent="2.0")
    assert (refused.ok, refused.code) == (False, "ZonalShift")
    cloud.name({answer.instance: "node-1"})
    assert calls.made == []
    shim.ec2.terminate_instances(InstanceIds=[answer.instance])  # to EC2's eyes the zone is dark
    CLOCK.now += 10 * 60_000
    assert answer.instance in {listed.instance for listed in cloud.listing()}
    CLOCK.now += HOUR
    assert cloud.terminate(answer.instance, intent="2.0").ok


def test_a93_what_was_seen_of_an_instance_is_known_however_long_ago_that_was(world: AwsWorld) -> None:
    cloud, shim = following(world), world.environment.operator.shim
    cloud.observe()
    answer = cloud.launch(order(world, "web-93"), intent="1.0", token="web-93")
    CLOCK.now += 2 * 60_000
    (seen,) = cloud.listing()
    CLOCK.now += 90 * 24 * HOUR
    shim.zonal_shifts = [shift(answer.zone_id)]
    cloud.observe()
    shim.ec2.terminate_instances(InstanceIds=[answer.instance])  # to EC2's eyes the zone is dark
    assert cloud.listing() == [seen]
    assert [(found.instance, found.status, found.claim) for found in cloud.describe([answer.instance])] == [
        (answer.instance, "running", "web-93")
    ]
    shim.zonal_shifts = []


def test_a381_an_instance_that_was_gone_before_the_shift_does_not_come_back_with_it(world: AwsWorld) -> None:
    """It would be listed without a claim, and kerf would terminate it again and again."""
    cloud, shim = following(world), world.environment.operator.shim
    cloud.observe()
    answer = cloud.launch(order(world, "web-1"), intent="1.0", token="web-1")
    shim.ec2.terminate_instances(InstanceIds=[answer.instance])  # as EC2 ends a spot instance
    CLOCK.now += 2 * 60_000
    (seen,) = cloud.describe([answer.instance])
    assert seen.status == "gone"
    shim.zonal_shifts = [shift(answer.zone_id)]
    cloud.observe()
    assert cloud.listing() == []
    assert cloud.describe([answer.instance]) == [replace(seen, capacity_type="")]


def test_a376_what_was_known_stays_while_arc_does_not_answer_and_it_is_told_once(world: AwsWorld) -> None:
    cloud, operator = following(world), world.environment.operator
    operator.shim.zonal_shifts = [shift(zone_id_of(world, "us-west-2b"))]
    assert "us-west-2b" not in open_zones(cloud)
    operator.fault("GetManagedResource", "refused", 2)
    told = []
    for _ in range(2):
        CLOCK.now += EVERY
        told += [o.payload for o in cloud.observe()]
    (refusal,) = [entry for entry in told if isinstance(entry, InputRefused)]
    assert (refusal.object, "UnauthorizedOperation" in refusal.message) == ("zonal shifts", True)
    assert cloud._shifts.zones() == (zone_id_of(world, "us-west-2b"),)


def test_a11_without_the_setting_arc_is_not_asked(world: AwsWorld) -> None:
    world.environment.operator.fault("GetManagedResource", "refused", 1)
    assert not [o for o in world.cloud().observe() if isinstance(o.payload, InputRefused)]
    assert world.environment.operator.plan.hits == []
