"""`keep_size(pool, state, now)`: a NodePool with spec.replicas has that many nodes, whatever pods there are (S-190 to
S-193, D-160 to D-166). Behind the gate StaticCapacity."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

from kerf.engine.lifecycle.eviction_cost import remaining_lifetime, scale_down_cost
from kerf.engine.lifecycle.reasons import LifecycleCode
from kerf.engine.model.disruption_reasons import DisruptionReason
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.kubernetes.pods import DAEMONSET, Pod, owned_by
from kerf.engine.model.reasons import Reason
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.state_table import GOING, REQUESTED
from kerf.engine.record import claim_events as ev
from kerf.engine.record.decisions import LaunchInstance, StaticResult
from kerf.engine.scheduling.claims_without_pods import (
    ClaimWithoutPods,
    claim_from_template,
    launch_order,
    planned_without_pods,
)
from kerf.engine.scheduling.pods.evictability import EvictionRules
from kerf.engine.scheduling.provision import claim_names
from kerf.engine.state.node_of_claim import node_of
from kerf.engine.state.state import State

VERSION = 4
ACTOR = "static scale-down"
NODES = "nodes"
UNLAUNCHED, EMPTY, WORKING = 0, 1, 2


class Outcome(Struct, frozen=True):
    """`result` is None when there is nothing to say: the pool has its size, or what keeps it from it is known."""

    result: StaticResult | None = None
    intents: tuple[LaunchInstance, ...] = ()
    events: tuple[Struct, ...] = ()


def keep_size(pool: NodePool, state: State, now: int) -> Outcome:
    """Launches what the pool lacks, or removes what it has too much. `Requested` events for the claims of the result
    are the caller's (they name the decision's position)."""
    outcome = _keep_size(pool, state, now)
    known = state.facts.static.get(pool.name)
    if outcome.result is None and known is not None and 0 < known.retry_at <= now:  # nothing is left to be tried again
        running = sum(
            claim.node_pool == pool.name and claim.state not in GOING for claim in state.facts.claims.values()
        )
        return Outcome(StaticResult(pool.name, pool.replicas or 0, running, Reason.of(LifecycleCode.STATIC_AT_SIZE)))
    return outcome


def _keep_size(pool: NodePool, state: State, now: int) -> Outcome:
    if pool.replicas is None or pool.deleting:
        return Outcome()
    mine = [claim for _, claim in sorted(state.facts.claims.items()) if claim.node_pool == pool.name]
    running = [claim for claim in mine if claim.state not in GOING]
    if len(running) > pool.replicas:
        return _scale_down(pool, running, state, now)
    if len(running) < pool.replicas:
        return _scale_up(pool, len(running), len(mine), state, now)
    return Outcome()


# ── up ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _scale_up(pool: NodePool, running: int, counted: int, state: State, now: int) -> Outcome:
    """S-191, D-164. `counted`: with those on their way out, which the limit counts as well (D-163)."""
    assert pool.replicas is not None
    known = state.facts.static.get(pool.name)
    if known is not None and known.retry_at > now:
        return Outcome()
    if not _ready(pool, state):
        return _blocked(pool, running, Reason.of(LifecycleCode.STATIC_NOT_READY), state)
    granted = pool.replicas - running
    limit = (pool.limits or {}).get(NODES)
    if limit is not None:
        granted = min(granted, limit - counted)
    if granted <= 0:
        return _blocked(pool, running, Reason.of(LifecycleCode.STATIC_LIMIT, nodes=limit or 0), state)
    asked = asked_for(pool, granted, state, now)
    if not asked:
        retry_at = min((t for t in state.facts.unavailable.values() if t > now), default=0)
        return _blocked(pool, running, Reason.of(LifecycleCode.STATIC_NO_OFFERING), state, retry_at)
    return _launches(pool, running, asked, state)


def asked_for(pool: NodePool, count: int, state: State, now: int) -> list[ClaimWithoutPods]:
    """What so many claims that come at once are launched as: no more of them in a reservation than it has left (A-210),
    but where nothing else is to be had. None if there is nothing at all."""
    first = asked = claim_from_template(pool, state, now)
    if not first.choice.offers:
        return []
    found, taken = [first], Counter[str]()
    while len(found) < count:
        if asked.choice.reservation:
            taken[asked.choice.reservation] += 1
            asked = claim_from_template(pool, state, now, taken)
        found.append(asked if asked.choice.offers else first)
    return found


def _launches(pool: NodePool, running: int, asked: list[ClaimWithoutPods], state: State) -> Outcome:
    assert pool.replicas is not None
    named = list(zip(claim_names([pool.name] * len(asked), state), asked, strict=True))
    claims = tuple(planned_without_pods(name, pool.name, each) for name, each in named)
    reason = Reason.of(LifecycleCode.STATIC_SCALE_UP, count=len(asked))
    result = StaticResult(pool.name, pool.replicas, running, reason, claims)
    return Outcome(result, tuple(launch_order(name, pool, each) for name, each in named))


def _blocked(pool: NodePool, running: int, reason: Reason, state: State, retry_at: int = 0) -> Outcome:
    """Said once, until the reason is another one."""
    assert pool.replicas is not None
    known = state.facts.static.get(pool.name)
    if known is not None and (known.code, known.retry_at) == (reason.code, retry_at):
        return Outcome()
    return Outcome(StaticResult(pool.name, pool.replicas, running, reason, retry_at=retry_at))


def _ready(pool: NodePool, state: State) -> bool:
    """L-253: it is the NodeClass that makes a NodePool ready."""
    ref = pool.node_class
    node_class = state.facts.node_classes.get(f"{ref.group}/{ref.kind}/{ref.name}")
    return pool.ready and node_class is not None and node_class.ready


# ── down ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _scale_down(pool: NodePool, running: list[NodeClaim], state: State, now: int) -> Outcome:
    """S-193, D-165: no budget holds it up, and no nomination; the drain that follows keeps to PodDisruptionBudgets."""
    assert pool.replicas is not None
    surplus = len(running) - pool.replicas
    victims = victim_order(running, state, now)[:surplus]
    reason = Reason.of(LifecycleCode.STATIC_SCALE_DOWN, count=surplus)
    removed = tuple(claim.name for claim in victims)
    result = StaticResult(pool.name, pool.replicas, len(running), reason, removed=removed)
    return Outcome(result, events=tuple(_removal(claim, now) for claim in victims))


def _removal(claim: NodeClaim, now: int) -> Struct:
    if claim.state == REQUESTED:
        return ev.Cancelled(claim.name, ACTOR)
    grace = claim.termination_grace_period
    deadline = None if grace is None else now + grace  # L-189
    return ev.Tainted(claim.name, DisruptionReason.OVERPROVISIONED.value, deadline, age=now - claim.created)


def victim_order(claims: list[NodeClaim], state: State, now: int) -> list[NodeClaim]:
    """D-166: claims that are not launched, then empty nodes, then those whose pods are cheapest to move. A pod with
    do-not-disrupt puts its node last; it does not protect it."""
    return sorted(claims, key=lambda claim: (*_rank(claim, state, now), claim.name))


def _rank(claim: NodeClaim, state: State, now: int) -> tuple[int, bool, float]:
    if not claim.provider_id:
        return UNLAUNCHED, False, 0.0
    node = node_of(claim, state)
    pods = _pods_on(node.name, state) if node is not None else []
    shapes = {pod.shape: state.indexes.blobs.shape(pod.shape) for pod in pods}
    rules = EvictionRules(shapes, (), now)
    protected = any(not rules.disruptable(pod) for pod in pods)
    if not protected and all(owned_by(pod, DAEMONSET) for pod in pods):
        return EMPTY, False, 0.0
    lifetime = remaining_lifetime(claim.created, claim.expire_after, now)
    return WORKING, protected, scale_down_cost(pods, shapes, lifetime)


def _pods_on(node: str, state: State) -> list[Pod]:
    pods = (state.facts.pods[uid] for uid in state.indexes.pods_by_node.get(node, {}))
    return sorted(pods, key=lambda pod: (pod.namespace, pod.name, pod.uid))
