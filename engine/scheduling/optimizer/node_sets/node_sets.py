"""The new nodes of a plan as a set, and what kube-scheduler would bind to them.

Once the nodes are there, kube-scheduler decides where pods go, whatever the plan meant. So the optimizer changes the
nodes themselves: a larger or smaller type, one node more for pods that would stay unbound, one node less. The pods are
then where the model of kube-scheduler puts them. In the end the planner plans each node of the chosen set again
(`plan_of_node_set`), so that every NodeClaim is the planner's own.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from heapq import nsmallest

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.kubernetes.pods import Resources
from kerf.engine.model.labels import HOSTNAME
from kerf.engine.scheduling.kube_scheduler.interpod_rules import max_pods_per_node
from kerf.engine.scheduling.kube_scheduler.node_info import NodeInfo
from kerf.engine.scheduling.kube_scheduler.scheduler import Bindings, KubeScheduler, new_node_name, setup_touches
from kerf.engine.scheduling.kube_scheduler.scheduler_variants import SCHEDULER_VARIANTS
from kerf.engine.scheduling.launchable.daemons import daemons
from kerf.engine.scheduling.launchable.templates import NODES_LIMIT
from kerf.engine.scheduling.matching.resources import added, fits, total
from kerf.engine.scheduling.optimizer.alternative_plans import TOLERANCE, independent_pods, limits_for, total_price
from kerf.engine.scheduling.optimizer.effort import TOUCHES_PER_RUN, Effort, binding_touches, planning_touches
from kerf.engine.scheduling.optimizer.instance_options import InstanceOptions
from kerf.engine.scheduling.optimizer.node_sets.new_nodes import NewNode, NewNodes
from kerf.engine.scheduling.optimizer.partial_problems import problem_after_binding
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem.problem import NodeInput, PendingPod, Problem

UNIFORM_SLACK = (1.0, 1.1, 1.25, 1.5)
"""How many times the needed room a set of nodes of one type has."""


def price_of_nodes(nodes: Iterable[NewNode]) -> float:
    """What the nodes cost together, USD per hour."""
    return total_price(node.claim for node in nodes)


class NodeSet(Struct, frozen=True, eq=False):
    """New nodes, with the bindings that one variant of kube-scheduler makes.

    The variant is the first that leaves a pod unbound; if none does, the one that uses most of the nodes.
    `variants_passed` counts the variants before it that bind every pod.
    """

    nodes: tuple[NewNode, ...]
    bindings: Bindings
    variants_passed: int

    @property
    def price(self) -> float:
        """USD per hour."""
        return price_of_nodes(self.nodes)

    @property
    def pods(self) -> frozenset[str]:
        """The pods (uids) that were to be bound."""
        return frozenset([*self.bindings.node_of, *self.bindings.unbound])

    def pods_on(self, numbers: Iterable[int]) -> Iterator[str]:
        """The pods (uids) on some of the nodes (by number)."""
        names = {new_node_name(number) for number in numbers}
        return (uid for uid, name in self.bindings.node_of.items() if name in names)


class NodeSets:
    """Makes, evaluates and changes the sets of new nodes of one problem, within an effort.

    `independent`: the pods that no topology rule concerns.
    """

    def __init__(self, problem: Problem, first: Plan, options: InstanceOptions, effort: Effort) -> None:
        self._problem, self._effort = problem, effort
        on_every_node = daemons(problem.daemons, problem.shapes, problem.settings.ignore_dra_requests)
        self._reserved = total(daemon.requests for daemon in on_every_node)
        self.new_nodes = NewNodes(problem, options, on_every_node)
        self._setup_touches = setup_touches(problem)  # 0 once there is a scheduler
        self._evaluated: dict[tuple[tuple[int, ...], frozenset[str]], NodeSet] = {}
        self.independent = independent_pods(problem)
        self._touches_per_node = binding_touches(problem)
        self._limits = {name: limits_for(problem, pool, first) for name, pool in self._problem.pool_of.items()}
        self._on_weight = self._requested_on_weight(first)

    def _requested_on_weight(self, first: Plan) -> dict[int, Resources]:
        """What the pods request that the first plan puts on NodePools of at least this weight, but for the least."""
        claims = [(self._problem.pool_of[claim.node_pool].pool.weight, claim.pods) for claim in first.claims]
        weights = sorted({weight for weight, _ in claims})
        return {
            least: self._needed(uid for weight, uids in claims if weight >= least for uid in uids)
            for least in weights[1:]
        }

    def _needed(self, uids: Iterable[str]) -> Resources:
        """What these pods request together."""
        return total({**self.requests(self._problem.pod_of[uid]), "pods": 1} for uid in uids)

    def evaluate(
        self, nodes: tuple[NewNode, ...], uids: frozenset[str], at_least: tuple[int, float] = (0, math.inf)
    ) -> NodeSet | None:
        """The set of these nodes with these pods (uids) bound.

        None if the effort is spent, or if the set is sure to be worse than `at_least`: a number of variants passed, and
        a number of unbound pods with the next variant.
        """
        key = tuple([node.kind for node in nodes]), uids
        if key not in self._evaluated:
            run = TOUCHES_PER_RUN + len(uids) + len(nodes) + len(self._problem.nodes)
            if not self.affords(len(nodes)) or not self._effort.take(run) or not self._effort.take(self._setup_touches):
                return None
            self._setup_touches = 0
            node_set = self._bound(nodes, uids, at_least)
            if node_set is None:
                return None
            self._evaluated[key] = node_set
        return self._evaluated[key]

    def with_told(self, node_set: NodeSet, told: Mapping[str, str]) -> NodeSet | None:
        """The same nodes, of which some pods (uids) are told one (by name) and hold room there from the first, as the
        first variant binds the others beside them. None if the effort is spent."""
        infos, variant = self._infos(node_set.nodes), SCHEDULER_VARIANTS[0]
        most = self._effort.left
        bindings, touches = self._scheduler.bind(infos, node_set.pods, most, variant, others=True, told=told)
        self._effort.charge(touches)
        return NodeSet(node_set.nodes, bindings, len(SCHEDULER_VARIANTS)) if bindings is not None else None

    def affords(self, nodes: int) -> bool:
        """Whether a run of the scheduler's model on so many new nodes may end within the effort."""
        return nodes * self._touches_per_node <= self._effort.left

    def _bound(self, nodes: tuple[NewNode, ...], uids: frozenset[str], at_least: tuple[int, float]) -> NodeSet | None:
        whole: list[Bindings] = []
        for passed, bindings in self._bindings(nodes, uids, 0, at_least):
            if bindings is None:
                return None
            if bindings.unbound:
                return NodeSet(nodes, bindings, passed)
            whole.append(bindings)
        most_nodes = max(whole, key=lambda each: len(set(each.node_of.values())))
        return NodeSet(nodes, most_nodes, len(SCHEDULER_VARIANTS))

    def _bindings(
        self, nodes: Iterable[NewNode], uids: frozenset[str], first: int, at_least: tuple[int, float] = (0, math.inf)
    ) -> Iterator[tuple[int, Bindings | None]]:
        """What each variant of kube-scheduler (by number) from the `first` on does; None where `evaluate` is."""
        infos = self._infos(nodes)
        for number, variant in enumerate(SCHEDULER_VARIANTS[first:], start=first):
            max_unbound = at_least[1] if number <= at_least[0] else math.inf
            bindings, touches = self._scheduler.bind(infos, uids, self._effort.left, variant, max_unbound, others=True)
            self._effort.charge(touches)
            yield number, bindings

    def _infos(self, nodes: Iterable[NewNode]) -> list[NodeInfo]:
        return [node.info.copy(new_node_name(number)) for number, node in enumerate(nodes)]

    def later_failures(self, node_set: NodeSet) -> Iterator[NodeSet]:
        """The same nodes with the bindings of each later variant that leaves a pod unbound; not all of them if the
        effort is spent."""
        for number, bindings in self._bindings(node_set.nodes, node_set.pods, node_set.variants_passed + 1):
            if bindings is None:
                return
            if bindings.unbound:
                yield NodeSet(node_set.nodes, bindings, number)

    @cached_property
    def _scheduler(self) -> KubeScheduler:
        return KubeScheduler(self._problem)

    def allowed(self, nodes: Sequence[NewNode]) -> bool:
        """Whether these nodes keep the limits of their NodePools, and those of NodePools of more weight have room for
        what the first plan puts there."""
        used: dict[str, Counter[str]] = defaultdict(Counter)
        for node in nodes:
            used[node.claim.node_pool].update({**node.max_counted, NODES_LIMIT: 1})
        if any(counts[name] > most for pool, counts in used.items() for name, most in self._limits[pool].items()):
            return False
        for weight, needed in self._on_weight.items():
            heavy = [node for node in nodes if self._problem.pool_of[node.claim.node_pool].pool.weight >= weight]
            if not fits(needed, total(node.info.free for node in heavy)):
                return False
        return True

    # ── pods and nodes, as the model of kube-scheduler sees them ──────────────────────────────────────

    def queue(self, node_set: NodeSet) -> list[PendingPod]:
        """All pods in the order in which they came to the scheduler that made these bindings."""
        return self._scheduler.queue(SCHEDULER_VARIANTS[min(node_set.variants_passed, len(SCHEDULER_VARIANTS) - 1)])

    def requests(self, pod: PendingPod) -> Resources:
        """What a pod requests."""
        return self._problem.shapes[pod.shape].requests

    def filter_key(self, pod: PendingPod) -> Hashable:
        """Equal for pods that `admits` does not tell apart."""
        return self._scheduler.class_of(pod, True).filter_key

    def admits(self, node: NewNode, pod: PendingPod) -> bool:
        """Whether the pod may go to the node, if there is room for it."""
        return self._scheduler.class_of(pod, True).may_go_to(node.info)

    def fits_nowhere(self, uid: str, nodes: Iterable[NewNode]) -> bool:
        """Whether a pod may go to no existing node and to none of these, whatever their size, even if it were alone."""
        pod_class = self._scheduler.class_of(self._problem.pod_of[uid], True)
        sizes = (size for node in nodes for size in (node, *node.sizes))
        return not pod_class.feasible_nodes and all(pod_class.scores_on(size.info) is None for size in sizes)

    def price_alone(self, uid: str, nodes: Iterable[NewNode]) -> float:
        """What the cheapest node for one pod costs, of all sizes of these nodes; infinite if it fits on none."""
        pod = self._problem.pod_of[uid]
        needed = {**self.requests(pod), "pods": 1}

        def cheapest(node: NewNode) -> float:
            fitting = (size for size in node.sizes if fits(needed, size.info.free) and self.admits(size, pod))
            return next((size.claim.price for size in fitting), math.inf)

        return min(map(cheapest, dict.fromkeys(nodes)), default=math.inf)

    def max_pods_per_node(self, pod: PendingPod) -> int:
        """How many pods like this one their own rules allow on one node; 0: any number."""
        return max_pods_per_node(pod.shape_key, self._problem)

    # ── other nodes in the place of one ──────────────────────────────────────

    def uniform(self, node: NewNode, node_set: NodeSet, numbers: Iterable[int], most: int) -> list[tuple[NewNode, ...]]:
        """Nodes of one type, with the constraints of this node, in the place of some nodes of a set (by number).

        For each type there are as many as have room for the pods there and the unbound ones, times `UNIFORM_SLACK`.
        The `most` cheapest sets, cheapest first; none if no pod needs room.
        """
        needed = self._needed([*node_set.pods_on(numbers), *node_set.bindings.unbound])
        amounts = [(name, amount) for name, amount in needed.items() if amount]
        sets: dict[tuple[float, int, int], NewNode] = {}
        for size in node.sizes if needed else ():
            free = size.info.free
            if all(free.get(name, 0) > 0 for name, _ in amounts):
                for slack in UNIFORM_SLACK:
                    count = max([math.ceil(slack * amount / free[name]) for name, amount in amounts])
                    sets[count * size.claim.price, count, size.kind] = size
        return [(sets[key],) * key[1] for key in nsmallest(most, sets)]

    def must_stay(self, node_set: NodeSet, number: int) -> bool:
        """Whether a node (by number) must stay as it is: it is fixed, or has pods that care on which node they are, or
        where other pods are."""
        pods = (self._problem.pod_of[uid] for uid in node_set.pods_on([number]))
        return node_set.nodes[number].fixed or any(
            pod.shape_key not in self.independent or self._problem.shapes[pod.shape].preferred_terms for pod in pods
        )

    def smaller(self, node_set: NodeSet, number: int) -> Iterator[NewNode]:
        """The cheaper types that have room for the pods of one node (by number), cheapest first."""
        node, needed = node_set.nodes[number], self._needed(node_set.pods_on([number]))
        sizes = (size for size in node.sizes if size.claim.price < node.claim.price - TOLERANCE)
        return (size for size in sizes if fits(needed, size.info.free))

    # ── further nodes ──────────────────────────────────────

    def further(self, node_set: NodeSet) -> list[NewNode] | None:
        """The nodes that the planner launches for the unbound pods, once the others are where they were bound; None if
        it leaves one of them over, or the effort is spent."""
        problem = self._problem_after_binding(node_set)
        if not self._effort.take(planning_touches(problem) + len(problem.bound)):
            return None
        later = plan(problem, told=False)
        if later.unplaced or later.ignored or later.truncated or later.placements:
            return None
        return [self.new_nodes.of_claim(claim) for claim in later.claims]

    def _problem_after_binding(self, node_set: NodeSet) -> Problem:
        """The problem of the unbound pods, when the new nodes exist and the other pods are bound."""
        nodes = list(self._problem.nodes)
        usage = {name: pool_input.usage for name, pool_input in self._problem.pool_of.items()}
        for number, new_node in enumerate(node_set.nodes):
            info, name = new_node.info, new_node_name(number)
            labels = {**info.labels, HOSTNAME: name}
            nodes.append(NodeInput(name, "", labels, info.taints, info.free, True, self._reserved))
            pool = new_node.claim.node_pool
            usage[pool] = added(usage[pool], {**new_node.max_counted, NODES_LIMIT: 1})
        pools = tuple(replace(pool_input, usage=usage[pool_input.pool.name]) for pool_input in self._problem.pools)
        with_new_nodes = replace(self._problem, nodes=tuple(nodes), pools=pools)
        return problem_after_binding(with_new_nodes, node_set.bindings.node_of, frozenset(node_set.bindings.unbound))
