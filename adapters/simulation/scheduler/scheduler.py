"""The virtual cluster's scheduler: binds waiting pods to nodes, and marks as unschedulable those that fit
nowhere.

It follows kube-scheduler's filters (see filters) and takes its choice among the feasible nodes in a fixed
order: fewest PreferNoSchedule taints against the pod, most preferred affinity, least allocated, name. A pod that
was told its node (status.nominatedNodeName) goes there if it can, and what waits for a node by that name takes room
there from pods of no higher priority. It does not preempt, and does not look at pods with scheduling gates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache

from msgspec.structs import replace

from kerf.adapters.simulation.clock import Clock
from kerf.adapters.simulation.cluster.apiserver import ApiServer, Change
from kerf.adapters.simulation.cluster.controllers.devices import DeviceControllers
from kerf.adapters.simulation.cluster.controllers.volumes import Volumes
from kerf.adapters.simulation.scheduler.filters import (
    ports_free,
    preferred_weight,
    resources_fit,
    statically_possible,
    untolerated_preferences,
)
from kerf.adapters.simulation.scheduler.free_cpu import FreeCpu
from kerf.adapters.simulation.scheduler.refused_pods import RefusedPods, required_affinity
from kerf.adapters.simulation.scheduler.topology_filters import TopologyFilter, depends_on_other_pods
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import HostPort, Pod, PodShape, Resources, SpreadConstraint, is_terminal
from kerf.engine.scheduling.problem.default_spread import SelectorSources, with_default_spread

NodeCheck = Callable[[Node, "Occupancy"], bool]
_WAKING_KINDS = ("namespace", "pvc", "pv", "storageclass", "csinode", "deviceclass", "resourceslice", "resourceclaim")


class Occupancy:
    """What the pods bound to one node use."""

    def __init__(self) -> None:
        self.used: Resources = {"pods": 0}
        self.ports: list[HostPort] = []

    def add(self, shape: PodShape, sign: int = 1) -> None:
        self.used["pods"] += sign
        for name, amount in shape.requests.items():
            self.used[name] = self.used.get(name, 0) + sign * amount
        for port in shape.host_ports:
            if sign > 0:
                self.ports.append(port)
            else:
                self.ports.remove(port)

    def free(self, node: Node) -> Resources:
        return {name: amount - self.used.get(name, 0) for name, amount in node.allocatable.items()}

    def fits(self, requests: Resources, node: Node) -> bool:
        """Whether the requests fit into what is free."""
        return resources_fit(requests, self.free(node))


class Scheduler:
    """Binds pods in passes, some time after each change that could help one of them. A pass takes higher priority
    before lower, then older before newer."""

    def __init__(
        self,
        api: ApiServer,
        clock: Clock,
        delay: int,
        pins: dict[str, str],
        volumes: Volumes,
        spread: tuple[SpreadConstraint, ...] = (),
        *,
        devices: DeviceControllers,
    ) -> None:
        """`pins` (pod uid → node) holds pods that may run on one node only. (A DaemonSet's controller says so
        by node affinity; kept beside the pod, so that all pods of the DaemonSet share one shape.) `spread`: what pods
        without constraints of their own are spread by."""
        self._api, self._clock, self._delay, self._pins = api, clock, delay, pins
        self._spread = spread
        self._volumes, self._devices = volumes, devices
        self._waiting: dict[str, None] = {}
        self._occupied: dict[str, Occupancy] = {}
        self._free_cpu = FreeCpu()  # of the nodes that are there
        self._promised: dict[str, dict[str, None]] = {}  # node → waiting pods that are nominated for it
        self._gone: set[str] = set()  # nodes
        self._static: dict[str, dict[str, tuple[int, int] | None]] = {}
        self._topology = TopologyFilter(api)
        self._refused = RefusedPods(api.shapes)
        self._due = False
        api.listen(self._changed)

    def occupancy(self, node: str) -> Occupancy:
        """Return what is used on a node."""
        found = self._occupied.get(node)
        if found is None:
            found = self._occupied[node] = Occupancy()
        return found

    def look_at(self, uid: str) -> None:
        """Look at a waiting pod: it is new, or its last scheduling gate is gone."""
        if uid not in self._waiting and uid not in self._api.gated:
            self._waiting[uid] = None
            self._wake()

    # ── what could help ─────────────────────────────────────────────────────────────────────────────────────

    def _changed(self, change: Change) -> None:
        self._refused.changed(change)
        if change.kind == "pod":
            self._pod_changed(change)
        elif change.kind == "node":
            self._static.pop(change.key, None)
            self._note_free_cpu(change.key)
            self._refused.ease(change.key)
            if change.new is None:
                self._gone.add(change.key)
            else:
                self._gone.discard(change.key)
            if change.new is not None or self._promised.get(change.key):
                self._wake()
        elif change.kind in _WAKING_KINDS:
            self._wake()

    def _pod_changed(self, change: Change) -> None:
        old = change.old if isinstance(change.old, Pod) else None
        new = change.new if isinstance(change.new, Pod) else None
        was, now = _assumed_node(old), _assumed_node(new)
        if was != now:
            if old is not None and was:
                self.occupancy(was).add(self._api.shape(old), -1)
                self._note_free_cpu(was)
                self._refused.ease(was)
            if new is not None and now:
                self.occupancy(now).add(self._api.shape(new))
                self._note_free_cpu(now)
            self._wake()
        self._note_nomination(change.key, _nominated_node(old), _nominated_node(new))
        if new is None or new.node or new.deleting or is_terminal(new):
            self._waiting.pop(change.key, None)
        else:
            self.look_at(change.key)

    def _note_free_cpu(self, name: str) -> None:
        node = self._api.nodes.get(name)
        if node is None:
            self._free_cpu.drop(name)
        else:
            self._free_cpu.put(name, node.allocatable.get("cpu", 0) - self.occupancy(name).used.get("cpu", 0))

    def _note_nomination(self, uid: str, before: str, now: str) -> None:
        if before == now:
            return
        if before:
            self._promised[before].pop(uid, None)
            self._refused.ease(before)
        if now:
            self._promised.setdefault(now, {})[uid] = None
            self._refused.ease(now)
        self._wake()

    def _wake(self) -> None:
        if not self._due and self._waiting:
            self._due = True
            self._clock.after(self._delay, "scheduler pass", self._pass)

    # ── the pass ────────────────────────────────────────────────────────────────────────────────────────────

    def _pass(self) -> None:
        self._due = False
        bound = 0
        failed: dict[tuple[str, str], int] = {}  # (namespace, shape) → how many were bound when it found no place
        for pod in sorted(map(self._api.pods.__getitem__, self._waiting), key=self._rank):
            kin = (pod.namespace, pod.shape)
            node = None if self._hopeless(pod, failed.get(kin), bound) else self._find(pod)
            if node is not None:
                self._volumes.bind(pod, node)
                self._devices.bind(pod, node)
                self._api.put(replace(pod, node=node, nominated="", unschedulable=False))
                bound += 1
                continue
            if pod.uid not in self._pins:
                failed[kin] = bound
            # kube-scheduler clears the nomination of a pod that it tries in vain; of a node on its way kerf would write
            # it again.
            nominated = "" if pod.nominated in self._gone else pod.nominated
            if not pod.unschedulable or nominated != pod.nominated:
                self._api.put(replace(pod, unschedulable=True, nominated=nominated))

    def _hopeless(self, pod: Pod, failed: int | None, bound: int) -> bool:
        """Whether an equal pod found no place in this pass, and nothing since could have made one. Bindings only take
        room, except for pods whose place depends on where others are."""
        if failed is None or pod.uid in self._pins or pod.nominated in self._api.nodes:
            return False
        shape = self._api.shape(pod)
        if shape.resource_claims or any(not ref.claim for ref in shape.volumes):
            return False
        return failed == bound or not depends_on_other_pods(self._shape(pod))

    def _rank(self, pod: Pod) -> tuple[int, int, str, str, str]:
        return -self._api.shape(pod).priority, pod.created, pod.namespace, pod.name, pod.uid

    def _shape(self, pod: Pod) -> PodShape:
        """Return the pod's shape with the default spread constraints (S-150)."""
        shape = self._api.shape(pod)
        if not self._spread:
            return shape
        sources = SelectorSources(tuple(self._api.services.values()), self._api.workloads)
        (spread_pod,), spread_shapes = with_default_spread([pod], {pod.shape: shape}, self._spread, sources)
        return spread_shapes.get(spread_pod.shape, shape)

    def _find(self, pod: Pod) -> str | None:
        """Return the node to bind the pod to. Where all nodes refused it before, only those are asked that may take it
        by now."""
        shape = self._api.shape(pod)
        if self._spread or shape.resource_claims or shape.volumes:  # more than nodes and pods can make a place possible
            return self._choose(pod)
        # A pod of its kind that was promised a node may count there for this one's affinity, though not for its own.
        alone = pod.uid in self._pins or (bool(pod.nominated) and required_affinity(shape))
        nodes = self._refused.open_to(pod, alone=alone)
        node = None if nodes is not None and not nodes else self._choose(pod, nodes)
        if node is None:
            self._refused.refused(pod, alone=alone)
        return node

    def _choose(self, pod: Pod, among: Sequence[str] | None = None) -> str | None:
        """Return the node that the pod is nominated for, if possible, else the best of all, or of those `among`."""
        shape = self._shape(pod)
        candidates = self._candidates(pod, shape.requests.get("cpu", 0))
        if among is not None:
            kept = frozenset(candidates) if pod.uid in self._pins else self._api.nodes
            candidates = [name for name in among if name in kept]
        if not candidates:
            return None
        possible = self._possible(pod, shape)
        if pod.nominated in self._api.nodes and pod.uid not in self._pins:
            best = self._best(pod, shape, (pod.nominated,), possible)
            if best is not None:
                return best
        return self._best(pod, shape, candidates, possible)

    def _best(self, pod: Pod, shape: PodShape, candidates: Iterable[str], possible: NodeCheck) -> str | None:
        best: tuple[int, int, int, str] | None = None
        cpu = shape.requests.get("cpu", 0)
        for name in candidates:
            node, occupied = self._api.nodes[name], self._occupied.get(name) or self.occupancy(name)
            if 0 < cpu > node.allocatable.get("cpu", 0) - occupied.used.get("cpu", 0):
                continue  # what rules most nodes out, asked first
            score = self._static_score(pod.shape, shape, node)
            if score is None or (best is not None and score > best[:2]):
                continue
            rank = (*score, _least_allocated_score(occupied.used, node, shape.requests), name)
            if best is not None and rank > best:
                continue  # whether there is a place or not
            if possible(node, occupied):
                best = rank
        return None if best is None else best[-1]

    def _possible(self, pod: Pod, shape: PodShape) -> NodeCheck:
        """Return the checks of a node that change from pod to pod, with the pods that are promised the node."""

        @cache
        def checks() -> list[Callable[[Node], bool]]:  # made once a node has room, since topology counts all pods
            made = (self._topology.for_pod(pod, shape), self._volumes.filter(pod), self._devices.filter(pod))
            return [check for check in made if check is not None]

        def possible(node: Node, occupied: Occupancy) -> bool:
            if not occupied.fits(shape.requests, node) or not ports_free(shape.host_ports, occupied.ports):
                return False
            return all(check(node) for check in checks()) and self._leaves_room(pod, shape, node, occupied)

        return possible

    def _leaves_room(self, pod: Pod, shape: PodShape, node: Node, occupied: Occupancy) -> bool:
        """Whether the pod fits beside the pods of the same or a higher priority that the node is promised to."""
        others = [self._api.pods[uid] for uid in self._promised.get(node.name, ()) if uid != pod.uid]
        others = [other for other in others if self._api.shape(other).priority >= shape.priority]
        if not others:
            return True
        with_them = Occupancy()
        with_them.used, with_them.ports = dict(occupied.used), list(occupied.ports)
        for other in others:
            with_them.add(self._api.shape(other))
        if not with_them.fits(shape.requests, node) or not ports_free(shape.host_ports, with_them.ports):
            return False
        return self._topology.possible_beside(others, pod, shape, node)

    def _candidates(self, pod: Pod, cpu: int) -> Sequence[str]:
        """Return the nodes on which the pod may run, without most of those that lack CPU for it."""
        pinned = self._pins.get(pod.uid)
        if pinned is None:
            return self._free_cpu.at_least(cpu) if cpu > 0 else list(self._api.nodes)
        return (pinned,) if pinned in self._api.nodes else ()

    def _static_score(self, digest: str, shape: PodShape, node: Node) -> tuple[int, int] | None:
        """Score a node by what changes only with the Node: lower is better, None rules it out. The score is kept until
        then."""
        known = self._static.get(node.name)
        if known is None:
            known = self._static[node.name] = {}
        if digest not in known:
            possible = statically_possible(shape, node)
            known[digest] = (untolerated_preferences(shape, node), -preferred_weight(shape, node)) if possible else None
        return known[digest]


def _assumed_node(pod: Pod | None) -> str:
    """Return the node whose room the pod takes, or ""."""
    return "" if pod is None or is_terminal(pod) else pod.node


def _nominated_node(pod: Pod | None) -> str:
    """Return the node that a waiting pod is nominated for, or ""."""
    return "" if pod is None or pod.node or pod.deleting or is_terminal(pod) else pod.nominated


def _least_allocated_score(used: Resources, node: Node, requests: Resources) -> int:
    """Sum the shares of cpu and memory in use with the pod, in millionths (NodeResourcesLeastAllocated)."""
    total = 0
    for name in ("cpu", "memory"):
        allocatable = node.allocatable.get(name, 0)
        if allocatable:
            total += (used.get(name, 0) + requests.get(name, 0)) * 1_000_000 // allocatable
    return total
