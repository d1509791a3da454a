"""`keep_size(pool, state, now)`: a NodePool with spec.replicas has that many nodes, whatever pods there are (S-190 to
S-193, D-160 to D-166). Behind the gate StaticCapacity."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

from kerf.engine.lifecycle.eviction_cost import remaining_lifetime, scale_down_cost
from kerf.engine.lifecycle.reasons import LifecycleCode
from kerf.engine.model.disruption_reasons import DisruptionReason
from kerf.engine.model.karpenter.nodepool_validation import violations
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
from kerf.engine.scheduling.launchable.withheld import withheld_of_pool
from kerf.engine.scheduling.pods.evictability import EvictionRules
from kerf.engine.scheduling.provision import claim_names
from kerf.engine.state.node_of_claim import node_of
from kerf.engine.state.nodeclaims.unavailable import lapses
from kerf.engine.state.state import State

VERSION = 7
ACTOR = "static scale-down"
"""Who cancels a claim that is not launched yet, in its event."""
NODES = "nodes"
"""The resource of a NodePool's limits that counts nodes (D-163)."""
UNLAUNCHED, EMPTY, WORKING = 0, 1, 2
"""Which claims a scale-down removes first (D-166)."""


class StaticOutcome(Struct, frozen=True):
    """`result` is None when there is nothing to record: the pool has its size, or the reason why not is recorded."""

    result: StaticResult | None = None
    intents: tuple[LaunchInstance, ...] = ()
    events: tuple[Struct, ...] = ()


def keep_size(pool: NodePool, state: State, now: int) -> StaticOutcome:
    """Launch the nodes that the pool lacks, or remove those that it has too many.

    The caller makes the `Requested` events for the claims of the result, which name the decision's position.
    """
    outcome = _keep_size(pool, state, now)
    known = state.facts.static.get(pool.name)
    if outcome.result is None and known is not None and 0 < known.retry_at <= now:  # nothing is left to be tried again
        running = sum(
            claim.node_pool == pool.name and claim.state not in GOING for claim in state.facts.claims.values()
        )
        return StaticOutcome(
            StaticResult(pool.name, pool.replicas or 0, running, Reason.of(LifecycleCode.STATIC_AT_SIZE))
        )
    return outcome


def _keep_size(pool: NodePool, state: State, now: int) -> StaticOutcome:
    if pool.replicas is None or pool.deleting:
        return StaticOutcome()
    mine = [claim for _, claim in sorted(state.facts.claims.items()) if claim.node_pool == pool.name]
    running = [claim for claim in mine if claim.state not in GOING]
    if len(running) > pool.replicas:
        return _scale_down(pool, running, state, now)
    if len(running) < pool.replicas:
        return _scale_up(pool, len(running), len(mine), state, now)
    return StaticOutcome()


# ── up ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _scale_up(pool: NodePool, running: int, counted: int, state: State, now: int) -> StaticOutcome:
    """Launch nodes until the pool has its size (S-191, D-164), within its limit.

    `counted` is the number of claims that the limit counts, those on their way out included (D-163).
    """
    assert pool.replicas is not None
    known = state.facts.static.get(pool.name)
    if known is not None and known.retry_at > now:
        return StaticOutcome()
    if not is_ready(pool, state):
        return _blocked(pool, running, Reason.of(LifecycleCode.STATIC_NOT_READY), state)
    withheld = withheld_requirements(pool, state)
    if withheld:
        return _blocked(
            pool, running, Reason.of(LifecycleCode.STATIC_LABEL_NOT_GIVEN, requirements=list(withheld)), state
        )
    granted = pool.replicas - running
    limit = (pool.limits or {}).get(NODES)
    if limit is not None:
        granted = min(granted, limit - counted)
    if granted <= 0:
        return _blocked(pool, running, Reason.of(LifecycleCode.STATIC_LIMIT, nodes=limit or 0), state)
    asked = claims_to_launch(pool, granted, state, now)
    if not asked:
        retry_at = min((t for t in lapses(state.facts) if t > now), default=0)
        return _blocked(pool, running, Reason.of(LifecycleCode.STATIC_NO_OFFERING), state, retry_at)
    return _launches(pool, running, asked, state)


def withheld_requirements(pool: NodePool, state: State) -> tuple[str, ...]:
    """The pool's requirements that launches did not give, so that no more are made for them."""
    health = state.facts.health.get(pool.name)
    return withheld_of_pool(pool, health.withheld) if health is not None else ()


def claims_to_launch(pool: NodePool, count: int, state: State, now: int) -> list[ClaimWithoutPods]:
    """What so many claims are launched as that start at the same time; empty if nothing is on offer.

    No more of them go into a reservation than it has left (A-210), unless there is no other offer.
    """
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


def _launches(pool: NodePool, running: int, asked: list[ClaimWithoutPods], state: State) -> StaticOutcome:
    assert pool.replicas is not None
    named = list(zip(claim_names([pool.name] * len(asked), state), asked, strict=True))
    claims = tuple(planned_without_pods(name, pool.name, claim) for name, claim in named)
    reason = Reason.of(LifecycleCode.STATIC_SCALE_UP, count=len(asked))
    result = StaticResult(pool.name, pool.replicas, running, reason, claims)
    return StaticOutcome(result, tuple(launch_order(name, pool, claim) for name, claim in named))


def _blocked(pool: NodePool, running: int, reason: Reason, state: State, retry_at: int = 0) -> StaticOutcome:
    """The reason why the pool cannot have its size. It is recorded once, until it is another one."""
    assert pool.replicas is not None
    known = state.facts.static.get(pool.name)
    if known is not None and (known.code, known.retry_at) == (reason.code, retry_at):
        return StaticOutcome()
    return StaticOutcome(StaticResult(pool.name, pool.replicas, running, reason, retry_at=retry_at))


def is_ready(pool: NodePool, state: State) -> bool:
    """Whether the pool is ready, for which it must be valid (L-252), and its NodeClass ready (L-253). Of a new object
    nobody has written either yet."""
    ref = pool.node_class
    node_class = state.facts.node_classes.get(f"{ref.group}/{ref.kind}/{ref.name}")
    return pool.ready and node_class is not None and node_class.ready and not violations(pool)


# ── down ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _scale_down(pool: NodePool, running: list[NodeClaim], state: State, now: int) -> StaticOutcome:
    """Remove surplus nodes. Disruption budgets and nominations do not hold it up; the drain that follows respects
    PodDisruptionBudgets (S-193, D-165)."""
    assert pool.replicas is not None
    surplus = len(running) - pool.replicas
    victims = victim_order(running, state, now)[:surplus]
    reason = Reason.of(LifecycleCode.STATIC_SCALE_DOWN, count=surplus)
    removed = tuple(claim.name for claim in victims)
    result = StaticResult(pool.name, pool.replicas, len(running), reason, removed=removed)
    return StaticOutcome(result, events=tuple(_removal(claim, now) for claim in victims))


def _removal(claim: NodeClaim, now: int) -> Struct:
    if claim.state == REQUESTED:
        return ev.Cancelled(claim.name, ACTOR)
    grace = claim.termination_grace_period
    deadline = None if grace is None else now + grace  # L-189
    return ev.Tainted(claim.name, DisruptionReason.OVERPROVISIONED.value, deadline, age=now - claim.created)


def victim_order(claims: list[NodeClaim], state: State, now: int) -> list[NodeClaim]:
    """The order of removal: claims that are not launched, then empty nodes, then those whose pods cost least to evict
    (D-166).

    A pod with do-not-disrupt puts its node last; it does not protect it.
    """
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
