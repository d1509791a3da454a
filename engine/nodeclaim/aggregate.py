"""The NodeClaim aggregate on `eventsourcing`: it decides whether an event may happen, and numbers it.

An aggregate lives as long as its claim, in the process that writes the record (`ClaimAggregates`). It holds the claim's
state in the `transitions` machine, which refuses what the table forbids, and its own version, which is the version of
the claim's stream in the record. After a start it is restored from the folded claim, its snapshot.

It only builds events (string ids, explicit timestamps). The runtime appends them, one transaction a turn; nothing here
is ever saved by an `eventsourcing` Application.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from eventsourcing.domain import BaseAggregate, CanMutateAggregate
from msgspec import Struct

from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.state_machine import ClaimMachine


@dataclass(frozen=True)
class ClaimEvent(CanMutateAggregate[str]):
    """An event of one claim, numbered in its stream: `payload` is a struct of `kerf.engine.record.claim_events`."""

    originator_id: str
    originator_version: int
    timestamp: datetime
    payload: Struct

    def apply(self, aggregate: NodeClaimAggregate) -> None:
        aggregate.machine.fire(self.payload)


class NodeClaimAggregate(BaseAggregate[str]):
    """`id` is the stream `nodeclaim/<name>`; `version` the stream's version; `machine` the state of the table."""

    machine: ClaimMachine

    @classmethod
    def restored(cls, claim: NodeClaim) -> NodeClaimAggregate:
        """The aggregate as the fold knows it (a claim that does not exist yet is in state absent, version 0)."""
        aggregate = cls.__new__(cls)
        aggregate.__base_init__(
            originator_id=f"nodeclaim/{claim.name}",
            originator_version=claim.version,
            timestamp=_moment(claim.since),
        )
        aggregate.machine = ClaimMachine(claim.name, claim.state, claim.before)
        return aggregate

    def happened(self, payload: Struct, *, at: int) -> ClaimEvent:
        """Adds one event at `at` (ms since the epoch). Raises TransitionRefused (KERF701): then nothing has changed."""
        self.trigger_event(ClaimEvent, payload=payload, timestamp=_moment(at))
        (event,) = self.collect_events()
        assert isinstance(event, ClaimEvent)
        return event


class ClaimAggregates:
    """The aggregates of one writer, by the names of their claims."""

    def __init__(self) -> None:
        self._aggregates: dict[str, NodeClaimAggregate] = {}

    def of(self, claim: NodeClaim) -> NodeClaimAggregate:
        """The claim's aggregate: the one that has numbered its events so far, else restored from the fold."""
        aggregate = self._aggregates.get(claim.name)
        if aggregate is None:
            aggregate = self._aggregates[claim.name] = NodeClaimAggregate.restored(claim)
        return aggregate

    def forget(self, name: str) -> None:
        """The claim is over."""
        self._aggregates.pop(name, None)


def _moment(at: int) -> datetime:
    return datetime.fromtimestamp(at / 1000, UTC)
