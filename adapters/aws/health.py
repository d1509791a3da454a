"""What EC2 itself says of the health of instances, besides the messages of the queue (A-351, A-352)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from kerf.adapters.aws.session import Clients, pages

IMPAIRED_FOR = 120_000
"""How long (ms) a check must have failed to count."""
INSTANCE, SYSTEM, EVENT = "instance_status", "system_status", "event_status"
KINDS = (INSTANCE, SYSTEM, EVENT)
_EVENTS = ("instance-reboot", "system-reboot", "system-maintenance", "instance-retirement", "instance-stop")
_QUERIES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("instance-status.status", ("impaired",)),
    ("system-status.status", ("impaired",)),
    ("event.code", _EVENTS),
)
_OVER = ("[Completed]", "[Canceled]", "[Cancelled]")


def unhealthy(clients: Clients, now: int) -> list[tuple[str, str]]:
    """(instance, kind) of all unhealthy instances of the account, kerf's or not: failing checks come before announced
    events. Raises `AwsError`."""
    entries: dict[str, Mapping[str, Any]] = {}
    for name, values in _QUERIES:
        asked = [{"Name": name, "Values": list(values)}]
        for entry in pages(clients.ec2.describe_instance_status, "InstanceStatuses", Filters=asked, MaxResults=1000):
            entries[entry["InstanceId"]] = entry
    problems = [(instance, kind) for instance, entry in entries.items() for kind in _kinds(entry, now)]
    return sorted(problems, key=lambda each: (KINDS.index(each[1]), each[0]))


def _kinds(entry: Mapping[str, Any], now: int) -> Iterator[str]:
    """What is wrong with an instance (A-352). Checks of attached volumes and past events do not count."""
    if _failed(entry.get("InstanceStatus", {}), now):
        yield INSTANCE
    if _failed(entry.get("SystemStatus", {}), now):
        yield SYSTEM
    if any(not str(event.get("Description", "")).startswith(_OVER) for event in entry.get("Events", ())):
        yield EVENT


def _failed(summary: Mapping[str, Any], now: int) -> bool:
    details = [detail for detail in summary.get("Details", ()) if detail.get("Status") == "failed"]
    return any(now - _milliseconds(detail.get("ImpairedSince")) >= IMPAIRED_FOR for detail in details)


def _milliseconds(time: datetime | None) -> int:
    return int(time.timestamp() * 1000) if time is not None else 0
