"""Which of several commands consolidation makes first, and in which order nodes are tried together."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterator
from typing import NamedTuple

from kerf.engine.disruption.cluster import Cluster
from kerf.engine.disruption.consolidation.balanced_policy import price_of
from kerf.engine.disruption.consolidation.commands import Command
from kerf.engine.disruption.eligibility import Candidate

EVICTION_SHARE = 0.5
"""With none of it a scale-in has half as many evictions again; with more of it the fleet that is left is dearer."""

Rank = tuple[float, float, tuple[str, ...]]
"""The place of a command among others: by a ranking, then by its evictions, then by the names of its nodes."""
Ranking = Callable[[Command, float], float]
"""Which commands come first: those with a low number. It is given what an eviction counts as (USD per hour)."""


def by_savings(command: Command, eviction_price: float) -> float:
    """The highest savings first, less what its evictions count as."""
    return -net_savings(command, eviction_price)


def by_worth(command: Command, eviction_price: float) -> float:
    """The highest savings for their disruption cost first."""
    cost = math.fsum(candidate.cost for candidate in command.candidates)
    return -command.savings / cost


def by_node(command: Command, eviction_price: float) -> float:
    """The highest savings for each node that goes first, less what its evictions count as: the best use of budgets that
    are too small for all."""
    net = net_savings(command, eviction_price)
    return -net / len(command.candidates)


def net_savings(command: Command, eviction_price: float) -> float:
    """What a command saves, less what its evictions count as (USD per hour)."""
    return command.savings - eviction_price * command.evictions


def price_of_eviction(pod_price: float) -> float:
    """What an eviction counts as when commands are ranked (USD per hour): a share of what a pod costs on average.

    So a fleet that is dear for its pods loses its emptiest nodes first, and fewer pods move twice. A command that saves
    less than that is still made, if nothing better is left.
    """
    return EVICTION_SHARE * pod_price


def prices_of_nodes(cluster: Cluster, without: Container[str] = ()) -> list[float]:
    """What the nodes cost that are not on their way out, but for those of these names (USD per hour)."""
    types = cluster.types()
    return [price_of(node, types) for node in cluster.nodes if not node.marked and node.name not in without]


class Fleet(NamedTuple):
    """What the nodes of a cluster cost (USD per hour), and how many pods are on them. Nothing and none for `kerf
    disrupt`, which is compared with Karpenter."""

    price: float
    pods: int

    def cheaper_by(self, saved: float) -> Fleet:
        """The fleet that costs so much less, with all pods."""
        return self._replace(price=self.price - saved)

    @property
    def price_of_pod(self) -> float:
        """What a pod costs on average (USD per hour)."""
        return self.price / self.pods if self.pods else 0.0


def fleet_of(cluster: Cluster) -> Fleet:
    """The nodes that are not on their way out; and all pods, for those of the others come to these."""
    if not cluster.live:
        return Fleet(0.0, 0)
    return Fleet(math.fsum(prices_of_nodes(cluster)), sum([len(node.bound) for node in cluster.nodes]))


def orders_of(candidates: list[Candidate]) -> Iterator[list[Candidate]]:
    """Orders of the candidates. Their prefixes are tried: by savings ratio, disruption cost, price, and by savings
    ratio within each NodePool."""
    yield candidates
    yield sorted(candidates, key=lambda candidate: (candidate.cost, candidate.name))
    yield sorted(candidates, key=lambda candidate: (candidate.price, candidate.name))
    pools = sorted({candidate.pool.name for candidate in candidates})
    if len(pools) > 1:
        yield from ([candidate for candidate in candidates if candidate.pool.name == pool] for pool in pools)
