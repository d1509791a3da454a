"""What kerf asks EC2 about its instances, from time to time (A-351, A-375)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kerf.adapters.aws.cloud import AwsCloud
from kerf.adapters.aws.session import AwsError
from kerf.adapters.manager.providers import ec2_instances
from kerf.adapters.manager.providers.ec2_instances import InstanceMaintenance
from kerf.adapters.manager.providers.provider import ProviderHost
from kerf.engine.record.observations import InputRefused, InterruptionSeen, Observation

EXPIRING = "capacity_reservation_expiring"


class Cloud:
    """Denies status checks, and throttles every other look at capacity blocks."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def unhealthy(self) -> list[tuple[str, str]]:
        self.asked.append("status")
        raise AwsError("DescribeInstanceStatus", "UnauthorizedOperation", f"no. {len(self.asked)}")

    def in_ending_blocks(self) -> list[tuple[str, str]]:
        self.asked.append("blocks")
        looks = self.asked.count("blocks")
        if looks % 2 == 0:
            raise AwsError("DescribeInstances", "RequestLimitExceeded", f"try later, {looks}")
        return [("i-1", EXPIRING), ("i-others", EXPIRING)][: looks - 1 or None]


class Tags:
    """Refuses the tags of instances whose name begins with x."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def name(self, instances: dict[str, str]) -> dict[str, AwsError]:
        self.asked.append(list(instances))
        full = AwsError("CreateTags", "TagLimitExceeded", "More than 50 tags.")
        return {name: full for name in instances if name.startswith("x")}


class Host:
    def __init__(self) -> None:
        self.told: list[Any] = []
        self.looks = 0
        self.there = {"i-1": "node-1"}
        self.enough = asyncio.Event()

    async def instances(self) -> dict[str, str]:
        self.looks += 1
        if self.looks == 5:
            self.enough.set()
        return self.there

    async def joined(self) -> list[tuple[Any, Any]]:
        """Another size each time, so that there is something to learn."""
        memory = {"memory": 1 + len(await self.instances()) + self.looks}
        return [(SimpleNamespace(instance_type="m5.large", image="ami-1"), SimpleNamespace(capacity=memory))]

    def put(self, observations: Iterable[Observation]) -> None:
        self.told += [observation.payload for observation in observations]


@pytest.mark.asyncio
async def test_a375_ends_of_capacity_blocks_are_seen_without_the_right_for_status_checks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A right that is missing is told once, and the other question goes on; what it told stays while it fails."""
    monkeypatch.setattr(ec2_instances, "LOOK_AFTER", 0)
    monkeypatch.setattr(ec2_instances, "LOOK_EVERY", 0)
    cloud, host = Cloud(), Host()
    with ThreadPoolExecutor(1) as pool:
        looking = asyncio.create_task(InstanceMaintenance(cast(AwsCloud, cloud), pool).look(cast(ProviderHost, host)))
        async with asyncio.timeout(60):
            await host.enough.wait()
        looking.cancel()
    assert cloud.asked[:5] == ["status", *["blocks"] * 4]
    seen = [told for told in host.told if isinstance(told, InterruptionSeen)]
    assert seen == [InterruptionSeen(f"status/i-1/{EXPIRING}", EXPIRING, "i-1")]
    refused = [told.message for told in host.told if isinstance(told, InputRefused)]
    assert [("no. 1" in text, "try later" in text) for text in refused[:3]] == [(True, False), *[(False, True)] * 2]


@pytest.mark.asyncio
async def test_a323_an_instance_that_takes_no_tag_keeps_no_other_from_being_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those that were refused come last: the others have their names first, however many there are."""
    monkeypatch.setattr(ec2_instances, "NAMED_AT_ONCE", 2)
    tags, host = Tags(), Host()
    host.there = {"x1": "n1", "x2": "n2", "y1": "n3", "y2": "n4"}
    with ThreadPoolExecutor(1) as pool:
        running = asyncio.create_task(InstanceMaintenance(cast(AwsCloud, tags), pool).name(cast(ProviderHost, host)))
        async with asyncio.timeout(1_000):
            await host.enough.wait()
        running.cancel()
    assert tags.asked[:3] == [["x1", "x2"], ["y1", "y2"], ["x1", "x2"]]
    assert [payload.message for payload in host.told if isinstance(payload, InputRefused)] != []


class Malformed:
    """Its answers have no such field, but for the health of instances."""

    def name(self, instances: dict[str, str]) -> dict[str, AwsError]:
        raise KeyError("State")

    def learn(self, joined: Iterable[object]) -> None:
        raise KeyError("State")

    def unhealthy(self) -> list[tuple[str, str]]:
        return [("i-1", "event_status")]

    def in_ending_blocks(self) -> list[tuple[str, str]]:
        raise KeyError("State")


@pytest.mark.asyncio
@pytest.mark.parametrize("task", ["name", "measure", "look"])
async def test_an_answer_that_nobody_expected_ends_nothing(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is reported once, and what else there is to ask goes on. It ended the provider, and the controller with it."""
    for pause in ("LOOK_AFTER", "LOOK_EVERY", "NAME_EVERY"):
        monkeypatch.setattr(ec2_instances, pause, 0)
    host = Host()
    with ThreadPoolExecutor(1) as pool:
        maintenance = InstanceMaintenance(cast(AwsCloud, Malformed()), pool)
        running = asyncio.create_task(getattr(maintenance, task)(cast(ProviderHost, host)))
        async with asyncio.timeout(60):
            await host.enough.wait()
        running.cancel()
    (refused,) = [told for told in host.told if isinstance(told, InputRefused)]
    assert refused.code == "KERF605"
    assert "State" in refused.message
    assert [told.kind for told in host.told if isinstance(told, InterruptionSeen)] == ["event_status"] * (
        task == "look"
    )
