"""What comes again and again: nodes that are replaced by one another, and launches that fail.

`figures.loops` knows more kinds of that, out of the lives of nodes and pods in a whole record. A status reads one hour,
without its pods.
"""

from __future__ import annotations

from collections.abc import Sequence

from kerf.engine.record import claim_events as ev
from kerf.engine.record.decisions import Decision, MoveStepResult
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import FAILED, ControllerDecided

IN_A_ROW = 3
"""So many replacements in a row, within the time that `recent_of` looks back, go round in circles."""
FAILURES = 3
"""So many launches have to fail, and more than succeed."""
OVER_AFTER = 1_200_000
"""What has not come again for so long (ms) is over."""


class TroubleFold:
    """Folds entries, in their order."""

    def __init__(self) -> None:
        self._in_a_row: dict[str, int] = {}  # claim → how many replacements in a row it ends
        self._round: dict[str, int] = {}  # claims that end too many → when they were asked for
        self._failed: list[tuple[int, str]] = []
        self._launched = 0

    def apply(self, entry: Entry) -> None:
        payload = entry.payload
        if isinstance(payload, Decision) and isinstance(payload.result, MoveStepResult):
            begun = payload.result.begun
            if begun is not None:
                self._replaced(begun.claims, [new.name for new in begun.replacements], entry.at)
        elif isinstance(payload, ControllerDecided) and payload.action != FAILED:
            self._replaced(payload.claims, payload.replacements, entry.at)
        elif isinstance(payload, ev.Launched):
            self._launched += 1
        elif isinstance(payload, ev.LaunchFailed | ev.LaunchTimedOut):
            self._failed.append((entry.at, payload.claim))

    def _replaced(self, claims: Sequence[str], new: Sequence[str], at: int) -> None:
        in_a_row = 1 + max((self._in_a_row.get(claim, 0) for claim in claims), default=0)
        for claim in new:
            self._in_a_row[claim] = in_a_row
            if in_a_row >= IN_A_ROW:
                self._round[claim] = at
        for claim in claims:
            self._round.pop(claim, None)  # its replacement ends one more

    def found(self, now: int) -> dict[str, tuple[str, ...]]:
        """The claims that are in trouble at a time (ms since the epoch), by the code of the ground."""
        since = now - OVER_AFTER
        failed = [claim for _, claim in self._failed]
        fails = len(failed) >= FAILURES and len(failed) > self._launched and self._failed[-1][0] >= since
        trouble = {
            "replaced-again": tuple(claim for claim, at in sorted(self._round.items()) if at >= since),
            "launches-fail": tuple(failed) if fails else (),
        }
        return {code: claims for code, claims in trouble.items() if claims}
