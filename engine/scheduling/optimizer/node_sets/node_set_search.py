"""The search for a set of nodes on which every pod is bound, from sets that leave pods unbound.

Each step is a whole run of the scheduler's model on a larger set (`larger_sets`). What such a set does not need is left
out again in the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import islice

from msgspec import Struct

from kerf.engine.scheduling.kube_scheduler.scheduler_variants import SCHEDULER_VARIANTS
from kerf.engine.scheduling.optimizer.alternative_plans import TOLERANCE
from kerf.engine.scheduling.optimizer.effort import Effort
from kerf.engine.scheduling.optimizer.node_sets.larger_sets import larger_sets
from kerf.engine.scheduling.optimizer.node_sets.new_nodes import NewNode, likeness
from kerf.engine.scheduling.optimizer.node_sets.node_sets import NodeSet, NodeSets, price_of_nodes

MAX_SMALLER_TYPES = 3
"""How many smaller types are tried in the place of a node."""
TRIES_PER_TURN = 12
"""How many larger sets of one trail are tried at a time."""
MIN_TRIES = 4
"""How many of these are tried even though one of them is better already."""
CHEAP_TURN_EVERY = 3
"""Every so many turns the trail of a cheap set is followed, however many pods it leaves unbound."""
LEFTOVER_PRICE_FACTOR = 3
"""How many times the price of another pod, or of the further nodes that would be planned for it, an unbound pod is
expected to cost: these nodes are less full, and do not bind every pod either. Nodes added until the model bound every
pod cost three times those of the first round in sum (18 plans of unseen scenarios)."""
MORE_UNBOUND = 2
"""How many more unbound pods than before are accepted on the way to a set that binds every pod."""


class Trail(Struct, eq=False):
    """A set of nodes whose larger sets are tried, some at a time.

    `steps`: how many changes it is from the set that the search began with. `turns`: how often it was followed.
    `done`: all its larger sets have been tried.
    """

    node_set: NodeSet
    steps: int
    larger: Iterator[tuple[NewNode, ...]]
    turns: int = 0
    done: bool = False

    def near_key(self) -> tuple[int, int, int, float]:
        """Lower for a set that leaves few pods unbound and from which little has been tried."""
        unbound = len(self.node_set.bindings.unbound)
        return -self.node_set.variants_passed, unbound, self.turns + self.steps, self.node_set.price

    def cheap_key(self) -> tuple[int, float]:
        """Lower for a set from which little has been tried, and that costs little in the end."""
        return self.turns, price_in_the_end(self.node_set)

    def next_sets(self) -> Iterator[tuple[NewNode, ...]]:
        """The larger sets of one turn."""
        self.turns += 1
        for _ in range(TRIES_PER_TURN):
            nodes = next(self.larger, None)
            if nodes is None:
                self.done = True
                return
            yield nodes


class NodeSetSearch:
    """The search for one problem, within an effort."""

    def __init__(self, node_sets: NodeSets, effort: Effort, keeps_spreads: Callable[[NodeSet], bool]) -> None:
        """`keeps_spreads`: whether the pods of a set, where they are bound, break no spread more than they may."""
        self._node_sets, self._effort, self._keeps_spreads = node_sets, effort, keeps_spreads
        self._later_prices: dict[NodeSet, float] = {}
        self._seen: set[tuple[int, ...]] = set()
        self._turns = 0

    def later_price(self, node_set: NodeSet) -> float:
        """What the nodes for unbound pods will cost, USD per hour, with the variant of kube-scheduler that needs the
        dearest."""
        if node_set.bindings.unbound and node_set not in self._later_prices:
            later = self._node_sets.later_failures(node_set)
            self._later_prices[node_set] = max(self._price_of_further(failing) for failing in (node_set, *later))
        return self._later_prices.get(node_set, 0.0)

    def _price_of_further(self, node_set: NodeSet) -> float:
        """By the nodes that the planner launches, or one for each pod where that is cheaper. Where the planner does not
        say, by what the nodes that there are cost for as many pods."""
        further = self._node_sets.further(node_set)
        if further is None:
            return price_in_the_end(node_set) - node_set.price
        alone = [self._node_sets.price_alone(uid, further) for uid in node_set.bindings.unbound]
        return LEFTOVER_PRICE_FACTOR * min(price_of_nodes(further), math.fsum(alone))

    def trail(self, node_set: NodeSet, below: float) -> Trail:
        """A trail for `whole` to begin with, of larger sets that cost less than `below`."""
        return Trail(node_set, 0, self._unseen(node_set, below))

    def whole(self, trails: list[Trail], below: float) -> NodeSet | None:
        """The next set that binds every pod and costs less than `below`; None if none is found.

        Mostly the trail is followed whose set leaves fewest pods unbound, and from time to time one that is cheap.
        """
        while trails and self._effort.left:
            self._turns += 1
            trail = min(trails, key=Trail.near_key if self._turns % CHEAP_TURN_EVERY else Trail.cheap_key)
            tried = sorted(self._try_larger(trail, below), key=_rank)
            if trail.done:
                trails.remove(trail)
            if tried and not tried[0].bindings.unbound:
                return tried[0]
            cheapest = sorted(tried, key=price_in_the_end)[:1]
            promising = dict.fromkeys([*tried[:1], *cheapest])
            trails += [Trail(larger, trail.steps + 1, self._unseen(larger, below)) for larger in promising]
        return None

    def _try_larger(self, trail: Trail, below: float) -> Iterator[NodeSet]:
        """Evaluate larger sets until some are better than the trail's; once one binds every pod, only cheaper ones."""
        uids, best, more = trail.node_set.pods, trail.node_set, MORE_UNBOUND
        for number, nodes in enumerate(trail.next_sets(), start=1):
            if price_of_nodes(nodes) < below - TOLERANCE:
                at_least = best.variants_passed, len(best.bindings.unbound) + more
                node_set = self._node_sets.evaluate(nodes, uids, at_least)
                if node_set is not None and (node_set.bindings.unbound or self._keeps_spreads(node_set)):
                    yield node_set
                    if _rank(node_set) < _rank(best):
                        best, more = node_set, 0
            if not best.bindings.unbound:
                below = best.price
            elif best is not trail.node_set and number >= MIN_TRIES:
                return

    def _unseen(self, node_set: NodeSet, below: float) -> Iterator[tuple[NewNode, ...]]:
        """The larger sets that are allowed and have not been tried in any trail."""
        for nodes in self._larger(node_set, below):
            key = likeness(nodes)
            if key not in self._seen and self._node_sets.allowed(nodes):
                self._seen.add(key)
                yield nodes

    def _larger(self, node_set: NodeSet, below: float) -> Iterator[tuple[NewNode, ...]]:
        further = self._node_sets.further(node_set) or []
        if further and price_of_nodes(nodes := (*node_set.nodes, *further)) < below - TOLERANCE:
            yield nodes
        if self._effort.left:
            larger, touches = larger_sets(self._node_sets, node_set, further, below)
            self._effort.charge(touches)
            yield from larger

    def leaner(self, node_set: NodeSet) -> NodeSet:
        """Leave out, or make smaller, the nodes that a set does not need to bind every pod; the dearest first.

        Only nodes whose pods may be on any node are changed. A set with unbound pods stays as it is.
        """
        lean: NodeSet | None = node_set if not node_set.bindings.unbound else None
        while lean is not None:
            node_set, lean = lean, next(self._leaner(lean), None)
        return node_set

    def _leaner(self, node_set: NodeSet) -> Iterator[NodeSet]:
        """The sets that are allowed and bind every pod, without one node or with a smaller type in its place."""
        for number in sorted(range(len(node_set.nodes)), key=lambda n: (-node_set.nodes[n].claim.price, n)):
            for nodes in self._smaller(node_set, number):
                allowed = self._node_sets.allowed(nodes)
                at_least = len(SCHEDULER_VARIANTS), 0
                lean = self._node_sets.evaluate(nodes, node_set.pods, at_least) if allowed else None
                if lean is not None and not lean.bindings.unbound and self._keeps_spreads(lean):
                    yield lean

    def _smaller(self, node_set: NodeSet, number: int) -> Iterator[tuple[NewNode, ...]]:
        """The set without one node (by number), and with smaller types in its place."""
        if not self._node_sets.must_stay(node_set, number):
            before, after = node_set.nodes[:number], node_set.nodes[number + 1 :]
            yield (*before, *after)
            for smaller_node in islice(self._node_sets.smaller(node_set, number), MAX_SMALLER_TYPES):
                yield (*before, smaller_node, *after)


def price_in_the_end(node_set: NodeSet) -> float:
    """What the set is expected to cost once there are nodes for its unbound pods, too; USD per hour."""
    pods = len(node_set.bindings.node_of) + len(node_set.bindings.unbound)
    return node_set.price * (1 + LEFTOVER_PRICE_FACTOR * len(node_set.bindings.unbound) / pods)


def _rank(node_set: NodeSet) -> tuple[int, int, float]:
    """Lower is better: more variants passed, then fewer unbound pods, then a lower price."""
    return -node_set.variants_passed, len(node_set.bindings.unbound), node_set.price
