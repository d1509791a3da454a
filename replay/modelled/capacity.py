"""Find when the cloud had no capacity for which offerings, by its refusals."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from kerf.engine.record.observations import LaunchAnswered
from kerf.replay.modelled.workload import Lacks, Offering, Timed

LACKED_BEFORE = 60_000
"""An offering is taken to have lacked capacity for so long (ms) before it was first refused, unless it was bought."""


class Refusals:
    """Folds the cloud's answers. `unnamed` counts refusals that name no offering."""

    def __init__(self) -> None:
        self._refused: dict[Offering, list[tuple[int, bool]]] = {}  # offering → when, and whether it was refused
        self.unnamed = 0

    def apply(self, payload: Struct, at: int) -> None:
        if not isinstance(payload, LaunchAnswered) or payload.adopted:
            return
        for error in payload.errors:
            if error.instance_type and error.zone and error.capacity_type:
                self._note(Offering(error.instance_type, error.zone, error.capacity_type), at, refused=True)
            else:
                self.unnamed += 1
        if payload.instance:
            self._note(Offering(payload.instance_type, payload.zone, payload.capacity_type), at, refused=False)

    def _note(self, offering: Offering, at: int, *, refused: bool) -> None:
        self._refused.setdefault(offering, []).append((at, refused))

    def steps(self, since: int, remembered: int) -> Iterator[Timed]:
        """Give the spans without capacity. A span ends when the offering is bought, or `remembered` (ms) after its last
        refusal: kerf would have asked again then, had it needed to."""
        for offering, answers in sorted(self._refused.items()):
            bought, begin, last = since, 0, 0
            for at, refused in answers:
                if refused:
                    begin, last = begin or max(bought, at - LACKED_BEFORE), at
                    continue
                if begin:
                    yield Timed(begin, Lacks(offering))
                    yield Timed(max(begin, min(at - 1, last + remembered)), Lacks(offering, back=True))
                bought, begin = at, 0
            if begin:
                yield Timed(begin, Lacks(offering))
                yield Timed(last + remembered, Lacks(offering, back=True))
