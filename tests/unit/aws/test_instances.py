"""DescribeInstances for many instances at once (A-287)."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from kerf.adapters.aws.instances import Instances
from kerf.adapters.aws.zonal_shift import ZonalShifts
from kerf.adapters.manager.metrics.aws_metrics import AwsMetrics

FARGATE = "fargate-ip-10-0-0-1.ec2.internal"


class Ec2:
    """Knows each id that begins with i-, and refuses a call that names another one."""

    def __init__(self, **more: Any) -> None:
        self.ec2, self.listener, self.more = self, AwsMetrics(), more

    def describe_instances(self, InstanceIds: list[str], **_: Any) -> dict[str, Any]:  # noqa: N803
        if any(not name.startswith("i-") for name in InstanceIds):
            error = {"Code": "InvalidInstanceID.Malformed", "Message": "Invalid id"}
            raise ClientError({"Error": error, "ResponseMetadata": {"HTTPStatusCode": 400}}, "DescribeInstances")
        running = [{"InstanceId": name, "State": {"Name": "running"}, **self.more} for name in InstanceIds]
        return {"Reservations": [{"Instances": running}]}


@pytest.mark.parametrize("names", [["i-1", FARGATE, "i-2"], [FARGATE], ["i-1"]])
def test_a328_what_is_no_instance_id_keeps_no_other_from_being_described(names: list[str]) -> None:
    """A Fargate node's provider id ends in one. Every later look failed, for it was asked for again."""
    clients: Any = Ec2()
    instances = Instances(clients, "cluster", lambda: 0, ZonalShifts(clients, "", lambda: 0))
    seen = {each.instance: each.status for each in instances.describe(names)}
    assert seen == {name: "gone" if name == FARGATE else "running" for name in names}


@pytest.mark.parametrize("gate", [True, False])
def test_a210_a360_what_runs_on_a_reservation_is_known_of_instances_of_an_earlier_process(gate: bool) -> None:
    bound = {"CapacityReservationPreference": "capacity-reservations-only"}
    clients: Any = Ec2(CapacityReservationId="cr-1", CapacityReservationSpecification=bound)
    told: list[tuple[str, str]] = []
    shifts = ZonalShifts(clients, "", lambda: 0)
    instances = Instances(
        clients, "cluster", lambda: 0, shifts, reserved=gate, runs_on=lambda *known: told.append(known)
    )
    (seen,) = instances.describe(["i-1"])
    assert (seen.capacity_type, told) == (("reserved", [("i-1", "cr-1")]) if gate else ("on-demand", []))
