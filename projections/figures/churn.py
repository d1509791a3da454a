"""Measure churn: nodes that came, nodes that went, and launches that failed."""

from __future__ import annotations

from collections.abc import Iterator

from kerf.projections.figures.lives import Life, LivesFold
from kerf.projections.figures.measures import HOUR_MS, Measure

LAUNCHED, GONE, FAILED, UNUSED, LIFETIME = "launched", "gone", "failed", "unused", "lifetime_hours"
STILL_THERE = "still there"


def churn_measures(fold: LivesFold, since: int, until: int) -> Iterator[Measure]:
    """Give one measure for each launch, each end and each failed launch between two times (ms since the epoch).

    A node that was there before the record is no launch. `unused` are ended nodes on which no pod but those of
    DaemonSets ran. `lifetime_hours` is that of ended nodes.
    """
    for _, life in sorted(fold.lives.items()):
        about = {**life.about(), "reason": reason_of(life), "workload": main_workload(life)}
        if life.came and since <= life.came <= until:
            yield Measure(life.came, about, {LAUNCHED: 1})
        if life.over and since <= life.over <= until:
            if life.launched:
                lasted = (life.over - life.launched) / HOUR_MS
                yield Measure(life.over, about, {GONE: 1, UNUSED: int(not life.served), LIFETIME: lasted})
            elif life.failed:
                yield Measure(life.over, about, {FAILED: 1})


def reason_of(life: Life) -> str:
    """Return why a node went or goes, or why its launch failed."""
    if life.failed and not life.launched:
        return f"launch failed: {life.failed}"
    return life.why or STILL_THERE


def main_workload(life: Life) -> str:
    """Return the workload of which most pods ran on a node; "" for none."""
    return max(sorted(life.workloads), key=lambda name: life.workloads[name], default="")
