"""The consolidation policy Balanced (D-78…D-83).

A command saves a share of its NodePool's cost, and disrupts a share of its NodePool. It is worth it if the first share
is at least half of the second.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from msgspec import Struct

from kerf.engine.disruption.cluster import Cluster, ClusterNode
from kerf.engine.disruption.consolidation.commands import Command
from kerf.engine.disruption.disruption_cost import node_cost, node_price
from kerf.engine.disruption.eligibility import Candidate, total_price
from kerf.engine.model.instance_types import InstanceType
from kerf.engine.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from kerf.engine.record.decisions import Score

BALANCED = "Balanced"
THRESHOLD = 0.5


class Totals(Struct, frozen=True):
    """Of one NodePool: what its nodes cost (USD per hour), and the disruption cost of all of them (D-78)."""

    cost: float
    disruption: float


def score(totals: Totals | None, savings: float, disruption: float) -> float:
    """What a command is worth: its share of the cost divided by its share of the disruption (D-80)."""
    return _scored("", totals, savings, disruption).worth


def _scored(pool: str, totals: Totals | None, savings: float, disruption: float) -> Score:
    if totals is None or totals.cost <= 0 or totals.disruption <= 0:
        return Score(pool, 0.0, 0.0)
    return Score(pool, savings / totals.cost, disruption / totals.disruption)


def pool_totals(cluster: Cluster, eligible: Iterable[Candidate]) -> dict[str, Totals]:
    """The totals of every Balanced NodePool that has a candidate (D-78). `eligible` are candidates before a method's
    own filter."""
    by_pool: dict[str, dict[str, Candidate]] = {}
    for candidate in eligible:
        if candidate.pool.consolidation_policy == BALANCED:
            by_pool.setdefault(candidate.pool.name, {})[candidate.name] = candidate
    return {pool: _totals(cluster, pool, by_pool[pool]) for pool in sorted(by_pool)}


def _totals(cluster: Cluster, pool: str, candidates: Mapping[str, Candidate]) -> Totals:
    nodes, types = [node for node in cluster.nodes if node.node_pool == pool], cluster.types()
    tracked = math.fsum(price_of(node, types) for node in nodes if _tracked(node))
    cost = tracked if tracked > 0 else total_price(candidates.values())
    disruption = math.fsum(
        candidates[node.name].cost if node.name in candidates else node_cost(node.pods, cluster.shapes)
        for node in nodes
    )
    return Totals(cost, disruption)


def _tracked(node: ClusterNode) -> bool:
    """Whether a node counts in its NodePool's cost: it has the labels that its price depends on (D-79)."""
    return node.managed and all(key in node.labels for key in (INSTANCE_TYPE, CAPACITY_TYPE, ZONE))


def price_of(node: ClusterNode, types: Mapping[str, Mapping[str, InstanceType]]) -> float:
    """The price of a node (D-34); 0 where its NodePool or type is unknown. `types` are those of the cluster."""
    return node_price(node, types.get(node.node_pool, {}).get(node.labels.get(INSTANCE_TYPE, "")))


def approves(command: Command, totals: Mapping[str, Totals]) -> bool:
    """Whether the command is worth it for every Balanced NodePool that it takes nodes of (D-81)."""
    return all(scored.worth >= THRESHOLD for scored in scores(command, totals))


def scores(command: Command, totals: Mapping[str, Totals]) -> tuple[Score, ...]:
    """The command's score for every Balanced NodePool that it takes nodes of, by name (D-81)."""
    found = []
    by_pool: dict[str, list[Candidate]] = {}
    for candidate in command.candidates:
        by_pool.setdefault(candidate.pool.name, []).append(candidate)
    source = total_price(command.candidates)
    for pool, own in sorted(by_pool.items()):
        if own[0].pool.consolidation_policy != BALANCED:
            continue
        savings = command.savings
        if len(by_pool) > 1 and source > 0:
            savings *= total_price(own) / source
        found.append(_scored(pool, totals.get(pool), savings, math.fsum(candidate.cost for candidate in own)))
    return tuple(found)


def hopeless(candidate: Candidate, totals: Mapping[str, Totals]) -> bool:
    """Whether not even removing the node without a replacement would be worth it (D-83)."""
    found = totals.get(candidate.pool.name)
    if candidate.pool.consolidation_policy != BALANCED or found is None or found.cost <= 0:
        return False
    return score(found, candidate.price, candidate.cost) < THRESHOLD
