"""A bound that spares simulations: it finds nodes whose pods certainly need more than one cheaper node, and what may
replace nodes at most, so that simulations end early (D-98)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate, islice
from operator import add, gt, itemgetter, le, sub
from typing import NamedTuple

from kerf.engine.disruption.consolidation.commands import Cheaper
from kerf.engine.disruption.eligibility import Candidate, total_price
from kerf.engine.disruption.pricing import Market
from kerf.engine.disruption.simulation import Simulator
from kerf.engine.model.disruption_reasons import DisruptionCode
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.karpenter.requirements import Requirements
from kerf.engine.model.kubernetes.pods import Pod, PodShape, Resources, Taint
from kerf.engine.model.labels import CAPACITY_TYPE, SPOT
from kerf.engine.model.reasons import Reason
from kerf.engine.scheduling.launchable.compiled_catalogue import CompiledCatalogue
from kerf.engine.scheduling.made_once import once
from kerf.engine.scheduling.matching.taints import PREFER_NO_SCHEDULE, tolerates_all
from kerf.engine.scheduling.planner import usable_pools
from kerf.engine.scheduling.pods.pod_requirements import mentions

RESOURCES = ("cpu", "memory")
AXES = range(len(RESOURCES))
Amounts = tuple[int, ...]
"""Amounts of `RESOURCES`, in their order."""
NOTHING = tuple(0 for _ in RESOURCES)
MAX_KEPT = 4
"""How many lists of offers are kept from one pass to the next."""


class Bound:
    """What a cluster has room for at most.

    Pods that fit on no node alone must all go onto the one replacement, and so must what is more than all free
    capacity. If no type that costs less than the candidates holds that, no simulation can place the pods. Spot nodes
    are not replaced by spot nodes (D-102), so for these fewer types count.
    """

    def __init__(self, simulator: Simulator, before: Bound | None = None) -> None:
        """`before` is the bound of the cluster before the latest command: what did not change is taken from it."""
        cluster = self._cluster = simulator.cluster
        self._simulator = simulator
        takers = [node for node in cluster.nodes if node.tracked and not node.marked]
        free = {node.name: tuple(max(0, node.place.available.get(name, 0)) for name in RESOURCES) for node in takers}
        self._room = free
        self._free = [sorted(((room[n], name) for name, room in free.items()), reverse=True) for n in AXES]
        self._all_free = [sum(room[n] for room in free.values()) for n in AXES]
        self._with_it: dict[str, Amounts] = {}
        self._refused: dict[tuple[str, ...], Reason | None] = {}
        self._pools_by_shape: dict[str, frozenset[str]] = {}
        self._pools_by_node: dict[str, frozenset[str]] = {}
        if before is None:
            self._needs: dict[str, list[Amounts]] = {}
            self._together: dict[str, tuple[Amounts, Amounts]] = {}
            self._markets = _markets_of(simulator)
            self._offers, self._not_spot = _offers_of(self._markets)
        else:
            self._needs, self._together = before._needs, before._together
            self._markets, self._offers, self._not_spot = before._markets, before._offers, before._not_spot

    def refusal(self, candidates: Sequence[Candidate]) -> Reason | None:
        """Why these nodes certainly cannot go. None if only a simulation can tell."""
        names = tuple([candidate.name for candidate in candidates])
        if names not in self._refused:
            self._refused[names] = self._refusal(candidates)
        return self._refused[names]

    def cheaper(self, candidates: Sequence[Candidate], limit: float) -> Cheaper:
        """What may replace these nodes at most, below a price (USD per hour)."""
        pools = frozenset[str]().union(*map(self.pools_of, candidates))
        no_spot = self._no_spot_for(candidates)
        types = {
            each.pool: 0 if each.pool not in pools or (no_spot and each.spot) else each.market.below(limit, each.asked)
            for each in self._markets
        }
        return Cheaper(types, _too_dear(limit, no_spot=no_spot))

    def pools_of(self, candidate: Candidate) -> frozenset[str]:
        """The NodePools that might launch a node for a pod of the candidate, or for one that has no node."""
        found = self._pools_by_node.get(candidate.name)
        if found is None:
            pools = map(self._pools, {pod.shape for pod in candidate.pods})
            found = self._pools_by_node[candidate.name] = self._pools_of_free_pods.union(*pools)
        return found

    def _refusal(self, candidates: Sequence[Candidate]) -> Reason | None:
        limit = total_price(candidates)
        beyond = tuple(map(sub, _sum([self._taken(candidate) for candidate in candidates]), self._all_free))
        homeless = self._homeless(candidates)
        if not homeless and max(beyond) <= 0:
            return None
        needs = tuple(map(max, _sum(homeless), beyond))
        if not _none_holds(needs, self._not_spot, limit):
            return None
        no_spot = self._no_spot_for(candidates)
        return _too_dear(limit, no_spot=no_spot) if no_spot or _none_holds(needs, self._offers, limit) else None

    def _homeless(self, candidates: Sequence[Candidate]) -> list[Amounts]:
        """What the pods need that fit on no other node."""
        homeless = self._simulator.homeless([candidate.name for candidate in candidates])
        if homeless is not None:
            return [_amounts(self._cluster.shapes[pod.shape].requests) for pod in homeless]
        names = frozenset(candidate.name for candidate in candidates)
        most = tuple(self._most_free(n, names) for n in AXES)
        return [
            need
            for candidate in candidates
            if any(map(gt, self._sizes(candidate)[1], most))
            for need in self._needs[candidate.name]
            if any(map(gt, need, most))
        ]

    def _no_spot_for(self, candidates: Sequence[Candidate]) -> bool:
        """Whether a replacement of these nodes that may be spot is refused, whatever pods go onto it."""
        if self._cluster.spot_to_spot or any(candidate.capacity_type != SPOT for candidate in candidates):
            return False
        shapes = {pod.shape for candidate in candidates for pod in candidate.pods}
        return not self._free_pods_mention_it and not any(map(self._mentions_capacity_type, shapes))

    @cached_property
    def _pools_of_free_pods(self) -> frozenset[str]:
        return frozenset[str]().union(*map(self._pools, self._free_shapes))

    def _pools(self, shape: str) -> frozenset[str]:
        found = self._pools_by_shape.get(shape)
        if found is None:
            asked = self._cluster.shapes[shape]
            found = frozenset([market.pool for market in self._markets if market.may_run(asked)])
            self._pools_by_shape[shape] = found
        return found

    @cached_property
    def _free_pods_mention_it(self) -> bool:
        """Whether pods that have no node, or whose node goes anyway, say of which capacity type it shall be."""
        return any(map(self._mentions_capacity_type, self._free_shapes))

    @cached_property
    def _free_shapes(self) -> frozenset[str]:
        return frozenset([pod.shape for pod in (*self._cluster.pending, *self._cluster.displaced)])

    def _mentions_capacity_type(self, shape: str) -> bool:
        return mentions(self._cluster.shapes[shape], CAPACITY_TYPE)

    def _most_free(self, n: int, without: frozenset[str]) -> int:
        return next((amount for amount, name in self._free[n] if name not in without), 0)

    def _taken(self, candidate: Candidate) -> Amounts:
        """What goes with a node: its free room, and the room that its pods need elsewhere."""
        found = self._with_it.get(candidate.name)
        if found is None:
            needs, room = self._sizes(candidate)[0], self._room.get(candidate.name, NOTHING)
            found = self._with_it[candidate.name] = tuple(map(add, needs, room))
        return found

    def _sizes(self, candidate: Candidate) -> tuple[Amounts, Amounts]:
        """What the moving pods of a node need together, and the most that one of them needs."""
        found = self._together.get(candidate.name)
        if found is None:
            node, shapes = candidate.node, self._cluster.shapes
            moving = self._cluster.moving(node)
            if moving is node.reschedulable:
                needs, found = once(node, "needs", lambda: _needs_of(moving, shapes))
            else:
                needs, found = _needs_of(moving, shapes)
            self._needs[candidate.name], self._together[candidate.name] = needs, found
        return found


def _needs_of(pods: Iterable[Pod], shapes: Mapping[str, PodShape]) -> tuple[list[Amounts], tuple[Amounts, Amounts]]:
    """What each of the pods needs; what all need together, and the most that one of them needs."""
    needs = [_amounts(shapes[pod.shape].requests) for pod in pods]
    return needs, (_sum(needs), tuple(max((need[n] for need in needs), default=0) for n in AXES))


def _sum(needs: Sequence[Amounts]) -> Amounts:
    return tuple(map(sum, zip(*needs, strict=True))) if needs else NOTHING


def _amounts(requests: Resources) -> Amounts:
    return tuple(requests.get(name, 0) for name in RESOURCES)


class Offers(NamedTuple):
    """Types that NodePools may launch, by their lowest price (USD per hour), each with its room, without those that
    have no more than one before; and the largest amounts of all up to each of them."""

    by_price: list[tuple[float, Amounts]]
    largest: list[Amounts]


def _too_dear(limit: float, *, no_spot: bool) -> Reason:
    """Why nodes stay that nothing may replace: as D-98 has it, the feature gate comes before the price."""
    if no_spot:
        return Reason.of(DisruptionCode.SPOT_TO_SPOT_OFF)
    return Reason.of(DisruptionCode.NOTHING_CHEAPER, limit=limit)


def _none_holds(needs: Amounts, offers: Offers, limit: float) -> bool:
    """Whether no type below the limit (USD per hour) has room for what is needed."""
    cheaper = bisect_left(offers.by_price, (limit,))
    first = max(bisect_left(offers.largest, needs[n], hi=cheaper, key=itemgetter(n)) for n in AXES)
    return not any(all(map(le, needs, room)) for _, room in islice(offers.by_price, first, cheaper))


class PoolMarket(NamedTuple):
    """The types that a NodePool may launch.

    `taints` are those that keep pods away. With `spot` each of its nodes is a spot node, unless the pods ask for
    another.
    """

    pool: str
    market: Market
    asked: Requirements
    taints: tuple[Taint, ...]
    spot: bool

    def may_run(self, shape: PodShape) -> bool:
        """Whether pods of a shape tolerate its nodes and fit on one."""
        types = self.market.compiled
        fits = types.fitting(shape.requests) & types.admitting_all(self.asked)
        return bool(fits) and tolerates_all(self.taints, shape.tolerations)


def _markets_of(simulator: Simulator) -> list[PoolMarket]:
    found = []
    for pool_input in usable_pools(simulator.cluster.pools):
        if pool_input.catalogue:
            pool, market = pool_input.pool, simulator.market(pool_input.pool.name)
            asked = _asked(pool)
            spot = asked.get(CAPACITY_TYPE).has(SPOT) and not market.reserved
            taints = tuple(taint for taint in pool.taints if taint.effect != PREFER_NO_SCHEDULE)
            found.append(PoolMarket(pool.name, market, asked, taints, spot))
    return found


def _offers_of(markets: Iterable[PoolMarket]) -> tuple[Offers, Offers]:
    """Those of all NodePools; and those of NodePools that may launch a node which is certainly no spot node."""
    every = tuple((each.market, each.asked) for each in markets)
    return _offers(every), _offers(tuple((each.market, each.asked) for each in markets if not each.spot))


def _asked(pool: NodePool) -> Requirements:
    def asked() -> Requirements:
        return Requirements.of_specs(pool.requirements).merged(Requirements.of_labels(pool.labels))

    return once(pool, "requirements", asked)


@lru_cache(maxsize=MAX_KEPT)
def _offers(asked: tuple[tuple[Market, Requirements], ...]) -> Offers:
    found: list[tuple[float, Amounts]] = []
    for market, requirements in asked:
        rooms, admitted = _rooms(market.compiled), market.compiled.admitting_all(requirements)
        found += [(price, rooms[number]) for price, number in market.by_price(requirements) if admitted >> number & 1]
    kept: list[tuple[float, Amounts]] = []
    largest = _Largest()
    for price, room in sorted(found):
        if largest.add(room):
            kept.append((price, room))
    return Offers(kept, list(accumulate((room for _, room in kept), lambda one, other: tuple(map(max, one, other)))))


class _Largest:
    """The rooms, of those added so far, that no other one covers: it would have as much of both resources. They lie on
    a staircase: the more of one resource, the less of the other."""

    def __init__(self) -> None:
        self._rooms: list[Amounts] = []

    def add(self, room: Amounts) -> bool:
        """Add a room. False if one is there that covers it."""
        rooms = self._rooms
        at = bisect_left(rooms, room)
        if at < len(rooms) and room[1] <= rooms[at][1]:
            return False
        while at and rooms[at - 1][1] <= room[1]:
            at -= 1
            del rooms[at]
        rooms.insert(at, room)
        return True


def _rooms(catalogue: CompiledCatalogue) -> list[Amounts]:
    """The allocatable amounts of each type, by its number."""

    def rooms() -> list[Amounts]:
        return [_amounts(instance_type.allocatable()) for instance_type in catalogue.types]

    return catalogue.once("rooms", rooms)
