"""The driver that runs turns on asyncio, as kerf.adapters.simulation.driver does in virtual time.

What arrives is collected while a turn runs, so that under load a turn takes more at once. The turn itself runs in a
thread of its own, one at a time: the loop goes on reading watches and renewing the Lease. Intents are carried out in a
pool of threads, because the ports are synchronous; each answer comes back as an observation.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Protocol

from msgspec import Struct

from kerf.adapters.controller.inbox import Inbox
from kerf.adapters.controller.instance_polling import InstancePolling
from kerf.adapters.controller.turn_watch import TurnWatch
from kerf.engine.errors import KerfError, fault_of
from kerf.engine.record.decisions import Intent, LaunchInstance
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import Observation
from kerf.engine.runtime import carry_out
from kerf.engine.runtime.ports import Cloud, Cluster
from kerf.engine.runtime.runtime import Runtime

STORE_RETRY = 1.0  # seconds, while the runtime cannot append
GATHER = (0.01, 0.1)  # seconds that a turn waits for what comes together with the first that came (see _wait)
EFFECTS = 64  # that are carried out at a time, and as many launches: these may wait for the cloud's rate limits
LONGEST_WAIT = 60.0  # seconds without a look at the clocks: one may have been set


class Listener(Protocol):
    """Called on the event loop after each turn, before the next one begins: it may read the state."""

    def __call__(self, runtime: Runtime, entries: Sequence[Entry]) -> None: ...


class Clocks(Protocol):
    """What the controller needs of ProcessClocks."""

    def now(self) -> int: ...
    def news(self, *, doubted: int) -> list[Struct]: ...


class Controller:
    """`run` until `stop`. What is in the inbox before goes into the first turn."""

    def __init__(
        self,
        runtime: Runtime,
        inbox: Inbox,
        *,
        cluster: Cluster,
        cloud: Cloud,
        listener: Listener,
        clocks: Clocks,
    ) -> None:
        self.turns = 0
        self.error: KerfError | None = None
        self.runtime = runtime
        self._inbox, self._cluster, self._cloud = inbox, cluster, cloud
        self._listener, self._clocks = listener, clocks
        self._instances = InstancePolling(runtime, cloud, inbox)
        self._turner = ThreadPoolExecutor(1, thread_name_prefix="turn")
        self._pool = ThreadPoolExecutor(EFFECTS, thread_name_prefix="effect")
        self._launching = ThreadPoolExecutor(EFFECTS, thread_name_prefix="launch")
        self._effects: set[asyncio.Task[None]] = set()
        self._stopping = False
        self.took = 0.0  # seconds, the latest turn
        self.watch = TurnWatch()
        self.between_turns = asyncio.Lock()
        """Who holds it may read the state: no turn runs meanwhile."""

    async def run(self) -> None:
        """Ends when `stop` is called. Raises EpochRefused (KERF103) when another writer has taken office, and what the
        engine raises when it finds itself at fault (KERF7xx)."""
        self._listener(self.runtime, self.runtime.new_entries)
        for ref, intent in self.runtime.unanswered():
            self._carry_out(ref, intent, carry_out.reconcile)
        looking = [
            asyncio.create_task(self._look(self._instances.run), name="describe instances"),
            asyncio.create_task(self._look(self._instances.list), name="list instances"),
        ]
        try:
            while not self._stopping:
                await self._turn()
                await self._wait()
        finally:
            for task in looking:
                task.cancel()
            await self._end()

    async def _look(self, at: Callable[[Executor], Awaitable[None]]) -> None:
        """Look after instances for ever. A defect is kept in `error` and the work begun again: else the end of an
        instance would go unnoticed."""
        while True:
            try:
                await at(self._pool)
            except Exception as error:
                self.error = fault_of(error, "instances")
                await asyncio.sleep(STORE_RETRY)

    def stop(self) -> None:
        """Begin no further turn. `run` waits for effects under way."""
        self._stopping = True
        self._inbox.wake()

    @property
    def ready(self) -> bool:
        return not self._stopping and self.runtime.ready

    # ── turns ───────────────────────────────────────────────────────────────────────────────────────────────

    async def _turn(self) -> None:
        batch = [*self._clock_news(), *self._inbox.take(), *self._instances.listed()]
        now = self._clocks.now()
        due = self.runtime.next_due()
        if not batch and self.runtime.ready and (due is None or due > now):
            return
        loop = asyncio.get_running_loop()
        self.watch.begin(batch)
        try:
            async with self.between_turns:
                intents = await loop.run_in_executor(self._turner, self._decide, batch, now)
        finally:
            self.took = self.watch.end()
        self.turns += 1
        self._instances.saw(batch)
        self._listener(self.runtime, self.runtime.new_entries)
        for ref, intent in intents:
            self._carry_out(ref, intent, carry_out.perform)

    def _decide(self, batch: list[Observation], now: int) -> list[tuple[str, Intent]]:
        self.watch.enter()
        return self.runtime.turn(batch, now)

    def _clock_news(self) -> list[Observation]:
        """Comes first in a turn: what else is seen in it has been seen by the clocks as they are now."""
        news = self._clocks.news(doubted=self.runtime.state.facts.clocks_differ)
        return [Observation(payload) for payload in news]

    async def _wait(self) -> None:
        """Wait for work. After a slow turn (a long transaction, a busy machine) it waits about as long again, so that
        turns take more at once and each event costs less."""
        if not self.runtime.ready:
            await asyncio.sleep(STORE_RETRY)
            return
        due = self.runtime.next_due()
        began, seconds = time.monotonic(), LONGEST_WAIT
        if due is not None:
            seconds = min(LONGEST_WAIT, max(0.0, (due - self._clocks.now()) / 1000))
        least, most = GATHER
        if not await self._inbox.wait(seconds):
            most = least  # something is due: it does not wait for what may come
        elif due is not None:
            most = min(most, max(least, seconds - (time.monotonic() - began)))
        if not self._stopping:
            await asyncio.sleep(min(most, max(least, 2 * self.took)))

    # ── effects ─────────────────────────────────────────────────────────────────────────────────────────────

    def _carry_out(self, ref: str, intent: Intent, how: Callable[..., Observation]) -> None:
        token = self.runtime.token(ref)
        task = asyncio.create_task(self._answer(ref, intent, how, token), name=f"intent {ref}")
        self._effects.add(task)
        task.add_done_callback(self._effects.discard)

    async def _answer(self, ref: str, intent: Intent, how: Callable[..., Observation], token: str) -> None:
        def work() -> Observation:
            try:
                return how(ref, intent, token=token, cluster=self._cluster, cloud=self._cloud)
            except Exception as error:  # an adapter's defect is one effect's failure: it is recorded and tried again
                fault = fault_of(error, f"intent {ref}")
                self.error = fault
                return Observation(carry_out.failed_answer(ref, intent, fault))

        pool = self._launching if isinstance(intent, LaunchInstance) else self._pool
        self._inbox.put([await asyncio.get_running_loop().run_in_executor(pool, work)])

    async def _end(self) -> None:
        """Wait for the answers to effects under way and record them, so that the next process need not look for
        them."""
        if self._effects:
            await asyncio.wait(list(self._effects), timeout=10)
        batch = self._inbox.take_all()
        if batch and self.runtime.ready:
            await asyncio.get_running_loop().run_in_executor(self._turner, self._last_turn, batch)
        self._turner.shutdown(wait=False)
        for pool in (self._pool, self._launching):
            pool.shutdown(wait=False, cancel_futures=True)

    def _last_turn(self, batch: list[Observation]) -> None:
        """Record what has arrived. The turn's intents are left to the next process, which finds them unanswered."""
        self.runtime.turn(batch, self._clocks.now())
