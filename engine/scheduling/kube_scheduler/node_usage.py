"""What is free on a node while pods are bound to it, and what kube-scheduler's filters and scores make of that.

A search fills nodes of a few kinds with the same pods over and over. So the rooms of one node, or of one kind of nodes,
that are equally full are one, and it is found out once what each is to pods of a class.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from kerf.engine.model.kubernetes.pods import ASSUMED, HostPort, Resources
from kerf.engine.scheduling.kube_scheduler.node_info import NodeInfo
from kerf.engine.scheduling.matching.host_ports import port_conflicts
from kerf.engine.scheduling.matching.resources import added
from kerf.engine.scheduling.pods.pod_volumes import Attachment

NO_ROOM = -1
"""In the place of the number of pods in a room that has none for another."""
MAX_CACHED_USAGES = 20_000
"""So many are kept between two runs."""

CpuMemory = tuple[int, int]
"""CPU and memory."""


class PodLoad(Struct, frozen=True, eq=False):
    """What one pod takes of a node. `requests`: with itself, as one of the `pods`; `newer`: see `Habit`."""

    requests: Resources
    scored_requests: CpuMemory
    ports: tuple[HostPort, ...] = ()
    volumes: frozenset[Attachment] = frozenset()
    newer: bool = False


def scored_requests(requests: Resources) -> CpuMemory:
    """What a pod with these requests counts as for the score of the least allocated node."""
    cpu, memory = (requests.get(name) or least for name, least in ASSUMED)
    return cpu, memory


class NodeUsage:
    """A node with so many pods that were bound to it. It does not change: `after` has one more."""

    __slots__ = ("_after", "_attached", "_free", "_known", "_ports", "_scored", "_seat", "pods")

    def __init__(self, seat: NodeInfo, known: dict[object, NodeUsage]) -> None:
        """The node as it is. `known`: the rooms that were made of it, and of others, by what tells them apart."""
        self._seat = seat
        self._known = known
        self.pods = 0
        self._free = seat.free
        cpu, memory = (seat.free.get(name, 0) - seat.assumed.get(name, 0) for name, _ in ASSUMED)
        self._scored = cpu, memory
        self._ports = seat.ports
        self._attached = seat.attached
        self._after: dict[PodLoad, NodeUsage] = {}

    def after(self, load: PodLoad) -> NodeUsage:
        """With one pod more."""
        found = self._after.get(load)
        if found is None:
            found = self._after[load] = self._filled(load)
        return found

    def holds(self, load: PodLoad) -> bool:
        """The filters on resources, host ports and the limits of volumes."""
        if not self._seat.sound:
            return False
        free = self._free
        for name, amount in load.requests.items():
            if amount > free.get(name, 0):
                return False
        return not (load.ports and port_conflicts(load.ports, self._ports)) and self._attaches(load.volumes)

    def _attaches(self, volumes: frozenset[Attachment]) -> bool:
        limits = self._seat.limits
        if not limits or volumes <= self._attached:
            return True
        drivers = Counter(driver for driver, _ in self._attached | volumes)
        return all(drivers[driver] <= limit for driver, limit in limits.items())

    def score(self, load: PodLoad) -> int:
        """The sum of two score plugins of kube-scheduler, 0 to 200.

        `NodeResourcesFit` (least allocated) prefers nodes with much free CPU and memory; pods without requests count as
        `scored_requests` says. `NodeResourcesBalancedAllocation` prefers nodes on which both are used to the same part;
        a `newer` scheduler compares that with what it was before the pod.
        """
        free, requests = self._free, load.requests
        (cpu, memory), (cpu_left, memory_left) = self._seat.total, self._scored
        least = present = 0
        if cpu:
            present += 1
            least += max(0, cpu_left - load.scored_requests[0]) * 100 // cpu
        if memory:
            present += 1
            least += max(0, memory_left - load.scored_requests[1]) * 100 // memory
        more_cpu, more_memory = requests.get("cpu", 0), requests.get("memory", 0)
        cpu_free, memory_free = free.get("cpu", 0), free.get("memory", 0)
        even = 100
        if present == 2:
            even = _evenness((cpu - cpu_free + more_cpu) / cpu, (memory - memory_free + more_memory) / memory)
        if load.newer:
            before = _evenness((cpu - cpu_free) / cpu, (memory - memory_free) / memory) if present == 2 else 100
            even = 50 + (50 + even - before) // 2 if more_cpu or more_memory else 0
        return least // max(1, present) + even

    def _filled(self, load: PodLoad) -> NodeUsage:
        free = added(self._free, load.requests, -1)
        scored = self._scored[0] - load.scored_requests[0], self._scored[1] - load.scored_requests[1]
        ports, attached = self._ports + load.ports, self._attached | load.volumes
        key = self._seat, self.pods, tuple(free.values()), scored, ports, attached
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = NodeUsage(self._seat, self._known)
            found.pods, found._free, found._scored = self.pods + 1, free, scored
            found._ports, found._attached = ports, attached
        return found


def _evenness(cpu: float, memory: float) -> int:
    """50 to 100: the less the parts that are used differ (half of that is the standard deviation of two)."""
    return int((1 - abs(min(1.0, cpu) - min(1.0, memory)) / 2) * 100)


class ResourceScores(dict[NodeUsage, tuple[int, int]]):
    """What rooms are to a pod, found out once: what they score for it, and how many pods are there already; `NO_ROOM`
    where there is no room for it."""

    def __init__(self, load: PodLoad) -> None:
        super().__init__()
        self._load = load

    def __missing__(self, room: NodeUsage) -> tuple[int, int]:
        found = self[room] = room.score(self._load), room.pods if room.holds(self._load) else NO_ROOM
        return found


class NodeUsages:
    """Of the old nodes of one problem, and of the kinds of new ones."""

    def __init__(self, old: Iterable[NodeInfo]) -> None:
        self._seats = tuple(old)
        self._known: dict[object, NodeUsage] = {}
        self._begin()

    def _begin(self) -> None:
        self.old = [NodeUsage(each, self._known) for each in self._seats]
        self._kinds: dict[int, NodeUsage] = {}
        self._offers: dict[PodLoad, ResourceScores] = {}

    def of(self, seat: NodeInfo) -> NodeUsage:
        """A new node before anything is bound to it."""
        if seat.kind < 0:
            return NodeUsage(seat, {})
        found = self._kinds.get(seat.kind)
        if found is None:
            found = self._kinds[seat.kind] = NodeUsage(seat, self._known)
        return found

    def offers(self, load: PodLoad) -> ResourceScores:
        """To a pod of this load."""
        found = self._offers.get(load)
        if found is None:
            found = self._offers[load] = ResourceScores(load)
        return found

    def tidied(self) -> NodeUsages:
        """Between two runs: those that were made are forgotten where they have become too many."""
        if len(self._known) > MAX_CACHED_USAGES:
            self._known.clear()
            self._begin()
        return self
