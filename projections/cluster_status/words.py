"""The words of a cluster's status: its grounds, what waiting pods wait for, what is under way."""

from __future__ import annotations

from kerf.engine.model.disruption_reasons import DisruptionCode
from kerf.projections.cluster_status.structs import Ground, UnderWay
from kerf.projections.cluster_status.under_way import DRAIN, JOIN, LAUNCH, MOVE, START, TAINT
from kerf.projections.cluster_status.waiting_pods import (
    IGNORED,
    KEPT,
    NO_PLACE,
    NOT_ASKED,
    NOT_BOUND,
    NOT_PLANNED,
    NOT_TOLD,
    ON_ITS_WAY,
)
from kerf.projections.prose.amounts import count
from kerf.projections.prose.reasons import sentence

OUTLOOKS: dict[str, str] = {
    ON_ITS_WAY: "its place is on the way:",
    NOT_BOUND: "its place is in service, and kube-scheduler has not bound it there:",
    NO_PLACE: "no place",
    NOT_PLANNED: "no plan was about it yet",
    KEPT: "may not leave its node yet",
    IGNORED: "kerf does not plan for it",
    NOT_ASKED: "kube-scheduler asks for no node: scheduling gates hold it, or it is another scheduler's",
    NOT_TOLD: "nothing that was imported says why",
}
"""What pods wait for."""
UNDER_WAY: dict[str, str] = {
    LAUNCH: "launching",
    JOIN: "joining",
    START: "starting",
    MOVE: "moving",
    TAINT: "going",
    DRAIN: "draining",
}
_GROUNDS: dict[str, tuple[str, str]] = {
    "no-pool-ready": ("pod", "{count} waiting, and no NodePool is ready"),
    "no-capacity": ("pod", "{count} waiting, and nothing that would do is on offer"),
    "no-place": ("pod", "{count} without a place"),
    "waiting-long": ("pod", "{count} waiting for over ten minutes, though a node is planned"),
    "pool-not-ready": ("NodePool", "{count} not in order"),
    "late": ("change", "{count} late"),
    "node-not-ready": ("node", "{count} in service, but not ready"),
    "drifted-kept": ("node", "{count} drifted and kept by PodDisruptionBudgets"),
    "replaced-again": ("node", "{count} replaced again and again: kerf churn tells why"),
    "launches-fail": ("launch", "{count} failed in the hour before, more than succeeded: kerf capacity tells which"),
    "clocks-differ": ("NodePool", "clocks disagree about the time: no node of {count} is moved"),
    "orphans": ("instance", "{count} to be ended, of no NodeClaim"),
    "waiting": ("pod", "{count} waiting for a node"),
    "under-way": ("change", "{count} under way"),
}
"""What is counted, and what is said of it."""


def late_words(part: UnderWay) -> str:
    """Say what something late waits for; "" where that is not known."""
    if part.budgets and (part.waits is None or part.waits.code != DisruptionCode.SEVERAL_POD_BUDGETS):
        more = f" and {len(part.budgets) - 3} more" if len(part.budgets) > 3 else ""
        names = ", ".join(part.budgets[:3]) + more
        one = len(part.budgets) == 1
        return f"PodDisruptionBudget{'' if one else 's'} {names} allow{'s' if one else ''} no eviction"
    if part.waits is None:
        return f"it waits for {', '.join(part.onto)}" if part.onto else ""
    return f"pod {part.pod}: {sentence(part.waits)}" if part.pod else sentence(part.waits)


def ground_words(ground: Ground) -> str:
    """Return a ground of a verdict in words, with the first that it is about."""
    noun, said = _GROUNDS.get(ground.code, ("thing", "{count}: " + ground.code))
    shown = ", ".join(ground.subjects[:2])
    more = " and others" if len(ground.subjects) > 2 else ""
    return f"{said.format(count=count(ground.count, noun))} ({shown}{more})"
