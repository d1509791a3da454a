"""Pods that must leave a node before its instance may end, and how each of them goes (lifecycle.md 3.11,
disruption.md 11.3 and 11.4)."""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.lifecycle.drain.eviction_waves import WAVE_INTERVAL, wave_of
from kerf.engine.lifecycle.drain.interruption_notice import stays_until
from kerf.engine.lifecycle.reasons import LifecycleCode
from kerf.engine.lifecycle.step import Step, ask_again_at, may_ask, soonest, wait
from kerf.engine.model import labels as lbl
from kerf.engine.model.disruption_reasons import DisruptionReason
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import DAEMONSET, NODE_OWNER, Pod, Taint, is_terminal, owned_by
from kerf.engine.model.kubernetes.priority_classes import CRITICAL
from kerf.engine.model.reasons import Reason
from kerf.engine.nodeclaim import effect_keys
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.record import claim_events as ev
from kerf.engine.record.decisions import DeletePod, EvictPod
from kerf.engine.scheduling.matching.taints import tolerates_all
from kerf.engine.scheduling.pods.evictability import FOREVER, forced_at, protected_until
from kerf.engine.state.state import State

DISRUPTED = Taint(lbl.DISRUPTED_TAINT, "NoSchedule")
STUCK_AFTER = 60_000
"""How long (ms) a pod may be past its deletion time before it is no longer awaited (L-202)."""

Group = tuple[bool, bool]


def awaited(node: Node, state: State, now: int) -> list[Pod]:
    """Pods that must leave before the instance may end, by namespace and name (L-202)."""
    pods = (state.facts.pods[uid] for uid in state.indexes.pods_by_node.get(node.name, {}))
    left = [p for p in pods if not is_terminal(p) and drainable(p, state, now)]
    return sorted(left, key=lambda p: (p.namespace, p.name, p.uid))


def drainable(pod: Pod, state: State, now: int) -> bool:
    """Whether a drain evicts the pod: it is no static pod, does not tolerate the disrupted taint, and is not stuck
    (D-10)."""
    stuck = stuck_at(pod, state)
    if owned_by(pod, NODE_OWNER) or (stuck and now >= stuck):
        return False
    return not tolerates_all((DISRUPTED,), state.indexes.blobs.shape(pod.shape).tolerations)


def stuck_at(pod: Pod, state: State) -> int:
    """From when on a terminating pod is no longer awaited (ms since the epoch); 0 for never. Its deletion time is the
    API server's: while the clocks differ nothing follows from that (ADR 9)."""
    return pod.deleting + STUCK_AFTER + 1 if pod.deleting and not state.facts.clocks_differ else 0


def kept_until(pod: Pod, state: State) -> int:
    """Until when do-not-disrupt keeps the pod from being evicted (D-12; ms since the epoch). A duration counts from
    when the kubelet has started the pod: while the clocks differ it does not end (ADR 9)."""
    until = protected_until(pod)
    return FOREVER if until and state.facts.clocks_differ else until


def leave(claim: NodeClaim, node: Node, pods: list[Pod], state: State, now: int) -> Step:
    """The next step for the awaited pods: those whose deadline is near are deleted by force; of the others, the first
    group that is left is evicted (L-203, L-204). Pods that go by force hold no group back (D-143)."""
    first = first_group(claim, pods, state, now)
    steps = [
        _evict_or_wait(claim, node, pod, state, now, its_groups_turn=group_of(pod, state) == first) for pod in pods
    ]
    intents = tuple(intent for step in steps for intent in step.intents)
    reason = Reason.of(LifecycleCode.EVICT) if intents else Reason.of(LifecycleCode.WAITING_FOR_PODS, pods=len(pods))
    return Step(intents=intents, reason=reason, due=soonest(*(step.due for step in steps)))


def first_group(claim: NodeClaim, pods: list[Pod], state: State, now: int) -> Group | None:
    """The group whose turn it is; None if all pods go by force."""
    return min((group_of(pod, state) for pod in pods if not _goes_by_force(claim, pod, state, now)), default=None)


def group_of(pod: Pod, state: State) -> Group:
    """The order of eviction: critical pods after the others, and within both those of DaemonSets last (L-204,
    D-143)."""
    return state.indexes.blobs.shape(pod.shape).priority_class in CRITICAL, owned_by(pod, DAEMONSET)


def _goes_by_force(claim: NodeClaim, pod: Pod, state: State, now: int) -> bool:
    """Whether the pod is, or was, deleted by force because its node's deadline is near (D-151)."""
    by_force = _forced_at(claim, pod, state)
    return bool(by_force and now > by_force) or claim.effect(effect_keys.deletion(pod.uid)) is not None


def _evict_or_wait(claim: NodeClaim, node: Node, pod: Pod, state: State, now: int, *, its_groups_turn: bool) -> Step:
    """Delete one pod by force when its deadline is near (L-203), else evict it when its group and wave have come and it
    may be disrupted."""
    until_stuck = stuck_at(pod, state)
    by_force = _forced_at(claim, pod, state)
    if by_force and now > by_force:
        grace = max(1, ((claim.deadline or now) - now) // 1000)  # D-152
        order = DeletePod(claim.name, node.name, pod.uid, pod.namespace, pod.name, grace)
        return _unless_asked(claim, effect_keys.deletion(pod.uid), order, now, due=until_stuck)
    if pod.deleting:
        return wait(LifecycleCode.TERMINATING, due=until_stuck)
    due = by_force + 1 if by_force else 0
    if not its_groups_turn:
        return wait(LifecycleCode.WAITING_FOR_GROUP, due=due)
    protected = kept_until(pod, state)
    if now < protected:  # D-147, D-12
        return wait(LifecycleCode.DO_NOT_DISRUPT, due=soonest(due, 0 if protected == FOREVER else protected))
    stays = stays_until(claim, pod, state)
    if now < stays:
        return wait(LifecycleCode.WAITING_FOR_NEXT_PLACE, due=soonest(due, stays))
    wave_comes = wave_at(claim, pod, state)
    if now < wave_comes:
        return wait(LifecycleCode.WAITING_FOR_TURN, due=soonest(due, wave_comes))
    key = effect_keys.eviction(pod.uid)
    effect = claim.effect(key)
    attempt = effect.attempts + 1 if effect is not None else 1
    eviction = EvictPod(claim.name, node.name, pod.uid, pod.namespace, pod.name, attempt)
    return _unless_asked(claim, key, eviction, now, due=due)


def wave_at(claim: NodeClaim, pod: Pod, state: State) -> int:
    """When the pod's eviction wave comes, on a node that goes together with others (ms since the epoch); 0 for at once.

    Forced disruption has no waves.
    """
    if not claim.turns or claim.why != DisruptionReason.UNDERUTILIZED:
        return 0
    return claim.drain_started + WAVE_INTERVAL * wave_of(state.indexes.blobs.shape(pod.shape), claim.turns)


def _forced_at(claim: NodeClaim, pod: Pod, state: State) -> int:
    """When the pod is deleted by force (ms since the epoch); 0 for never."""
    if claim.deadline is None:
        return 0
    return forced_at(claim.deadline, pod, state.indexes.blobs.shape(pod.shape).grace)


def _unless_asked(claim: NodeClaim, key: str, order: EvictPod | DeletePod, now: int, *, due: int) -> Step:
    effect = claim.effect(key)
    if may_ask(effect, now):
        return Step(intents=(order,), due=due)
    return Step(due=soonest(due, ask_again_at(effect)))


def accepted_evictions(claim: NodeClaim) -> tuple[Struct, ...]:
    """The evictions and deletions that the API server has accepted since the last step, as events."""
    happened: list[Struct] = []
    for key, effect in sorted(claim.effects.items()):
        if effect.ok and not effect.told:
            what, _, uid = key.partition("/")
            if what == effect_keys.EVICT:
                happened.append(ev.PodEvicted(claim.name, uid, effect.pod))
            elif what == effect_keys.DELETE:
                happened.append(ev.PodForced(claim.name, uid, effect.pod, effect.grace))
    return tuple(happened)
