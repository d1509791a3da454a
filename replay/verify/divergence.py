"""Compare a recorded turn with the same turn decided again, and report the first difference."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

import kerf
from kerf.engine.record.codec import CODEC
from kerf.engine.record.decisions import Decision
from kerf.engine.record.entries import Entry
from kerf.replay.verify.decide_again import VERSIONS
from kerf.replay.verify.decision_lines import decided_lines
from kerf.replay.verify.first_difference import first_difference, plain
from kerf.replay.verify.report import DIFFERENT, EXTRA, MISSING, REFUSED, Divergence


def divergence(recorded: Sequence[Entry], remade: Sequence[Entry]) -> Divergence:
    """Report the first difference between a recorded turn and the remade one. The two must differ."""
    index, old, new = first_differing(recorded, remade)
    entry = old if old is not None else new
    assert entry is not None, "equal turns do not differ"
    difference = first_difference(plain(old), plain(new)) if old is not None and new is not None else None
    return Divergence(
        position=recorded[0].position + index,
        turn=recorded[0].turn,
        at=recorded[0].at,
        kind=MISSING if old is None else EXTRA if new is None else DIFFERENT,
        type=entry.type,
        recorded=plain(old) if old is not None else None,
        remade=plain(new) if new is not None else None,
        path=difference.path if difference else "",
        was=difference.recorded if difference else None,
        now=difference.remade if difference else None,
        outcome_was=decided_lines(recorded),
        outcome_now=decided_lines(remade),
        engine=kerf.__version__,
        decider=_decider(entry, recorded if old is not None else remade),
        version_recorded=old.payload.version if old is not None and isinstance(old.payload, Decision) else 0,
        version=VERSIONS.get(entry.payload.decider, 0) if isinstance(entry.payload, Decision) else 0,
    )


def refusal(recorded: Sequence[Entry], entry: Entry, error: Exception) -> Divergence:
    """Report a recorded entry that cannot follow what stands before it, or a turn that cannot be decided at all."""
    return Divergence(
        position=entry.position,
        turn=entry.turn,
        at=entry.at,
        kind=REFUSED,
        type=entry.type,
        recorded=plain(entry),
        outcome_was=decided_lines(recorded),
        engine=kerf.__version__,
        decider=_decider(entry, recorded),
        detail=str(error) or type(error).__name__,
    )


def _decider(entry: Entry, turn: Sequence[Entry]) -> str:
    """Name the decider of a decision; of a claim event that of the decision of its turn that it follows from, or else
    of the decision about the same claim. "" if there is none."""
    if isinstance(entry.payload, Decision):
        return entry.payload.decider
    decisions = [(other.position, other.payload) for other in turn if isinstance(other.payload, Decision)]
    causes = [decision.decider for position, decision in decisions if position == entry.cause]
    claim = getattr(entry.payload, "claim", "")
    same = [decision.decider for _, decision in decisions if claim and getattr(decision.result, "claim", "") == claim]
    return next(iter((*causes, *same)), "")


def first_differing(recorded: Sequence[Entry], remade: Sequence[Entry]) -> tuple[int, Entry | None, Entry | None]:
    """Return the index of the first difference, and what stands there on either side: None on the side that lacks an
    entry."""
    for index, (old, new) in enumerate(zip(recorded, remade, strict=False)):
        if CODEC.encode(old) != CODEC.encode(new):
            if index + 1 < len(remade) and _content(remade[index + 1]) == _content(old):
                return index, None, new  # remade now, and then all goes on as recorded
            if index + 1 < len(recorded) and _content(recorded[index + 1]) == _content(new):
                return index, old, None
            return index, old, new
    index = min(len(recorded), len(remade))
    return index, next(iter(recorded[index:]), None), next(iter(remade[index:]), None)


def _content(entry: Entry) -> bytes:
    """Encode what the entry says without its position, version and cause."""
    unplaced = msgspec.structs.replace(entry, position=0, version=0, cause=0)
    if isinstance(entry.payload, Decision):
        unplaced = msgspec.structs.replace(unplaced, payload=msgspec.structs.replace(entry.payload, looked_at=0))
    return CODEC.encode(unplaced)
