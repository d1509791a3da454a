"""A bound that spares simulations: nodes whose pods certainly need more than a cheaper node (D-98)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from kerf.engine.disruption.eligibility import Candidate
from kerf.engine.disruption.simulation import Simulator
from kerf.engine.model.pods import Pod
from kerf.engine.scheduling.planner import usable_pools
from kerf.engine.scheduling.problem import PoolInput
from kerf.engine.scheduling.requirements import Requirements

RESOURCES = ("cpu", "memory")


class Bound:
    """What a cluster has room for at most. Pods that fit on no node by themselves must all go on the one replacement;
    if no type that costs less than the candidates holds them together, no simulation can find a way."""

    def __init__(self, simulator: Simulator) -> None:
        cluster = self._cluster = simulator.cluster
        takers = [node for node in cluster.nodes if node.tracked and not node.marked]
        self._free = {
            name: sorted(((node.place.available.get(name, 0), node.name) for node in takers), reverse=True)
            for name in RESOURCES
        }
        self._offers = [each for pool in usable_pools(cluster.pools) for each in _offers(simulator, pool)]

    def excludes(self, candidates: Sequence[Candidate]) -> bool:
        """Whether these nodes certainly cannot go."""
        names = frozenset(each.name for each in candidates)
        most = tuple(self._most_free(name, names) for name in RESOURCES)
        rules = self._cluster.rules
        homeless = [
            pod
            for each in candidates
            for pod in each.pods
            if any(need > free for need, free in zip(self._needs([pod]), most, strict=True)) and rules.moves(pod)
        ]
        if not homeless:
            return False
        needs = self._needs(homeless)
        limit = math.fsum(each.price for each in candidates)
        return not any(
            all(need <= room for need, room in zip(needs, rooms, strict=True))
            for price, rooms in self._offers
            if price < limit
        )

    def _most_free(self, resource: str, without: frozenset[str]) -> int:
        return next((amount for amount, name in self._free[resource] if name not in without), 0)

    def _needs(self, pods: Iterable[Pod]) -> tuple[int, ...]:
        shapes = [self._cluster.shapes[pod.shape].requests for pod in pods]
        return tuple(sum(requests.get(name, 0) for requests in shapes) for name in RESOURCES)


def _offers(simulator: Simulator, given: PoolInput) -> Iterator[tuple[float, tuple[int, ...]]]:
    """(lowest price, room) of the types that a NodePool may launch."""
    if not given.catalogue:
        return
    market, requirements = simulator.market(given.pool.name), Requirements.of_specs(given.pool.requirements)
    for kind in simulator.cluster.base.catalogues[given.catalogue].types:
        room = kind.allocatable()
        yield market.cheapest(kind.name, requirements), tuple(room.get(name, 0) for name in RESOURCES)
