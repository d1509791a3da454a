"""The interruption queue of the virtual cloud."""

from __future__ import annotations

from kerf.adapters.simulation.clock import Clock
from kerf.adapters.simulation.faults import FaultInjector, FaultPlan
from kerf.adapters.simulation.seeded_random import SeededRandom
from kerf.engine.record.observations import InputRefused, InterruptionSeen, Observation

SPOT_INTERRUPTED = "spot_interrupted"
REBALANCE = "rebalance_recommendation"
INSTANCE_TERMINATED = "instance_terminated"
SCHEDULED_CHANGE = "scheduled_change"

REDELIVERY_AFTER_MS = 30_000  # when a message that is delivered twice comes again
LATE_BY_MS = 45_000  # when one that is late comes, behind those sent meanwhile


class InterruptionQueue:
    """Implements `kerf.engine.runtime.ports.Interruptions`. A message comes at least once, and is deleted only when it
    is acknowledged."""

    def __init__(self, clock: Clock, rng: SeededRandom, faults: FaultPlan) -> None:
        self._clock, self._rng = clock, rng
        self._fault_injector = FaultInjector(faults, rng, clock)
        self._messages: list[Observation] = []
        self._polled = 0
        self._sent = 0

    @property
    def waiting(self) -> bool:
        """Whether a poll would return anything."""
        return bool(self._messages)

    def send(self, kind: str, instance: str) -> None:
        """Send a message about an instance, of one of the kinds of A-346…A-350."""
        self._sent += 1
        number = self._sent
        identity = self._rng.uid("message", number)
        message = Observation(InterruptionSeen(identity, kind=kind, instance=instance, sent=self._clock.now))
        if self._fault_injector.strikes("message_late", number):
            self._clock.after(LATE_BY_MS, "message comes late", lambda: self._messages.append(message))
        else:
            self._messages.append(message)
        if self._fault_injector.strikes("message_twice", number):
            self._clock.after(REDELIVERY_AFTER_MS, "message comes again", lambda: self._messages.append(message))

    def send_garbage(self, body: str) -> None:
        """Send a message that no consumer can read."""
        self._sent += 1
        refused = InputRefused(
            code="KERF812",
            source="queue",
            object=self._rng.uid("message", self._sent),
            message=f"not JSON: {body[:80]}",
        )
        self._messages.append(Observation(refused))

    def poll(self) -> list[Observation]:
        """Return all messages that are not acknowledged, so that one whose append failed comes again."""
        self._polled = len(self._messages)
        return list(self._messages)

    def acknowledge(self) -> None:
        del self._messages[: self._polled]
        self._polled = 0
