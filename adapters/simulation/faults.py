"""The faults of a run: probabilities that the seed decides, and the points at which the driver dies or loses its
office."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from kerf.adapters.simulation.clock import Clock
from kerf.adapters.simulation.seeded_random import SeededRandom


class KillPoint(Enum):
    """Where the driver dies between an intent and its recorded outcome (docs/design.md, idea 4)."""

    BEFORE_EFFECT = "before-effect"  # the intent is durable, nothing has happened
    AFTER_EFFECT = "after-effect"  # it has happened, the answer was not received
    BEFORE_RECORD = "before-record"  # the answer was received, and is not recorded


class Kill(Struct, frozen=True):
    """Die at this intent, counted from 1 over the whole run as intents become durable."""

    intent: int
    point: KillPoint


class FaultPlan(Struct, frozen=True, kw_only=True):
    """All faults. Probabilities are of one event each, times are in milliseconds. By default nothing goes wrong."""

    watch_late: float = 0.0  # a watch event, and with it its stream, is held up
    watch_late_by: int = 5_000  # at most
    watch_twice: float = 0.0  # a watch event is delivered twice
    watch_gap: float = 0.0  # a watch breaks at an event and is relisted
    watch_gap_for: int = 10_000

    no_capacity: float = 0.0  # one (type, zone, capacity type) refuses one launch
    launch_error: float = 0.0  # a launch fails for another reason (InternalError)
    throttled: float = 0.0  # a call to the cloud is refused with RequestLimitExceeded
    answer_lost: float = 0.0  # a launch happens, its answer does not arrive

    never_join: float = 0.0  # an instance never becomes a Node
    slow_join: float = 0.0
    slow_factor: int = 10  # how many times slower
    never_ready: float = 0.0  # a Node never becomes ready
    tainted: float = 0.0  # somebody else's taint comes onto a new Node, and stays

    message_twice: float = 0.0  # a queue message is delivered twice
    message_late: float = 0.0  # a queue message comes late, behind later ones

    write_refused: float = 0.0  # a write to the cluster is refused (409, 429, 500) and has not happened
    write_lost: float = 0.0  # a write to the cluster has happened, and its answer is an error (504)

    kills: tuple[Kill, ...] = ()
    restart: int = 15_000  # from death to the next turn: the lease has to run out
    rivals: tuple[int, ...] = ()  # when another process takes office while this one lives, from the start
    host_clocks: tuple[int, ...] = ()
    """By how much the wall clocks of the machines are wrong that one process after the other runs on."""
    until: int = 0  # from here on nothing goes wrong by chance any more, from the start; 0 for never

    def wrong_by(self, process: int, after: int) -> int | None:
        """By how much the clock of this process's machine is wrong (counted from 0, `after` the start). None: it runs
        on the same machine as the one before."""
        if not self.host_clocks:
            return None
        return self.host_clocks[process % len(self.host_clocks)] if not self.until or after < self.until else 0

    def kill_at(self, intent: int) -> KillPoint | None:
        """Return the point at which the driver dies over this intent, if it does."""
        return next((kill.point for kill in self.kills if kill.intent == intent), None)


class FaultInjector:
    """Decides whether a fault of the plan strikes. `SeededRandom.struck` counts those that did, for all parts of a
    world."""

    def __init__(self, plan: FaultPlan, rng: SeededRandom, clock: Clock) -> None:
        """Make it when the world begins: faults end at a time since then."""
        self._plan, self._rng, self._clock = plan, rng, clock
        self._ends = clock.now + plan.until if plan.until else None

    def strikes(self, fault: str, *name: str | int) -> bool:
        """Whether a fault strikes. `fault` is a field of the plan; `name` says what it is about (see
        `SeededRandom`)."""
        if self._ends is not None and self._clock.now >= self._ends:
            return False
        probability = getattr(self._plan, fault)
        struck = bool(probability) and self._rng.happens(probability, fault.replace("_", "-"), *name)
        if struck:
            self._rng.struck[fault] += 1
        return struck
