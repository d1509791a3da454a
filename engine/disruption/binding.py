"""Whether the cluster's scheduler would find places for the pods that move. It does not know the plan: where a plan
fits exactly, it may leave a pod over, a node is launched for that pod, and consolidation begins anew (hysteresis)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property

from msgspec.structs import replace

from kerf.engine.disruption.cluster import Cluster, bound, moving_pods, wanting, what_if
from kerf.engine.disruption.consolidation.commands import Command
from kerf.engine.disruption.crowding import crowded_out
from kerf.engine.lifecycle.drain.eviction_waves import wave_of, weight
from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.model.kubernetes.priority_classes import CRITICAL
from kerf.engine.scheduling.kube_scheduler.node_info import planned_node
from kerf.engine.scheduling.kube_scheduler.scheduler import KubeScheduler, new_node_name
from kerf.engine.scheduling.kube_scheduler.scheduler_variants import DEFAULT_VARIANT, SCHEDULER_VARIANTS
from kerf.engine.scheduling.launchable.daemons import Daemon, daemons
from kerf.engine.scheduling.plan import OpenedClaim
from kerf.engine.scheduling.problem.problem import PendingPod, Problem

CHECKS = 24
"""How many times the scheduler is asked about the commands of one pass, at most, after they were chosen."""

MOST_PAIRS = 50_000
"""Shapes of pods times terms of affinity: with more, each question compiles what its own pods demand."""

Size = tuple[int, list[tuple[str, int]]]
"""What pods weigh (`turns.weight`), and their requests by name."""


class Binding:
    """What the scheduler would make of one cluster without some of its nodes."""

    def __init__(self, cluster: Cluster, turns: tuple[int, ...] = ()) -> None:
        """`turns`: by which the pods of nodes that go leave (`turns`), all at once if there are none. Where so much
        is built on it, schedulers of both habits of scoring are asked."""
        self._cluster = cluster
        self._turns = turns
        self._sizes: dict[str, Size] = {}
        self._asked: dict[tuple[frozenset[str], tuple[Hashable, ...]], bool] = {}

    @cached_property
    def _anyway(self) -> frozenset[str]:
        """The pods that might be left over although no node goes."""
        return self._left(frozenset(), ())

    @cached_property
    def _crowded_anyway(self) -> frozenset[str]:
        return crowded_out(self._cluster, frozenset())

    def left_over(self, leaving: Iterable[str], claims: Iterable[OpenedClaim]) -> frozenset[str]:
        """The pods (uids) of these nodes, and of those on their way out already, that might be left over on what stays
        and on these claims, or that stand for room which these might take; without those for which it is so anyway."""
        without = frozenset(leaving)
        left = self._left(without, tuple(claims))
        if not left and self._cluster.virtual:
            return crowded_out(self._cluster, without) - self._crowded_anyway
        return left and left - self._anyway

    def fits(self, commands: Iterable[Command]) -> bool:
        """Whether these commands together leave no pod over. Several searches ask of the same ones."""
        made = tuple(commands)
        names = frozenset(name for each in made for name in each.names)
        news = [replace(new.claim, instance_types=new.instance_types) for each in made for new in each.replacements]
        key = (
            names,
            tuple((new.node_pool, new.pods, new.instance_types, new.capacity_types, new.constraints) for new in news),
        )
        if key not in self._asked:
            self._asked[key] = not self.left_over(names, news)
        return self._asked[key]

    def bindable(self, commands: Sequence[Command]) -> list[Command]:
        """Those of these commands that may be made together, in their order: the longest prefix that bisection finds,
        and of those after it each that may be made beside the ones before."""
        least, most, left = 0, len(commands), CHECKS
        if not most or self.fits(commands):
            return list(commands)
        while most - least > 1:
            middle, left = (least + most) // 2, left - 1
            least, most = (middle, most) if self.fits(commands[:middle]) else (least, middle)
        kept = list(commands[:least])
        for each in commands[most : most + max(0, left)]:
            if self.fits([*kept, each]):
                kept.append(each)
        return kept

    def _left(self, leaving: frozenset[str], claims: tuple[OpenedClaim, ...]) -> frozenset[str]:
        going, gone = moving_pods(self._cluster, leaving)
        on_new = frozenset(uid for each in claims for uid in each.pods)
        pods = {pod.uid: pod for pod in (*going, *gone)}
        pods |= {pod.uid: pod for pod in self._cluster.pending if pod.uid in on_new}
        moved = [((pod.namespace, pod.shape), self._nodes[pod.uid]) for pod in going if pod.uid in self._nodes]
        waiting = frozenset(pod.uid for pod in going) if self._turns else frozenset()
        ranked = sorted(pods.values(), key=lambda pod: self._rank(pod, self._turns if pod.uid in waiting else ()))
        queue = [wanting(pod, pod.shape, self._still.shapes, None) for pod in ranked]
        scheduler = self._scheduler if self._few else KubeScheduler(replace(self._still, pods=tuple(queue)))
        left: frozenset[str] = frozenset()
        for habit in (SCHEDULER_VARIANTS[0], DEFAULT_VARIANT) if self._turns else (DEFAULT_VARIANT,):
            seats = [
                planned_node(new_node_name(number), each, self._daemons, self._still)
                for number, each in enumerate(claims)
            ]
            left = left or frozenset(scheduler.rebind(seats, queue, leaving, moved, habit).unbound)
        return left

    @cached_property
    def _few(self) -> bool:
        """Whether it is worth the while to compile what all pods of the cluster demand of one another."""
        shapes = [self._still.shapes[each.shape] for each in self._still.pods]
        return len(shapes) * sum(len(each.affinity) + len(each.anti_affinity) for each in shapes) <= MOST_PAIRS

    @cached_property
    def _still(self) -> Problem:
        """The cluster as it is: the pods that count where they are, and one pod of each shape that may have to move."""
        still = what_if(self._cluster, frozenset(), respect_settling=False)
        _, gone = moving_pods(self._cluster, frozenset())
        there = tuple(bound(self._cluster.nodes, frozenset(pod.uid for pod in gone)))
        pods = {(each.namespace, each.shape): each for each in still.pods}
        pairs = {(each.namespace, each.shape) for each in there}
        pods |= {(namespace, shape): PendingPod("", namespace, "", shape) for namespace, shape in pairs}
        return replace(still, pods=tuple(each for _, each in sorted(pods.items())), bound=there)

    @cached_property
    def _nodes(self) -> dict[str, str]:
        """The node of each pod that counts where it is."""
        return {each.uid: each.node for each in self._still.bound}

    @cached_property
    def _scheduler(self) -> KubeScheduler:
        return KubeScheduler(self._still)

    @cached_property
    def _daemons(self) -> tuple[Daemon, ...]:
        still = self._still
        return daemons(still.daemons, still.shapes, still.settings.ignore_dra_requests)

    def _rank(self, pod: Pod, turns: tuple[int, ...]) -> tuple[bool, int, int, Size, str, str, str]:
        """In what order pods come back: critical ones are evicted only when the others are gone (D-143, D-144), and by
        then these have their places; so have those of an earlier wave_of. Of others of one priority nobody knows: small
        ones that take the room of large ones do most harm, and large is also what asks for much memory alone."""
        shape = self._cluster.shapes[pod.shape]
        size = self._sizes.get(pod.shape)
        if size is None:
            size = self._sizes[pod.shape] = weight(shape.requests), sorted(shape.requests.items())
        late = wave_of(shape, turns) if turns else 0
        return shape.priority_class in CRITICAL, late, -shape.priority, size, pod.namespace, pod.name, pod.uid
