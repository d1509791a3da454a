"""Larger sets of nodes, in place of one that leaves pods unbound; the most promising first.

Three changes are tried: one more node, one node as a larger type, and all nodes of one sort as nodes of another type.
(A few large nodes have more room in one place than many small ones that are as full.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from kerf.engine.scheduling.optimizer.alternative_plans import TOLERANCE
from kerf.engine.scheduling.optimizer.node_sets.leftover_estimate import NODES_PER_TOUCH, LeftoverEstimate
from kerf.engine.scheduling.optimizer.node_sets.new_nodes import NewNode, likeness
from kerf.engine.scheduling.optimizer.node_sets.node_sets import NodeSet, NodeSets, price_of_nodes

MAX_TYPES_ADDED = 8
"""How many types are tried for one more node."""
MAX_UNIFORM_SETS = 24
"""How many sets are tried with the nodes of one sort, or the further nodes, as another type."""
PROMISING_PER_CHEAP = 3
"""After this many of the most promising sets comes one of the cheapest, because the estimate may be wrong."""

Nodes = tuple[NewNode, ...]
T = TypeVar("T")


def larger_sets(
    node_sets: NodeSets, node_set: NodeSet, further: Sequence[NewNode], below: float
) -> tuple[list[Nodes], int]:
    """Larger sets that cost less than `below` (USD per hour), and what it cost to find them, in touches.

    They are sorted by how many pods they are expected to leave unbound. Sets that are equal in that are spread out
    between the cheapest and the dearest, because the cheapest ones are hardly larger than the set. `further`: the nodes
    that would be launched for the unbound pods.
    """
    touches_before = node_sets.new_nodes.touches
    estimate = LeftoverEstimate(node_sets, node_set)
    distinct: dict[tuple[int, ...], tuple[float, Nodes]] = {}
    touches = 0
    for nodes in _all_larger(node_sets, node_set, further):
        touches += 1 + len(nodes) // NODES_PER_TOUCH
        price = price_of_nodes(nodes)
        if price < below - TOLERANCE:
            distinct.setdefault(likeness(nodes), (price, nodes))
    cheapest = sorted(distinct.values(), key=lambda each: each[0])
    by_unbound: dict[int, list[Nodes]] = {}
    for _, nodes in cheapest:
        by_unbound.setdefault(estimate.unbound(nodes), []).append(nodes)
    promising = [nodes for unbound in sorted(by_unbound) for nodes in spread_out(by_unbound[unbound])]
    mixed = _mixed(promising, [nodes for _, nodes in cheapest])
    return list(dict.fromkeys(mixed)), touches + estimate.touches + node_sets.new_nodes.touches - touches_before


def spread_out(items: Sequence[T]) -> Iterator[T]:
    """The first item, then those that halve the gaps between the items before, until all are there."""
    step = 1 << max(0, len(items) - 1).bit_length()
    yield from items[:1]
    while step > 1:
        yield from items[step // 2 :: step]
        step //= 2


def _mixed(promising: Sequence[Nodes], cheapest: Sequence[Nodes]) -> Iterator[Nodes]:
    for number, nodes in enumerate(promising):
        yield nodes
        if number % PROMISING_PER_CHEAP == PROMISING_PER_CHEAP - 1:
            yield cheapest[number // PROMISING_PER_CHEAP]


def _all_larger(node_sets: NodeSets, node_set: NodeSet, further: Sequence[NewNode]) -> Iterator[Nodes]:
    nodes = node_set.nodes
    for node in dict.fromkeys(new_node for new_node in nodes if not new_node.fixed):
        for size in node.sizes[:MAX_TYPES_ADDED]:
            yield (*nodes, size)
    for node in dict.fromkeys(further):
        for size in node.sizes[:MAX_UNIFORM_SETS]:
            for count in sorted({1, (len(further) + 1) // 2, len(further)}):
                yield (*nodes, *[size] * count)
    first: dict[int, int] = {}  # of each kind of node: changing one of several alike nodes is enough
    for number, node in enumerate(nodes):
        if first.setdefault(node.kind, number) == number:
            for larger in node.roomier:
                yield (*nodes[:number], larger, *nodes[number + 1 :])
    yield from _uniform(node_sets, node_set)


def _uniform(node_sets: NodeSets, node_set: NodeSet) -> Iterator[Nodes]:
    """Nodes of one type in the place of: the nodes of one sort (NodePool and constraints), those of all sorts that can
    be joined with it, and all nodes that may change."""
    sorts: dict[object, list[int]] = {}
    changeable = [number for number, node in enumerate(node_set.nodes) if not node.fixed]
    for number in changeable:
        claim = node_set.nodes[number].claim
        sorts.setdefault((claim.node_pool, claim.constraints), []).append(number)
    groups: dict[object, tuple[NewNode, list[int]]] = {}
    for numbers in sorts.values():
        one = node_set.nodes[numbers[0]]
        joined = _joined_sorts(node_sets, node_set, one, [numbers, *sorts.values()])
        for node, group in ((one, numbers), (one, changeable), joined):
            groups.setdefault((node.claim.node_pool, node.claim.constraints, tuple(group)), (node, group))
    for node, group in groups.values():
        chosen = frozenset(group)
        rest = [other for number, other in enumerate(node_set.nodes) if number not in chosen]
        for nodes in node_sets.uniform(node, node_set, group, MAX_UNIFORM_SETS):
            yield (*rest, *nodes)


def _joined_sorts(
    node_sets: NodeSets, node_set: NodeSet, one: NewNode, sorts: Iterable[Sequence[int]]
) -> tuple[NewNode, list[int]]:
    """Join a node with sorts of nodes, in this order, as far as they agree: the joined node, and the numbers of the
    nodes that it can replace."""
    group: set[int] = set()
    for numbers in sorts:
        both = node_sets.new_nodes.joined(one, node_set.nodes[numbers[0]])
        if both is not None:
            one = both
            group.update(numbers)
    return one, sorted(group)
