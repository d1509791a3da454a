"""Karpenter's counters and histograms, from the record (L-365 to L-414, M-1 to M-26, L-427 to L-430).

They count from where this process begins, as every exporter's do. What they need to know of older claims comes from the
state that the process begins with.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from kerf.engine.lifecycle.reasons import COLLECTED, LifecycleCode
from kerf.engine.model.disruption_reasons import (
    BUDGET_REASONS,
    DisruptionCode,
    DisruptionReason,
    is_deletion,
    karpenter_spelling,
)
from kerf.engine.model.karpenter.capacity_buffers import CapacityBuffer
from kerf.engine.model.karpenter.launch_reasons import launch_reason
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.model.labels import NODEPOOL, ZONE, ZONE_ID
from kerf.engine.record import claim_events as ev
from kerf.engine.record.decisions import (
    Decision,
    EvictPod,
    LifecycleResult,
    MoveStepResult,
    PlannedClaim,
    ProposedMovesResult,
    ProvisionResult,
    StaticResult,
    TerminateInstance,
)
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import (
    IN_SHIFTED_ZONE,
    EffectAnswered,
    InputRefused,
    InterruptionSeen,
    LaunchAnswered,
    ObjectGone,
    SettingsSeen,
)
from kerf.engine.state.moves import WITHDRAWN, WITHDRAWN_WITHOUT_HOLD
from kerf.engine.state.state import Facts, State
from kerf.projections.kubernetes_events.drain_events import BY_FORCE
from kerf.projections.metrics.counted_claims import CountedClaim, counted_claims, disruption_labels
from kerf.projections.metrics.counter_definitions import COUNTER_DEFINITIONS, KERFS_OWN, PREFIX
from kerf.projections.metrics.families import Family
from kerf.projections.metrics.lone_nodes import LoneNodes
from kerf.projections.metrics.methods import EVALUATED, consolidation_type
from kerf.projections.metrics.movable_pods import MovablePods
from kerf.projections.metrics.waiting_pods import WaitingPod, WaitingPods, others_planned_for
from kerf.projections.proposals import proposals

_CLOUD_ERRORS = {
    "insufficient-capacity": "InsufficientCapacityError", "nodeclass-not-ready": "NodeClassNotReadyError",
    "not-found": "NodeClaimNotFoundError",
}  # fmt: skip

_INSTANCE_STATUSES = {
    "instance_status": "InstanceStatus", "system_status": "SystemStatus", "event_status": "EventStatus",
}  # fmt: skip
"""Interruption kinds that EC2 tells only when asked, and the category that they count under (A-353)."""


class RecordCounters:
    """Counts the record. `apply` each entry, in order; `families` returns the metrics. `provider` is "kwok" or
    "aws". `untold` are entries that `state` has already, and that are still to be applied."""

    def __init__(self, state: State, provider: str, untold: Sequence[Entry] = ()) -> None:
        self._state, self.provider, self._observes = state, provider, state.facts.settings.observe
        self._families = {
            name: Family(("kerf_" if name in KERFS_OWN else PREFIX) + name, kind, text, labels, bounds)
            for name, kind, text, labels, bounds in COUNTER_DEFINITIONS
        }
        for method in ("single", "multi"):
            self._families["voluntary_disruption_consolidation_timeouts_total"].inc(method, by=0)
        self._claims = counted_claims(state, untold)
        self._pools = dict(state.facts.pools)
        buffers = {buffer.key: buffer.uid for buffer in state.facts.buffers.values()}
        self._waiting_pods = WaitingPods(self._took, state.facts.pods.values(), state.facts.at, buffers)
        self._movable_pods = MovablePods(state.facts.pods.values())
        self._lone_nodes = LoneNodes(state.facts)
        self._made: dict[str, tuple[str, bool]] = {}  # planned claim → why, and whether minValues gave way
        asked = [(ref, asked.intent) for ref, asked in state.facts.intents.items()]
        self._evictions = {ref: intent.claim for ref, intent in asked if isinstance(intent, EvictPod)}
        self._terminations = {ref: intent.claim for ref, intent in asked if isinstance(intent, TerminateInstance)}
        self._moves = {ref: move.move for ref, move in state.facts.moves.items()}

    def families(self) -> list[Family]:
        self._families["scheduler_ignored_pods_count"].set(len(self._waiting_pods.ignored))
        self._families["scheduler_unschedulable_pods_count"].set(len(self._waiting_pods.unplaced), "provisioner")
        return list(self._families.values())

    def recall(self, entry: Entry) -> None:
        """Take up what an earlier process decided: the latest plan, for the next one may be hours away, and moves that
        are over in the state."""
        self._moves |= proposals(entry)
        if isinstance(entry.payload, Decision) and isinstance(entry.payload.result, ProvisionResult):
            self._waiting_pods.recall(entry.payload.result, entry.at, others_planned_for(self._state))

    def recall_lives(self, entries: Iterable[Entry]) -> None:
        """Take up claims that are over in the state, of their earlier events, which are counted already."""
        earlier = RecordCounters(State(Facts(), self._state.indexes.blobs), self.provider)
        for entry in entries:
            earlier.apply(entry)
        self._claims |= earlier._claims

    def waiting(self) -> Mapping[str, WaitingPod]:
        """Return the pods by uid that are not bound yet, or not ready yet."""
        return self._waiting_pods.by_uid

    def apply(self, entry: Entry) -> None:
        handler = _HANDLERS.get(type(entry.payload))
        if handler is not None:
            handler(self, entry.payload, entry)

    def turned(self, entries: Sequence[Entry], seconds: float) -> None:
        """Note how many seconds the turn of these entries took (L-399, L-404). One disruption pass stands for all of
        Karpenter's methods."""
        results = {type(e.payload.result) for e in entries if isinstance(e.payload, Decision)}
        if ProvisionResult in results:
            self._families["scheduler_scheduling_duration_seconds"].observe(seconds, "provisioner")
        if ProposedMovesResult in results:
            name = "voluntary_disruption_decision_evaluation_duration_seconds"
            for why, kind in EVALUATED:
                self._families[name].observe(seconds, why.metric, kind)

    def _inc(self, name: str, *values: str, by: float = 1) -> None:
        self._families[name].inc(*values, by=by)

    def _took(self, name: str, since: int, entry: Entry, *values: str) -> None:
        if since:
            self._families[name].observe(max(0, entry.at - since) / 1000, *values)

    # ── pods ────────────────────────────────────────────────────────────────────────────────────────────────

    def _pod(self, pod: Pod, entry: Entry) -> None:
        self._waiting_pods.see(pod, entry)
        self._movable_pods.see(pod)

    def _gone(self, gone: ObjectGone, entry: Entry) -> None:
        if gone.kind == "pod":
            self._waiting_pods.gone(gone.key)
            self._movable_pods.gone(gone.key)
        elif gone.kind == "capacitybuffer":
            self._waiting_pods.buffer_gone(gone.key)
        elif gone.kind == "nodepool":
            self._pools.pop(gone.key, None)
        elif gone.kind == "node" and (node := self._lone_nodes.gone(gone.key)) is not None:
            pool, zone = node.labels.get(NODEPOOL, ""), node.labels.get(ZONE, "")
            self._inc("nodes_terminated_total", pool, zone)
            self._took("nodes_termination_duration_seconds", node.deleting, entry, pool)
            self._took("nodes_lifetime_duration_seconds", node.created, entry, pool)

    def _node(self, node: Node, entry: Entry) -> None:
        self._lone_nodes.see(node)

    def _pool(self, pool: NodePool, entry: Entry) -> None:
        self._pools[pool.name] = pool

    def _buffer(self, buffer: CapacityBuffer, entry: Entry) -> None:
        self._waiting_pods.buffers[buffer.key] = buffer.uid

    # ── decisions ───────────────────────────────────────────────────────────────────────────────────────────

    def _decision(self, decision: Decision, entry: Entry) -> None:
        self._lone_nodes.asked(decision.intents)
        for index, intent in enumerate(decision.intents):
            if isinstance(intent, EvictPod):
                self._evictions[f"{entry.position}.{index}"] = intent.claim
            elif isinstance(intent, TerminateInstance):
                self._terminations[f"{entry.position}.{index}"] = intent.claim
                if (claim := self._claims.get(intent.claim)) is not None:
                    claim.ends = claim.ends or entry.at
        result = decision.result
        if isinstance(result, ProvisionResult) and not result.repeats:
            self._provisioned(result, entry)
        elif isinstance(result, StaticResult):
            self._plan(result.claims, "provisioned")
        elif isinstance(result, ProposedMovesResult):
            self._moves |= proposals(entry)
            self._weighed(result)
            if result.exhausted:
                self._inc("voluntary_disruption_consolidation_timeouts_total", "multi")
        elif isinstance(result, MoveStepResult):
            self._move(result)
        elif isinstance(result, LifecycleResult) and result.reason.code in COLLECTED:
            self._collected(self._claim(result.claim), entry)

    def _weighed(self, result: ProposedMovesResult) -> None:
        """Count moves that a NodePool approves or rejects (M-11, M-12; D-84, D-85). A node's refusal counts once until
        its verdict changes."""
        refused = [verdict.claim for verdict in result.verdicts if verdict.reason.code == DisruptionCode.NOT_WORTH_IT]
        decided = [("approved", move.claims) for move in result.proposed if move.why == DisruptionReason.UNDERUTILIZED]
        for decision, claims in decided + [("rejected", (claim,)) for claim in refused]:
            for pool in sorted({self._known(name).node_pool for name in claims}):
                self._inc("consolidation_moves_total", decision, pool, self._policy(pool))
        for approved in (score for move in result.proposed for score in move.scores):
            labels = "approved", approved.node_pool, self._policy(approved.node_pool)
            self._families["consolidation_score"].observe(approved.worth, *labels)

    def _policy(self, pool: str) -> str:
        node_pool = self._pools.get(pool)
        return node_pool.consolidation_policy if node_pool is not None else ""

    def _provisioned(self, result: ProvisionResult, entry: Entry) -> None:
        self._plan(result.claims, "provisioned")
        if result.first_price:
            price = math.fsum(claim.price for claim in result.claims)
            self._inc("search_gain_dollars_per_hour_total", by=max(0.0, result.first_price - price))
            self._inc("search_touches_total", by=result.touches)
        self._waiting_pods.plan(result, entry)

    def _plan(self, claims: Sequence[PlannedClaim], why: str) -> None:
        for claim in claims:
            self._made[claim.name] = why, claim.min_values_relaxed

    def _move(self, result: MoveStepResult) -> None:
        move = result.begun or self._moves.get(result.move)
        if move is None:
            return
        decided = ("replace" if move.replacements else "delete", move.why, consolidation_type(move))
        if result.step == "started":
            self._plan(move.replacements, move.why)
            self._moves[result.move] = move
            self._inc("voluntary_disruption_decisions_total", *decided)
            for pool in sorted({self._known(name).node_pool for name in move.claims}):
                self._inc("voluntary_disruption_decisions_by_nodepool_total", pool, *decided)
            return
        self._moves.pop(result.move, None)
        if result.step == WITHDRAWN:
            if move.why != DisruptionReason.DRIFTED and result.reason.code in WITHDRAWN_WITHOUT_HOLD:  # M-5, D-110
                name = "voluntary_disruption_failed_validations_total"
                self._inc(name, consolidation_type(move), by=len(move.claims))
        else:  # M-7, D-118
            never = sum(not self._known(replacement.name).in_service for replacement in move.replacements)
            self._inc("voluntary_disruption_queue_failures_total", decided[0], move.why, decided[0], by=never)

    # ── answers ─────────────────────────────────────────────────────────────────────────────────────────────

    def _answered(self, answer: EffectAnswered, entry: Entry) -> None:
        """Count an eviction by the API server's answer, if one came (M-23), and an end that EC2 refuses; one that waits
        for the end of a zonal shift is an error, and no refusal (A-330)."""
        evicted_of = self._evictions.pop(answer.intent, None)
        if evicted_of is not None:
            if answer.code.isdecimal():
                self._inc("pods_eviction_requests_total", answer.code)
            if answer.ok and not evicted_of:  # a Node without a claim has no claim events (D-153)
                self._inc("pods_drained_total", "")
        claim = self._terminations.pop(answer.intent, None)
        if claim is not None and not answer.ok:
            where = self._known(claim)
            if answer.code != IN_SHIFTED_ZONE:
                self._inc("cloudprovider_instance_termination_failures_total", where.zone, where.zone_id)
            self._inc("cloudprovider_errors_total", "nodeclaim.lifecycle", "Delete", self.provider, "")

    def _launch(self, answer: LaunchAnswered, entry: Entry) -> None:
        """Count offerings that were refused, by Karpenter's reason and not by EC2's code (A-292)."""
        for error in answer.errors:
            labels = error.zone, error.zone_id, error.capacity_type, launch_reason(f"{error.code}: {error.message}")
            self._inc("cloudprovider_instance_launch_failures_total", *labels)
        if not answer.instance and answer.kind:
            kind = _CLOUD_ERRORS.get(answer.kind, "")
            self._inc("cloudprovider_errors_total", "nodeclaim.lifecycle", "Create", self.provider, kind)

    def _interruption(self, message: InterruptionSeen, entry: Entry) -> None:
        if category := _INSTANCE_STATUSES.get(message.kind):
            self._inc("interruption_instance_status_unhealthy_total", category)

    def _settings(self, seen: SettingsSeen, entry: Entry) -> None:
        self._observes = seen.settings.observe

    def _refused(self, refused: InputRefused, entry: Entry) -> None:
        self._inc("refused_inputs_total", refused.source, refused.code)

    # ── claims ──────────────────────────────────────────────────────────────────────────────────────────────

    def _claim(self, name: str) -> CountedClaim:
        return self._claims.setdefault(name, CountedClaim())

    def _known(self, name: str) -> CountedClaim:
        """Return what is known of a claim that may be over; nothing is kept of it then."""
        return self._claims.get(name) or CountedClaim()

    def _requested(self, event: ev.Requested, entry: Entry) -> None:
        self._claims[event.claim] = CountedClaim(event.node_pool, grace=event.termination_grace_period)
        why, relaxed = self._made.pop(event.claim, ("provisioned", False))
        self._inc("nodeclaims_created_total", why, event.node_pool, str(relaxed).lower())

    def _adopted(self, event: ev.Adopted, entry: Entry) -> None:
        self._claims[event.claim] = CountedClaim(
            event.node_pool, event.capacity_type, event.zone, event.node, event.image, event.termination_grace_period,
            zone_id=event.labels.get(ZONE_ID, ""),
        )  # fmt: skip

    def _launched(self, event: ev.Launched, entry: Entry) -> None:
        claim = self._claim(event.claim)
        claim.capacity_type, claim.zone, claim.image = event.capacity_type, event.zone, event.image
        claim.zone_id = event.labels.get(ZONE_ID, "")

    def _registered(self, event: ev.Registered, entry: Entry) -> None:
        claim = self._claim(event.claim)
        claim.node = event.node
        self._inc("nodes_created_total", claim.node_pool, claim.zone)

    def _initialized(self, event: ev.Initialized, entry: Entry) -> None:
        self._claim(event.claim).in_service = True

    def _tainted(self, event: ev.Tainted, entry: Entry) -> None:
        claim = self._claim(event.claim)
        claim.goes_for(event.why, event.detail)
        if claim.why not in BUDGET_REASONS:  # a candidate of a move counts when it goes (D-116)
            self._goes(claim, entry)

    def _raised(self, event: ev.ReasonRaised, entry: Entry) -> None:
        claim = self._claim(event.claim)
        claim.goes_for(event.why, event.detail)
        self._goes(claim, entry)

    def _untainted(self, event: ev.Untainted, entry: Entry) -> None:
        claim = self._claim(event.claim)
        claim.leaves, claim.why, claim.goes = 0, "", False

    def _drain(self, event: ev.DrainStarted, entry: Entry) -> None:
        claim = self._claim(event.claim)
        claim.node = event.node
        self._goes(claim, entry)

    def _goes(self, claim: CountedClaim, entry: Entry) -> None:
        """Count a claim that goes, once, and the pods that need another place (M-13, M-14). What somebody else deletes
        is no disruption (D-165), and stays none if a reason to go comes later (D-136, A-362)."""
        claim.leaves = claim.leaves or entry.at
        if claim.goes:
            return
        claim.goes = True
        if is_deletion(claim.why):
            return
        labels = disruption_labels(claim, self._pools.get(claim.node_pool))
        self._inc("nodeclaims_disrupted_total", *labels)
        if claim.why not in (DisruptionReason.LAUNCH_TIMEOUT, DisruptionReason.REGISTRATION_TIMEOUT):
            pods = self._movable_pods.count(claim.node)
            self._inc("pods_disruption_initiated_total", *labels, by=pods)
        if claim.why == DisruptionReason.UNHEALTHY:
            condition = claim.detail.partition("=")[0]
            repaired = (_snake(condition), claim.node_pool, claim.capacity_type, claim.image)
            self._inc("nodeclaims_unhealthy_disrupted_total", *repaired)

    def _waits(self, claim: str) -> bool:
        """Whether a claim is a candidate of a move that launches replacements."""
        return any(claim in move.claims for move in self._moves.values() if move.replacements)

    def _collected(self, claim: CountedClaim, entry: Entry) -> None:
        """Count a claim that kerf removes because its instance is gone (L-237), once, before its pods go with its
        Node."""
        if not claim.why:
            claim.why = LifecycleCode.GARBAGE_COLLECTED.value
            self._goes(claim, entry)

    def _vanished(self, event: ev.InstanceVanished, entry: Entry) -> None:
        if not self._observes:  # there another controller has removed it, and nobody knows why
            self._collected(self._claim(event.claim), entry)
        self._over(event, entry)

    def _left(self, event: ev.PodEvicted | ev.PodForced, entry: Entry) -> None:
        """Count a pod that leaves a node, by the reason for which its node goes (D-153)."""
        self._inc("pods_drained_total", karpenter_spelling(self._known(event.claim).why) or BY_FORCE)

    def _drained(self, event: ev.Drained, entry: Entry) -> None:
        self._inc("nodes_drained_total", self._known(event.claim).node_pool)

    def _launch_failed(self, event: ev.LaunchFailed | ev.LaunchTimedOut, entry: Entry) -> None:
        claim = self._claim(event.claim)
        claim.why = DisruptionReason.LAUNCH_TIMEOUT.value if isinstance(event, ev.LaunchTimedOut) else event.kind
        self._inc("nodeclaims_disrupted_total", *disruption_labels(claim, self._pools.get(claim.node_pool)))
        self._over(event, entry)

    def _over(self, event: Any, entry: Entry) -> None:
        claim = self._claims.pop(event.claim, None) or CountedClaim()
        pool = claim.node_pool
        if isinstance(event, ev.Terminated) and claim.why:
            if not (claim.goes or claim.ends) and self._waits(event.claim):  # its instance ended by itself (L-237)
                claim.why = LifecycleCode.GARBAGE_COLLECTED.value
            self._goes(claim, entry)  # it had no node to drain
        self._moves = {ref: move for ref, move in self._moves.items() if self._claims.keys() & set(move.claims)}
        self._inc("nodeclaims_terminated_total", pool, claim.capacity_type, claim.zone)
        self._took("nodeclaims_termination_duration_seconds", claim.leaves, entry, pool)
        self._took("nodeclaims_instance_termination_duration_seconds", claim.ends, entry, pool)
        if claim.node:
            self._inc("nodes_terminated_total", pool, claim.zone)
            self._took("nodes_termination_duration_seconds", claim.leaves, entry, pool)
            self._families["nodes_lifetime_duration_seconds"].observe(getattr(event, "lifetime", 0) / 1000, pool)


def _snake(text: str) -> str:
    """Write "registration-timeout" and "StorageReady" as registration_timeout and storage_ready."""
    spaced = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in text.replace("-", "_"))
    return spaced.lstrip("_")


_HANDLERS: dict[type[Struct], Callable[[RecordCounters, Any, Entry], None]] = {
    Pod: RecordCounters._pod,
    Node: RecordCounters._node,
    ObjectGone: RecordCounters._gone,
    NodePool: RecordCounters._pool,
    CapacityBuffer: RecordCounters._buffer,
    Decision: RecordCounters._decision,
    EffectAnswered: RecordCounters._answered,
    LaunchAnswered: RecordCounters._launch,
    InterruptionSeen: RecordCounters._interruption,
    InputRefused: RecordCounters._refused,
    SettingsSeen: RecordCounters._settings,
    ev.Requested: RecordCounters._requested,
    ev.Adopted: RecordCounters._adopted,
    ev.Launched: RecordCounters._launched,
    ev.LaunchFailed: RecordCounters._launch_failed,
    ev.LaunchTimedOut: RecordCounters._launch_failed,
    ev.Cancelled: RecordCounters._over,
    ev.Registered: RecordCounters._registered,
    ev.Initialized: RecordCounters._initialized,
    ev.Tainted: RecordCounters._tainted,
    ev.ReasonRaised: RecordCounters._raised,
    ev.Untainted: RecordCounters._untainted,
    ev.DrainStarted: RecordCounters._drain,
    ev.PodEvicted: RecordCounters._left,
    ev.PodForced: RecordCounters._left,
    ev.Drained: RecordCounters._drained,
    ev.Terminated: RecordCounters._over,
    ev.InstanceVanished: RecordCounters._vanished,
}
