"""Make Kubernetes Events of drains: what a node waits for, and what its pods go through (EV-14 to EV-19)."""

from __future__ import annotations

from kerf.engine.lifecycle.drain.pods import awaited, drainable
from kerf.engine.lifecycle.drain.volumes import MAX_VOLUMES_NAMED, attached
from kerf.engine.model.disruption_reasons import karpenter_spelling
from kerf.engine.model.durations import format_time
from kerf.engine.model.kubernetes.pods import Pod, is_active
from kerf.engine.nodeclaim import effect_keys
from kerf.engine.nodeclaim.state_table import DRAINING
from kerf.engine.record import claim_events as ev
from kerf.engine.record.decisions import Decision, EvictPod, TaintNode
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import EffectAnswered
from kerf.engine.state.state import State
from kerf.projections.forced_graces import ForcedGraces
from kerf.projections.kubernetes_events.event import NORMAL, WARNING, KubernetesEvent, ObjectReference
from kerf.projections.kubernetes_events.references import References, escaped, events_about
from kerf.projections.prose.amounts import count

BY_FORCE = "Forceful Termination"
"""Why a pod goes whose claim has no reason to go (D-153)."""
SEVERAL_BUDGETS = "more than one PodDisruptionBudget"
"""What the API server says, with status 500, of a pod that several PodDisruptionBudgets cover (D-150)."""


class DrainEvents:
    """Gives the Events of nodes that are drained and of their pods. `state` is the state that the turn left."""

    def __init__(self, state: State) -> None:
        self._state, self._objects = state, References(state)
        asked = [(ref, asked.intent) for ref, asked in state.facts.intents.items()]
        self._evictions = {ref: intent for ref, intent in asked if isinstance(intent, EvictPod)}
        self._graces = ForcedGraces()
        self._graces.know(state)

    # ── nodes ───────────────────────────────────────────────────────────────────────────────────────────────

    def decided(self, decision: Decision, entry: Entry) -> list[KubernetesEvent]:
        """Tell of the nodes of which this decision evicts pods, or that it begins to drain without a claim."""
        nodes: dict[str, None] = {}
        for index, intent in enumerate(decision.intents):
            if isinstance(intent, EvictPod):
                self._evictions[f"{entry.position}.{index}"] = intent
                nodes[intent.node] = None
            elif isinstance(intent, TaintNode) and not intent.claim:
                nodes[intent.node] = None
            self._graces.note(intent)
        return [event for node in nodes for event in self.waiting(node, entry.at)]

    def started(self, event: ev.DrainStarted, entry: Entry) -> list[KubernetesEvent]:
        return [*self.deadline(event.claim, event.deadline), *self.waiting(event.node, entry.at)]

    def deadline(self, claim: str, deadline: int | None) -> list[KubernetesEvent]:
        """Tell a node and its claim when its pods will be deleted (EV-18, EV-19)."""
        if deadline is None:
            return []
        text = f"All pods will be deleted by {format_time(deadline)}"
        return events_about(self._objects.both(claim), WARNING, "TerminationGracePeriodExpiring", text)

    def waiting(self, node: str, now: int) -> list[KubernetesEvent]:
        """Tell a node that is drained how many pods it waits for (D-145, EV-16)."""
        known = self._state.facts.nodes.get(node)
        pods = len(awaited(known, self._state, now)) if known is not None else 0
        if not pods:
            return []
        waits = f"{count(pods, 'pod')} {'is' if pods == 1 else 'are'} waiting to be evicted"
        about = [self._objects.node(node)]
        return events_about(about, WARNING, "FailedDraining", f"Failed to drain node, {waits}")

    def pod(self, pod: Pod, entry: Entry) -> list[KubernetesEvent]:
        """Tell a node that is drained of a pod that waits there without an intent: it came when the drain had begun, or
        its turn has not come (D-145, EV-16)."""
        name = self._state.indexes.claim_by_node.get(pod.node, "")
        held = self._state.facts.claims.get(name) if name else self._state.facts.lone.get(pod.node)
        if held is None or (name and held.state != DRAINING):
            return []
        asked = held.effect(effect_keys.eviction(pod.uid)) or held.effect(effect_keys.deletion(pod.uid))
        waits = not asked and is_active(pod) and drainable(pod, self._state, entry.at)
        return self.waiting(pod.node, entry.at) if waits else []

    def drained(self, event: ev.Drained, entry: Entry) -> list[KubernetesEvent]:
        """Tell that a drained node waits for its volumes (L-199)."""
        return self.volumes(event.claim) if event.volumes else []

    def volumes(self, claim: str) -> list[KubernetesEvent]:
        """Tell which volumes are still attached to a claim's node (EV-17)."""
        known = self._state.facts.claims.get(claim)
        node = self._state.facts.nodes.get(known.node) if known is not None else None
        named = attached(node, self._state, self._state.facts.at)[:MAX_VOLUMES_NAMED] if node is not None else ()
        if node is None or not named:
            return []
        text = f"Awaiting deletion VolumeAttachments bound to node ({', '.join(named)})"
        return events_about([self._objects.node(node.name)], NORMAL, "AwaitingVolumeDetachment", text)

    def answered(self, answer: EffectAnswered, entry: Entry) -> list[KubernetesEvent]:
        """Tell that PodDisruptionBudgets refused an eviction (D-150, EV-16), or that a pod of a Node without a claim
        was evicted, of which there is no claim event (EV-14)."""
        intent = self._evictions.pop(answer.intent, None)
        if intent is not None and answer.ok and not intent.claim:
            return _of_pod(intent.uid, f"{intent.namespace}/{intent.name}", "Evicted", "Evicted pod")
        if intent is None or answer.ok or not (answer.code == "429" or SEVERAL_BUDGETS in answer.message):
            return []
        text = f"Failed to drain node, evicting pod {intent.namespace}/{intent.name} violates a PDB: {answer.message}"
        about = [self._objects.node(intent.node)]
        return events_about(about, WARNING, "FailedDraining", escaped(text), intent.namespace, intent.name)

    # ── pods ────────────────────────────────────────────────────────────────────────────────────────────────

    def evicted(self, event: ev.PodEvicted, entry: Entry) -> list[KubernetesEvent]:
        """Tell a pod that it was evicted, and why (EV-14)."""
        return _of_pod(event.uid, event.pod, "Evicted", f"Evicted pod: {self._why(event.claim)}")

    def forced(self, event: ev.PodForced, entry: Entry) -> list[KubernetesEvent]:
        """Tell a pod that it was deleted for its node's deadline (EV-15)."""
        claim, own = self._state.facts.claims.get(event.claim), self._graces.taken(event.uid)
        until = f" {format_time(claim.deadline)}" if claim is not None and claim.deadline is not None else ""
        text = (
            f"Deleting the pod for the deadline of its node{until}. It was granted {event.grace} seconds of "
            f"grace-period of the {'' if own is None else f'{own} '}terminationGracePeriodSeconds configured"
        )
        return _of_pod(event.uid, event.pod, "Disrupted", text)

    def _why(self, claim: str) -> str:
        known = self._state.facts.claims.get(claim)
        return (karpenter_spelling(known.why) if known is not None else "") or BY_FORCE


def _of_pod(uid: str, key: str, reason: str, text: str) -> list[KubernetesEvent]:
    """Tell a pod, which may be gone already: one without a grace period goes at once."""
    namespace, _, name = key.partition("/")
    about = ObjectReference("v1", "Pod", name, namespace, uid)
    return [KubernetesEvent(about, NORMAL, reason, text, (namespace, name))] if name else []
