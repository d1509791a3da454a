"""Make Kubernetes Events of decisions and what came of them, in Karpenter's words (L-435 to L-454, L-461, L-462, L-465;
EV-1 to EV-23).

Deciders say a thing when it changes, so most of these Events come once; Karpenter repeats them for as long as they
hold. The object of an Event is looked up in the state after the turn. What is gone by then gets no Events.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.lifecycle.reasons import LifecycleCode
from kerf.engine.model.disruption_reasons import DisruptionReason
from kerf.engine.model.karpenter.nodepool_health import PoolHealth
from kerf.engine.model.karpenter.requirements import Requirements
from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.model.reasons import Reason
from kerf.engine.record import claim_events as ev
from kerf.engine.record.decisions import (
    Decision,
    DisruptResult,
    LifecycleResult,
    MoveStepResult,
    ProposedMovesResult,
    ProvisionResult,
    StaticResult,
    Unplaced,
)
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import EffectAnswered, InterruptionSeen, LaunchAnswered, NodeClassSeen, ObjectGone
from kerf.engine.scheduling.explain.crowding_daemonsets import crowding_behind
from kerf.engine.scheduling.explain.meant_pools import giving
from kerf.engine.scheduling.explain.refused_offerings import refused_zones
from kerf.engine.scheduling.launchable.withheld import not_given
from kerf.engine.scheduling.reasons import SchedulingCode
from kerf.engine.state.state import State
from kerf.projections.kubernetes_events.disruption_events import DisruptionEvents
from kerf.projections.kubernetes_events.drain_events import DrainEvents
from kerf.projections.kubernetes_events.event import MINUTE, WARNING, KubernetesEvent, ObjectReference, shortened
from kerf.projections.kubernetes_events.events_by_code import INTERRUPTION_EVENTS, NOT_REPORTED
from kerf.projections.kubernetes_events.lasting_causes import lasting_drains, lasting_verdicts
from kerf.projections.kubernetes_events.pools_without_types import pools_without_types, static_pools_without_types
from kerf.projections.kubernetes_events.references import References, escaped, events_about
from kerf.projections.kubernetes_events.refusal_events import (
    claim_without_class,
    pools_without_class,
    without_spot_role,
)
from kerf.projections.proposals import proposals_that_end_with_office
from kerf.projections.prose.daemonsets import daemonsets_in_words
from kerf.projections.prose.reasons import sentence, sentences
from kerf.projections.prose.refused_offerings import refused_in_words

_MAX_LAUNCH_ERROR = 300  # of a launch error (L-454)


class DecisionEvents:
    """Gives the Events of one entry with `apply`, after the entry's turn. `state` is the state that the turn left."""

    def __init__(self, state: State) -> None:
        self._state, self._objects = state, References(state)
        self._disruption, self._drain = DisruptionEvents(state), DrainEvents(state)
        self._left: dict[str, tuple[Reason, ...]] = {}  # pod → why the latest plan has no place for it
        self._goes_on = False  # the next pass is about pods that the latest one had no steps left for

    def apply(self, entry: Entry) -> list[KubernetesEvent]:
        handler = _HANDLERS.get(type(entry.payload))
        return [shortened(event) for event in handler(self, entry.payload, entry)] if handler is not None else []

    def recall(self, entries: Sequence[Entry]) -> None:
        """Take up what an earlier process told of these entries. What lasts of it is told again."""
        for entry in proposals_that_end_with_office(entries):
            self._disruption.recall_moves(entry)
        for entry in entries:
            result = entry.payload.result if isinstance(entry.payload, Decision) else None
            if isinstance(result, ProvisionResult):
                self._remember(result)
            elif isinstance(result, ProposedMovesResult | MoveStepResult | DisruptResult):
                self._disruption.recall(result.verdicts)

    def lasting(self, now: int) -> list[KubernetesEvent]:
        """Return the Events whose causes last at `now` (ms since the epoch), to be told again."""
        waiting = [uid for uid in self._left if uid in self._state.indexes.pending]
        why = _WhyNoPlace(self._state, now)
        events = [event for uid in waiting for event in self._without_place(uid, why.of(uid, self._left[uid]))]
        without = static_pools_without_types(self._state, now)
        if self._state.facts.plan:
            without |= pools_without_types(self._state, now)
            events += pools_without_class(self._state)
        events += [event for pool in sorted(without) for event in self._pool_without_types(pool, without[pool])]
        health = self._state.facts.health.items()
        events += [
            event for pool, pool_health in health if pool_health.withheld for event in self._withheld(pool, pool_health)
        ]
        verdicts = lasting_verdicts(self._state, self._disruption.kept(), now)
        events += self._disruption.verdicts(verdicts, now)
        return [shortened(event) for event in events + lasting_drains(self._state, self._drain, now)]

    # ── pods and plans ──────────────────────────────────────────────────────────────────────────────────────

    def _decision(self, decision: Decision, entry: Entry) -> list[KubernetesEvent]:
        result = decision.result
        events = self._drain.decided(decision, entry)
        if isinstance(result, ProvisionResult):
            return events + self._provisioned(result, entry.at)
        if isinstance(result, LifecycleResult):
            return events + self._lifecycle(result)
        if isinstance(result, StaticResult):
            why = static_pools_without_types(self._state, entry.at).get(result.node_pool)
            return self._pool_without_types(result.node_pool, why) if why is not None else []
        if isinstance(result, ProposedMovesResult):
            return self._disruption.proposed(result, entry) + self._disruption.verdicts(result.verdicts, entry.at)
        if isinstance(result, MoveStepResult):
            return self._disruption.moved(result) + self._disruption.verdicts(result.verdicts, entry.at)
        return self._disruption.verdicts(result.verdicts, entry.at)

    def _provisioned(self, result: ProvisionResult, at: int) -> list[KubernetesEvent]:
        """Tell pods that they have no place, and others where they should go (S-168, S-170, S-171, S-173)."""
        events = self._without_types(result, at)
        if result.claims or result.placements or result.unplaced:
            events += pools_without_class(self._state)
        self._remember(result)
        why = _WhyNoPlace(self._state, at)
        for group in (*result.unplaced, *result.ignored):
            if _is_silent(group):
                continue
            for uid in group.pods:
                events += self._without_place(uid, why.of(uid, group.reasons))
        for claim in result.claims:
            events += self._disruption.nominated(claim.pods, claim.name)
        for placed in result.placements:
            events += self._disruption.nominated(placed.pods, placed.claim, placed.node)
        return events

    def _remember(self, result: ProvisionResult) -> None:
        """Keep which pods have no place. A pass that goes on with the rest of another adds to what that one left."""
        if result.repeats:
            return
        told = [group for group in (*result.unplaced, *result.ignored) if not _is_silent(group)]
        left = {uid: group.reasons for group in told for uid in group.pods}
        self._left = {**self._left, **left} if self._goes_on else left
        self._goes_on = bool(result.truncated)

    def _without_place(self, uid: str, why: tuple[str, str]) -> list[KubernetesEvent]:
        text, lasting = why
        about = [self._objects.pod(uid)]
        found = events_about(about, WARNING, "FailedScheduling", escaped(text), window=5 * MINUTE)
        return [replace(event, lasting=lasting) for event in found] if text != lasting else found

    def _without_types(self, result: ProvisionResult, at: int) -> list[KubernetesEvent]:
        """Tell NodePools that they can launch nothing, also where another NodePool can (L-438, S-66, S-173)."""
        reasons = pools_without_types(self._state, at) if result.claims or result.placements or result.unplaced else {}
        reasons |= {
            str(reason.params["node_pool"]): reason
            for group in result.unplaced
            for reason in group.reasons
            if reason.code in (SchedulingCode.NO_INSTANCE_TYPES, SchedulingCode.TOO_FEW_TYPES)
        }
        return [event for pool in sorted(reasons) for event in self._pool_without_types(pool, reasons[pool])]

    def _pool_without_types(self, pool: str, why: Reason) -> list[KubernetesEvent]:
        about = [self._objects.pool(pool)]
        return events_about(about, WARNING, "NoCompatibleInstanceTypes", escaped(sentence(why)), window=MINUTE)

    # ── lifecycle ───────────────────────────────────────────────────────────────────────────────────────────

    def _lifecycle(self, result: LifecycleResult) -> list[KubernetesEvent]:
        if result.reason.code != LifecycleCode.NODE_SHAPE_INCONSISTENT:
            return []
        text = escaped(sentence(result.reason))
        return events_about([self._objects.claim(result.claim)], WARNING, "FailedConsistencyCheck", text, text)

    # ── disruption and drains ───────────────────────────────────────────────────────────────────────────────

    def _tainted(self, event: ev.Tainted | ev.ReasonRaised, entry: Entry) -> list[KubernetesEvent]:
        """Tell when the node's time ends, and that an interruption is why it goes, unless it was going already (A-362,
        L-461)."""
        deadline, claim = self._drain.deadline(event.claim, event.deadline), self._state.facts.claims.get(event.claim)
        drained = claim is not None and 0 < claim.drain_started < entry.at
        if event.why != DisruptionReason.INTERRUPTED or drained:
            return deadline
        text = "Interruption triggered termination for the {kind}"
        return deadline + events_about(self._objects.both(event.claim), WARNING, "TerminatingOnInterruption", text)

    def _drain_started(self, event: ev.DrainStarted, entry: Entry) -> list[KubernetesEvent]:
        return self._disruption.going(event.claim) + self._drain.started(event, entry)

    def _drained(self, event: ev.Drained, entry: Entry) -> list[KubernetesEvent]:
        return self._drain.drained(event, entry)

    def _evicted(self, event: ev.PodEvicted, entry: Entry) -> list[KubernetesEvent]:
        return self._drain.evicted(event, entry)

    def _forced(self, event: ev.PodForced, entry: Entry) -> list[KubernetesEvent]:
        return self._drain.forced(event, entry)

    def _pod(self, pod: Pod, entry: Entry) -> list[KubernetesEvent]:
        return self._drain.pod(pod, entry)

    def _answered(self, answer: EffectAnswered, entry: Entry) -> list[KubernetesEvent]:
        return self._drain.answered(answer, entry)

    # ── claims and the cloud ────────────────────────────────────────────────────────────────────────────────

    def _launch_failed(self, event: ev.LaunchFailed, entry: Entry) -> list[KubernetesEvent]:
        """Tell why a launch failed (EV-22, EV-23). The claim is over, but its object may still show for a moment."""
        reasons = {"insufficient-capacity": "InsufficientCapacityError", "nodeclass-not-ready": "NodeClassNotReady"}
        reason = reasons.get(event.kind)
        if reason is None:
            return []
        about = ObjectReference("karpenter.sh/v1", "NodeClaim", event.claim)
        text = f"NodeClaim {event.claim} event: {event.message or event.code}"
        failed = KubernetesEvent(about, WARNING, reason, text[:_MAX_LAUNCH_ERROR], (event.claim,))
        return [failed, *claim_without_class(event)]

    def _launch_answered(self, answer: LaunchAnswered, entry: Entry) -> list[KubernetesEvent]:
        return without_spot_role(answer)

    def _node_class(self, seen: NodeClassSeen, entry: Entry) -> list[KubernetesEvent]:
        return self._without_class(f"{seen.group}/{seen.kind}/{seen.name}")

    def _gone(self, gone: ObjectGone, entry: Entry) -> list[KubernetesEvent]:
        return self._without_class(gone.key) if gone.kind == "nodeclass" else []

    def _without_class(self, key: str) -> list[KubernetesEvent]:
        """Tell the NodePools of a NodeClass, if it is gone or going (A-139)."""
        return pools_without_class(self._state, lambda pool: pool.node_class.key == key)

    def _labels_not_given(self, event: ev.Launched | ev.Initialized, entry: Entry) -> list[KubernetesEvent]:
        """Tell a NodePool what it launches nothing for any more, because launches did not give it."""
        claim = self._state.facts.claims.get(event.claim)
        health = self._state.facts.health.get(claim.node_pool) if claim is not None and event.unmet else None
        if claim is None or health is None or not set(health.withheld).intersection(event.unmet):
            return []
        return self._withheld(claim.node_pool, health)

    def _withheld(self, pool: str, health: PoolHealth) -> list[KubernetesEvent]:
        text = escaped(sentence(not_given(Requirements.of_specs(health.withheld))))
        return events_about([self._objects.pool(pool)], WARNING, "LabelNotGiven", text, text)

    def _interrupted(self, message: InterruptionSeen, entry: Entry) -> list[KubernetesEvent]:
        """Tell node and claim what EC2 announced of their instance (L-461, L-462)."""
        kind, reason, text = INTERRUPTION_EVENTS.get(message.kind, ("", "", ""))
        claim = self._state.indexes.claim_by_instance.get(message.instance, "")
        return (
            events_about(self._objects.both(claim), kind, reason, text + " for the {kind}") if reason and claim else []
        )


class _WhyNoPlace:
    """Says at one time why pods have no place: with when what was refused of it is asked for again, and without."""

    def __init__(self, state: State, now: int) -> None:
        self._state, self._now = state, now
        self._said: dict[tuple[int, str], tuple[str, str]] = {}  # pods of a group share their reasons

    def of(self, uid: str, reasons: tuple[Reason, ...]) -> tuple[str, str]:
        pod = self._state.facts.pods.get(uid)
        shape = pod.shape if pod is not None else ""
        said = self._said.get((id(reasons), shape))
        if said is None:
            gives = giving(self._state, shape)
            whole = sentences(
                reasons, lambda reason: self._crowding(reason, shape) + self._refused(reason, shape), gives
            )
            lasting = sentences(reasons, lambda reason: self._crowding(reason, shape), gives)
            said = f"Failed to schedule pod, {whole}", f"Failed to schedule pod, {lasting}"
            self._said[id(reasons), shape] = said
        return said

    def _crowding(self, reason: Reason, shape: str) -> str:
        return daemonsets_in_words(crowding_behind(self._state, reason, shape)) if shape else ""

    def _refused(self, reason: Reason, shape: str) -> str:
        return refused_in_words(reason, refused_zones(self._state, self._now, reason, shape)) if shape else ""


def _is_silent(group: Unplaced) -> bool:
    return any(reason.code in NOT_REPORTED for reason in group.reasons)


_HANDLERS: dict[type[Struct], Callable[[DecisionEvents, Any, Entry], list[KubernetesEvent]]] = {
    Decision: DecisionEvents._decision,
    Pod: DecisionEvents._pod,
    EffectAnswered: DecisionEvents._answered,
    LaunchAnswered: DecisionEvents._launch_answered,
    InterruptionSeen: DecisionEvents._interrupted,
    NodeClassSeen: DecisionEvents._node_class,
    ObjectGone: DecisionEvents._gone,
    ev.Tainted: DecisionEvents._tainted,
    ev.ReasonRaised: DecisionEvents._tainted,
    ev.DrainStarted: DecisionEvents._drain_started,
    ev.PodEvicted: DecisionEvents._evicted,
    ev.PodForced: DecisionEvents._forced,
    ev.LaunchFailed: DecisionEvents._launch_failed,
    ev.Launched: DecisionEvents._labels_not_given,
    ev.Initialized: DecisionEvents._labels_not_given,
    ev.Drained: DecisionEvents._drained,
}
