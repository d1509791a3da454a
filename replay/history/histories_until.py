"""The histories up to a position of a record.

Where a record finds entries by their names, its histories are folded once, to the end. Those of an earlier position are
cut out of them: a claim that was over by then, and one that had not begun, costs nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain

from kerf.engine.record.entries import Entry
from kerf.engine.record.store import Store
from kerf.replay.history.histories import ClaimHistory, Histories, MoveHistory, RecordedVerdict
from kerf.replay.record_names.named_entries import NamedEntries
from kerf.replay.time_travel.record_beginning import base_as_entries


def histories_of(store: Store, until: int | None = None, named: NamedEntries | None = None) -> Histories:
    """Fold all entries up to `until` (the end by default). `named` finds those of pods up to there, if it is given."""
    if named is None:
        return _folded(store, store.scan(0, until), None)
    if named.until < named.after or not named.whole.keeps:  # before the base: what it begins with was told for later
        return _folded(store, named.others(), named)
    whole = named.whole.folded("histories", partial(_whole, store, named.whole))
    return named.worked_out_here("histories-until", partial(_up_to, whole, named))


def with_histories(store: Store, named: NamedEntries) -> Iterator[Entry]:
    """Give all entries that are of no pod, and fold the histories of the whole record on the way: to read them once for
    both is sooner, and neither has to keep them."""
    histories = Histories(named)
    for entry in base_as_entries(store):
        histories.apply(entry)
    for entry in named.others():
        histories.apply(entry)
        yield entry
    named.folded("histories", lambda: histories)


def _whole(store: Store, named: NamedEntries) -> Histories:
    return _folded(store, named.others(), named)


def _folded(store: Store, entries: Iterable[Entry], named: NamedEntries | None) -> Histories:
    histories = Histories(named)
    for entry in chain(base_as_entries(store), entries):
        histories.apply(entry)
    return histories


def _up_to(whole: Histories, named: NamedEntries) -> Histories:
    """Return the histories as they were up to the end of `named`, which is not before the record's base. What does not
    change any more is that of the whole."""
    until, found, changes = named.until, Histories(named, whole), whole.changes
    found.pods = whole.pods.up_to(named)
    found.claims = {
        name: claim if claim.last <= until else _claim_up_to(whole, claim, until)
        for name, claim in whole.claims.items()
        if claim.first <= until
    }
    for node, had in changes.nodes.items():
        if had[0][0] <= until:
            found.claims_of_node[node] = [claim for position, claim in had if position <= until]
    found.nodes = {name: position for name, position in whole.nodes.items() if position <= until}
    found.repeated = {decision: position for position, decision in changes.repeats if position <= until}
    found.decisions = {position: decider for position, decider in whole.decisions.items() if position <= until}
    found.moves = {ref: _move_up_to(whole, move, until) for ref, move in whole.moves.items() if move.position <= until}
    found.resized = {name: (position, why) for position, name, why in changes.resized if position <= until}
    found.node_pools = {name: position for name, position in whole.node_pools.items() if position <= until}
    found.node_classes = {name: position for name, position in whole.node_classes.items() if position <= until}
    for pool, ends in whole.ended_pools.items():
        if ends[0].position <= until:
            found.ended_pools[pool] = [entry for entry in ends if entry.position <= until]
    found.imported = next((told for position, told in reversed(changes.imported) if position <= until), None)
    found.budgets = {key: one.up_to(until) for key, one in whole.budgets.items() if one.first <= until}
    found.buffers = {buffer.uid: buffer for position, buffer in changes.buffers if position <= until}
    return found


def _claim_up_to(whole: Histories, claim: ClaimHistory, until: int) -> ClaimHistory:
    replacing = whole.changes.replacing.get(claim.name, ())
    found = ClaimHistory(
        claim.name,
        events=[entry for entry in claim.events if entry.position <= until],
        orders=[order for order in claim.orders if order[0] <= until],
        answers=[answer for answer in claim.answers if answer[0] <= until],
        verdicts=claim.verdicts[: bisect_right(claim.verdicts, until, key=_position)],
        signals=[entry for entry in claim.signals if entry.position <= until],
        moves=[ref for ref in claim.moves if whole.moves[ref].position <= until],
        replaces=next((ref for position, ref in reversed(replacing) if position <= until), ""),
        first=claim.first,
        last=until,
    )
    for entry in found.events:
        found.happened(entry.payload)
    return found


def _position(verdict: RecordedVerdict) -> int:
    return verdict.position


def _move_up_to(whole: Histories, move: MoveHistory, until: int) -> MoveHistory:
    if not move.steps or move.steps[-1].position <= until:
        return move
    was = [like for position, like in whole.changes.moves[move.ref] if position <= until]
    steps = [step for step in move.steps if step.position <= until]
    return MoveHistory(move.ref, move.position, move.at, was[-1], steps)
