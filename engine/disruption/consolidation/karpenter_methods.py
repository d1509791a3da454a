"""Emptiness, multi-node and single-node consolidation as Karpenter decides them (D-59…D-61, D-67…D-77).

Each method looks at the cluster by itself and proposes at most one command, which is validated later. kerf's own choice
is in `sequential_search` and `joint_search`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

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

MAX_CANDIDATES = 100
"""How many candidates multi-node consolidation looks at, at most (D-68)."""


class Proposal(Struct, frozen=True):
    """What one method proposes.

    `allowed` is what the budgets leave by NodePool. `refused` says for nodes that single-node consolidation tried why
    they cannot go.
    """

    reason: DisruptionReason
    candidates: Candidates
    allowed: dict[str, int]
    command: Command | None = None
    refused: dict[str, Reason] = {}


def emptiness(cluster: Cluster) -> Proposal:
    """Remove all empty nodes that the budgets allow, in one command (D-59, D-60)."""
    candidates = find_candidates(cluster, eligibility.emptiness)
    limits = allowed_disruptions(cluster, DisruptionReason.EMPTY)
    kept = within_budgets(candidates.chosen, limits)
    return Proposal(DisruptionReason.EMPTY, candidates, limits, removal(kept) if kept else None)


def multi_node(cluster: Cluster, simulator: Simulator) -> Proposal:
    """The longest prefix of the candidates, by bisection, that one node or none can replace (D-67…D-72)."""
    candidates = find_candidates(cluster, eligibility.consolidation)
    limits = allowed_disruptions(cluster, DisruptionReason.UNDERUTILIZED)
    kept = within_budgets(candidates.chosen, limits)
    decided = partial(decide_for_several, simulator)
    best = longest_prefix(decided, kept, pool_totals(cluster, candidates.eligible))
    return Proposal(DisruptionReason.UNDERUTILIZED, candidates, limits, best)


def longest_prefix(
    decided: Callable[[list[Candidate]], Command | Reason], candidates: list[Candidate], totals: Mapping[str, Totals]
) -> Command | None:
    """The longest prefix that can go, among those that bisection looks at (D-69). `decided` decides about one."""
    best: Command | None = None
    low, high = 1, MAX_CANDIDATES if len(candidates) > MAX_CANDIDATES else len(candidates) - 1
    while low <= high:
        middle = (low + high) // 2
        tried = decided(candidates[: middle + 1])
        if isinstance(tried, Command) and approves(tried, totals):
            best, low = tried, middle + 1
        else:
            high = middle - 1
    return best


def decide_for_several(simulator: Simulator, candidates: list[Candidate]) -> Command | Reason:
    """The decision for several nodes (D-70)."""
    tried = decide(simulator, candidates)
    if isinstance(tried, Reason) or not tried.replacements:
        return tried
    return without_same_type(tried, simulator.market(tried.replacements[0].claim.node_pool))


def single_node(cluster: Cluster, simulator: Simulator, accepts: Callable[[Command], bool] | None = None) -> Proposal:
    """The first candidate that can go (D-75…D-77). If `accepts` refuses its command, no node goes."""
    candidates = find_candidates(cluster, eligibility.consolidation)
    limits = allowed_disruptions(cluster, DisruptionReason.UNDERUTILIZED)
    totals = pool_totals(cluster, candidates.eligible)
    refused: dict[str, Reason] = {}
    for candidate in interleaved(candidates.chosen):
        if limits.get(candidate.pool.name, 0) <= 0:
            refused[candidate.name] = Reason.of(DisruptionCode.BUDGET, nodepool=candidate.pool.name)
            continue
        if hopeless(candidate, totals):
            refused[candidate.name] = Reason.of(DisruptionCode.NOT_WORTH_IT)
            continue
        tried = decide(simulator, [candidate])
        if isinstance(tried, Reason):
            refused[candidate.name] = tried
        elif not approves(tried, totals):
            refused[candidate.name] = Reason.of(DisruptionCode.NOT_WORTH_IT)
        else:
            valid = accepts is None or accepts(tried)
            return Proposal(DisruptionReason.UNDERUTILIZED, candidates, limits, tried if valid else None, refused)
    return Proposal(DisruptionReason.UNDERUTILIZED, candidates, limits, None, refused)


def interleaved(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The first candidate of each NodePool, then the second of each, and so on; NodePools by name (D-75)."""
    by_pool: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        by_pool.setdefault(candidate.pool.name, []).append(candidate)
    ranked = [(rank, pool, candidate) for pool, own in by_pool.items() for rank, candidate in enumerate(own)]
    return [candidate for _, _, candidate in sorted(ranked, key=lambda item: item[:2])]
