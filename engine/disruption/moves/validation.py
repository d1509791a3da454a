"""Validates a command before it is carried out, on the cluster as it is then (D-108…D-113)."""

from __future__ import annotations

from collections.abc import Iterable

from kerf.engine.disruption import eligibility
from kerf.engine.disruption.budgets import allowed_disruptions, within_budgets
from kerf.engine.disruption.cluster import Cluster
from kerf.engine.disruption.consolidation.commands import Command, removal
from kerf.engine.disruption.eligibility import find_candidates
from kerf.engine.disruption.simulation import SimulationOutcome, Simulator
from kerf.engine.model.disruption_reasons import DisruptionCode, DisruptionReason
from kerf.engine.model.reasons import Reason

DELAY = 15_000
"""Milliseconds between a decision and its validation (D-108)."""


def still_empty(command: Command, later: Cluster) -> Command | Reason:
    """The command for those of its nodes that are still empty candidates, within the budgets; or why there is none
    (D-109)."""
    names = frozenset(command.names)
    present = [
        candidate for candidate in find_candidates(later, eligibility.emptiness).chosen if candidate.name in names
    ]
    if not present:
        return Reason.of(DisruptionCode.CHURN, nodes=list(command.names))
    kept = within_budgets(present, allowed_disruptions(later, DisruptionReason.EMPTY))
    return removal(kept) if kept else Reason.of(DisruptionCode.BUDGET, nodes=list(command.names))


def still_valid(command: Command, later: Simulator) -> Reason | None:
    """Why the command is not carried out, None if it is as it was decided (D-110, D-111). All of its nodes go, or
    none."""
    names = frozenset(command.names)
    cluster = later.cluster
    present = [
        candidate for candidate in find_candidates(cluster, eligibility.consolidation).chosen if candidate.name in names
    ]
    if len(present) < len(names):
        gone = sorted(names - {candidate.name for candidate in present})
        return Reason.of(DisruptionCode.CHURN, nodes=gone)
    if len(within_budgets(present, allowed_disruptions(cluster, DisruptionReason.UNDERUTILIZED))) < len(names):
        return Reason.of(DisruptionCode.BUDGET, nodes=sorted(names))
    options = command.replacements[0].instance_types if command.replacements else ()
    found = simulated(later, names, len(command.replacements), options)
    return found if isinstance(found, Reason) else None


def simulated(
    later: Simulator, names: Iterable[str], replacements: int, options: Iterable[str], node_pool: str = ""
) -> SimulationOutcome | Reason:
    """The outcome of a new simulation, or how it differs from what was decided (D-110, step 2). `node_pool`: the
    NodePool that is to launch the replacement; "": whichever it is.

    In the controller nodes under consolidateAfter take the pods of nodes that go without a replacement: they took pods
    of the round before (unlike D-93).
    """
    consolidating = bool(replacements) or not later.cluster.live
    outcome = later.without(names, consolidating=consolidating, first_pool=node_pool)
    if outcome.failure is not None:
        return Reason.of(DisruptionCode.SCHEDULING, why=outcome.failure.code)
    if len(outcome.claims) != replacements:
        return Reason.of(DisruptionCode.SCHEDULING, why="other-replacements", count=len(outcome.claims))
    if node_pool and outcome.claims[0].node_pool != node_pool:
        return Reason.of(DisruptionCode.SCHEDULING, why="other-nodepool")
    if replacements and not frozenset(options) <= frozenset(outcome.claims[0].instance_types):
        return Reason.of(DisruptionCode.SCHEDULING, why="other-instance-types")
    return outcome
