"""A controller over a world whose pods wait for a node, with a cloud that answers as a test says."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from kerf.adapters.controller.controller import Controller
from kerf.adapters.controller.inbox import Inbox
from kerf.engine.model.content_digest import content
from kerf.engine.model.kubernetes.pods import Pod, PodShape
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import InstanceSeen, LaunchAnswered, Observation
from kerf.engine.runtime.runtime import Runtime
from tests.support.world import World, pool


class FakeCloud:
    """Answers every launch with an instance, or does what `fails` says."""

    def __init__(self) -> None:
        self.launched: list[str] = []
        self.fails: BaseException | None = None

    def launch(self, order: Any, *, intent: str, token: str) -> LaunchAnswered:
        self.launched.append(token)
        if self.fails is not None:
            raise self.fails
        offer = order.offers[0]
        instance = f"i-{len(self.launched)}"
        return LaunchAnswered(
            intent, order.claim, instance, f"aws:///{offer.zone}/{instance}", offer.instance_type, offer.zone,
            capacity_type=order.capacity_type,
        )  # fmt: skip

    def find(self, order: Any, *, intent: str, token: str) -> LaunchAnswered | None:
        return None

    def describe(self, instances: Sequence[str]) -> list[InstanceSeen]:
        return [InstanceSeen(instance, "gone") for instance in instances]

    def listing(self) -> None:
        return None


class Seen:
    """The controller's listener: all entries, and waiting for one of a kind."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._news = asyncio.Event()

    def __call__(self, runtime: Runtime, entries: Sequence[Entry]) -> None:
        self.entries += entries
        self._news.set()

    def of(self, kind: type[Struct]) -> list[Any]:
        return [entry.payload for entry in self.entries if isinstance(entry.payload, kind)]

    async def until(self, kind: type[Struct], count: int = 1) -> list[Any]:
        async with asyncio.timeout(10):
            while len(self.of(kind)) < count:
                self._news.clear()
                await self._news.wait()
        return self.of(kind)


class TimeOf:
    """The clocks of a world. They have nothing to tell but `untold`."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.untold: list[Struct] = []

    def now(self) -> int:
        return self._world.now

    def news(self, *, doubted: int) -> list[Struct]:
        news, self.untold = self.untold, []
        return news


class Scene:
    """A controller over a world whose pods wait for a node."""

    def __init__(self) -> None:
        self.world = World(batch_idle=0)
        self.world.prepare(pool())
        self.cloud, self.seen, self.inbox, self.clocks = FakeCloud(), Seen(), Inbox(), TimeOf(self.world)
        self.controller = Controller(
            self.world.runtime, self.inbox,
            cluster=object(), cloud=self.cloud, listener=self.seen, clocks=self.clocks,  # type: ignore[arg-type]
        )  # fmt: skip

    def pending(self, *names: str) -> None:
        """The watch shows pods that wait."""
        shape = PodShape(requests={"memory": 1 << 30})
        digest, _ = content(shape)
        pods = (Pod(f"uid-{name}", "default", name, digest, unschedulable=True) for name in names)
        self.inbox.put(Observation(pod, {digest: shape}) for pod in pods)
