"""What kerf has begun and not ended: launches, moves, drains."""

from __future__ import annotations

from collections.abc import Callable

from kerf.engine.lifecycle.drain.draining import drain
from kerf.engine.lifecycle.launch_to_initialized import advance
from kerf.engine.lifecycle.reasons import LifecycleCode
from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.model.reasons import Reason
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.state_table import DRAINING, GOING, LAUNCHED, REGISTERED, REQUESTED, TAINTED
from kerf.engine.scheduling.pods.evictability import EvictionRules
from kerf.engine.state.moves import proposal_order
from kerf.engine.state.state import State, Underway
from kerf.projections.cluster_status.draining_pods import draining_pods
from kerf.projections.cluster_status.structs import UnderWay

LAUNCH, JOIN, START, MOVE, TAINT, DRAIN = "launch", "join", "start", "move", "taint", "drain"
_KINDS = {REQUESTED: LAUNCH, LAUNCHED: JOIN, REGISTERED: START, TAINTED: TAINT, DRAINING: DRAIN}
LATE_AFTER = {LAUNCH: 60_000, JOIN: 300_000, START: 300_000, MOVE: 900_000, TAINT: 900_000, DRAIN: 900_000}
"""How long each may take (ms) before it is called late. A node usually joins within two minutes; a drain waits for
pods."""

Keeping = Callable[[EvictionRules, Pod], tuple[PodDisruptionBudget, ...]]
"""Which budgets keep a pod where it is."""


def under_way(state: State, now: int) -> tuple[UnderWay, ...]:
    """Return what is under way, the oldest first."""
    claims = state.facts.claims.values()
    found = [_claim(claim, state, now) for claim in claims if claim.state in _KINDS]
    moves = sorted(state.facts.moves.items(), key=lambda item: proposal_order(item[0]))
    found += [_move(move, now) for _, move in moves]
    return tuple(sorted(found, key=lambda part: (part.since, part.kind, part.subjects)))


def _claim(claim: NodeClaim, state: State, now: int) -> UnderWay:
    kind = _KINDS[claim.state]
    since = claim.since or claim.created
    on_node = len(state.indexes.pods_by_node.get(claim.node, {}))
    late = now - since > LATE_AFTER[kind]
    expected = len(state.indexes.waiting_for.get(claim.name, {}))
    waits, pod = _waits(claim, state, now) if late and not state.facts.tells_history else (None, "")
    return UnderWay(
        kind=kind,
        subjects=(claim.name,),
        since=since,
        age=max(0, now - since),
        why=claim.why,
        pods=on_node if kind in (TAINT, DRAIN) else expected,
        late=late,
        budgets=budgets_of_pods(claim, state, EvictionRules.blocked_now) if late and kind == DRAIN else (),
        waits=waits,
        pod=pod,
    )


def _waits(claim: NodeClaim, state: State, now: int) -> tuple[Reason | None, str]:
    """Return what a claim that is on its way waits for; of a drain, the first pod that is still there, and why. A pod
    that waits for others does not hold it up."""
    leaving = draining_pods(claim, state)
    if leaving:
        first = min(leaving, key=lambda pod: pod.reason.code == LifecycleCode.WAITING_FOR_GROUP)
        return first.reason, first.pod
    return (drain if claim.state in GOING else advance)(claim, state, now).reason, ""


def budgets_of_pods(claim: NodeClaim, state: State, that_keep: Keeping) -> tuple[str, ...]:
    """Return the PodDisruptionBudgets (namespace/name) that keep pods on a claim's node."""
    there = (state.facts.pods[uid] for uid in state.indexes.pods_by_node.get(claim.node, {}))
    pods = [pod for pod in there if not pod.deleting]
    shapes = {pod.shape: state.indexes.blobs.shape(pod.shape) for pod in pods}
    rules = EvictionRules(shapes, tuple(state.facts.pdbs.values()), state.facts.at)
    return tuple(sorted({budget.key for pod in pods for budget in that_keep(rules, pod)}))


def _move(found: Underway, now: int) -> UnderWay:
    move = found.move
    return UnderWay(
        kind=MOVE,
        subjects=move.claims,
        since=found.at,
        age=max(0, now - found.at),
        onto=tuple(new.name or new.instance_types[0] for new in move.replacements),
        why=move.why,
        savings=move.savings,
        late=found.started and now - found.at > LATE_AFTER[MOVE],
    )
