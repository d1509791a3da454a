"""Emptiness, multi-node and single-node consolidation as the reference decides them (D-59…D-61, D-67…D-77).

Each looks at the cluster by itself and proposes at most one command; `validation` looks again later. kerf's own choice
of moves is in `moves`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct

from kerf.engine.disruption import eligibility
from kerf.engine.disruption.budgets import allowed_disruptions, within_budgets
from kerf.engine.disruption.cluster import Cluster
from kerf.engine.disruption.consolidation.balanced_policy import Totals, approves, hopeless, pool_totals
from kerf.engine.disruption.consolidation.commands import Command, decide, removal, without_same_type
from kerf.engine.disruption.eligibility import Candidate, Candidates, find_candidates
from kerf.engine.disruption.simulation import Simulator
from kerf.engine.model.disruption_reasons import DisruptionCode, DisruptionReason
from kerf.engine.model.reasons import Reason

MOST = 100
"""How many candidates the multi-node search looks at (D-68)."""


class Proposal(Struct, frozen=True):
    """What one method found. `allowed`: what the budgets leave per NodePool; `refused`: per node of a single-node
    attempt, what spoke against it."""

    reason: DisruptionReason
    candidates: Candidates
    allowed: dict[str, int]
    command: Command | None = None
    refused: dict[str, Reason] = {}


def emptiness(cluster: Cluster) -> Proposal:
    """Remove all empty nodes that the budgets allow, in one command (D-59, D-60)."""
    found, limits = (
        find_candidates(cluster, eligibility.emptiness),
        allowed_disruptions(cluster, DisruptionReason.EMPTY),
    )
    kept = within_budgets(found.chosen, limits)
    return Proposal(DisruptionReason.EMPTY, found, limits, removal(kept) if kept else None)


def multi_node(cluster: Cluster, simulator: Simulator) -> Proposal:
    """D-67…D-72: by bisection, the longest prefix of the candidates that can go for one node or none."""
    found, limits = (
        find_candidates(cluster, eligibility.consolidation),
        allowed_disruptions(cluster, DisruptionReason.UNDERUTILIZED),
    )
    kept = within_budgets(found.chosen, limits)
    best = longest(simulator, kept, pool_totals(cluster, found.eligible))
    return Proposal(DisruptionReason.UNDERUTILIZED, found, limits, best)


def longest(simulator: Simulator, candidates: list[Candidate], totals: Mapping[str, Totals]) -> Command | None:
    """The search of D-69: the longest of the prefixes that bisection looks at and that can go."""
    best: Command | None = None
    low, high = 1, MOST if len(candidates) > MOST else len(candidates) - 1
    while low <= high:
        middle = (low + high) // 2
        tried = together(simulator, candidates[: middle + 1])
        if isinstance(tried, Command) and approves(tried, totals):
            best, low = tried, middle + 1
        else:
            high = middle - 1
    return best


def together(simulator: Simulator, candidates: list[Candidate]) -> Command | Reason:
    """The decision for several nodes (D-70)."""
    tried = decide(simulator, candidates)
    if isinstance(tried, Reason) or not tried.replacements:
        return tried
    return without_same_type(tried, simulator.market(tried.replacements[0].claim.node_pool))


def single_node(cluster: Cluster, simulator: Simulator, accepts: Callable[[Command], bool] | None = None) -> Proposal:
    """D-75…D-77: the first candidate that can go. `accepts` validates its command; if it does not, nobody goes."""
    found, limits = (
        find_candidates(cluster, eligibility.consolidation),
        allowed_disruptions(cluster, DisruptionReason.UNDERUTILIZED),
    )
    totals = pool_totals(cluster, found.eligible)
    refused: dict[str, Reason] = {}
    for each in interleaved(found.chosen):
        if limits.get(each.pool.name, 0) <= 0:
            refused[each.name] = Reason.of(DisruptionCode.BUDGET, nodepool=each.pool.name)
            continue
        if hopeless(each, totals):
            refused[each.name] = Reason.of(DisruptionCode.NOT_WORTH_IT)
            continue
        tried = decide(simulator, [each])
        if isinstance(tried, Reason):
            refused[each.name] = tried
        elif not approves(tried, totals):
            refused[each.name] = Reason.of(DisruptionCode.NOT_WORTH_IT)
        else:
            valid = accepts is None or accepts(tried)
            return Proposal(DisruptionReason.UNDERUTILIZED, found, limits, tried if valid else None, refused)
    return Proposal(DisruptionReason.UNDERUTILIZED, found, limits, None, refused)


def interleaved(candidates: Iterable[Candidate]) -> list[Candidate]:
    """D-75: the first of each NodePool, then the second of each, and so on; pools by name."""
    by_pool: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        by_pool.setdefault(candidate.pool.name, []).append(candidate)
    ranked = [(rank, pool, each) for pool, own in by_pool.items() for rank, each in enumerate(own)]
    return [each for _, _, each in sorted(ranked, key=lambda item: item[:2])]
