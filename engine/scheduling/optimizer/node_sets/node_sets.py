"""The new nodes of a plan as a set, judged by what the cluster's scheduler binds on them.

Which pod the plan meant for which node matters little once the nodes are there: the scheduler has its own way. So the
nodes themselves are changed here (a larger or a smaller type, a further node for pods that would be left over, one
node less), and the pods are where the scheduler puts them. What comes out is planned once more, node by node, by the
planner, so that every claim is still its own.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.kubernetes.pods import Resources
from kerf.engine.model.labels import HOSTNAME
from kerf.engine.scheduling.kube_scheduler.interpod_rules import ShapeKey, max_pods_per_node
from kerf.engine.scheduling.kube_scheduler.node_info import NodeInfo, planned_node
from kerf.engine.scheduling.kube_scheduler.scheduler import Bindings, KubeScheduler, new_node_name, setup_touches
from kerf.engine.scheduling.kube_scheduler.scheduler_variants import SCHEDULER_VARIANTS
from kerf.engine.scheduling.launchable.daemons import daemons
from kerf.engine.scheduling.launchable.templates import NODES_LIMIT
from kerf.engine.scheduling.matching.requirements import Requirements
from kerf.engine.scheduling.matching.resources import fits, total
from kerf.engine.scheduling.optimizer.candidates import TOLERANCE, NodeSetBounds
from kerf.engine.scheduling.optimizer.effort import TOUCHES_PER_TYPE, planning_touches
from kerf.engine.scheduling.optimizer.instance_options import InstanceOptions
from kerf.engine.scheduling.optimizer.partial_problems import counted_capacity, limited_resources
from kerf.engine.scheduling.plan import OpenedClaim
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem.problem import BoundPod, NodeInput, PendingPod, Problem

UNIFORM_SLACK = (1.0, 1.1, 1.25, 1.5)
"""How much more room than is needed a uniform fleet has."""
ROOM_FACTORS = (1.0, 1.2, 1.45, 1.95, 2.95, 3.9)
"""By what factor a larger type in the place of a node exceeds its room."""


class NewNode(Struct, frozen=True, eq=False):
    """A new node: `claim` as it was planned, without its pods, with the types from the one it shall be at least on,
    cheapest first. `fixed`: it holds reservations, and stays what it is; `most`: what it may count against limits. All
    nodes that are alike are one berth, so that `kind`, its number, tells them apart."""

    kind: int
    claim: OpenedClaim
    fixed: bool
    most: Resources


class NodeSet(Struct, frozen=True, eq=False):
    """New nodes, and what the scheduler makes of them: with the first habit by which it leaves a pod over, or else with
    one by which it uses most of the nodes; `passed`: by how many, of those before it, it leaves none."""

    berths: tuple[NewNode, ...]
    bindings: Bindings
    passed: int

    @property
    def price(self) -> float:
        return math.fsum(each.claim.price for each in self.berths)


class NodeSets:
    """What can be made of the new nodes of one problem's plans. `touches`: what it cost so far to think of `sizes`."""

    def __init__(
        self, problem: Problem, menu: InstanceOptions, unattached: frozenset[ShapeKey], bounds: NodeSetBounds
    ) -> None:
        self._problem = problem
        self._menu = menu
        self._daemons = daemons(problem.daemons, problem.shapes, problem.settings.ignore_dra_requests)
        self._reserved = total(each.requests for each in self._daemons)
        self._scheduler: KubeScheduler | None = None
        self._berths: dict[object, NewNode] = {}
        self._seats: dict[int, NodeInfo] = {}
        self._sizes: dict[int, tuple[NewNode, ...]] = {}
        self.touches = 0
        self._likes: dict[int, int] = {}
        self._alike: dict[object, int] = {}
        self._roomier: dict[int, tuple[NewNode, ...]] = {}
        self._merged: dict[tuple[int, int], NewNode | None] = {}
        self._pods = {each.uid: each for each in problem.pods}
        self._pools = {each.pool.name: each for each in problem.pools}
        self._templates = {each.name: number for number, each in enumerate(menu.templates)}
        self.unattached = unattached
        self._bounds = bounds

    def berths(self, claims: Iterable[OpenedClaim]) -> tuple[NewNode, ...]:
        """The nodes of a plan."""
        return tuple(self._berth(each) for each in claims)

    def judged(
        self, berths: tuple[NewNode, ...], uids: frozenset[str], most: int, least: tuple[int, float] = (0, math.inf)
    ) -> tuple[NodeSet | None, int]:
        """With these pods, and what it cost in touches; None if that is more than `most`, or if it is known to be worse
        than `least`: so many pods are left over when so many habits have left none."""
        touches = 0
        if self._scheduler is None:
            touches = setup_touches(self._problem)
            if touches > most:
                return None, 0
            self._scheduler = KubeScheduler(self._problem)
        made: Bindings | None = None
        seats = [self._seat(each).copy(new_node_name(number)) for number, each in enumerate(berths)]
        for passed, habit in enumerate(SCHEDULER_VARIANTS):
            spare = least[1] if passed <= least[0] else math.inf
            found, looked = self._scheduler.bind(seats, uids, most - touches, habit, spare, others=True)
            touches += looked
            if found is None:
                return None, touches
            if found.unbound:
                return NodeSet(berths, found, passed), touches
            if made is None or len(set(found.node_of.values())) > len(set(made.node_of.values())):
                made = found
        assert made is not None  # there are habits
        return NodeSet(berths, made, len(SCHEDULER_VARIANTS)), touches

    def allowed(self, berths: Iterable[NewNode]) -> bool:
        """Whether these nodes keep the limits of their NodePools, and have room on those of more weight for what the
        first plan puts there."""
        given = tuple(berths)
        used: dict[str, Counter[str]] = {}
        for each in given:
            counts = used.setdefault(each.claim.node_pool, Counter())
            counts.update({**each.most, NODES_LIMIT: 1})
        for pool, counts in used.items():
            limits = self._bounds.limits.get(pool, {})
            if any(counts[name] > most for name, most in limits.items()):
                return False
        for weight, needed in self._bounds.on_weight.items():
            there = [e for e in given if self._pools[e.claim.node_pool].pool.weight >= weight]
            if not fits(needed, total(self._seat(each).free for each in there)):
                return False
        return True

    def _seat(self, berth: NewNode) -> NodeInfo:
        found = self._seats.get(berth.kind)
        if found is None:
            found = self._seats[berth.kind] = planned_node("", berth.claim, self._daemons, self._problem, berth.kind)
        return found

    # ── what is left over, and why ──────────────────────────────────────

    def queue(self, fleet: NodeSet) -> list[PendingPod]:
        """All pods in the order in which the scheduler comes to them that makes this of the fleet."""
        assert self._scheduler is not None  # it has judged the fleet
        return self._scheduler.queue(SCHEDULER_VARIANTS[min(fleet.passed, len(SCHEDULER_VARIANTS) - 1)])

    def requests(self, pod: PendingPod) -> Resources:
        return self._problem.shapes[pod.shape].requests

    def room(self, berth: NewNode) -> Resources:
        """What is free on the node before any of the pods is there."""
        return self._seat(berth).free

    def asked(self, pod: PendingPod) -> Hashable:
        """Equal for pods that `admits` does not tell apart."""
        assert self._scheduler is not None  # it has judged a fleet
        return self._scheduler.class_of(pod, True).filter_key

    def admits(self, berth: NewNode, pod: PendingPod) -> bool:
        """Whether the pod may go to the node, if there is room for it."""
        assert self._scheduler is not None  # it has judged a fleet
        return self._scheduler.class_of(pod, True).may_go_to(self._seat(berth))

    def nowhere(self, uid: str, berths: Iterable[NewNode]) -> bool:
        """Whether a pod may go to no old node, and to none of these of whatever size, while no other is there."""
        assert self._scheduler is not None  # it has judged a fleet
        wanted = self._scheduler.class_of(self._pods[uid], True)
        sizes = (size for each in berths for size in (each, *self.sizes(each)))
        return not wanted.feasible_nodes and all(wanted.scores_on(self._seat(each)) is None for each in sizes)

    def most_on_one(self, pod: PendingPod) -> int:
        """See `manners.most_on_one`."""
        return max_pods_per_node((pod.namespace, pod.shape), self._problem)

    def labels(self, berth: NewNode) -> Mapping[str, str]:
        """Of the node as it will be."""
        return self._seat(berth).labels

    def likeness(self, berths: Iterable[NewNode]) -> tuple[int, ...]:
        """Equal for sets of nodes that are the same to the scheduler."""
        return tuple(sorted(self._like(each) for each in berths))

    def _like(self, berth: NewNode) -> int:
        found = self._likes.get(berth.kind)
        if found is None:
            seat = self._seat(berth)
            key = tuple(sorted(seat.labels.items())), seat.taints, tuple(sorted(seat.free.items()))
            found = self._likes[berth.kind] = self._alike.setdefault(key, len(self._alike))
        return found

    # ── other nodes ──────────────────────────────────────

    def sizes(self, berth: NewNode) -> tuple[NewNode, ...]:
        """The node as each type that its constraints allow, cheapest first; none but itself if it is fixed."""
        found = self._sizes.get(berth.kind)
        if found is None:
            found = self._sizes[berth.kind] = tuple(self._all_sizes(berth))
            self.touches += TOUCHES_PER_TYPE * len(found)
        return found

    def _all_sizes(self, berth: NewNode) -> Iterator[NewNode]:
        claim = berth.claim
        number = self._templates.get(claim.node_pool)
        if berth.fixed or number is None:
            return
        template = self._menu.templates[number]
        state = template.at(Requirements(claim.constraints))
        allowed = self._within(berth, state.viable & template.types, number)
        order = [(price, kind) for price, kind in template.by_price(state) if allowed >> kind & 1]
        names = tuple(template.catalogue.names[kind] for _, kind in order)
        least = template.state.min_values
        kinds = tuple(sorted({template.slots[n].capacity_type for n in state.slots if template.available[n] & allowed}))
        dearer = allowed
        for index, (price, kind) in enumerate(order):
            if least:
                roomy = template.catalogue.fitting(template.catalogue.types[kind].allocatable()) & dearer
                dearer &= ~(1 << kind)
                if template.unmet_min_values(least, roomy):
                    continue  # it will be filled, and can become none of those with less room then
            if math.isfinite(price):
                sized = replace(claim, instance_types=names[index:], price=price, capacity_types=kinds)
                yield self._interned(sized, False, berth.most)

    def roomier(self, berth: NewNode) -> tuple[NewNode, ...]:
        """Dearer types in its place: the cheapest that have somewhat more, half as much again … CPU or memory."""
        found = self._roomier.get(berth.kind)
        if found is None:
            found = self._roomier[berth.kind] = tuple(dict.fromkeys(self._all_roomier(berth)))
        return found

    def _all_roomier(self, berth: NewNode) -> Iterator[NewNode]:
        here = self._room(berth)
        dearer = [(self._room(each), each) for each in self.sizes(berth) if each.claim.price > berth.claim.price]
        for more in ROOM_FACTORS:
            for column, amount in enumerate(here):
                found = next((each for room, each in dearer if room[column] > amount * more), None)
                if found is not None:
                    yield found

    def _room(self, berth: NewNode) -> tuple[int, int]:
        free = self._seat(berth).free
        return free.get("cpu", 0), free.get("memory", 0)

    def uniform(self, berth: NewNode, fleet: NodeSet, numbers: Iterable[int], most: int) -> list[tuple[NewNode, ...]]:
        """In the place of some nodes of a fleet, nodes of one type with the constraints of this one: for each type, as
        many as have room for what is there now and what is left over, and somewhat more; the `most` cheapest, cheapest
        first. None if that is nothing."""
        names = {new_node_name(number) for number in numbers}
        uids = [*(uid for uid, seat in fleet.bindings.node_of.items() if seat in names), *fleet.bindings.unbound]
        needed = total({**self._problem.shapes[self._pods[uid].shape].requests, "pods": 1} for uid in uids)
        wanted = [(name, amount) for name, amount in needed.items() if amount]
        made: dict[tuple[float, int, int], NewNode] = {}
        for each in self.sizes(berth) if needed else ():
            free = self._seat(each).free
            if all(free.get(name, 0) > 0 for name, _ in wanted):
                for slack in UNIFORM_SLACK:
                    count = max([math.ceil(slack * amount / free[name]) for name, amount in wanted])
                    made[count * each.claim.price, count, each.kind] = each
        return [(made[key],) * key[1] for key in nsmallest(most, made)]

    def merged(self, a: NewNode, b: NewNode) -> NewNode | None:
        """One node in the place of two: the cheapest that has the room of both; None if there is none."""
        key = min(a.kind, b.kind), max(a.kind, b.kind)
        if key not in self._merged:
            self._merged[key] = self._merge(a, b)
        return self._merged[key]

    def _merge(self, a: NewNode, b: NewNode) -> NewNode | None:
        both = self.joined(a, b)
        if both is None:
            return None
        wanted = [sum(amounts) * 9 // 10 for amounts in zip(self._room(a), self._room(b), strict=True)]
        return next(
            (e for e in self.sizes(both) if all(x <= y for x, y in zip(wanted, self._room(e), strict=True))), None
        )

    def joined(self, a: NewNode, b: NewNode) -> NewNode | None:
        """A node that is what both are, apart from its size; None if there can be none."""
        one, other = a.claim, b.claim
        shared = {key: value for key, value in one.labels.items() if key in other.labels}
        if (
            a.fixed
            or b.fixed
            or one.node_pool != other.node_pool
            or any(other.labels[k] != v for k, v in shared.items())
        ):
            return None
        constraints = Requirements(one.constraints)
        if constraints.conflicts(Requirements(other.constraints)):
            return None
        together = tuple(constraints.merged(other.constraints))
        claim = replace(one, constraints=together, labels={**one.labels, **other.labels})
        most = {name: amount + b.most[name] for name, amount in a.most.items()}
        return self._interned(claim, False, most)

    def bound_to(self, fleet: NodeSet, number: int) -> bool:
        """Whether the node must stay as it is: for its own sake, or for pods that care where others are, or which node
        it is."""
        name = new_node_name(number)
        pods = [self._pods[uid] for uid, seat in fleet.bindings.node_of.items() if seat == name]
        return fleet.berths[number].fixed or any(
            (each.namespace, each.shape) not in self.unattached or self._problem.shapes[each.shape].preferred_terms
            for each in pods
        )

    def smaller(self, fleet: NodeSet, number: int) -> Iterator[NewNode]:
        """The cheaper types that have room for the pods of one node, cheapest first."""
        name, price = new_node_name(number), fleet.berths[number].claim.price
        pods = [
            self._problem.shapes[self._pods[uid].shape] for uid, seat in fleet.bindings.node_of.items() if seat == name
        ]
        needed = total({**each.requests, "pods": 1} for each in pods)
        sizes = (each for each in self.sizes(fleet.berths[number]) if each.claim.price < price - TOLERANCE)
        return (each for each in sizes if fits(needed, self._seat(each).free))

    def _berth(self, claim: OpenedClaim) -> NewNode:
        return self._interned(claim, bool(claim.reservations), self._most(claim))

    def _interned(self, claim: OpenedClaim, fixed: bool, most: Resources) -> NewNode:
        key = (
            claim.node_pool,
            claim.instance_types,
            claim.constraints,
            claim.capacity_types,
            tuple(sorted(claim.labels.items())),
            claim.reservations,
            claim.price,
            fixed,
            tuple(sorted(most.items())),
        )
        found = self._berths.get(key)
        if found is None:
            found = NewNode(len(self._berths), replace(claim, pods=(), requests={}), fixed, most)
            self._berths[key] = found
        return found

    def _most(self, claim: OpenedClaim) -> Resources:
        pool = self._pools[claim.node_pool]
        return counted_capacity(
            limited_resources(pool.pool), claim.instance_types, self._problem.catalogues[pool.catalogue]
        )

    def _within(self, berth: NewNode, types: int, number: int) -> int:
        """The types that count no more against limits than the node may."""
        for name, amount in berth.most.items():
            levels = self._menu.templates[number].catalogue.capacity.get(name)
            types &= levels.at_most(amount) if levels is not None else types
        return types

    def cost_of_further(self, fleet: NodeSet) -> int:
        """What `further` costs, in touches."""
        left = [self._pods[uid] for uid in fleet.bindings.unbound]
        nodes = len(fleet.berths) + len(self._problem.nodes)
        return (
            planning_touches(left, self._problem.shapes, nodes) + len(self._problem.bound) + len(fleet.bindings.node_of)
        )

    def further(self, fleet: NodeSet) -> list[NewNode] | None:
        """What the planner launches for the pods that are left over, once the others are where the scheduler put
        them; None if it leaves one of them over too."""
        question = self._later(fleet)
        made = plan(question)
        if made.unplaced or made.ignored or made.truncated or made.placements:
            return None
        return [self._berth(each) for each in made.claims]

    def _later(self, fleet: NodeSet) -> Problem:
        there: dict[str, list[PendingPod]] = defaultdict(list)
        for uid, seat in fleet.bindings.node_of.items():
            there[seat].append(self._pods[uid])
        nodes = [self._filled(each, there[each.name]) for each in self._problem.nodes]
        usage = {name: dict(each.usage) for name, each in self._pools.items()}
        for number, each in enumerate(fleet.berths):
            new, name = self._seat(each), new_node_name(number)
            node = NodeInput(name, "", {**new.labels, HOSTNAME: name}, new.taints, new.free, True, self._reserved)
            nodes.append(self._filled(node, there[name]))
            pool = self._pools[each.claim.node_pool]
            for limited_by, amount in {**each.most, NODES_LIMIT: 1}.items():
                usage[pool.pool.name][limited_by] = usage[pool.pool.name].get(limited_by, 0) + amount
        more = [
            BoundPod(pod.uid, pod.namespace, pod.shape, seat, name=pod.name)
            for seat, pods in sorted(there.items())
            for pod in pods
        ]
        left = frozenset(fleet.bindings.unbound)
        return replace(
            self._problem,
            pods=tuple(each for each in self._problem.pods if each.uid in left),
            nodes=tuple(nodes),
            bound=(*self._problem.bound, *more),
            pools=tuple(replace(each, usage=usage[each.pool.name]) for each in self._problem.pools),
        )

    def _filled(self, node: NodeInput, pods: Sequence[PendingPod]) -> NodeInput:
        available = dict(node.available)
        ports = node.host_ports
        for pod in pods:
            shape = self._problem.shapes[pod.shape]
            for key, amount in {**shape.requests, "pods": 1}.items():
                available[key] = available.get(key, 0) - amount
            ports += shape.host_ports
        return replace(node, available=available, host_ports=ports)
