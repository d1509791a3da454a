"""The report of `verify`, as values that can be printed, sent as JSON, or asserted on."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from kerf.engine.record.observations import Imported

SAME, DIVERGED, CORRUPT, UNSUPPORTED = 0, 1, 3, 4
"""Exit codes; 2 is usage."""

_NEWER = ("KERF110", "KERF117")
"""Faults of a record that needs another version of kerf."""

MISSING, EXTRA, DIFFERENT, REFUSED = "missing", "extra", "different", "refused"


class Divergence(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The first difference of one turn.

    `kind`: "missing" (the record lacks an entry that is made now), "extra" (the record has an entry that is not made
    now), "different", or "refused" (the recorded entry cannot follow what stands before it). `path` is the first
    differing field, `was` and `now` its values. `outcome_was` and `outcome_now` say in words what the turn decided.
    `decider` made the entry, or the decision of the turn that a claim event belongs to; "" for other entries.
    Versions are those of the decider, 0 where the entry is no decision.
    """

    position: int
    turn: int
    at: int
    kind: str
    type: str
    recorded: dict[str, Any] | None = None
    remade: dict[str, Any] | None = None
    path: str = ""
    was: Any = None
    now: Any = None
    outcome_was: tuple[str, ...] = ()
    outcome_now: tuple[str, ...] = ()
    engine_recorded: str = ""
    engine: str = ""
    decider: str = ""
    version_recorded: int = 0
    version: int = 0
    detail: str = ""


class UnsupportedTurns(Struct, frozen=True, kw_only=True):
    """Turns that cannot be decided again by this version. `reason`: "decision-version", "unknown-entry",
    "newer-entries", "missing-blob", "older-deciders". `detail` names the decider, type or digest; `first` and
    `last` are turns, `count` how many."""

    reason: str
    detail: str
    first: int
    last: int
    count: int


class DeclaredChange(Struct, frozen=True, kw_only=True):
    """A declared change that was met. `what` is a decider, with its `recorded` and today's `version`, or the type of a
    claim event, with 0. `made_again` counts its entries in turns that were decided again, `differs` the turns that
    differ in it first, from turn `first` on (0 if none does). `why` is what was declared."""

    what: str
    recorded: int
    version: int
    why: str
    made_again: int
    differs: int
    first: int


class Corruption(Struct, frozen=True):
    """Where the record is corrupt. Everything before `position` was verified; 0 is no position (a blob, say)."""

    code: str
    position: int
    message: str


class Report(Struct, frozen=True, kw_only=True):
    """The result of `verify`.

    `entries` were read and `turns` looked at; `decisions` and `claim_events` were made again and compared. `diverged`
    counts the turns that differ; `divergences` holds the first of them. `seconds` is how long it took. A cut record, or
    a part of one, begins after position `base`, at the time `base_at` (ms since the epoch). `kept` older entries of
    claims were not decided again. `imported` says what an imported record was made of: no decision of kerf's is in it.
    So many `snapshots` that the record brings along are the states that follow from its entries.
    `declared` are the declared changes that were met, `differences` the first of the turns that differ as declared.
    """

    record: str
    engine_recorded: str
    engine: str
    last: int
    entries: int
    turns: int
    observations: int
    decisions: int
    claim_events: int
    diverged: int
    divergences: tuple[Divergence, ...]
    unsupported: tuple[UnsupportedTurns, ...]
    fault: Corruption | None
    seconds: float
    base: int = 0
    base_at: int = 0
    kept: int = 0
    imported: Imported | None = None
    snapshots: int = 0
    declared: tuple[DeclaredChange, ...] = ()
    differences: tuple[Divergence, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 same, 1 diverged, 3 corrupt, 4 unsupported: the gravest of what was found."""
        if self.fault is not None:
            return UNSUPPORTED if self.fault.code in _NEWER else CORRUPT
        if self.diverged:
            return DIVERGED
        return UNSUPPORTED if self.unsupported else SAME
