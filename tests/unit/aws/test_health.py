"""What counts of DescribeInstanceStatus (A-351, A-352)."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from kerf.adapters.aws.health import unhealthy

NOW = 1_760_000_000_000


def failed(seconds: int, status: str = "failed") -> dict[str, Any]:
    since = datetime.fromtimestamp(NOW / 1000 - seconds, UTC)
    return {"Status": "impaired", "Details": [{"Name": "reachability", "Status": status, "ImpairedSince": since}]}


def asked(*entries: dict[str, Any]) -> list[tuple[str, str]]:
    """Each query is answered with all of them: an instance may be found by several."""

    def describe_instance_status(**parameters: Any) -> dict[str, Any]:
        (condition,) = parameters["Filters"]
        assert condition["Name"] in ("instance-status.status", "system-status.status", "event.code")
        return {"InstanceStatuses": [{"InstanceId": "i-1", **entry} for entry in entries]}

    clients: Any = SimpleNamespace(ec2=SimpleNamespace(describe_instance_status=describe_instance_status))
    return unhealthy(clients, NOW)


def test_a_351_what_ec2_is_asked() -> None:
    """Checks that fail, and the five kinds of events that concern an instance."""
    filters: dict[str, set[str]] = {}

    def describe_instance_status(**parameters: Any) -> dict[str, Any]:
        filters.update({each["Name"]: set(each["Values"]) for each in parameters["Filters"]})
        return {"InstanceStatuses": []}

    clients: Any = SimpleNamespace(ec2=SimpleNamespace(describe_instance_status=describe_instance_status))
    assert unhealthy(clients, NOW) == []
    assert filters == {
        "instance-status.status": {"impaired"},
        "system-status.status": {"impaired"},
        "event.code": {
            "instance-reboot", "system-reboot", "system-maintenance", "instance-retirement", "instance-stop",
        },
    }  # fmt: skip


@pytest.mark.parametrize(
    ("entry", "kinds"),
    [
        ({"SystemStatus": failed(60)}, []),
        ({"SystemStatus": failed(130)}, ["system_status"]),
        ({"InstanceStatus": failed(120)}, ["instance_status"]),
        ({"InstanceStatus": failed(500, "passed")}, []),
        ({"AttachedEbsStatus": failed(500)}, []),
        ({"Events": [{"Code": "instance-stop", "Description": "The instance is to be stopped"}]}, ["event_status"]),
        ({"Events": [{"Code": "instance-reboot", "Description": "[Completed] Reboot"}]}, []),
        (
            {"SystemStatus": failed(130), "Events": [{"Code": "instance-retirement", "Description": "Retirement"}]},
            ["system_status", "event_status"],
        ),
    ],
)
def test_a_352_a_467_a_468_what_counts(entry: dict[str, Any], kinds: list[str]) -> None:
    assert asked(entry) == [("i-1", kind) for kind in kinds]


def test_checks_that_fail_come_before_events_that_are_to_come() -> None:
    event = {"InstanceId": "i-0", "Events": [{"Code": "instance-stop", "Description": "Stop"}]}
    assert asked({"InstanceId": "i-2", "SystemStatus": failed(130)}, event) == [
        ("i-2", "system_status"),
        ("i-0", "event_status"),
    ]
