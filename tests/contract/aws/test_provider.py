"""The provider of `kerf run --provider aws` on the mock: what it writes of EC2NodeClasses."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, cast

import pytest
from msgspec.structs import replace

from kerf.adapters.aws.interruption import AwsInterruptions
from kerf.adapters.kubernetes.objects.nodeclasses import NodeClassObjects
from kerf.adapters.manager.providers.aws import AwsProvider
from kerf.adapters.manager.providers.provider import ProviderHost
from kerf.engine.record.observations import InterruptionSeen, NodeClassSeen, Observation
from tests.support.servers.aws_world import CLOCK, AwsWorld


class Queue:
    """A queue that meets two defects before it gives its message."""

    def __init__(self) -> None:
        self.polled = 0
        self.acknowledged = asyncio.Event()

    def poll(self) -> list[Observation]:
        self.polled += 1
        if self.polled < 3:
            raise RecursionError("a defect")
        return [Observation(InterruptionSeen("m-1", "spot_interrupted", "i-1"))]

    def acknowledge(self) -> None:
        self.acknowledged.set()


class Host:
    def __init__(self) -> None:
        self.told: list[Any] = []

    def put(self, observations: Iterable[Observation]) -> None:
        self.told += [observation.payload for observation in observations]

    async def record(self, observations: Iterable[Observation]) -> None:
        self.put(observations)


@pytest.mark.asyncio(loop_scope="function")
async def test_a_343_a_defect_met_in_the_queue_does_not_end_the_provider(world: AwsWorld) -> None:
    queue, host = Queue(), Host()
    interruptions = cast(AwsInterruptions, queue)
    provider = AwsProvider(
        world.environment.operator.shim, world.environment.settings, objects=None, interruptions=interruptions
    )
    listening = asyncio.create_task(provider._listen(cast(ProviderHost, host), interruptions))
    while not queue.acknowledged.is_set():
        assert not listening.done()
        await asyncio.sleep(1)
    listening.cancel()
    refused, seen = host.told[:2]
    assert (refused.code, refused.source) == ("KERF605", "queue"), "told once"
    assert seen == InterruptionSeen("m-1", "spot_interrupted", "i-1")


class Objects:
    """Keeps what is written of each class. Writing of "bad" fails in a way that nobody foresaw."""

    def __init__(self) -> None:
        self.written: dict[str, dict[str, str]] = {}

    async def mark(self, name: str, finalizer: str, annotations: Any) -> None:
        if name == "bad":
            raise TypeError("a defect")

    async def write_status(self, name: str, generation: int, status: Any, conditions: Any) -> None:
        self.written[name] = {condition.type: condition.status for condition in conditions}


@pytest.mark.asyncio(loop_scope="function")
async def test_a_136_a_class_that_cannot_be_written_keeps_no_other_from_being_written(world: AwsWorld) -> None:
    (default,) = world.environment.node_classes
    objects = Objects()
    provider = AwsProvider(
        world.environment.operator.shim,
        world.environment.settings,
        objects=cast(NodeClassObjects, objects),
        interruptions=None,
        clock=CLOCK,
    )
    malformed = replace(default.spec, kubelet={"podsPerCore": "x"})
    for name, spec in (("aaa", default.spec), ("bad", default.spec), ("malformed", malformed), ("zzz", default.spec)):
        provider.put(replace(default, name=name, spec=spec))
    seen = [entry.payload for entry in await provider.first()]
    assert {node_class.name: node_class.ready for node_class in seen if isinstance(node_class, NodeClassSeen)} == {
        "aaa": True, "bad": True, "malformed": False, "zzz": True,
    }  # fmt: skip
    for node_class in list(provider._classes.values()):
        await provider._bring(node_class, cast(ProviderHost, None))
    assert {name: written["Ready"] for name, written in objects.written.items()} == {
        "aaa": "True", "malformed": "False", "zzz": "True",
    }  # fmt: skip
    assert provider.error is not None
    assert (provider.error.code, provider.error.where) == ("KERF605", "EC2NodeClass/bad")
