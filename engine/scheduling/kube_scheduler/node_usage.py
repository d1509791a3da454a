"""How full a node is while pods are bound to it, and what the filters and scores on resources make of that.

The optimizer fills nodes of a few kinds with the same pods over and over. So equally full nodes of one kind share one
immutable `NodeUsage`, and its scores for a class of pods are computed once.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from kerf.engine.model.kubernetes.pods import HostPort, Resources
from kerf.engine.scheduling.kube_scheduler.filters import node_ports, node_resources_fit, node_volume_limits
from kerf.engine.scheduling.kube_scheduler.node_info import NodeInfo
from kerf.engine.scheduling.kube_scheduler.scores import (
    CpuMemory,
    balance,
    balanced_allocation,
    cpu_and_memory,
    least_allocated,
)
from kerf.engine.scheduling.matching.resources import added
from kerf.engine.scheduling.pods.pod_volumes import Attachment

NO_ROOM = -1
"""Stands for the number of pods on a node that has no room for another."""
MAX_CACHED_USAGES = 20_000
"""Between two runs all usages are forgotten if there are more than this."""


class PodLoad(Struct, frozen=True, eq=False):
    """What one pod takes of a node. `requests` count the pod itself as one of `pods`; `scored_requests`: see `scores`;
    `newer`: see `SchedulerVariant`."""

    requests: Resources
    scored_requests: CpuMemory
    ports: tuple[HostPort, ...] = ()
    volumes: frozenset[Attachment] = frozenset()
    newer: bool = False


class NodeUsage:
    """A node with some pods bound to it. It never changes: `after` gives the usage with one more pod."""

    __slots__ = ("_after", "_attached", "_balance", "_free", "_info", "_known", "_ports", "_scored_left", "pods")

    def __init__(self, info: NodeInfo, known: dict[object, NodeUsage]) -> None:
        """The node as it is. `known`: all usages made so far, by what tells them apart; usages add themselves."""
        self._info = info
        self._known = known
        self.pods = 0
        self._free = info.free
        self._scored_left = info.scored_left
        self._ports = info.host_ports
        self._attached = info.attached_volumes
        self._after: dict[PodLoad, NodeUsage] = {}
        self._balance: int | None = None  # once it was asked for

    def after(self, load: PodLoad) -> NodeUsage:
        """The usage with one pod more."""
        usage = self._after.get(load)
        if usage is None:
            usage = self._after[load] = self._with_pod(load)
        return usage

    def holds(self, load: PodLoad) -> bool:
        """The filters on resources, host ports and volume limits."""
        return (
            not self._info.overcommitted
            and node_resources_fit(load.requests, self._free)
            and node_ports(load.ports, self._ports)
            and node_volume_limits(load.volumes, self._attached, self._info.volume_limits)
        )

    def score(self, load: PodLoad) -> int:
        """The scores on resources, least allocated and balanced allocation together: 0 to 200."""
        allocatable, free = self._info.allocatable, cpu_and_memory(self._free)
        before = None
        if load.newer:
            if self._balance is None:
                self._balance = balance(allocatable, free)
            before = self._balance
        balanced = balanced_allocation(allocatable, free, cpu_and_memory(load.requests), before)
        return least_allocated(allocatable, self._scored_left, load.scored_requests) + balanced

    def _with_pod(self, load: PodLoad) -> NodeUsage:
        free = added(self._free, load.requests, -1)
        left, taken = self._scored_left, load.scored_requests
        scored_left = left[0] - taken[0], left[1] - taken[1]
        ports, attached = self._ports + load.ports, self._attached | load.volumes
        key = self._info, self.pods, tuple(free.values()), scored_left, ports, attached
        usage = self._known.get(key)
        if usage is None:
            usage = self._known[key] = NodeUsage(self._info, self._known)
            usage.pods, usage._free, usage._scored_left = self.pods + 1, free, scored_left
            usage._ports, usage._attached = ports, attached
        return usage


class ResourceScores(dict[NodeUsage, tuple[int, int]]):
    """For one load: the score of each usage and its number of pods, or `NO_ROOM` in place of that. Computed once."""

    def __init__(self, load: PodLoad) -> None:
        super().__init__()
        self._load = load

    def __missing__(self, usage: NodeUsage) -> tuple[int, int]:
        score = self[usage] = usage.score(self._load), usage.pods if usage.holds(self._load) else NO_ROOM
        return score


class NodeUsages:
    """The usages of one problem's nodes: `existing` ones by number, and new ones by kind."""

    def __init__(self, existing: Iterable[NodeInfo]) -> None:
        self._infos = tuple(existing)
        self._known: dict[object, NodeUsage] = {}
        self._start()

    def _start(self) -> None:
        self.existing = [NodeUsage(info, self._known) for info in self._infos]
        self._by_kind: dict[int, NodeUsage] = {}
        self._scores: dict[PodLoad, ResourceScores] = {}

    def of_new(self, info: NodeInfo) -> NodeUsage:
        """The usage of a new node before any pod is bound to it."""
        if info.kind < 0:
            return NodeUsage(info, {})
        usage = self._by_kind.get(info.kind)
        if usage is None:
            usage = self._by_kind[info.kind] = NodeUsage(info, self._known)
        return usage

    def scores_for(self, load: PodLoad) -> ResourceScores:
        """What usages score for pods of this load."""
        scores = self._scores.get(load)
        if scores is None:
            scores = self._scores[load] = ResourceScores(load)
        return scores

    def trimmed(self) -> NodeUsages:
        """Itself; if too many usages are remembered, all are forgotten first. Call it between two runs only."""
        if len(self._known) > MAX_CACHED_USAGES:
            self._known.clear()
            self._start()
        return self
