"""Fold which state each NodeClaim was in, and how long."""

from __future__ import annotations

from kerf.engine.nodeclaim.state_table import ABSENT, FLAT, GUARDED, TERMINATED, remembered_state
from kerf.engine.record import claim_events as ev
from kerf.engine.record.entries import Entry
from kerf.projections.tables.rows import ClaimStateRow

_CLAIM_EVENTS = frozenset(ev.CLAIM_EVENTS)


class ClaimStatesFold:
    """Folds claim events by the state table. Events of claims that began before the record are left out."""

    def __init__(self) -> None:
        self.state: dict[str, str] = {}
        """The state of each claim that was there."""
        self._before: dict[str, str] = {}
        self._pools: dict[str, str] = {}
        self._entered: dict[str, Entry] = {}
        self._left: list[ClaimStateRow] = []

    def apply(self, entry: Entry) -> None:
        event = entry.payload
        if type(event) not in _CLAIM_EVENTS:
            return
        claim: str = getattr(event, "claim", "")
        was, before = self.state.get(claim, ABSENT), self._before.get(claim, "")
        guard = before if isinstance(event, ev.Untainted) else getattr(event, "state", "")
        state = FLAT.get((was, type(event), guard if type(event) in GUARDED else ""))
        if state is None or state == was:
            return
        if isinstance(event, ev.Requested | ev.Adopted):
            self._pools[claim] = event.node_pool
        self._before[claim] = remembered_state(was, event, state, before)
        if was != ABSENT:
            self._left.append(self._row(claim, entry.at, entry.at))
        self.state[claim], self._entered[claim] = state, entry

    def rows(self, until: int) -> list[ClaimStateRow]:
        """Return all states up to a time (ms since the epoch), in the order in which they were entered."""
        rows = [*self._left, *(self._row(claim, 0, until) for claim in self._entered)]
        return sorted(rows, key=lambda row: (row.since, row.position, row.claim))

    def _row(self, claim: str, left: int, until: int) -> ClaimStateRow:
        entered, state = self._entered[claim], self.state[claim]
        over = state == TERMINATED
        return ClaimStateRow(
            claim=claim, node_pool=self._pools.get(claim, ""), state=state, since=entered.at, until=left,
            seconds=None if over else (until - entered.at) / 1000, event=entered.type, position=entered.position,
        )  # fmt: skip
