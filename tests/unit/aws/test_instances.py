"""DescribeInstances for many instances at once (A-287), and their names (A-323)."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from kerf.adapters.aws.instances import Instances
from kerf.adapters.aws.session import AwsError
from kerf.adapters.aws.zonal_shift import ZonalShifts
from kerf.adapters.manager.metrics.aws_metrics import AwsMetrics

FARGATE = "fargate-ip-10-0-0-1.ec2.internal"


class Ec2:
    """Knows each id that begins with i-, and refuses a call that names another one."""

    def __init__(self, **more: Any) -> None:
        self.ec2, self.listener, self.more = self, AwsMetrics(), more
        self.refuses: dict[str, str] = {}
        self.named: list[str] = []
        self.described = 0

    def create_tags(self, Resources: list[str], **_: Any) -> dict[str, Any]:  # noqa: N803
        (name,) = Resources
        if code := self.refuses.get(name):
            error = {"Code": code, "Message": "no"}
            raise ClientError({"Error": error, "ResponseMetadata": {"HTTPStatusCode": 400}}, "CreateTags")
        self.named.append(name)
        return {}

    def describe_instances(self, InstanceIds: list[str], **_: Any) -> dict[str, Any]:  # noqa: N803
        self.described += 1
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


def test_a287_one_of_five_hundred_that_is_no_instance_id_is_found_in_halves() -> None:
    """Each of them was asked for alone."""
    clients: Any = Ec2()
    instances = Instances(clients, "cluster", lambda: 0, ZonalShifts(clients, "", lambda: 0))
    names = [f"i-{number}" for number in range(250)] + [FARGATE] + [f"i-{number}" for number in range(250, 499)]
    seen = instances.describe(names)
    assert [each.instance for each in seen if each.status == "gone"] == [FARGATE]
    assert len(seen) == 500
    assert clients.described <= 19


@pytest.mark.parametrize("code", ["TagLimitExceeded", "UnauthorizedOperation", "InvalidInstanceID.NotFound"])
def test_a323_an_instance_that_takes_no_name_keeps_no_other_from_its_own(code: str) -> None:
    clients: Any = Ec2()
    clients.refuses["i-1"] = code
    instances = Instances(clients, "cluster", lambda: 0, ZonalShifts(clients, "", lambda: 0))
    against = instances.name({f"i-{number}": "node" for number in range(3)})
    assert clients.named == ["i-0", "i-2"]
    assert {name: error.aws_code for name, error in against.items()} == (
        {"i-1": code} if code != "InvalidInstanceID.NotFound" else {}
    )


@pytest.mark.parametrize("code", ["RequestLimitExceeded", "ExpiredToken"])
def test_a323_what_would_end_alike_for_each_instance_is_not_tried_for_each(code: str) -> None:
    clients: Any = Ec2()
    clients.refuses["i-0"] = code
    instances = Instances(clients, "cluster", lambda: 0, ZonalShifts(clients, "", lambda: 0))
    with pytest.raises(AwsError, match=code):
        instances.name({"i-0": "node", "i-1": "node"})
    assert clients.named == []


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
