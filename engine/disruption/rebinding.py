"""Whether kube-scheduler would find a node for every pod that has to move because nodes go.

kube-scheduler does not know the plan. Where a plan fits exactly, it may leave a pod unbound; then a node is launched
for that pod, and consolidation begins anew. So commands are checked with the model of kube-scheduler before they start.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property

from msgspec.structs import replace

from kerf.engine.disruption.buffer_room import buffer_pods_without_room
from kerf.engine.disruption.cluster import Cluster, bound, moving_pods, pending_pod_of, what_if
from kerf.engine.disruption.consolidation.commands import Command
from kerf.engine.lifecycle.drain.eviction_waves import wave_of, weight
from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.model.kubernetes.priority_classes import CRITICAL
from kerf.engine.scheduling.kube_scheduler.node_info import planned_node
from kerf.engine.scheduling.kube_scheduler.scheduler import KubeScheduler, new_node_name
from kerf.engine.scheduling.kube_scheduler.scheduler_variants import DEFAULT_VARIANT, SCHEDULER_VARIANTS
from kerf.engine.scheduling.launchable.daemons import Daemon, daemons
from kerf.engine.scheduling.plan import OpenedClaim
from kerf.engine.scheduling.problem.problem import PendingPod, Problem

MAX_CHECKS = 24
"""How many times the scheduler is asked about the commands of one pass, after they were chosen."""

MAX_COMPILED_TERMS = 50_000
"""The rules of all pods are compiled together if shapes times affinity terms are at most this; otherwise each check
compiles the rules of its own pods."""

Size = tuple[int, list[tuple[str, int]]]
"""A pod's weight (`eviction_waves.weight`), and its requests by name."""


class Rebinding:
    """Checks what kube-scheduler would do in one cluster without some of its nodes."""

    def __init__(self, cluster: Cluster, waves: tuple[int, ...] = ()) -> None:
        """`waves`: the waves in which pods are evicted from the nodes that go; without any, all leave at once. With
        waves more depends on the answer, so two variants of the scheduler are asked."""
        self._cluster = cluster
        self._waves = waves
        self._sizes: dict[str, Size] = {}
        self._fits: dict[tuple[frozenset[str], tuple[Hashable, ...]], bool] = {}

    @cached_property
    def _unbound_anyway(self) -> frozenset[str]:
        """The pods that might stay unbound even if no node goes."""
        return self._unbound(frozenset(), ())

    @cached_property
    def _buffer_pods_without_room_anyway(self) -> frozenset[str]:
        return buffer_pods_without_room(self._cluster, frozenset())

    def unbound(self, leaving: Iterable[str], claims: Iterable[OpenedClaim]) -> frozenset[str]:
        """The pods (uids) that might stay unbound when these nodes go and these claims come.

        These are pods of the leaving nodes and of nodes that are on their way out already; or pods of buffers, whose
        room such pods might take. Pods that might stay unbound anyway are left out.
        """
        without = frozenset(leaving)
        unbound = self._unbound(without, tuple(claims))
        if not unbound and self._cluster.virtual:
            return buffer_pods_without_room(self._cluster, without) - self._buffer_pods_without_room_anyway
        return unbound and unbound - self._unbound_anyway

    def fits(self, commands: Iterable[Command]) -> bool:
        """Whether these commands together leave no pod unbound. Remembered, because several searches ask the same."""
        together = tuple(commands)
        names = frozenset(name for command in together for name in command.names)
        claims = [
            replace(new.claim, instance_types=new.instance_types)
            for command in together
            for new in command.replacements
        ]
        key = (
            names,
            tuple((new.node_pool, new.pods, new.instance_types, new.capacity_types, new.constraints) for new in claims),
        )
        if key not in self._fits:
            self._fits[key] = not self.unbound(names, claims)
        return self._fits[key]

    def fitting(self, commands: Sequence[Command]) -> list[Command]:
        """Those of the commands that may be carried out together, in their order: the longest prefix that bisection
        finds, and then each further command that fits beside the ones before."""
        least, most, left = 0, len(commands), MAX_CHECKS
        if not most or self.fits(commands):
            return list(commands)
        while most - least > 1:
            middle, left = (least + most) // 2, left - 1
            least, most = (middle, most) if self.fits(commands[:middle]) else (least, middle)
        kept = list(commands[:least])
        for command in commands[most : most + max(0, left)]:
            if self.fits([*kept, command]):
                kept.append(command)
        return kept

    def _unbound(self, leaving: frozenset[str], claims: tuple[OpenedClaim, ...]) -> frozenset[str]:
        going, gone = moving_pods(self._cluster, leaving)
        on_new = frozenset(uid for claim in claims for uid in claim.pods)
        pods = {pod.uid: pod for pod in (*going, *gone)}
        pods |= {pod.uid: pod for pod in self._cluster.pending if pod.uid in on_new}
        moved = [((pod.namespace, pod.shape), self._nodes[pod.uid]) for pod in going if pod.uid in self._nodes]
        in_waves = frozenset(pod.uid for pod in going) if self._waves else frozenset()
        ranked = sorted(pods.values(), key=lambda pod: self._rank(pod, self._waves if pod.uid in in_waves else ()))
        queue = [pending_pod_of(pod, pod.shape, self._unchanged.shapes, None) for pod in ranked]
        scheduler = (
            self._scheduler if self._few_enough_rules else KubeScheduler(replace(self._unchanged, pods=tuple(queue)))
        )
        unbound: frozenset[str] = frozenset()
        for variant in (SCHEDULER_VARIANTS[0], DEFAULT_VARIANT) if self._waves else (DEFAULT_VARIANT,):
            nodes = [
                planned_node(new_node_name(number), claim, self._daemons, self._unchanged)
                for number, claim in enumerate(claims)
            ]
            unbound = unbound or frozenset(scheduler.rebind(nodes, queue, leaving, moved, variant).unbound)
        return unbound

    @cached_property
    def _few_enough_rules(self) -> bool:
        """Whether the rules of all pods of the cluster are few enough to be compiled together."""
        shapes = [self._unchanged.shapes[pod.shape] for pod in self._unchanged.pods]
        terms = sum(len(shape.affinity) + len(shape.anti_affinity) for shape in shapes)
        return len(shapes) * terms <= MAX_COMPILED_TERMS

    @cached_property
    def _unchanged(self) -> Problem:
        """The cluster as it is: its bound pods, and one waiting pod of each shape that may have to move."""
        problem = what_if(self._cluster, frozenset(), respect_settling=False)
        bound_pods = tuple(bound(self._cluster.nodes, frozenset(pod.uid for pod in self._cluster.displaced)))
        moving = (*self._cluster.pending, *self._cluster.displaced)
        pods = {
            (pod.namespace, pod.shape): pending_pod_of(pod, pod.shape, problem.shapes, problem.devices)
            for pod in moving
        }
        shape_keys = {(bound_pod.namespace, bound_pod.shape) for bound_pod in bound_pods}
        pods |= {(namespace, shape): PendingPod("", namespace, "", shape) for namespace, shape in shape_keys}
        return replace(problem, pods=tuple(pod for _, pod in sorted(pods.items())), bound=bound_pods)

    @cached_property
    def _nodes(self) -> dict[str, str]:
        """The node (by name) of each bound pod (by uid)."""
        return {pod.uid: pod.node for pod in self._unchanged.bound}

    @cached_property
    def _scheduler(self) -> KubeScheduler:
        return KubeScheduler(self._unchanged)

    @cached_property
    def _daemons(self) -> tuple[Daemon, ...]:
        problem = self._unchanged
        return daemons(problem.daemons, problem.shapes, problem.settings.ignore_dra_requests)

    def _rank(self, pod: Pod, waves: tuple[int, ...]) -> tuple[bool, int, int, Size, str, str, str]:
        """Sort pods by the order in which they come back to the scheduling queue.

        Critical pods are evicted only after the others (D-143, D-144), which have their nodes by then; so have the pods
        of earlier waves. Within one priority the order is unknown, so the worst is assumed: small pods come first and
        take the room of large ones. A pod that requests much memory alone counts as large.
        """
        shape = self._cluster.shapes[pod.shape]
        size = self._sizes.get(pod.shape)
        if size is None:
            size = self._sizes[pod.shape] = weight(shape.requests), sorted(shape.requests.items())
        wave = wave_of(shape, waves) if waves else 0
        return shape.priority_class in CRITICAL, wave, -shape.priority, size, pod.namespace, pod.name, pod.uid
