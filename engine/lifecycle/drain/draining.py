"""`drain(claim, state, now)`: a claim from its taint to its end (L-194 to L-203).

The order is pods (`drain.pods`), volumes (`drain.volumes`), the instance, the Node.
"""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.lifecycle.drain.last_look import called_off_because
from kerf.engine.lifecycle.drain.pods import DISRUPTED, accepted_evictions, awaited, leave
from kerf.engine.lifecycle.drain.volumes import attached, detach
from kerf.engine.lifecycle.reasons import LifecycleCode
from kerf.engine.lifecycle.step import Step, ask, soonest, wait
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.reasons import Reason
from kerf.engine.nodeclaim import effect_keys
from kerf.engine.nodeclaim.claim import ENDED, NodeClaim
from kerf.engine.nodeclaim.state_table import TAINTED
from kerf.engine.record import claim_events as ev
from kerf.engine.record.decisions import DeleteNode, TaintNode, TerminateInstance
from kerf.engine.state.moves import move_of, replacements_awaited
from kerf.engine.state.node_of_claim import node_of
from kerf.engine.state.state import State

VERSION = 9


def drain(claim: NodeClaim, state: State, now: int) -> Step:
    """The next step of a claim that is on its way out."""
    node = node_of(claim, state)
    if claim.instance_status in ENDED:
        return _end(claim, node, now)
    if node is None or not claim.registered:
        return _terminate(claim, now, LifecycleCode.TERMINATE_WITHOUT_DRAIN)  # D-138, L-194
    if claim.state == TAINTED:
        return _start(claim, node, state, now)
    terminate = claim.effect(effect_keys.TERMINATE)
    if terminate is None or terminate.ok is False:  # refused: pods that came since leave first
        step = _evict_pods(claim, node, state, now) or detach(claim, node, state, now)
        if not _tainted(node):
            return _taint_again(claim, node, now, step)
        if step is not None:
            return step
    return _terminate(claim, now, LifecycleCode.TERMINATE)


def _end(claim: NodeClaim, node: Node | None, now: int) -> Step:
    """After its instance is gone: delete the Node object, then end the claim (L-201, L-192)."""
    if node is not None:
        return ask(
            claim, effect_keys.DELETE_NODE, DeleteNode(claim.name, node.name), now, code=LifecycleCode.DELETE_NODE
        )
    ended = ev.Terminated(claim.name, claim.why, *claim.lifetime(now))
    return Step(events=(ended,), reason=Reason.of(LifecycleCode.TERMINATED))


def _terminate(claim: NodeClaim, now: int, code: LifecycleCode) -> Step:
    order = TerminateInstance(claim.name, claim.instance)
    return ask(claim, effect_keys.TERMINATE, order, now, code=code)


def _start(claim: NodeClaim, node: Node, state: State, now: int) -> Step:
    """Start the drain once the taint is on the Node (L-196), what replaces the Node is in service (D-116), and its pods
    may still leave: else the move is called off at this instant (D-118)."""
    if _tainted(node):
        move = move_of(state, claim)
        if move is not None and not node.deleting:
            replacements = replacements_awaited(state, move)
            if replacements:
                return wait(LifecycleCode.WAITING_FOR_REPLACEMENT, replacements=replacements)
            if called_off_because(move, state, now) is not None:
                return wait(LifecycleCode.WAITING_FOR_PODS, pods=len(awaited(node, state, now)))
        grace = claim.termination_grace_period if claim.deadline is None else None
        deadline = None if grace is None else now + grace
        started = ev.DrainStarted(claim.name, node.name, len(awaited(node, state, now)), deadline)
        return Step(events=(started,), reason=Reason.of(LifecycleCode.DRAIN_STARTED))
    return ask(claim, effect_keys.TAINT, TaintNode(claim.name, node.name), now, code=LifecycleCode.TAINT)


def _tainted(node: Node) -> bool:
    return any(taint.same(DISRUPTED) for taint in node.taints)


def _taint_again(claim: NodeClaim, node: Node, now: int, step: Step | None) -> Step:
    """Put the taint on again, which a user or a late order has taken off while the node drains (L-196). No instance is
    ended before it shows, for pods may come."""
    taint = ask(claim, effect_keys.TAINT, TaintNode(claim.name, node.name), now, code=LifecycleCode.TAINT)
    if step is None:
        return taint
    return replace(step, intents=(*taint.intents, *step.intents), due=soonest(step.due, taint.due))


def _evict_pods(claim: NodeClaim, node: Node, state: State, now: int) -> Step | None:
    """Evict pods until none is awaited any more (L-198); None if so. A pod that came later is awaited too, while
    volumes are (D-146)."""
    accepted = accepted_evictions(claim)
    pods = awaited(node, state, now)
    if pods:
        return replace(leave(claim, node, pods, state, now), events=accepted)
    if claim.drained:
        return Step(events=accepted) if accepted else None
    settled = claim.drain_started + state.facts.settings.drain_settle
    if now < settled:  # pods bound just before the taint was seen
        return Step(events=accepted, reason=Reason.of(LifecycleCode.SETTLING), due=settled)
    drained = ev.Drained(claim.name, now - claim.drain_started, len(attached(node, state, now)))
    return Step(events=(*accepted, drained), reason=Reason.of(LifecycleCode.DRAINED))
