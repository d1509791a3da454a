"""`drain(claim, state, now)`: from the taint to the end (lifecycle.md 3.9 to 3.11, disruption.md 11).

First form: eviction with back-off, forced deletion by deadline, the settling time, instance and Node. The four groups
of L-204, pods stuck terminating and volume detachment (L-199) come with the disruption issue, in this module's place.
"""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.lifecycle.advance import node_of
from kerf.engine.lifecycle.step import Step, ask, ask_again_at, may_ask, soonest, wait
from kerf.engine.model import labels as lbl
from kerf.engine.model.nodes import Node
from kerf.engine.model.pods import NODE_OWNER, Pod, Taint, is_terminal, owned_by
from kerf.engine.model.reasons import Reason
from kerf.engine.nodeclaim import effects
from kerf.engine.nodeclaim import events as ev
from kerf.engine.nodeclaim.claim import ENDED, NodeClaim
from kerf.engine.nodeclaim.table import TAINTED
from kerf.engine.record.decisions import DeleteNode, DeletePod, EvictPod, TaintNode, TerminateInstance
from kerf.engine.scheduling.taints import tolerates_all
from kerf.engine.state.state import State

VERSION = 1
DISRUPTED = Taint(lbl.DISRUPTED_TAINT, "NoSchedule")
STUCK_AFTER = 60_000  # L-202: a pod longer than this past its deletion time is no longer awaited
AT_ONCE = 1  # a time that has long passed


def drain(claim: NodeClaim, state: State, now: int) -> Step:
    """The next step of a claim that is on its way out."""
    node = node_of(claim, state)
    if claim.instance_status in ENDED:
        return _end(claim, node, now)
    if node is None or not claim.registered:
        return _terminate(claim, now, Reason("terminate-without-drain"))  # D-138, L-194
    if claim.state == TAINTED:
        return _start(claim, node, state, now)
    if claim.drained:
        return _terminate(claim, now, Reason("terminate"))
    return _evict(claim, node, state, now)


def _end(claim: NodeClaim, node: Node | None, now: int) -> Step:
    """The instance is gone: the Node object goes, then the claim is over (L-201, L-192)."""
    if node is not None:
        return ask(claim, effects.DELETE_NODE, DeleteNode(claim.name, node.name), now, code="delete-node")
    return Step(events=(ev.Terminated(claim.name, claim.why, *claim.lifetime(now)),), reason=Reason("terminated"))


def _terminate(claim: NodeClaim, now: int, reason: Reason) -> Step:
    order = TerminateInstance(claim.name, claim.instance)
    return ask(claim, effects.TERMINATE, order, now, code=reason.code)


def _start(claim: NodeClaim, node: Node, state: State, now: int) -> Step:
    """L-196: the drain starts once the taint is on the Node."""
    if any(t.same(DISRUPTED) for t in node.taints):
        started = ev.DrainStarted(claim.name, node.name, len(awaited(node, state, now)))
        return Step(events=(started,), reason=Reason("drain-started"))
    return ask(claim, effects.TAINT, TaintNode(claim.name, node.name), now, code="taint")


def awaited(node: Node, state: State, now: int) -> list[Pod]:
    """L-202: pods that must leave before the instance may end, by namespace and name."""
    pods = (state.facts.pods[uid] for uid in state.ix.pods_by_node.get(node.name, {}))
    left = [p for p in pods if not is_terminal(p) and _drainable(p, state, now)]
    return sorted(left, key=lambda p: (p.namespace, p.name, p.uid))


def _drainable(pod: Pod, state: State, now: int) -> bool:
    if owned_by(pod, NODE_OWNER) or (pod.deleting and now >= _stuck_at(pod)):
        return False
    return not tolerates_all((DISRUPTED,), state.ix.blobs.shape(pod.shape).tolerations)


def _stuck_at(pod: Pod) -> int:
    return pod.deleting + STUCK_AFTER + 1


def _evict(claim: NodeClaim, node: Node, state: State, now: int) -> Step:
    left = _left(claim)
    pods = awaited(node, state, now)
    settled = claim.drain_started + state.facts.settings.drain_settle
    if not pods:
        if now < settled:  # L-198: pods bound just before the taint was seen
            return Step(events=left, reason=Reason("settling"), due=settled)
        drained = ev.Drained(claim.name, now - claim.drain_started)
        return Step(events=(*left, drained), reason=Reason("drained"))
    steps = [_leave(claim, node, pod, state, now) for pod in pods]
    intents = tuple(intent for step in steps for intent in step.intents)
    reason = Reason("evict") if intents else Reason("waiting-for-pods", {"pods": len(pods)})
    return Step(events=left, intents=intents, reason=reason, due=soonest(*(step.due for step in steps)))


def _left(claim: NodeClaim) -> tuple[Struct, ...]:
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


def _leave(claim: NodeClaim, node: Node, pod: Pod, state: State, now: int) -> Step:
    """One pod's way out: by force when its deadline is near (L-203), else by eviction if it may be disrupted."""
    stuck_at = _stuck_at(pod) if pod.deleting else 0
    forced_at = _forced_at(claim, pod, state)
    if forced_at and now > forced_at:
        grace = max(1, ((claim.deadline or now) - now) // 1000)  # D-152
        by_force = DeletePod(claim.name, node.name, pod.uid, pod.namespace, pod.name, grace)
        return _unless_asked(claim, effects.deletion(pod.uid), by_force, now, due=stuck_at)
    if pod.deleting:
        return wait("terminating", due=stuck_at)
    due = forced_at + 1 if forced_at else 0
    if pod.do_not_disrupt == "true":  # D-147; the duration form comes with the disruption issue
        return wait("do-not-disrupt", due=due)
    key = effects.eviction(pod.uid)
    effect = claim.effect(key)
    attempt = effect.attempts + 1 if effect is not None else 1
    order = EvictPod(claim.name, node.name, pod.uid, pod.namespace, pod.name, attempt)
    return _unless_asked(claim, key, order, now, due=due)


def _forced_at(claim: NodeClaim, pod: Pod, state: State) -> int:
    """L-203, D-151: the instant after which a pod is deleted by force; 0 for never. One that would take longer than the
    deadline to end is made to end by then."""
    if claim.deadline is None:
        return 0
    if pod.deleting:
        return AT_ONCE if pod.deleting > claim.deadline else 0
    grace = state.ix.blobs.shape(pod.shape).grace
    return 0 if grace is None else claim.deadline - grace * 1000


def _unless_asked(claim: NodeClaim, key: str, order: EvictPod | DeletePod, now: int, *, due: int) -> Step:
    effect = claim.effect(key)
    if may_ask(effect, now):
        return Step(intents=(order,), due=due)
    return Step(due=soonest(due, ask_again_at(effect)))
