"""Compare two runs of the model with each other, and the unchanged one with what was recorded."""

from __future__ import annotations

from msgspec import Struct

from kerf.projections.prose.amounts import moment
from kerf.replay.errors import ModelTooFar
from kerf.replay.modelled.assumptions import assumptions
from kerf.replay.modelled.figures import Figures, FiguresFold
from kerf.replay.modelled.workload import Workload

MOST = 0.1
"""The error up to which the model holds."""
JUDGED = ("cost", "node_hours", "evictions")
CHECKPOINTS = 96


class Modelled(Struct, frozen=True, kw_only=True):
    """The answer. `recorded` is what the record holds. `unchanged` and `changed` are modelled, and only these two are
    to be compared; `changed` is None if nothing is changed.

    `errors` are shares: how far the unchanged run is from what was recorded. There are none for a captured record,
    which has no history to compare with. `holds`: none of them is over `most`.
    `horizon` (ms since the epoch) is up to when this is so. Times are ms since the epoch.
    """

    since: int
    until: int
    changes: tuple[str, ...]
    recorded: Figures
    unchanged: Figures
    changed: Figures | None
    errors: dict[str, float]
    most: float
    holds: bool
    horizon: int
    assumptions: tuple[str, ...]


def compared(
    workload: Workload, recorded: FiguresFold, unchanged: FiguresFold, changed: FiguresFold | None, missed: int = 0
) -> Modelled:
    """Return the answer, whether the model holds or not. `missed` counts blows that hit nothing in the changed run."""
    since, until = workload.since, workload.until
    imported = workload.start.facts.imported
    captured = imported is not None and imported.captured
    errors = {} if captured else errors_of(recorded.figures(since, until), unchanged.figures(since, until))
    holds = max(errors.values(), default=0.0) <= MOST
    return Modelled(
        since=since,
        until=until,
        changes=workload.changes,
        recorded=recorded.figures(since, until),
        unchanged=unchanged.figures(since, until),
        changed=changed.figures(since, until) if changed is not None else None,
        errors=errors,
        most=MOST,
        holds=holds,
        horizon=until if holds else _horizon(workload, recorded, unchanged),
        assumptions=tuple(assumptions(workload, recorded, changed, missed)),
    )


def refuse_what_does_not_hold(answer: Modelled) -> None:
    """Raise ModelTooFar (KERF214) if the unchanged run is too far from what was recorded."""
    if answer.holds:
        return
    far = [
        f"{name.replace('_', ' ')} {getattr(answer.unchanged, name):,.4g} instead of "
        f"{getattr(answer.recorded, name):,.4g} ({share:.0%})"
        for name, share in answer.errors.items()
        if share > MOST
    ]
    shorter = answer.horizon > answer.since
    hint = (
        f"It holds up to {moment(answer.horizon)}: end there, with --until" if shorter else "Begin later, with --from"
    )
    raise ModelTooFar(
        f"without the change the model is over {MOST:.0%} away from what was recorded: {', '.join(far)}",
        hint=f"{hint}. --anyway shows the comparison all the same",
    )


def errors_of(recorded: Figures, modelled: Figures) -> dict[str, float]:
    """Return how far figures are from those recorded, as shares: 1 where something is there and nothing was."""
    return {name: _share(getattr(recorded, name), getattr(modelled, name)) for name in JUDGED}


def _share(recorded: float, modelled: float) -> float:
    if recorded:
        return abs(modelled - recorded) / recorded
    return 1.0 if modelled else 0.0


def _horizon(workload: Workload, recorded: FiguresFold, unchanged: FiguresFold) -> int:
    """Return the last time up to which the model holds; the beginning if there is none."""
    since, length = workload.since, workload.until - workload.since
    for number in range(CHECKPOINTS - 1, 0, -1):
        at = since + length * number // CHECKPOINTS
        figures = recorded.figures(since, at)
        if figures.cost and max(errors_of(figures, unchanged.figures(since, at)).values()) <= MOST:
            return at
    return since
