"""Fold the life of each NodeClaim: what it was launched as and why, how long it cost, why it went, whom it served."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct, field

from kerf.engine.model.kubernetes.pods import DAEMONSET, NODE_OWNER, Pod, owned_by
from kerf.engine.record import claim_events as ev
from kerf.engine.record.decisions import (
    Decision,
    DisruptResult,
    LaunchInstance,
    MoveStepResult,
    PlannedClaim,
    ProvisionResult,
    StaticResult,
)
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import FAILED, ControllerDecided, ObjectGone
from kerf.engine.state.moves import ABANDONED, STARTED
from kerf.projections.cost import CostFold, PriceOf
from kerf.projections.prose.drift import verdict_words
from kerf.projections.workload_names import workload_of

FOR_PODS, STATIC, ADOPTED = "for pods", "static NodePool", "adopted"


class Life(Struct, kw_only=True):
    """One NodeClaim. Times are ms since the epoch, 0 for not yet.

    `came` is when it was launched, and of an adopted one when its object was created: before the record, if it was
    there already. `launched_for` says why it was launched: for pods, for a static NodePool, adopted, or "replaces"
    with the reason of the move. `replaces` are the claims of this move, `replaced_by` what a move launched for this
    one. `asked_by` is the workload of the first pod that it was planned for, where that was known then. `served` counts
    pods that were bound here and are no DaemonSet's; `workloads` are theirs. `orders` counts the requests to the cloud,
    `evicted` pods that were made to leave (by `EvictionsFold`). `differs` says by what it has drifted.
    """

    claim: str
    node_pool: str = ""
    requested: int = 0
    position: int = 0
    launched: int = 0
    came: int = 0
    initialized: int = 0
    drifted: int = 0
    differs: str = ""
    tainted: int = 0
    over: int = 0
    why: str = ""
    failed: str = ""
    node: str = ""
    instance_type: str = ""
    zone: str = ""
    capacity_type: str = ""
    price: float = 0.0
    launched_for: str = FOR_PODS
    pods: tuple[str, ...] = ()
    asked_by: str = ""
    replaces: tuple[str, ...] = ()
    replaced_by: tuple[str, ...] = ()
    served: int = 0
    evicted: int = 0
    orders: int = 0
    workloads: dict[str, int] = field(default_factory=dict)

    def about(self) -> dict[str, str]:
        """Return the dimensions that do not depend on what is measured."""
        return {
            "pool": self.node_pool,
            "type": self.instance_type,
            "zone": self.zone,
            "capacity": self.capacity_type,
            "node": self.claim,
        }


class LivesFold:
    """Folds all lives. Give it entries with `apply`; `cost` is the fold of their cost, `at` the latest time."""

    def __init__(self, price: PriceOf | None = None, *, pods: bool = True) -> None:
        """`price` gives the price of a launch in place of the recorded one. Without `pods` no pod is read: most entries
        are of pods, and whom a node served is then not known."""
        self.reads = frozenset(_HANDLERS) if pods else frozenset(_HANDLERS) - {Pod, ObjectGone}
        self.lives: dict[str, Life] = {}
        self.by_node: dict[str, str] = {}
        self.pods: dict[str, Pod] = {}
        self.cost = CostFold(price)
        self._early: dict[str, list[Pod]] = {}  # pods on Nodes that have not registered yet

    @property
    def at(self) -> int:
        return self.cost.at

    def apply(self, entry: Entry) -> None:
        self.cost.apply(entry)
        handler = _HANDLERS.get(type(entry.payload))
        if handler is not None:
            handler(self, entry.payload, entry)

    def life(self, claim: str) -> Life:
        found = self.lives.get(claim)
        if found is None:
            found = self.lives[claim] = Life(claim=claim)
        return found

    # ── pods ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _pod(self, pod: Pod, entry: Entry) -> None:
        known = self.pods.get(pod.uid)
        self.pods[pod.uid] = pod
        if not pod.node or (known is not None and known.node == pod.node):
            return
        claim = self.by_node.get(pod.node)
        if claim is None:
            self._early.setdefault(pod.node, []).append(pod)
        else:
            self._serves(claim, pod)

    def _gone(self, gone: ObjectGone, entry: Entry) -> None:
        if gone.kind == "pod":
            self.pods.pop(gone.key, None)

    def _serves(self, claim: str, pod: Pod) -> None:
        if owned_by(pod, DAEMONSET) or owned_by(pod, NODE_OWNER):
            return
        life = self.life(claim)
        life.served += 1
        workload = workload_of(pod).key
        life.workloads[workload] = life.workloads.get(workload, 0) + 1

    # ── decisions ──────────────────────────────────────────────────────────────────────────────────────────────

    def _decision(self, decision: Decision, entry: Entry) -> None:
        result = decision.result
        for intent in decision.intents:
            if isinstance(intent, LaunchInstance):
                self.life(intent.claim).orders += 1
        if isinstance(result, ProvisionResult):
            for planned in result.claims:
                self._planned_for(planned)
        elif isinstance(result, StaticResult):
            for planned in result.claims:
                self.life(planned.name).launched_for = STATIC
        elif isinstance(result, MoveStepResult):
            self._moved(result)
        elif isinstance(result, DisruptResult):
            for verdict in result.verdicts:
                life = self.life(verdict.claim)
                if verdict.action == "drifted" and not life.drifted:
                    life.drifted, life.differs = entry.at, verdict_words(verdict.reason, verdict.differences)

    def _planned_for(self, planned: PlannedClaim) -> Life:
        """Note the pods of a planned claim, and whose they are: they may be gone when its launch has failed."""
        life = self.life(planned.name)
        life.pods = planned.pods
        known = (self.pods[uid] for uid in planned.pods if uid in self.pods)
        life.asked_by = next((workload_of(pod).key for pod in known), "")
        return life

    def _moved(self, result: MoveStepResult) -> None:
        if result.step == STARTED and result.begun is not None:
            names = tuple(new.name for new in result.begun.replacements)
            for new in result.begun.replacements:
                life = self._planned_for(new)
                life.launched_for, life.replaces = f"replaces: {result.begun.why}", result.begun.claims
            for claim in result.begun.claims:
                self.life(claim).replaced_by = names
        elif result.step == ABANDONED:
            for verdict in result.verdicts:
                self.life(verdict.claim).replaced_by = ()

    def _decided_elsewhere(self, decided: ControllerDecided, entry: Entry) -> None:
        """What another controller replaces by what, in an imported record (F-90)."""
        for claim in decided.claims:
            self.life(claim).replaced_by = () if decided.action == FAILED else decided.replacements
        for claim in decided.replacements:
            life = self.life(claim)
            life.launched_for, life.replaces = f"replaces: {decided.why}", decided.claims

    # ── claim events ───────────────────────────────────────────────────────────────────────────────────────────

    def _requested(self, event: ev.Requested, entry: Entry) -> None:
        life = self.life(event.claim)
        life.node_pool, life.requested, life.position = event.node_pool, entry.at, entry.position

    def _launched(self, event: ev.Launched, entry: Entry) -> None:
        life = self.life(event.claim)
        self._as(life, event, entry)
        life.came = entry.at

    def _adopted(self, event: ev.Adopted, entry: Entry) -> None:
        life = self.life(event.claim)
        life.node_pool, life.launched_for = event.node_pool, ADOPTED
        life.requested, life.position = life.requested or entry.at, life.position or entry.position
        life.came, life.initialized = event.created, event.initialized
        self._on_node(life, event.node)
        self._as(life, event, entry)

    def _as(self, life: Life, event: ev.Launched | ev.Adopted, entry: Entry) -> None:
        life.launched = entry.at
        life.instance_type, life.zone, life.capacity_type = event.instance_type, event.zone, event.capacity_type
        life.price = self.cost.paid[life.claim].price

    def _registered(self, event: ev.Registered, entry: Entry) -> None:
        self._on_node(self.life(event.claim), event.node)

    def _on_node(self, life: Life, node: str) -> None:
        if node:
            life.node = node
            self.by_node[node] = life.claim
            for pod in self._early.pop(node, []):
                self._serves(life.claim, pod)

    def _initialized(self, event: ev.Initialized, entry: Entry) -> None:
        self.life(event.claim).initialized = entry.at

    def _tainted(self, event: ev.Tainted | ev.ReasonRaised, entry: Entry) -> None:
        life = self.life(event.claim)
        life.why, life.tainted = event.why, life.tainted or entry.at

    def _untainted(self, event: ev.Untainted, entry: Entry) -> None:
        life = self.life(event.claim)
        life.why, life.tainted = "", 0

    def _failed(self, event: ev.LaunchFailed | ev.LaunchTimedOut | ev.Cancelled, entry: Entry) -> None:
        life = self.life(event.claim)
        life.over, life.failed = entry.at, failure_of(event)

    def _terminated(self, event: ev.Terminated | ev.InstanceVanished, entry: Entry) -> None:
        life = self.life(event.claim)
        life.over = entry.at
        life.why = life.why or getattr(event, "why", "") or "instance-vanished"


def failure_of(event: ev.LaunchFailed | ev.LaunchTimedOut | ev.Cancelled) -> str:
    """Return why nothing came of a launch, as a code."""
    if isinstance(event, ev.LaunchFailed):
        return event.kind
    return "launch-timeout" if isinstance(event, ev.LaunchTimedOut) else "cancelled"


_HANDLERS: dict[type[Struct], Callable[[LivesFold, Any, Entry], None]] = {
    Pod: LivesFold._pod,
    ObjectGone: LivesFold._gone,
    Decision: LivesFold._decision,
    ControllerDecided: LivesFold._decided_elsewhere,
    ev.Requested: LivesFold._requested,
    ev.Launched: LivesFold._launched,
    ev.Adopted: LivesFold._adopted,
    ev.Registered: LivesFold._registered,
    ev.Initialized: LivesFold._initialized,
    ev.Tainted: LivesFold._tainted,
    ev.ReasonRaised: LivesFold._tainted,
    ev.Untainted: LivesFold._untainted,
    ev.LaunchFailed: LivesFold._failed,
    ev.LaunchTimedOut: LivesFold._failed,
    ev.Cancelled: LivesFold._failed,
    ev.Terminated: LivesFold._terminated,
    ev.InstanceVanished: LivesFold._terminated,
}
