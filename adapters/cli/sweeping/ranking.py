"""Weigh configurations: what each costs and disrupts over all records, and which no other beats in both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum
from typing import Any

from msgspec import Struct

from kerf.adapters.cli.sweeping.cell import Cell, Outcome
from kerf.adapters.cli.sweeping.errors import NothingToCompare
from kerf.adapters.cli.sweeping.plan import UNCHANGED
from kerf.replay.modelled.figures import Figures


class Ranked(Struct, frozen=True, kw_only=True):
    """A configuration over all records that are compared. `beaten_by` counts those that are better in cost or
    evictions and worse in neither; 0 is on the front of the trade-off."""

    configuration: str
    figures: Figures
    beaten_by: int


class Ranking(Struct, frozen=True, kw_only=True):
    """All configurations, best first, over these records. `left_out` says which records and configurations are not in
    it, and why."""

    records: tuple[str, ...]
    configurations: tuple[Ranked, ...]
    left_out: tuple[str, ...]

    @property
    def unchanged(self) -> Figures:
        return next(ranked.figures for ranked in self.configurations if ranked.configuration == UNCHANGED)


def ranking(outcomes: Mapping[Cell, Outcome], *, anyway: bool = False) -> Ranking:
    """Rank the configurations: by how many beat them, then by cost and evictions.

    A record whose model does not hold is left out unless `anyway`, and so is a configuration that failed in a record
    that is compared. Raises NothingToCompare (KERF244) if nothing is left beside the unchanged one.
    """
    left_out: list[str] = []
    records = []
    for cell, outcome in outcomes.items():
        if cell.configuration.changes:
            continue
        why = outcome.error or ("" if outcome.holds or anyway else _too_far(outcome))
        if why:
            left_out.append(f"{cell.record}: {why}")
        else:
            records.append(cell.record)
    found: dict[str, list[Figures]] = {}
    failed: dict[str, str] = {}
    for cell, outcome in outcomes.items():
        if cell.record in records:
            name = cell.configuration.name
            if outcome.figures is None:
                failed.setdefault(name, f"{name}: {cell.record}: {outcome.error}")
            else:
                found.setdefault(name, []).append(outcome.figures)
    left_out += failed.values()
    sums = {name: _summed(figures) for name, figures in found.items() if name not in failed}
    if len(sums) < 2:
        hint = "--anyway compares records whose model is too far off, too"
        raise NothingToCompare(f"nothing is left to compare. {'; '.join(left_out)}", hint=hint)
    return Ranking(records=tuple(records), configurations=tuple(_ranked(sums)), left_out=tuple(left_out))


def _too_far(outcome: Outcome) -> str:
    errors = ", ".join(f"{name.replace('_', ' ')} {share:.0%}" for name, share in outcome.errors.items())
    return f"the model is too far from what was recorded ({errors})"


def _summed(figures: Sequence[Figures]) -> Figures:
    return Figures(**{name: _sum([getattr(part, name) for part in figures]) for name in Figures.__struct_fields__})


def _sum(amounts: list[Any]) -> Any:
    return fsum(amounts) if isinstance(amounts[0], float) else sum(amounts)


def _ranked(sums: Mapping[str, Figures]) -> list[Ranked]:
    ranked = [
        Ranked(configuration=name, figures=figures, beaten_by=sum(_beats(other, figures) for other in sums.values()))
        for name, figures in sums.items()
    ]
    return sorted(ranked, key=lambda one: (one.beaten_by, one.figures.cost, one.figures.evictions, one.configuration))


def _beats(one: Figures, other: Figures) -> bool:
    cost, evictions = round(one.cost - other.cost, 6), one.evictions - other.evictions
    return cost <= 0 and evictions <= 0 and (cost < 0 or evictions < 0)
