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
from kerf.engine.nodeclaim import effects
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.record import claim_events as ev
from kerf.engine.record.decisions import DeletePod, EvictPod
from kerf.engine.scheduling.matching.taints import tolerates_all
from kerf.engine.scheduling.pods.evictability import FOREVER, protected_until
from kerf.engine.state.state import State

DISRUPTED = Taint(lbl.DISRUPTED_TAINT, "NoSchedule")
STUCK_AFTER = 60_000  # L-202: a pod longer than this past its deletion time is no longer awaited
AT_ONCE = 1  # a time that has long passed

Group = tuple[bool, bool]


def awaited(node: Node, state: State, now: int) -> list[Pod]:
    """L-202: pods that must leave before the instance may end, by namespace and name."""
    pods = (state.facts.pods[uid] for uid in state.indexes.pods_by_node.get(node.name, {}))
    left = [p for p in pods if not is_terminal(p) and drainable(p, state, now)]
    return sorted(left, key=lambda p: (p.namespace, p.name, p.uid))


def drainable(pod: Pod, state: State, now: int) -> bool:
    """D-10: neither the node's own, nor at home on a disrupted node, nor stuck."""
    if owned_by(pod, NODE_OWNER) or (pod.deleting and now >= stuck_at(pod)):
        return False
    return not tolerates_all((DISRUPTED,), state.indexes.blobs.shape(pod.shape).tolerations)


def stuck_at(pod: Pod) -> int:
    """From when on a terminating pod is not awaited any more."""
    return pod.deleting + STUCK_AFTER + 1


def leave(claim: NodeClaim, node: Node, pods: list[Pod], state: State, now: int) -> Step:
    """One look at the pods that are awaited: those whose deadline is near go by force, of the others those of the first
    group that is left (L-203, L-204)."""
    first = min(_group(pod, state) for pod in pods)
    steps = [_leave(claim, node, pod, state, now, its_turn=_group(pod, state) == first) for pod in pods]
    intents = tuple(intent for step in steps for intent in step.intents)
    reason = Reason.of(LifecycleCode.EVICT) if intents else Reason.of(LifecycleCode.WAITING_FOR_PODS, pods=len(pods))
    return Step(intents=intents, reason=reason, due=soonest(*(step.due for step in steps)))


def _group(pod: Pod, state: State) -> Group:
    """L-204, D-143: critical pods after the others, and of both those of DaemonSets after the rest."""
    return state.indexes.blobs.shape(pod.shape).priority_class in CRITICAL, owned_by(pod, DAEMONSET)


def _leave(claim: NodeClaim, node: Node, pod: Pod, state: State, now: int, *, its_turn: bool) -> Step:
    """One pod's way out: by force when its deadline is near (L-203), else by eviction when its turn has come and it may
    be disrupted."""
    until_stuck = stuck_at(pod) if pod.deleting else 0
    forced_at = _forced_at(claim, pod, state)
    if forced_at and now > forced_at:
        grace = max(1, ((claim.deadline or now) - now) // 1000)  # D-152
        by_force = DeletePod(claim.name, node.name, pod.uid, pod.namespace, pod.name, grace)
        return _unless_asked(claim, effects.deletion(pod.uid), by_force, now, due=until_stuck)
    if pod.deleting:
        return wait(LifecycleCode.TERMINATING, due=until_stuck)
    due = forced_at + 1 if forced_at else 0
    if not its_turn:
        return wait(LifecycleCode.WAITING_FOR_GROUP, due=due)
    protected = protected_until(pod)
    if now < protected:  # D-147, D-12
        return wait(LifecycleCode.DO_NOT_DISRUPT, due=soonest(due, 0 if protected == FOREVER else protected))
    stays = stays_until(claim, pod, state)
    if now < stays:
        return wait(LifecycleCode.WAITING_FOR_NEXT_PLACE, due=soonest(due, stays))
    turn_comes = turn_at(claim, pod, state)
    if now < turn_comes:
        return wait(LifecycleCode.WAITING_FOR_TURN, due=soonest(due, turn_comes))
    key = effects.eviction(pod.uid)
    effect = claim.effect(key)
    attempt = effect.attempts + 1 if effect is not None else 1
    order = EvictPod(claim.name, node.name, pod.uid, pod.namespace, pod.name, attempt)
    return _unless_asked(claim, key, order, now, due=due)


def turn_at(claim: NodeClaim, pod: Pod, state: State) -> int:
    """When a pod leaves of a node that goes with others, large pods first (ms since the epoch); 0 for at once. A reason
    that leaves no choice knows no turns."""
    if not claim.turns or claim.why != DisruptionReason.UNDERUTILIZED:
        return 0
    return claim.drain_started + WAVE_INTERVAL * wave_of(state.indexes.blobs.shape(pod.shape), claim.turns)


def _forced_at(claim: NodeClaim, pod: Pod, state: State) -> int:
    """L-203, D-151: the instant after which a pod is deleted by force; 0 for never. One that would take longer than the
    deadline to end is made to end by then."""
    if claim.deadline is None:
        return 0
    if pod.deleting:
        return AT_ONCE if pod.deleting > claim.deadline else 0
    grace = state.indexes.blobs.shape(pod.shape).grace
    return 0 if grace is None else claim.deadline - grace * 1000


def _unless_asked(claim: NodeClaim, key: str, order: EvictPod | DeletePod, now: int, *, due: int) -> Step:
    effect = claim.effect(key)
    if may_ask(effect, now):
        return Step(intents=(order,), due=due)
    return Step(due=soonest(due, ask_again_at(effect)))


def left(claim: NodeClaim) -> tuple[Struct, ...]:
    """The evictions and deletions that were accepted since the last look, as events."""
    happened: list[Struct] = []
    for key, effect in sorted(claim.effects.items()):
        if effect.ok and not effect.told:
            what, _, uid = key.partition("/")
            if what == effects.EVICT:
                happened.append(ev.PodEvicted(claim.name, uid, effect.pod))
            elif what == effects.DELETE:
                happened.append(ev.PodForced(claim.name, uid, effect.pod, effect.grace))
    return tuple(happened)
