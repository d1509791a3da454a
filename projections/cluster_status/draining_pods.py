"""List the pods that a drain still waits for, and why each is still there. Needs the state alone."""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.lifecycle.drain.interruption_notice import stays_until
from kerf.engine.lifecycle.drain.pods import awaited, first_group, group_of, kept_until, wave_at
from kerf.engine.lifecycle.reasons import LifecycleCode
from kerf.engine.model.disruption_reasons import DisruptionCode
from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.model.reasons import Reason
from kerf.engine.nodeclaim.claim import Effect, NodeClaim
from kerf.engine.nodeclaim.effect_keys import eviction
from kerf.engine.nodeclaim.state_table import DRAINING
from kerf.engine.scheduling.pods.evictability import EvictionRules
from kerf.engine.state.node_of_claim import node_of
from kerf.engine.state.state import State


class DrainingPod(Struct, frozen=True, kw_only=True):
    """A pod that has to leave before the instance may end. `attempts` counts the evictions that were asked for."""

    pod: str
    reason: Reason
    attempts: int = 0


def draining_pods(claim: NodeClaim, state: State) -> tuple[DrainingPod, ...]:
    """Return the pods that the claim's drain waits for, by namespace and name; none if it is not being drained."""
    node = node_of(claim, state)
    if claim.state != DRAINING or claim.drained or node is None:
        return ()
    pods = awaited(node, state, state.facts.at)
    first = first_group(claim, pods, state, state.facts.at)
    return tuple(_draining_pod(claim, pod, state, its_turn=group_of(pod, state) == first) for pod in pods)


def _draining_pod(claim: NodeClaim, pod: Pod, state: State, *, its_turn: bool) -> DrainingPod:
    effect = claim.effect(eviction(pod.uid))
    attempts = effect.attempts if effect is not None else 0
    return DrainingPod(pod=pod.key, reason=_why(claim, pod, effect, state, its_turn=its_turn), attempts=attempts)


def _why(claim: NodeClaim, pod: Pod, effect: Effect | None, state: State, *, its_turn: bool) -> Reason:
    """Say why the pod is still there. The checks come in the order of the drain itself (L-203, D-147, L-205)."""
    if pod.deleting or (effect is not None and effect.ok):
        return Reason.of(LifecycleCode.TERMINATING)
    if effect is None and not its_turn:
        return Reason.of(LifecycleCode.WAITING_FOR_GROUP)
    if state.facts.at < kept_until(pod, state):
        return Reason.of(DisruptionCode.DO_NOT_DISRUPT)
    if effect is None and state.facts.at < stays_until(claim, pod, state):
        return Reason.of(LifecycleCode.WAITING_FOR_NEXT_PLACE)
    if effect is None and state.facts.at < wave_at(claim, pod, state):
        return Reason.of(LifecycleCode.WAITING_FOR_TURN)
    if effect is None or effect.ok is None:
        return Reason.of(LifecycleCode.WAITING_FOR_EFFECT, effect="the eviction")
    shapes = {pod.shape: state.indexes.blobs.shape(pod.shape)}
    budgets = EvictionRules(shapes, tuple(state.facts.pdbs.values()), state.facts.at).blocked_now(pod)
    if not budgets:
        return Reason.of(LifecycleCode.WAITING_TO_RETRY, effect=f"the eviction ({effect.code})")
    budget_names = [budget.key for budget in budgets]
    one = DisruptionCode.POD_BUDGET_EXHAUSTED
    code = one if len(budget_names) == 1 else DisruptionCode.SEVERAL_POD_BUDGETS
    return Reason.of(code, budgets=budget_names)
