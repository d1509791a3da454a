"""What comes of holding a record against a policy, as values that can be printed, sent as JSON, or asserted on."""

from __future__ import annotations

from msgspec import Struct

HOLDS, BROKEN, UNKNOWN = "holds", "broken", "unknown"


class Breach(Struct, frozen=True, kw_only=True):
    """One place where an assertion does not hold: what is wrong, the `position` and time (`at`, ms since the epoch),
    the objects that it is about, and the arguments of the `kerf` command that explains it."""

    what: str
    position: int
    at: int
    subjects: tuple[str, ...] = ()
    command: tuple[str, ...] = ()


class Result(Struct, frozen=True, kw_only=True):
    """An assertion over one record. `outcome` is HOLDS, BROKEN, or UNKNOWN where an imported record, or one of
    pseudonyms, does not tell (`note` says why). `looked_at` counts what it was about: 0 means that its selector selects
    nothing. `broken` counts all breaches, of which the first are kept."""

    name: str
    assertion: str
    outcome: str
    looked_at: int = 0
    broken: int = 0
    breaches: tuple[Breach, ...] = ()
    note: str = ""


class RecordResults(Struct, frozen=True, kw_only=True):
    """All assertions over one record."""

    record: str
    results: tuple[Result, ...]


class PolicyReport(Struct, frozen=True, kw_only=True):
    """A policy over one or more records."""

    policy: str
    records: tuple[RecordResults, ...]

    @property
    def exit_code(self) -> int:
        """0 all hold, 1 one is broken, 2 none is, but what one asks is not known."""
        outcomes = {result.outcome for record in self.records for result in record.results}
        return 1 if BROKEN in outcomes else 2 if UNKNOWN in outcomes else 0
