"""Make Kubernetes Events about objects as such (L-440, L-455 to L-460; EV-4, EV-24, EV-25).

They tell of conditions that change, finalizers that go, and annotations and taints that are not as they should be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct

from kerf.engine.model.durations import format_time
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.model.labels import REGISTERED, TERMINATION_FINALIZER, UNREGISTERED_TAINT
from kerf.engine.record import claim_events as ev
from kerf.engine.record.decisions import Decision, MoveStepResult, RegisterNode
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import NodeClassSeen, ObjectGone
from kerf.engine.scheduling.pods.evictability import ALWAYS, FOREVER, protected_until
from kerf.engine.state.state import State
from kerf.projections.kubernetes_events.event import NORMAL, WARNING, KubernetesEvent, ObjectReference
from kerf.projections.status.nodepool import nodepool_status


class ObjectEvents:
    """Gives the Events of one entry with `apply`, after the entry's turn. `state` is the state that the turn left."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._replacements = {
            replacement.name: None for going in state.facts.moves.values() for replacement in going.move.replacements
        }
        self._annotated: dict[str, str] = {}  # uid → what was said of a pod's do-not-disrupt
        self._pools = {name: self._statuses(name) for name in state.facts.pools}
        self._health = dict(state.facts.health)

    def apply(self, entry: Entry) -> list[KubernetesEvent]:
        handler = _HANDLERS.get(type(entry.payload))
        return handler(self, entry.payload, entry) if handler is not None else []

    # ── conditions ──────────────────────────────────────────────────────────────────────────────────────────

    def _reached(
        self, event: ev.Launched | ev.Registered | ev.Initialized | ev.Drained, entry: Entry
    ) -> list[KubernetesEvent]:
        """Tell that a claim reached a state (L-459)."""
        about, kind = _claim_reference(event.claim), type(event).__name__
        events = [_transition(about, kind, "Unknown", "True", kind)]
        if isinstance(event, ev.Initialized):
            self._replacements.pop(event.claim, None)
            events.append(_transition(about, "Ready", "Unknown", "True", "Ready"))
        elif isinstance(event, ev.Launched) and event.claim in self._replacements:
            text = "Waiting on readiness to continue disruption"
            events.append(KubernetesEvent(about, NORMAL, "DisruptionWaitingReadiness", text, (event.claim,)))
        return events + self._health_changed()

    def _pool(self, pool: NodePool, entry: Entry) -> list[KubernetesEvent]:
        return self._pools_changed([pool.name])

    def _node_class(self, seen: NodeClassSeen, entry: Entry) -> list[KubernetesEvent]:
        return self._pools_changed(
            name
            for name, pool in self._state.facts.pools.items()
            if (pool.node_class.kind, pool.node_class.name) == (seen.kind, seen.name)
        )

    def _health_changed(self) -> list[KubernetesEvent]:
        """Tell of NodePools whose condition NodeRegistrationHealthy changed (L-82)."""
        health = self._state.facts.health
        changed = [name for name, status in health.items() if self._health.get(name) != status]
        self._health = dict(health)
        return self._pools_changed(changed)

    def _late(self, event: ev.Tainted, entry: Entry) -> list[KubernetesEvent]:
        return self._health_changed()

    def _pools_changed(self, names: Iterable[str]) -> list[KubernetesEvent]:
        events: list[KubernetesEvent] = []
        for name in names:
            pool = self._state.facts.pools.get(name)
            if pool is None:  # gone by the end of the turn
                continue
            before, now = self._pools.get(name, {}), self._statuses(name)
            self._pools[name] = now
            about = ObjectReference("karpenter.sh/v1", "NodePool", name, "", pool.uid)
            for kind, (status, reason) in now.items():
                was = before.get(kind, ("Unknown", ""))[0]
                if was != status:
                    events.append(_transition(about, kind, was, status, reason or kind))
        return events

    def _statuses(self, pool: str) -> dict[str, tuple[str, str]]:
        return {
            condition.type: (condition.status, condition.reason)
            for condition in nodepool_status(self._state, pool).conditions
        }

    # ── what is wrong, and what is over ─────────────────────────────────────────────────────────────────────

    def _decision(self, decision: Decision, entry: Entry) -> list[KubernetesEvent]:
        if isinstance(decision.result, MoveStepResult) and decision.result.begun is not None:
            self._replacements |= dict.fromkeys(replacement.name for replacement in decision.result.begun.replacements)
        orders = [intent for intent in decision.intents if isinstance(intent, RegisterNode)]
        return [event for order in orders for event in self._registering(order)]

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
        text = pod.do_not_disrupt
        if text in ("", ALWAYS) or pod.deleting:
            self._annotated.pop(pod.uid, None)
            return []
        until = protected_until(pod)
        if until == FOREVER or (until and until <= entry.at):
            return []
        said = f"{text}|{until}"
        if self._annotated.get(pod.uid) == said:
            return []
        self._annotated[pod.uid] = said
        about = ObjectReference("v1", "Pod", pod.name, pod.namespace, pod.uid)
        if not until:
            words = f"karpenter.sh/do-not-disrupt counts for nothing: {text[:60]!r} is neither true nor a duration"
            return [KubernetesEvent(about, WARNING, "InvalidDoNotDisruptAnnotation", words, (pod.uid, text))]
        words = f"karpenter.sh/do-not-disrupt holds its node until {format_time(until)}"
        return [KubernetesEvent(about, NORMAL, "DoNotDisruptUntil", words, (pod.uid, str(until)))]

    def _gone(self, gone: ObjectGone, entry: Entry) -> list[KubernetesEvent]:
        if gone.kind == "pod":
            self._annotated.pop(gone.key, None)
        elif gone.kind == "nodepool":
            self._pools.pop(gone.key, None)
        return []


def _claim_reference(name: str) -> ObjectReference:
    return ObjectReference("karpenter.sh/v1", "NodeClaim", name)


def _transition(about: ObjectReference, kind: str, was: str, status: str, reason: str) -> KubernetesEvent:
    text = f"Status condition transitioned, Type: {kind}, Status: {was} -> {status}, Reason: {reason}"
    return KubernetesEvent(about, NORMAL, kind, text, (about.uid or about.name, status))


_HANDLERS: dict[type[Struct], Callable[[ObjectEvents, Any, Entry], list[KubernetesEvent]]] = {
    Decision: ObjectEvents._decision,
    Pod: ObjectEvents._pod,
    NodePool: ObjectEvents._pool,
    NodeClassSeen: ObjectEvents._node_class,
    ObjectGone: ObjectEvents._gone,
    ev.Launched: ObjectEvents._reached,
    ev.Registered: ObjectEvents._reached,
    ev.Initialized: ObjectEvents._reached,
    ev.Drained: ObjectEvents._reached,
    ev.Tainted: ObjectEvents._late,
    ev.Terminated: ObjectEvents._over,
    ev.InstanceVanished: ObjectEvents._over,
    ev.LaunchFailed: ObjectEvents._over,
    ev.LaunchTimedOut: ObjectEvents._over,
    ev.Cancelled: ObjectEvents._over,
}
