"""Make Kubernetes Events of decisions and what came of them, in Karpenter's words (L-435 to L-454, L-461, L-462; EV-1
to EV-23).

Deciders say a thing when it changes, so most of these Events come once; Karpenter repeats them for as long as they
hold. The object of an Event is looked up in the state after the turn. What is gone by then gets no Events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.disruption.consolidation.balanced_policy import THRESHOLD
from kerf.engine.disruption.forced.node_repair import UNHEALTHY_SHARE
from kerf.engine.lifecycle.drain.volumes import attached
from kerf.engine.lifecycle.reasons import LifecycleCode
from kerf.engine.model.disruption_reasons import DisruptionCode, is_deletion, karpenter_spelling
from kerf.engine.model.durations import format_time
from kerf.engine.record import claim_events as ev
from kerf.engine.record.decisions import (
    Decision,
    DisruptResult,
    EvictPod,
    LifecycleResult,
    Move,
    MoveStepResult,
    ProposedMovesResult,
    ProvisionResult,
    Score,
    Verdict,
)
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import EffectAnswered, InterruptionSeen
from kerf.engine.scheduling.reasons import SchedulingCode
from kerf.engine.state.state import State
from kerf.projections.kubernetes_events.event import MINUTE, NORMAL, WARNING, KubernetesEvent, ObjectReference
from kerf.projections.kubernetes_events.events_by_code import (
    BLOCKS_ANY_DISRUPTION,
    BLOCKS_CONSOLIDATION,
    INTERRUPTION_EVENTS,
    NOT_REPORTED,
)
from kerf.projections.prose.amounts import count, dollars
from kerf.projections.prose.reasons import sentence, sentences

NOMINATIONS = "nominated"
"""The rate limit that all nominations share (L-437)."""
_MAX_MESSAGE = 1024  # characters of a message, as the API server has it
_MAX_LAUNCH_ERROR = 300  # of a launch error (L-454)
_MAX_ATTACHMENTS = 5


class DecisionEvents:
    """Gives the Events of one entry with `apply`, after the entry's turn. `state` is the state that the turn left."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._evictions: dict[str, EvictPod] = {}
        self._moves = {ref: each.move for ref, each in state.facts.moves.items()}

    def apply(self, entry: Entry) -> list[KubernetesEvent]:
        handler = _HANDLERS.get(type(entry.payload))
        return [_shortened(each) for each in handler(self, entry.payload, entry)] if handler is not None else []

    # ── objects ─────────────────────────────────────────────────────────────────────────────────────────────

    def _pod(self, uid: str) -> ObjectReference | None:
        pod = self._state.facts.pods.get(uid)
        return ObjectReference("v1", "Pod", pod.name, pod.namespace, pod.uid) if pod is not None else None

    def _node(self, name: str) -> ObjectReference | None:
        node = self._state.facts.nodes.get(name)
        return ObjectReference("v1", "Node", node.name, "", node.uid) if node is not None else None

    def _pool(self, name: str) -> ObjectReference | None:
        pool = self._state.facts.pools.get(name)
        return ObjectReference("karpenter.sh/v1", "NodePool", name, "", pool.uid) if pool is not None else None

    def _claim(self, name: str) -> ObjectReference | None:
        return ObjectReference("karpenter.sh/v1", "NodeClaim", name) if name in self._state.facts.claims else None

    def _both(self, claim: str) -> list[ObjectReference]:
        """Return the claim's Node and NodeClaim, those that exist (EV-1)."""
        known = self._state.facts.claims.get(claim)
        node = self._node(known.node) if known is not None and known.node else None
        return [each for each in (node, self._claim(claim)) if each is not None]

    def _events(
        self,
        objects: Iterable[ObjectReference | None],
        kind: str,
        reason: str,
        message: str,
        *more: str,
        window: int = 2 * MINUTE,
    ) -> list[KubernetesEvent]:
        return [
            KubernetesEvent(each, kind, reason, message.format(kind=each.kind), (each.uid or each.name, *more), window)
            for each in objects
            if each is not None
        ]

    # ── pods and plans ──────────────────────────────────────────────────────────────────────────────────────

    def _decision(self, decision: Decision, entry: Entry) -> list[KubernetesEvent]:
        for index, intent in enumerate(decision.intents):
            if isinstance(intent, EvictPod):
                self._evictions[f"{entry.position}.{index}"] = intent
        result = decision.result
        if isinstance(result, ProvisionResult):
            return self._provisioned(result)
        if isinstance(result, LifecycleResult):
            return self._lifecycle(result)
        if isinstance(result, ProposedMovesResult):
            self._moves |= {f"{entry.position}.{index}": move for index, move in enumerate(result.proposed)}
            events = [each for move in result.proposed for each in self._proposed(move)]
            return events + self._verdicts(result.verdicts)
        if isinstance(result, MoveStepResult):
            return self._moved(result) + self._verdicts(result.verdicts)
        return self._verdicts(result.verdicts) if isinstance(result, DisruptResult) else []

    def _provisioned(self, result: ProvisionResult) -> list[KubernetesEvent]:
        """Tell pods that they have no place, and others where they should go (S-168, S-170, S-171, S-173)."""
        events = self._without_types(result)
        for group in (*result.unplaced, *result.ignored):
            if any(reason.code in NOT_REPORTED for reason in group.reasons):
                continue
            why = f"Failed to schedule pod, {_escaped(sentences(group.reasons))}"
            for uid in group.pods:
                events += self._events([self._pod(uid)], WARNING, "FailedScheduling", why, window=5 * MINUTE)
        for claim in result.claims:
            events += self._nominated(claim.pods, f"nodeclaim/{claim.name}")
        for placed in result.placements:
            parts = [f"nodeclaim/{placed.claim}"] if placed.claim else []
            events += self._nominated(
                placed.pods, ", ".join([*parts, *([f"node/{placed.node}"] if placed.node else [])])
            )
        return events

    def _without_types(self, result: ProvisionResult) -> list[KubernetesEvent]:
        """Tell NodePools that they can launch nothing, where that is why a pod has no place (L-438, S-66)."""
        reason_of_pool = {
            str(reason.params["node_pool"]): sentence(reason)
            for group in result.unplaced
            for reason in group.reasons
            if reason.code in (SchedulingCode.NO_INSTANCE_TYPES, SchedulingCode.TOO_FEW_TYPES)
        }
        return [
            event
            for pool, why in sorted(reason_of_pool.items())
            for event in self._events(
                [self._pool(pool)], WARNING, "NoCompatibleInstanceTypes", _escaped(why), window=MINUTE
            )
        ]

    def _nominated(self, pods: Sequence[str], where: str) -> list[KubernetesEvent]:
        """Tell pods which node a plan gives them (L-437)."""
        references = [each for each in map(self._pod, pods) if each is not None]
        message = f"Pod should schedule on: {where}"
        return [
            KubernetesEvent(reference, NORMAL, "Nominated", message, (reference.uid,), limit=NOMINATIONS)
            for reference in references
        ]

    # ── disruption ──────────────────────────────────────────────────────────────────────────────────────────

    def _verdicts(self, verdicts: Sequence[Verdict]) -> list[KubernetesEvent]:
        events: list[KubernetesEvent] = []
        pools: dict[tuple[str, str], None] = {}
        for verdict in verdicts:
            code, why = verdict.reason.code, _escaped(sentence(verdict.reason))
            if verdict.action == "remove":
                continue
            if code == DisruptionCode.REPAIR_BLOCKED:
                events += self._repair_blocked(verdict.claim, why)
            elif code in BLOCKS_ANY_DISRUPTION:
                events += self._events(
                    self._both(verdict.claim), NORMAL, "DisruptionBlocked", f"Cannot disrupt {{kind}}: {why}"
                )
            elif code in BLOCKS_CONSOLIDATION:
                events += self._events(self._both(verdict.claim), NORMAL, "Unconsolidatable", why, window=15 * MINUTE)
            elif code == DisruptionCode.BUDGET:
                pools[str(verdict.reason.params.get("nodepool", "")), verdict.method] = None
        for pool, method in pools:
            text = f"No allowed disruptions for disruption reason {method.capitalize()} due to blocking budget"
            about = [self._pool(pool)]
            events += self._events(about, NORMAL, "DisruptionBlocked", text, method, window=MINUTE)
        return events

    def _repair_blocked(self, claim: str, why: str) -> list[KubernetesEvent]:
        known = self._state.facts.claims.get(claim)
        node = self._node(known.node) if known is not None else None
        text = f"more than {UNHEALTHY_SHARE}% nodes are unhealthy: {why}"
        return self._events([node], WARNING, "NodeRepairBlocked", text, window=15 * MINUTE)

    def _proposed(self, move: Move) -> list[KubernetesEvent]:
        """Tell what a move would do and save (EV-8), and that a NodePool approves: to one node (EV-10) or to the pool
        (EV-11)."""
        about = [each for name in move.claims for each in self._both(name)]
        command = self._command(move)
        text = _escaped(f"{command} (savings: {dollars(move.savings)}/h{_likely_type(move)})")
        events = self._events(about, NORMAL, "ConsolidationCandidate", text, command) if move.savings else []
        for score in move.scores:
            scored = about if len(move.claims) == 1 else [self._pool(score.node_pool)]
            events += self._events(scored, NORMAL, "ConsolidationApproved", _escaped(_approval_message(score)))
        return events

    def _command(self, move: Move) -> str:
        """Write a move as Karpenter writes a command: what goes, and how many nodes replace it (D-106)."""
        claims = (self._state.facts.claims.get(name) for name in move.claims)
        named = ", ".join(claim.node for claim in claims if claim is not None)
        if not move.replacements:
            return f"delete: [{named}]"
        return f"replace: [{named}] -> [{count(len(move.replacements), 'replacement')}]"

    def _moved(self, result: MoveStepResult) -> list[KubernetesEvent]:
        """Tell that a move launches replacements (EV-3), or was withdrawn (EV-9). Candidates get their Events with
        their taint (EV-5)."""
        if result.step == "started":
            move = result.begun
            replacements = [] if move is None else [self._claim(replacement.name) for replacement in move.replacements]
            why = karpenter_spelling(move.why) if move is not None else ""
            return self._events(replacements, NORMAL, "DisruptionLaunching", f"Launching {{kind}}: {why}", why)
        known = self._moves.pop(result.move, None)
        about = [each for name in (known.claims if known is not None else ()) for each in self._both(name)]
        return self._events(about, NORMAL, "ConsolidationRejected", _escaped(sentence(result.reason)), result.move)

    def _tainted(self, event: ev.Tainted | ev.ReasonRaised, entry: Entry) -> list[KubernetesEvent]:
        """Tell that a claim is disrupted (EV-5), and its deadline (EV-19). A static scale-down is a deletion, and no
        disruption (D-165)."""
        about = self._both(event.claim)
        events: list[KubernetesEvent] = []
        if not is_deletion(event.why):
            why = karpenter_spelling(event.why)
            events = self._events(about, NORMAL, "DisruptionTerminating", f"Disrupting {{kind}}: {why}", event.why)
        return events + self._deadline(about, event.deadline)

    def _deadline(self, about: list[ObjectReference], deadline: int | None) -> list[KubernetesEvent]:
        """Tell a node or claim when its pods will be deleted (EV-18, EV-19)."""
        if deadline is None:
            return []
        text = f"All pods will be deleted by {format_time(deadline)}"
        return self._events(about, WARNING, "TerminationGracePeriodExpiring", text)

    def _drained(self, event: ev.Drained, entry: Entry) -> list[KubernetesEvent]:
        """Tell that a drained node waits for its volumes (L-199)."""
        known = self._state.facts.claims.get(event.claim)
        node = self._state.facts.nodes.get(known.node) if known is not None else None
        if node is None or not event.volumes:
            return []
        named = ", ".join(attached(node, self._state, self._state.facts.at)[:_MAX_ATTACHMENTS])
        message = f"Awaiting deletion VolumeAttachments bound to node ({named})"
        return self._events([self._node(node.name)], NORMAL, "AwaitingVolumeDetachment", message)

    # ── the way out ─────────────────────────────────────────────────────────────────────────────────────────

    def _lifecycle(self, result: LifecycleResult) -> list[KubernetesEvent]:
        code, params = result.reason.code, result.reason.params
        known = self._state.facts.claims.get(result.claim)
        node = self._node(known.node) if known is not None and known.node else None
        if code == LifecycleCode.WAITING_FOR_PODS:
            pods = count(int(str(params.get("pods", 0))), "pod")
            return self._events(
                [node], WARNING, "FailedDraining", f"Failed to drain node, {pods} are waiting to be evicted"
            )
        if code == LifecycleCode.NODE_SHAPE_INCONSISTENT:
            text = _escaped(sentence(result.reason))
            return self._events([self._claim(result.claim)], WARNING, "FailedConsistencyCheck", text, text)
        return []

    def _drain(self, event: ev.DrainStarted, entry: Entry) -> list[KubernetesEvent]:
        return self._deadline(self._both(event.claim), event.deadline)

    def _evicted(self, event: ev.PodEvicted, entry: Entry) -> list[KubernetesEvent]:
        """Tell a pod that it was evicted, and why (EV-14)."""
        known = self._state.facts.claims.get(event.claim)
        why = karpenter_spelling(known.why) if known is not None else ""
        about = self._pod(event.uid)
        if about is None:
            return []
        return [KubernetesEvent(about, NORMAL, "Evicted", f"Evicted pod: {why}", (about.namespace, about.name))]

    def _forced(self, event: ev.PodForced, entry: Entry) -> list[KubernetesEvent]:
        """Tell a pod that it was deleted for its node's deadline (EV-15)."""
        about = self._pod(event.uid)
        text = f"Deleting the pod for the deadline of its node. It was granted {event.grace} seconds of grace-period"
        if about is None:
            return []
        return [KubernetesEvent(about, NORMAL, "Disrupted", text, (about.namespace, about.name))]

    def _answered(self, answer: EffectAnswered, entry: Entry) -> list[KubernetesEvent]:
        """Tell that a PodDisruptionBudget refused an eviction (EV-16)."""
        intent = self._evictions.pop(answer.intent, None)
        if intent is None or answer.ok or answer.code != "429":
            return []
        text = f"Failed to drain node, evicting pod {intent.namespace}/{intent.name} violates a PDB: {answer.message}"
        return self._events([self._node(intent.node)], WARNING, "FailedDraining", _escaped(text))

    # ── claims and the cloud ────────────────────────────────────────────────────────────────────────────────

    def _launch_failed(self, event: ev.LaunchFailed, entry: Entry) -> list[KubernetesEvent]:
        """Tell why a launch failed (EV-22, EV-23). The claim is over, but its object may still show for a moment."""
        reasons = {"insufficient-capacity": "InsufficientCapacityError", "nodeclass-not-ready": "NodeClassNotReady"}
        reason = reasons.get(event.kind)
        if reason is None:
            return []
        about = ObjectReference("karpenter.sh/v1", "NodeClaim", event.claim)
        text = f"NodeClaim {event.claim} event: {event.message or event.code}"
        return [KubernetesEvent(about, WARNING, reason, text[:_MAX_LAUNCH_ERROR], (event.claim,))]

    def _interrupted(self, message: InterruptionSeen, entry: Entry) -> list[KubernetesEvent]:
        """Tell node and claim what EC2 announced of their instance (L-461, L-462)."""
        kind, reason, text = INTERRUPTION_EVENTS.get(message.kind, ("", "", ""))
        claim = self._state.indexes.claim_by_instance.get(message.instance, "")
        return self._events(self._both(claim), kind, reason, text + " for the {kind}") if reason and claim else []


def _shortened(event: KubernetesEvent) -> KubernetesEvent:
    if len(event.message) <= _MAX_MESSAGE:
        return event
    return replace(event, message=event.message[: _MAX_MESSAGE - 1] + "…")


def _escaped(text: str) -> str:
    """Double the braces of a text, so that `format` leaves them."""
    return text.replace("{", "{{").replace("}", "}}")


def _approval_message(score: Score) -> str:
    worth = f"score {score.worth:.2f} (threshold {THRESHOLD:.2f}, k {1 / THRESHOLD:g})"
    shares = f"saves {score.savings:.1%} of its cost for {score.disruption:.1%} of its disruption"
    return f"NodePool {score.node_pool} approves, {worth}: {shares}"


def _likely_type(move: Move) -> str:
    """Name the instance types that will most likely come."""
    types = "; ".join(replacement.instance_types[0] for replacement in move.replacements if replacement.instance_types)
    return f", by {types}" if types else ""


_HANDLERS: dict[type[Struct], Callable[[DecisionEvents, Any, Entry], list[KubernetesEvent]]] = {
    Decision: DecisionEvents._decision,
    EffectAnswered: DecisionEvents._answered,
    InterruptionSeen: DecisionEvents._interrupted,
    ev.Tainted: DecisionEvents._tainted,
    ev.ReasonRaised: DecisionEvents._tainted,
    ev.DrainStarted: DecisionEvents._drain,
    ev.PodEvicted: DecisionEvents._evicted,
    ev.PodForced: DecisionEvents._forced,
    ev.LaunchFailed: DecisionEvents._launch_failed,
    ev.Drained: DecisionEvents._drained,
}
