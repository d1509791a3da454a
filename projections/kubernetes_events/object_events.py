"""Make Kubernetes Events about objects as such (L-440, L-455 to L-460, L-463; EV-4, EV-24 to EV-26).

They tell of conditions that change, finalizers that go, and annotations and taints that are not as they should be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from heapq import heapify, heappop, heappush
from typing import Any

from msgspec import Struct

from kerf.engine.model.durations import format_time
from kerf.engine.model.karpenter.nodeclaim_objects import Condition
from kerf.engine.model.karpenter.nodepools import NodeClassRef, NodePool
from kerf.engine.model.kubernetes.pods import Pod, is_active
from kerf.engine.model.labels import REGISTERED, TERMINATION_FINALIZER, UNREGISTERED_TAINT
from kerf.engine.record import claim_events as ev
from kerf.engine.record.decisions import Decision, DisruptResult, MoveStepResult, RegisterNode, Verdict
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import CatalogueSeen, NodeClassSeen, ObjectGone, OfficeTaken
from kerf.engine.scheduling.pods.evictability import ALWAYS, FOREVER, protected_until
from kerf.engine.state.nodeclaims.drift import DRIFTED
from kerf.engine.state.state import State
from kerf.projections.kubernetes_events.event import NORMAL, WARNING, KubernetesEvent, ObjectReference, shortened
from kerf.projections.kubernetes_events.refusal_events import of_another_controller
from kerf.projections.kubernetes_events.zonal_shift_events import ZonalShiftEvents
from kerf.projections.status.nodeclaim import Reached, drift_condition, goes_for, reached
from kerf.projections.status.nodeclass import EC2_NODE_CLASS, class_conditions
from kerf.projections.status.nodepool import nodepool_status


class ObjectEvents:
    """Gives the Events of one entry with `apply`, after the entry's turn. `state` is the state that the turn left."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._replacements = {
            replacement.name: None for going in state.facts.moves.values() for replacement in going.move.replacements
        }
        pods = [pod for pod in state.facts.pods.values() if pod.do_not_disrupt not in ("", ALWAYS)]
        self._annotated = {pod.uid: _said(pod) for pod in pods if is_active(pod) and protected_until(pod) != FOREVER}
        """By uid: what was said of a pod's do-not-disrupt, by this process or the one before."""
        self._ends = [(until, pod.uid) for pod in pods if (until := _end_of_protection(pod))]
        heapify(self._ends)
        self._pools = {name: self._statuses(name) for name in state.facts.pools}
        self._classes = {key: self._class_statuses(seen) for key, seen in state.facts.node_classes.items()}
        self._health = dict(state.facts.health)
        self._shifts = ZonalShiftEvents(state)

    def apply(self, entry: Entry) -> list[KubernetesEvent]:
        handler = _HANDLERS.get(type(entry.payload))
        return (handler(self, entry.payload, entry) if handler is not None else []) + self.elapsed(entry.at)

    def recall(self, entries: Iterable[Entry]) -> None:
        """Take up which ends an earlier process told: those up to its last entry. While clocks differ it told none."""
        told = latest = 0
        for entry in entries:
            told, latest = latest if isinstance(entry.payload, OfficeTaken) else told, entry.at
        if not self._state.facts.clocks_differ:
            self._ends = [(until, uid) for until, uid in self._ends if until > told]
            heapify(self._ends)

    def lasting(self, now: int) -> list[KubernetesEvent]:
        """Return the Events whose causes last at `now` (ms since the epoch), to be told again."""
        facts = self._state.facts
        pods = (pod for pod in facts.pods.values() if pod.do_not_disrupt and is_active(pod))
        told = [self._annotation(pod, now) for pod in pods]
        waiting = [name for name in self._replacements if name in facts.claims and facts.claims[name].launched]
        return [event for event in told if event is not None] + [_waits_for_readiness(name) for name in waiting]

    def elapsed(self, now: int) -> list[KubernetesEvent]:
        """Tell pods, once, that the duration of their do-not-disrupt annotation is over at `now` (EV-26). While the
        clocks differ none is (ADR 9)."""
        events: list[KubernetesEvent] = []
        while self._ends and self._ends[0][0] <= now and not self._state.facts.clocks_differ:
            until, uid = heappop(self._ends)
            pod = self._state.facts.pods.get(uid)
            if pod is None or not is_active(pod) or not self._on_ours(pod) or protected_until(pod) != until:
                continue
            words = f"karpenter.sh/do-not-disrupt has held its node for {pod.do_not_disrupt}, and no longer does"
            about = _pod_reference(pod)
            events.append(KubernetesEvent(about, NORMAL, "DoNotDisruptGracePeriodElapsed", words, (pod.uid,)))
        return events

    # ── conditions ──────────────────────────────────────────────────────────────────────────────────────────

    def _reached(self, event: Reached, entry: Entry) -> list[KubernetesEvent]:
        """Tell that a claim reached a state (L-459)."""
        about, (kind, status, reason) = _claim_reference(event.claim), reached(event)
        events = [_transition(about, kind, "Unknown", status, reason, reason if status != "True" else "")]  # C-5
        if isinstance(event, ev.Initialized):
            self._replacements.pop(event.claim, None)
            events.append(_transition(about, "Ready", "Unknown", "True", "Ready"))
        elif isinstance(event, ev.Launched) and event.claim in self._replacements:
            events.append(_waits_for_readiness(event.claim))
        elif isinstance(event, ev.Drained) and not event.volumes:  # there is nothing to wait for (D-156)
            events.append(_transition(about, "VolumesDetached", "Unknown", "True", "VolumesDetached"))
        return events + self._health_changed()

    def _pool(self, pool: NodePool, entry: Entry) -> list[KubernetesEvent]:
        return self._pools_changed([pool.name])

    def _node_class(self, seen: NodeClassSeen, entry: Entry) -> list[KubernetesEvent]:
        return self._class_changed(seen) + self._pools_changed(
            name
            for name, pool in self._state.facts.pools.items()
            if (pool.node_class.kind, pool.node_class.name) == (seen.kind, seen.name)
        )

    def _class_changed(self, seen: NodeClassSeen) -> list[KubernetesEvent]:
        """Tell an EC2NodeClass of its conditions. KWOK's is ready from birth (L-63)."""
        key = NodeClassRef(seen.group, seen.kind, seen.name).key
        before = self._classes.get(key, {})
        now = self._classes[key] = self._class_statuses(seen)
        return _transitions(ObjectReference(f"{seen.group}/v1", seen.kind, seen.name, "", seen.uid), before, now)

    def _class_statuses(self, seen: NodeClassSeen) -> dict[str, Condition]:
        conditions = class_conditions(seen, self._state.indexes.blobs) if seen.kind == EC2_NODE_CLASS else ()
        return {condition.type: condition for condition in conditions}

    def _catalogue(self, seen: CatalogueSeen, entry: Entry) -> list[KubernetesEvent]:
        return self._shifts.catalogue_changed(seen.node_class)

    def _health_changed(self) -> list[KubernetesEvent]:
        """Tell of NodePools whose condition NodeRegistrationHealthy changed (L-82)."""
        health = self._state.facts.health
        changed = [name for name, status in health.items() if self._health.get(name) != status]
        self._health = dict(health)
        return self._pools_changed(changed)

    def _tainted(self, event: ev.Tainted, entry: Entry) -> list[KubernetesEvent]:
        """Tell a claim what it goes for, and its NodePool if it came too late (L-459, L-82)."""
        about, (reason, message) = _claim_reference(event.claim), goes_for(event.why, event.detail)
        goes = _transition(about, "DisruptionReason", "Unknown", "True", reason, message)
        return [goes, *self._health_changed()]

    def _has_drifted(self, verdict: Verdict, at: int) -> list[KubernetesEvent]:
        """Tell a claim that it has drifted. That other fields of it have by now is no change of its condition."""
        claim = self._state.facts.claims.get(verdict.claim)
        if verdict.action != DRIFTED or claim is None or claim.drifted_since != at:
            return []
        why = drift_condition(verdict.reason)
        return [_transition(_claim_reference(verdict.claim), "Drifted", "Unknown", "True", why, why)]

    def _pools_changed(self, names: Iterable[str]) -> list[KubernetesEvent]:
        events: list[KubernetesEvent] = []
        for name in names:
            pool = self._state.facts.pools.get(name)
            if pool is None:  # gone by the end of the turn
                continue
            before, now = self._pools.get(name, {}), self._statuses(name)
            self._pools[name] = now
            events += _transitions(ObjectReference("karpenter.sh/v1", "NodePool", name, "", pool.uid), before, now)
        return events

    def _statuses(self, pool: str) -> dict[str, Condition]:
        """The conditions of a NodePool; none of one whose status another controller writes (L-48)."""
        if of_another_controller(self._state.facts.pools[pool], self._state):
            return {}
        return {condition.type: condition for condition in nodepool_status(self._state, pool).conditions}

    # ── what is wrong, and what is over ─────────────────────────────────────────────────────────────────────

    def _decision(self, decision: Decision, entry: Entry) -> list[KubernetesEvent]:
        if isinstance(decision.result, MoveStepResult) and decision.result.begun is not None:
            self._replacements |= dict.fromkeys(replacement.name for replacement in decision.result.begun.replacements)
        orders = [intent for intent in decision.intents if isinstance(intent, RegisterNode)]
        verdicts = decision.result.verdicts if isinstance(decision.result, DisruptResult) else ()
        drifted = [event for verdict in verdicts for event in self._has_drifted(verdict, entry.at)]
        return drifted + [event for order in orders for event in self._registering(order)]

    def _registering(self, order: RegisterNode) -> list[KubernetesEvent]:
        """Tell that a node joined without the unregistered taint, so that pods may have come too early (L-162,
        L-455)."""
        node = self._state.facts.nodes.get(order.node)
        if node is None or REGISTERED in node.labels or any(t.key == UNREGISTERED_TAINT for t in node.taints):
            return []
        text = f"Missing {UNREGISTERED_TAINT} taint which prevents registration related race conditions"
        return [
            KubernetesEvent(_claim_reference(order.claim), WARNING, "UnregisteredTaintMissing", text, (order.claim,))
        ]

    def _over(self, event: Any, entry: Entry) -> list[KubernetesEvent]:
        """Tell that the finalizer is off a claim that has ended (L-460)."""
        self._replacements.pop(event.claim, None)
        text = f"Finalized {TERMINATION_FINALIZER}"
        return [
            KubernetesEvent(_claim_reference(event.claim), NORMAL, "Finalized", text, (event.claim,)),
            *self._health_changed(),
        ]

    # ── pods ────────────────────────────────────────────────────────────────────────────────────────────────

    def _pod(self, pod: Pod, entry: Entry) -> list[KubernetesEvent]:
        """Tell what a do-not-disrupt annotation with a duration comes to, once for each text or end (EV-24, EV-25)."""
        until, said = protected_until(pod), _said(pod)
        if pod.do_not_disrupt in ("", ALWAYS) or not is_active(pod):  # a pod that is over holds no node (D-10)
            self._annotated.pop(pod.uid, None)
            return []
        if until == FOREVER or self._annotated.get(pod.uid) == said:
            return []
        self._annotated[pod.uid] = said
        if until:
            heappush(self._ends, (until, pod.uid))
        event = self._annotation(pod, entry.at)
        return [event] if event is not None else []

    def _annotation(self, pod: Pod, now: int) -> KubernetesEvent | None:
        """Return what a pod's annotation comes to. It holds no node that is not kerf's."""
        return annotation_event(pod, now) if not protected_until(pod) or self._on_ours(pod) else None

    def _on_ours(self, pod: Pod) -> bool:
        return pod.node in self._state.indexes.claim_by_node

    def _gone(self, gone: ObjectGone, entry: Entry) -> list[KubernetesEvent]:
        if gone.kind == "pod":
            self._annotated.pop(gone.key, None)
        elif gone.kind == "nodepool":
            self._pools.pop(gone.key, None)
        elif gone.kind == "nodeclass":
            self._classes.pop(gone.key, None)
            pools = self._state.facts.pools.items()
            return self._pools_changed(name for name, pool in pools if pool.node_class.key == gone.key)
        return []


def annotation_event(pod: Pod, now: int) -> KubernetesEvent | None:
    """Return what a do-not-disrupt annotation with a duration comes to now, as an Event (EV-24, EV-25)."""
    text, until = pod.do_not_disrupt, protected_until(pod)
    if text in ("", ALWAYS) or until == FOREVER:
        return None
    if not until:
        words = f"karpenter.sh/do-not-disrupt counts for nothing: {text[:60]!r} is neither true nor a duration"
        return KubernetesEvent(_pod_reference(pod), WARNING, "InvalidDoNotDisruptAnnotation", words, (pod.uid, text))
    if until <= now:
        return None
    words = f"karpenter.sh/do-not-disrupt holds its node until {format_time(until)}"
    return KubernetesEvent(_pod_reference(pod), NORMAL, "DoNotDisruptUntil", words, (pod.uid, str(until)))


def _said(pod: Pod) -> str:
    return f"{pod.do_not_disrupt}|{protected_until(pod)}"


def _pod_reference(pod: Pod) -> ObjectReference:
    return ObjectReference("v1", "Pod", pod.name, pod.namespace, pod.uid)


def _end_of_protection(pod: Pod) -> int:
    """When the duration of a pod's do-not-disrupt annotation is over; 0 if it has none."""
    until = protected_until(pod)
    return 0 if until == FOREVER else until


def _claim_reference(name: str) -> ObjectReference:
    return ObjectReference("karpenter.sh/v1", "NodeClaim", name)


def _waits_for_readiness(claim: str) -> KubernetesEvent:
    """Say that a replacement has to be in service before what it replaces goes (EV-4)."""
    text = "Waiting on readiness to continue disruption"
    return KubernetesEvent(_claim_reference(claim), NORMAL, "DisruptionWaitingReadiness", text, (claim,))


def _transitions(
    about: ObjectReference, before: Mapping[str, Condition], now: Mapping[str, Condition]
) -> list[KubernetesEvent]:
    """Tell an object of the conditions that are others than before; one that is new was unknown."""
    old = {kind: before[kind].status if kind in before else "Unknown" for kind in now}
    return [
        _transition(about, kind, old[kind], new.status, new.reason or kind, new.message)
        for kind, new in now.items()
        if new.status != old[kind]
    ]


def _transition(
    about: ObjectReference, kind: str, was: str, status: str, reason: str, message: str = ""
) -> KubernetesEvent:
    text = f"Status condition transitioned, Type: {kind}, Status: {was} -> {status}, Reason: {reason}"
    words = f"{text}, Message: {message}" if message else text
    return shortened(KubernetesEvent(about, NORMAL, kind, words, (about.uid or about.name, status)))


_HANDLERS: dict[type[Struct], Callable[[ObjectEvents, Any, Entry], list[KubernetesEvent]]] = {
    Decision: ObjectEvents._decision,
    Pod: ObjectEvents._pod,
    NodePool: ObjectEvents._pool,
    NodeClassSeen: ObjectEvents._node_class,
    CatalogueSeen: ObjectEvents._catalogue,
    ObjectGone: ObjectEvents._gone,
    ev.Launched: ObjectEvents._reached,
    ev.Registered: ObjectEvents._reached,
    ev.Initialized: ObjectEvents._reached,
    ev.Drained: ObjectEvents._reached,
    ev.VolumesDetached: ObjectEvents._reached,
    ev.Tainted: ObjectEvents._tainted,
    ev.Terminated: ObjectEvents._over,
    ev.InstanceVanished: ObjectEvents._over,
    ev.LaunchFailed: ObjectEvents._over,
    ev.LaunchTimedOut: ObjectEvents._over,
    ev.Cancelled: ObjectEvents._over,
}
