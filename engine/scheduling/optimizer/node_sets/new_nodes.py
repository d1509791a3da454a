"""The nodes that a plan launches, and what else may stand in the place of one: other sizes, two joined into one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.karpenter.requirements import Requirements
from kerf.engine.model.kubernetes.pods import Resources
from kerf.engine.scheduling.kube_scheduler.node_info import NodeInfo, planned_node
from kerf.engine.scheduling.launchable.daemons import Daemon
from kerf.engine.scheduling.optimizer.effort import TOUCHES_PER_TYPE
from kerf.engine.scheduling.optimizer.instance_options import InstanceOptions
from kerf.engine.scheduling.optimizer.partial_problems import counted
from kerf.engine.scheduling.plan import OpenedClaim
from kerf.engine.scheduling.problem.problem import Problem

ROOM_FACTORS = (1.0, 1.2, 1.45, 1.95, 2.95, 3.9)
"""How many times the room of a node a larger type in its place has, at least."""


class NewNode(Struct, frozen=True, eq=False, dict=True):
    """A node to be launched. Nodes that are alike are one object; `kind` is its number.

    `claim`: the claim as it was planned, without its pods; its types begin with the smallest that the node may be, and
    are sorted by price. `fixed`: the claim holds reservations, so the node stays as it is. `max_counted`: what the node
    may count against the limits of its NodePool, at most. `made_by`: what makes the nodes of its problem.
    """

    kind: int
    claim: OpenedClaim
    fixed: bool
    max_counted: Resources
    made_by: NewNodes

    @cached_property
    def info(self) -> NodeInfo:
        """The node as kube-scheduler sees it before any pod is bound."""
        return self.made_by.info_of(self)

    @cached_property
    def likeness(self) -> int:
        """Equal for nodes that are the same to the scheduler."""
        key = tuple(sorted(self.info.labels.items())), self.info.taints, tuple(sorted(self.info.free.items()))
        return self.made_by.alike.setdefault(key, len(self.made_by.alike))

    @cached_property
    def sizes(self) -> tuple[NewNode, ...]:
        """The node as each type that its constraints allow, cheapest first; none if it is fixed."""
        sizes = tuple(self.made_by.sizes_of(self))
        self.made_by.touches += TOUCHES_PER_TYPE * len(sizes)
        return sizes

    @cached_property
    def roomier(self) -> tuple[NewNode, ...]:
        """Dearer types in its place: for each of `ROOM_FACTORS` the cheapest with that much more CPU, or memory."""
        here = _cpu_and_memory(self)
        dearer = [(_cpu_and_memory(size), size) for size in self.sizes if size.claim.price > self.claim.price]
        larger = (
            next((size for room, size in dearer if room[column] > amount * factor), None)
            for factor in ROOM_FACTORS
            for column, amount in enumerate(here)
        )
        return tuple(dict.fromkeys(size for size in larger if size is not None))


def _cpu_and_memory(node: NewNode) -> tuple[int, int]:
    return node.info.free.get("cpu", 0), node.info.free.get("memory", 0)


def likeness(nodes: Iterable[NewNode]) -> tuple[int, ...]:
    """Equal for sets of nodes that are the same to the scheduler."""
    return tuple(sorted([node.likeness for node in nodes]))


class NewNodes:
    """Makes the new nodes of one problem. `touches`: what `NewNode.sizes` cost so far. `alike`: the numbers that
    `NewNode.likeness` gives."""

    def __init__(self, problem: Problem, options: InstanceOptions, daemons: tuple[Daemon, ...]) -> None:
        self._problem, self._options, self._daemons = problem, options, daemons
        self._nodes: dict[object, NewNode] = {}
        self.alike: dict[object, int] = {}
        self.touches = 0

    def of_claims(self, claims: Iterable[OpenedClaim]) -> tuple[NewNode, ...]:
        """The nodes of a plan's claims."""
        return tuple(self.of_claim(claim) for claim in claims)

    def of_claim(self, claim: OpenedClaim) -> NewNode:
        """The node of one claim."""
        max_counted = counted(self._problem, self._problem.pool_of[claim.node_pool], [claim])
        return self._interned(claim, bool(claim.reservations), max_counted)

    def info_of(self, node: NewNode) -> NodeInfo:
        """See `NewNode.info`."""
        return planned_node("", node.claim, self._daemons, self._problem, node.kind)

    def sizes_of(self, node: NewNode) -> Iterator[NewNode]:
        """See `NewNode.sizes`."""
        claim = node.claim
        number = self._options.numbers.get(claim.node_pool)
        if node.fixed or number is None:
            return
        template = self._options.templates[number]
        state = template.at(Requirements(claim.constraints))
        allowed = self._within_limits(node, state.viable & template.types, number)
        order = list(template.cheapest_first(state, allowed))
        names = tuple(template.catalogue.names[type_number] for _, type_number in order)
        min_values = template.base.min_values
        capacity_types = tuple(
            sorted({template.slots[n].capacity_type for n in state.slots if template.available[n] & allowed})
        )
        dearer = allowed
        for index, (price, type_number) in enumerate(order):
            if min_values:
                roomy = template.catalogue.fitting(template.catalogue.types[type_number].allocatable()) & dearer
                dearer &= ~(1 << type_number)
                if template.unmet_min_values(min_values, roomy):
                    continue  # once it is full it can become no smaller type, and the others are too few
            if math.isfinite(price):
                sized = replace(claim, instance_types=names[index:], price=price, capacity_types=capacity_types)
                yield self._interned(sized, False, node.max_counted)

    def joined(self, a: NewNode, b: NewNode) -> NewNode | None:
        """A node with the constraints and labels of both, whatever its size; None if these contradict each other."""
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
        max_counted = {name: amount + b.max_counted[name] for name, amount in a.max_counted.items()}
        return self._interned(claim, False, max_counted)

    def _interned(self, claim: OpenedClaim, fixed: bool, max_counted: Resources) -> NewNode:
        """One object for all nodes that are alike."""
        key = (
            claim.node_pool,
            claim.instance_types,
            claim.constraints,
            claim.capacity_types,
            tuple(sorted(claim.labels.items())),
            claim.reservations,
            claim.price,
            fixed,
            tuple(sorted(max_counted.items())),
        )
        node = self._nodes.get(key)
        if node is None:
            node = NewNode(len(self._nodes), replace(claim, pods=(), requests={}), fixed, max_counted, self)
            self._nodes[key] = node
        return node

    def _within_limits(self, node: NewNode, types: int, template: int) -> int:
        """Those of the types (a bit set) that count no more against limits than the node may."""
        for name, amount in node.max_counted.items():
            levels = self._options.templates[template].catalogue.capacity.get(name)
            types &= levels.at_most(amount) if levels is not None else types
        return types
