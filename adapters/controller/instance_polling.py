"""Asks the cloud about instances: those that are being terminated, those whose nodes went silent, those whose capacity
reservation may be over, and from time to time all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from contextlib import suppress

from kerf.adapters.controller.inbox import Inbox
from kerf.engine.errors import KerfError
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.record.observations import InstanceSeen, Observation, TaggedInstance
from kerf.engine.runtime.ports import Cloud
from kerf.engine.runtime.runtime import Runtime, as_asked

DESCRIBE_EVERY = 5.0  # seconds, while instances are being ended (D-157)
LIST_AFTER, LIST_EVERY = 10.0, 120.0  # seconds between listings, the first ones and the others
FIRST_LISTINGS = 20  # a process that died may have started instances that its cloud does not show yet
FIRST_LOOK = 0.2  # seconds after the first of them: many clouds are quicker than that
KNOWN = 100_000  # instances whose last status is remembered


class InstancePolling:
    """Call `saw` after each turn; `run` and `list` run on the event loop."""

    def __init__(self, runtime: Runtime, cloud: Cloud, inbox: Inbox) -> None:
        self.error: KerfError | None = None
        self._runtime, self._cloud, self._inbox = runtime, cloud, inbox
        self._told: dict[str, str] = {}  # instance → status last told
        self._suspects: dict[str, None] = {}
        self._watched: Sequence[str] = []
        self._in_question: frozenset[str] = frozenset()
        self._news = asyncio.Event()
        self._listing: Sequence[TaggedInstance] | None = None

    def listed(self) -> Sequence[Observation]:
        """What the latest listing shows that the record does not know. Called between turns."""
        listing, self._listing = self._listing, None
        return self._runtime.listed(listing)

    async def list(self, pool: Executor) -> None:
        """List all instances, again and again until cancelled."""
        listings = 0
        while True:
            await asyncio.sleep(LIST_AFTER if listings < FIRST_LISTINGS else LIST_EVERY)
            try:
                self._listing = await asyncio.get_running_loop().run_in_executor(pool, self._cloud.listing)
                listings += 1
            except KerfError as error:
                self.error = error
            if self._listing is not None:
                self._inbox.wake()

    def saw(self, batch: Iterable[Observation]) -> None:
        """Ask at once about Nodes that became unready in this turn. Called between turns."""
        suspects = [_instance(o.payload) for o in batch if isinstance(o.payload, Node) and _lost(o.payload)]
        self._suspects.update(dict.fromkeys(suspects))
        before = self._in_question.union(self._watched)
        self._watched = self._runtime.watched_instances()
        self._in_question = frozenset(self._runtime.instances_in_question())
        if suspects or self._in_question.union(self._watched) - before:
            self._news.set()

    async def run(self, pool: Executor) -> None:
        """Describe the instances in question, again and again until cancelled."""
        while True:
            if not self._watched and not self._in_question:
                await self._news.wait()
            else:
                with suppress(TimeoutError):
                    async with asyncio.timeout(DESCRIBE_EVERY):
                        await self._news.wait()
            if self._news.is_set():
                await asyncio.sleep(FIRST_LOOK)
                self._news.clear()
            await self._look(pool)

    async def _look(self, pool: Executor) -> None:
        suspects, self._suspects = self._suspects, {}
        in_question = self._in_question
        instances = sorted({*suspects, *self._watched, *in_question})
        if not instances:
            return
        try:
            seen = await asyncio.get_running_loop().run_in_executor(pool, self._cloud.describe, instances)
        except KerfError as error:
            self.error = error
            self._suspects.update(suspects)
            return
        self.error = None
        answers = (as_asked(instance, in_question) for instance in seen)
        self._inbox.put(Observation(instance) for instance in answers if self._is_news(instance))

    def _is_news(self, instance: InstanceSeen) -> bool:
        if self._told.get(instance.instance) == instance.status and not instance.capacity_type:
            return False
        if len(self._told) >= KNOWN:
            self._told.clear()
        self._told[instance.instance] = instance.status
        return True


def _lost(node: Node) -> bool:
    """Whether a Node was ready once and is not now, or is being deleted."""
    return bool(node.provider_id) and ((not node.ready and node.ready_since > 0) or node.deleting > 0)


def _instance(node: Node) -> str:
    return node.provider_id.rpartition("/")[2]
