"""The virtual cluster: its controllers together, what users do to it, and the port through which the engine writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from kerf.adapters.simulation.clock import Clock
from kerf.adapters.simulation.cluster.apiserver import KIND_OF, ApiServer, Object
from kerf.adapters.simulation.cluster.controllers.devices import DeviceControllers
from kerf.adapters.simulation.cluster.controllers.garbage_collector import GarbageCollector
from kerf.adapters.simulation.cluster.controllers.jobs import Jobs
from kerf.adapters.simulation.cluster.controllers.node_lifecycle import NodeLifecycle
from kerf.adapters.simulation.cluster.controllers.pod_disruption_budgets import EvictionAnswer, PodDisruptionBudgets
from kerf.adapters.simulation.cluster.controllers.volumes import Volumes
from kerf.adapters.simulation.cluster.controllers.workloads import Workloads
from kerf.adapters.simulation.cluster.kubelet import Kubelets
from kerf.adapters.simulation.cluster.machine import Machine
from kerf.adapters.simulation.cluster.node_changes import (
    DISRUPTED,
    UNREGISTERED,
    UNSCHEDULABLE,
    with_labels,
    with_taints,
    without_taints,
)
from kerf.adapters.simulation.cluster.nodeclaim_objects import claim_object
from kerf.adapters.simulation.faults import FaultInjector, FaultPlan
from kerf.adapters.simulation.scheduler.scheduler import Scheduler
from kerf.adapters.simulation.seeded_random import SeededRandom
from kerf.adapters.simulation.timing import Timing
from kerf.engine.model import labels as names
from kerf.engine.model.karpenter.nodeclaim_objects import NodeClaimObject
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.model.settings import Settings
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.record.decisions import (
    DeleteNode,
    DeletePod,
    EvictPod,
    InitializeNode,
    RegisterNode,
    TaintNode,
    UntaintNode,
)
from kerf.engine.record.observations import EffectAnswered, NodeClaimDeletionSeen, Observation

OK = EvictionAnswer(200)


class VirtualCluster:
    """Implements `kerf.engine.runtime.ports.Cluster`. Every change comes out of `drain_observations`."""

    def __init__(
        self,
        clock: Clock,
        rng: SeededRandom,
        timing: Timing | None = None,
        faults: FaultPlan | None = None,
        settings: Settings | None = None,
    ) -> None:
        timing = timing if timing is not None else Timing()
        settings = settings if settings is not None else Settings()
        pins: dict[str, str] = {}
        self.api = ApiServer(clock)
        self.volumes = Volumes(self.api, clock, rng, timing)
        self.devices = DeviceControllers(self.api, clock, rng, timing)
        self.scheduler = Scheduler(
            self.api, clock, timing.bind, pins, self.volumes, settings.default_spread, devices=self.devices
        )
        record_workloads = bool(settings.default_spread) or settings.capacity_buffers
        self.workloads = Workloads(self.api, clock, rng, pins, record_workloads=record_workloads)
        self.jobs = Jobs(self.api, clock, rng, self.workloads.recorded)
        plan = faults if faults is not None else FaultPlan()
        self.kubelets = Kubelets(self.api, clock, rng, timing, plan, self.volumes, self.devices.publish)
        self.lifecycle = NodeLifecycle(self.api, clock, self.kubelets, timing, self.ask_node_deletion)
        self.disruption = PodDisruptionBudgets(self.api, clock, self.workloads)
        self._garbage = GarbageCollector(self.api, clock, self.ask_claim_deletion)
        self._clock = clock
        self._fault_injector = FaultInjector(plan, rng, clock)
        self._finalized: dict[str, None] = {}  # uids of Nodes that carry kerf's finalizer
        self._asked: list[Observation] = []
        self.claims: dict[str, NodeClaimObject] = {}

    # ── what the driver reads ───────────────────────────────────────────────────────────────────────────────

    def drain_observations(self) -> list[Observation]:
        """Return what has changed since the last call, in order."""
        asked, self._asked = self._asked, []
        return self.api.drain() + asked

    def listing(self) -> list[Observation]:
        """Return all objects kind by kind, as the first list of each watch tells them."""
        return [observation for kind in KIND_OF.values() for observation in self.api.listing(kind)]

    # ── what the cloud tells ────────────────────────────────────────────────────────────────────────────────

    def boot(self, machine: Machine) -> None:
        self.kubelets.boot(machine)
        self._garbage.booted(machine)

    def adopt(self, machine: Machine, node: Node | None, *, booted: int) -> None:
        """Take over a machine that runs since before the beginning, with its Node; without one it joins in `booted`
        milliseconds."""
        self.kubelets.adopt(machine, node, booted)
        self._garbage.booted(machine)
        if node is not None:
            if node.labels.get(names.REGISTERED) == "true":
                self._finalized[node.uid] = None
            self.api.put(node)

    def instance_ended(self, instance: str) -> None:
        self.lifecycle.instance_ended(instance)
        self._garbage.ended(instance)

    # ── what users do ───────────────────────────────────────────────────────────────────────────────────────

    def apply(self, item: Object) -> None:
        """Create or replace an object."""
        self.api.put(item)

    def cordon(self, node: str, *, on: bool = True) -> None:
        known = self.api.nodes[node]
        self.api.put(with_taints(known, [UNSCHEDULABLE]) if on else without_taints(known, UNSCHEDULABLE.same))

    def ask_node_deletion(self, name: str, actor: str) -> None:
        """Delete the Node object for somebody. It goes at once, or waits for kerf when it carries kerf's finalizer."""
        node = self.api.nodes.get(name)
        if node is None or node.deleting:
            return
        if node.uid not in self._finalized:
            self.api.remove(node)
            return
        self.api.put(replace(node, deleting=self._clock.now))
        machine = self.kubelets.machine_of(name)
        if machine is not None:
            self.ask_claim_deletion(machine.claim, actor)

    def ask_claim_deletion(self, claim: str, actor: str) -> None:
        """Ask for the deletion of a NodeClaim. The object itself is a projection that only kerf removes."""
        known = self.claims.get(claim)
        if known is not None and not known.deleting:
            self.claims[claim] = replace(known, deleting=self._clock.now)
        self._asked.append(Observation(NodeClaimDeletionSeen(claim=claim, actor=actor)))

    def show_claims(self, moved: Mapping[str, NodeClaim | None]) -> None:
        """Bring kerf's NodeClaim objects to what its claims are. None stands for a claim that is over."""
        for name, claim in moved.items():
            if claim is None:
                self.claims.pop(name, None)
            else:
                before = self.claims.get(name)
                self.claims[name] = claim_object(claim, before.deleting if before is not None else 0)

    def nominate(self, pod: Pod, node: str) -> None:
        """Write status.nominatedNodeName of pods, as kerf does; "" takes it back. A write that fails is not
        repeated."""
        known = self.api.pods.get(pod.uid)
        if known is None or known.node or self._fault_injector.strikes("write_refused", "nomination", pod.uid, node):
            return
        self.api.put(replace(known, nominated=node))

    def taint_proposed(self, node: str, *, on: bool) -> bool:
        """Write kerf's taint of nodes whose disruption is proposed, or take it off. Return whether it was written."""
        known = self.api.nodes.get(node)
        if known is None or self._fault_injector.strikes("write_refused", "proposed taint", node, str(on)):
            return False
        self.api.put(replace(known, proposed=on))
        return True

    # ── ports.Cluster ───────────────────────────────────────────────────────────────────────────────────────

    def register(self, order: RegisterNode, *, intent: str) -> EffectAnswered:
        """Give a Node its claim's labels and take the unregistered taint, in one write (L-163, L-164)."""
        node = self.api.nodes.get(order.node)
        if node is None:
            return _answered(intent, _no_node(order.node))
        if node.labels.get(names.DO_NOT_SYNC_TAINTS) != "true":
            node = with_taints(node, order.taints)
        node = without_taints(node, lambda taint: taint.key == UNREGISTERED.key)
        node = replace(node, labels={key: value for key, value in node.labels.items() if key not in order.without})
        node = with_labels(node, {**order.labels, names.REGISTERED: "true"})
        self._finalized[node.uid] = None
        self.api.put(replace(node, annotations={**node.annotations, **order.annotations}))
        return _answered(intent, OK)

    def initialize(self, order: InitializeNode, *, intent: str) -> EffectAnswered:
        return self._write(order.node, intent, lambda node: with_labels(node, {names.INITIALIZED: "true"}))

    def taint(self, order: TaintNode, *, intent: str) -> EffectAnswered:
        """Taint a Node; taints of the same key and another effect go first (L-196)."""

        def change(node: Node) -> Node:
            node = without_taints(node, lambda t: t.key == DISRUPTED.key and not t.same(DISRUPTED))
            return with_labels(with_taints(node, [DISRUPTED]), {names.EXCLUDE_FROM_LB: "karpenter"})

        return self._write(order.node, intent, change)

    def untaint(self, order: UntaintNode, *, intent: str) -> EffectAnswered:
        def change(node: Node) -> Node:
            labels = {key: value for key, value in node.labels.items() if key != names.EXCLUDE_FROM_LB}
            return replace(without_taints(node, lambda t: t.key == DISRUPTED.key), labels=labels)

        return self._write(order.node, intent, change)

    def evict(self, order: EvictPod, *, intent: str) -> EffectAnswered:
        return _answered(intent, self.disruption.evict(order.namespace, order.name, order.uid))

    def delete_pod(self, order: DeletePod, *, intent: str) -> EffectAnswered:
        pod = self.api.pod_named(order.namespace, order.name)
        if pod is None:
            return _answered(intent, EvictionAnswer(404, f'pods "{order.name}" not found'))
        if pod.uid != order.uid:
            return _answered(
                intent, EvictionAnswer(409, f"the UID in the precondition does not match that in record ({pod.uid})")
            )
        self.api.delete_pod(pod, order.grace)
        return _answered(intent, OK)

    def delete_node(self, order: DeleteNode, *, intent: str) -> EffectAnswered:
        node = self.api.nodes.get(order.node)
        if node is None:
            return _answered(intent, _no_node(order.node))
        self._finalized.pop(node.uid, None)
        self.api.remove(node)
        return _answered(intent, OK)

    def _write(self, name: str, intent: str, change: Callable[[Node], Node]) -> EffectAnswered:
        node = self.api.nodes.get(name)
        if node is None:
            return _answered(intent, _no_node(name))
        self.api.put(change(node))
        return _answered(intent, OK)


def _no_node(name: str) -> EvictionAnswer:
    return EvictionAnswer(404, f'nodes "{name}" not found')


def _answered(intent: str, answer: EvictionAnswer) -> EffectAnswered:
    return EffectAnswered(intent=intent, ok=answer.code == 200, code=str(answer.code), message=answer.message)
