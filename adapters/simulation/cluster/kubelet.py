"""Kubelets: join machines as Nodes, make them ready, start pods that are bound to them, and end deleted pods."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from kerf.adapters.simulation.clock import Clock
from kerf.adapters.simulation.cluster.apiserver import ApiServer, Change
from kerf.adapters.simulation.cluster.controllers.volumes import Volumes
from kerf.adapters.simulation.cluster.machine import Machine, is_device
from kerf.adapters.simulation.cluster.node_changes import (
    NOT_READY,
    UNREGISTERED,
    with_ready,
    with_taints,
    without_taints,
)
from kerf.adapters.simulation.faults import FaultInjector, FaultPlan
from kerf.adapters.simulation.seeded_random import SeededRandom
from kerf.adapters.simulation.timing import Timing
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import Pod, Taint, is_terminal
from kerf.engine.model.kubernetes.volumes import VolumeAttachment

FOREIGN = Taint("example.com/agent-not-ready", "NoSchedule")
"""What somebody else puts on new nodes, if they do (`FaultPlan.tainted`)."""
_UNKNOWN = object()


class Kubelets:
    """All kubelets of the cluster. A Node without a machine (applied from a document) has a kubelet that always
    answers."""

    def __init__(
        self,
        api: ApiServer,
        clock: Clock,
        rng: SeededRandom,
        timing: Timing,
        faults: FaultPlan,
        volumes: Volumes,
        publish: Callable[[str, Machine], None],
    ) -> None:
        """`publish` is called with each node that becomes ready: its drivers publish their devices."""
        self._api, self._clock, self._rng = api, clock, rng
        self._timing, self._faults = timing, faults
        self._fault_injector = FaultInjector(faults, rng, clock)
        self._volumes, self._publish = volumes, publish
        self.joins: Iterator[int | None] = iter(())
        """How long the next instances take to join (ms), None for one that never does. Without, chance decides."""
        self._node_of: dict[str, str] = {}  # instance → node
        self._machines: dict[str, Machine] = {}  # node → machine
        self._stopped: dict[str, None] = {}  # instances that have ended
        self._silent: dict[str, None] = {}  # nodes whose kubelet does not answer
        self._startup_taints: dict[str, dict[tuple[str, str], None]] = {}  # NodePool → (key, effect)
        self._joined = 0
        api.listen(self._changed)

    def node_of(self, instance: str) -> str:
        """Return the node as which an instance has joined, or "" before that."""
        return self._node_of.get(instance, "")

    def machine_of(self, node: str) -> Machine | None:
        return self._machines.get(node)

    def answers(self, node: str) -> bool:
        return node not in self._silent

    # ── machines ────────────────────────────────────────────────────────────────────────────────────────────

    def boot(self, machine: Machine) -> None:
        """Start a machine: its Node appears after the join delay, unless the instance ends before, or a fault
        strikes."""
        if self._fault_injector.strikes("never_join", machine.instance):
            return
        if (recorded := next(self.joins, _UNKNOWN)) is not _UNKNOWN:
            if isinstance(recorded, int):
                self._clock.after(recorded, "node joins", lambda: self._join(machine))
            return
        jitter = self._timing.join_jitter
        delay = max(0, self._timing.join + self._rng.between(-jitter, jitter, "join", machine.instance))
        if self._fault_injector.strikes("slow_join", machine.instance):
            delay *= self._faults.slow_factor
        self._clock.after(delay, "node joins", lambda: self._join(machine))

    def adopt(self, machine: Machine, node: Node | None, booted: int) -> None:
        """Look after a machine that runs since before the beginning. Without a Node it joins in `booted` ms."""
        if node is None:
            self._clock.after(booted, "node joins", lambda: self._join(machine))
            return
        self._node_of[machine.instance] = node.name
        self._machines[node.name] = machine
        if not node.ready:
            ready = max(0, node.created + self._timing.ready - self._clock.now) if not node.ready_since else 0
            self._clock.after(ready, "node becomes ready", lambda: self._ready(node.name))

    def stop(self, instance: str) -> str:
        """Stop the kubelet of an instance that has ended. Return the name of its node, or "" if it never joined."""
        self._stopped[instance] = None
        node = self._node_of.get(instance, "")
        if node:
            self._silent[node] = None
        return node

    def silence(self, node: str) -> None:
        """Let the kubelet stop answering although its machine runs on."""
        self._silent[node] = None

    def recover(self, node: str) -> None:
        """Let the kubelet answer again, if its machine still runs: the Node is ready and its pods are looked after."""
        machine = self._machines.get(node)
        if machine is not None and machine.instance in self._stopped:
            return
        self._silent.pop(node, None)
        known = self._api.nodes.get(node)
        if machine is not None and known is not None and NOT_READY in known.taints:
            self._ready(node)  # it fell silent before it was ready for the first time
        for pod in self._api.pods_on(node):
            if pod.phase == "Running":
                self._api.put(replace(pod, ready=not pod.deleting))
            self._look_after(self._api.pods[pod.uid])

    def _join(self, machine: Machine) -> None:
        if machine.instance in self._stopped:
            return
        name = self._new_name()
        self._node_of[machine.instance] = name
        self._machines[name] = machine
        node = Node(
            name=name,
            uid=self._rng.uid("node", name),
            provider_id=machine.provider_id,
            created=self._clock.now,
            labels=machine.node_labels(name),
            capacity=dict(machine.type.capacity),
            allocatable=machine.allocatable(devices=False),
        )
        foreign = (FOREIGN,) if self._fault_injector.strikes("tainted", machine.instance) else ()
        self._api.put(with_taints(node, (*machine.taints, *foreign, UNREGISTERED, NOT_READY)))
        if not self._fault_injector.strikes("never_ready", machine.instance):
            self._clock.after(self._timing.ready, "node becomes ready", lambda: self._ready(name))

    def _new_name(self) -> str:
        """Return the next name that no node has."""
        while True:
            self._joined += 1
            name = f"ip-10-{self._joined // 62_500}-{self._joined // 250 % 250}-{self._joined % 250 + 4}"
            if name not in self._machines:
                return name

    def _ready(self, name: str) -> None:
        node = self._alive(name)
        if node is None:
            return
        self._api.put(without_taints(with_ready(node, True, self._clock.now), NOT_READY.same))
        self._publish(name, self._machines[name])
        if any(is_device(resource) for resource in node.allocatable):
            self._clock.after(self._timing.devices, "device plugin starts", lambda: self._report_devices(name))

    def _report_devices(self, name: str) -> None:
        node = self._alive(name)
        if node is not None:
            self._api.put(replace(node, allocatable=self._machines[name].allocatable(devices=True)))

    def _startup_daemons(self, node: Node) -> None:
        """Take startup taints off a ready node, as each taint's own daemon does, also if the taint comes late."""
        name = node.name
        if self._is_starting(node):
            self._clock.after(self._timing.startup_taints, "startup taints go", lambda: self._drop_startup_taints(name))

    def _drop_startup_taints(self, name: str) -> None:
        node = self._alive(name)
        if node is not None and node.ready:
            startup = self._startup_taints.get(self._machines[name].node_pool, {})
            self._api.put(without_taints(node, lambda taint: (taint.key, taint.effect) in startup))

    def _is_starting(self, node: Node) -> bool:
        machine = self._machines.get(node.name)
        startup = self._startup_taints.get(machine.node_pool, {}) if machine is not None else {}
        return node.ready and any((taint.key, taint.effect) in startup for taint in node.taints)

    def _alive(self, name: str) -> Node | None:
        return None if name in self._silent else self._api.nodes.get(name)

    # ── pods ────────────────────────────────────────────────────────────────────────────────────────────────

    def _changed(self, change: Change) -> None:
        if isinstance(change.new, NodePool):
            known = self._startup_taints.setdefault(change.new.name, {})
            known.update({(taint.key, taint.effect): None for taint in change.new.startup_taints})
        elif isinstance(change.new, Pod):
            old = change.old if isinstance(change.old, Pod) else None
            if old is None or old.node != change.new.node or old.deleting != change.new.deleting:
                self._look_after(change.new)
        elif isinstance(change.new, Node) and change.new.ready:
            if not (isinstance(change.old, Node) and change.old.ready):
                for pod in self._api.pods_on(change.key):
                    self._look_after(pod)
            if not (isinstance(change.old, Node) and self._is_starting(change.old)):
                self._startup_daemons(change.new)
        elif isinstance(change.new, VolumeAttachment):
            for pod in self._api.pods_on(change.new.node):
                self._look_after(pod)
        elif change.kind == "node" and change.new is None:
            self._silent.pop(change.key, None)

    def _look_after(self, pod: Pod) -> None:
        if not pod.node or is_terminal(pod):
            return
        if pod.deleting:
            ends = min(pod.deleting, self._clock.now + self._timing.pod_stop)
            self._clock.at(ends, "pod ends", lambda: self._end(pod.uid))
        elif pod.phase == "Pending":
            self._clock.after(self._timing.pod_start, "pod starts", lambda: self._start(pod.uid))

    def _start(self, uid: str) -> None:
        pod = self._api.pods.get(uid)
        if pod is None or pod.deleting or pod.phase != "Pending":
            return
        node = self._alive(pod.node)
        if node is not None and node.ready and self._volumes.mounted(pod):
            self._api.put(replace(pod, phase="Running", ready=True, started=self._clock.now))

    def _end(self, uid: str) -> None:
        pod = self._api.pods.get(uid)
        if pod is not None and pod.deleting and self._alive(pod.node) is not None:
            self._api.remove(pod)
