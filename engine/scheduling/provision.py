"""The decider `provision(state, now)`: finds places for the pods that wait, and launches the nodes that they need."""

from __future__ import annotations

from hashlib import blake2b

from msgspec import Struct

from kerf.engine.model.content_digest import content
from kerf.engine.model.karpenter.nodepool_hash import hash_annotations
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.karpenter.requirements import Requirements
from kerf.engine.model.labels import DRA_DRIVERS, MIN_VALUES_RELAXED
from kerf.engine.record import claim_events as ev
from kerf.engine.record.decisions import DOUBTS, LaunchInstance, PlannedClaim, ProvisionResult, draw_of
from kerf.engine.scheduling.explain.held_pods import with_held_pods
from kerf.engine.scheduling.explain.tracer import Tracer
from kerf.engine.scheduling.explain.unready_pools import with_unready_pools
from kerf.engine.scheduling.launchable.launch_offers import choose_offers
from kerf.engine.scheduling.launches_in_doubt import launch_doubted_first
from kerf.engine.scheduling.optimizer.best_plan import best_plan
from kerf.engine.scheduling.plan import OpenedClaim, Plan
from kerf.engine.scheduling.problem.departing_pods import held_until, later_pods
from kerf.engine.scheduling.problem.from_state import problem_of
from kerf.engine.scheduling.problem.problem import Problem
from kerf.engine.scheduling.relaunch_delay import (
    DelayedPods,
    delayed_pods,
    problem_without,
    recently_launched,
    too_early,
)
from kerf.engine.state.provisioning_window import window_closes_at
from kerf.engine.state.state import State

VERSION = 47
MAX_RETRIES = 4
"""How often a pass plans again without pods that must wait for another node."""
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # Kubernetes' for generated names


class ProvisionOutcome(Struct, frozen=True):
    """What a pass decides, and the launches that follow from it."""

    result: ProvisionResult
    intents: tuple[LaunchInstance, ...] = ()


def due_at(state: State) -> int:
    """When the next pass is due (ms since the epoch); 0 for never.

    A pass is due when the batching window closes (S-55), when an offering without capacity may be tried again for pods
    without a place, when a pod may get another node than the one launched for it, or when the latest pass ran out of
    steps, or when a pod of a going node will soon leave it.
    """
    facts = state.facts
    times = [window_closes_at(facts)] if facts.batch_opened else []
    if facts.retry_at:
        times.append(facts.retry_at)
    if facts.rest:
        times.append(facts.rest_at)
    return min(times, default=0)


def provision(state: State, now: int, tracer: Tracer | None = None) -> ProvisionOutcome:
    """Make one pass. A result that equals the latest recorded one only names that one (`repeats`)."""
    problem = problem_of(state, now)
    planned, delayed = _planned(problem, state, now, tracer)
    planned, awaiting = launch_doubted_first(planned, problem, state, now)
    later = later_pods(state, now)
    left = {uid for group in planned.unplaced for uid in group.pods}
    held = held_until((pod for pod in problem.pods if pod.uid in left), state, now)
    names = claim_names([opened.node_pool for opened in planned.claims], state)
    claims = tuple(planned_claim(name, opened) for name, opened in zip(names, planned.claims, strict=True))
    result = ProvisionResult(
        claims,
        planned.placements,
        (
            *with_unready_pools(with_held_pods(planned.unplaced, problem), problem),
            *delayed.unplaced,
            *awaiting.unplaced,
        ),
        planned.ignored,
        retry_at=min((at for at in (delayed.until, awaiting.until, later.until, held) if at), default=0),
        truncated=planned.truncated,
        first_price=planned.first_price,
        lower_bound=planned.lower_bound,
        unbound=len(planned.unbound) if planned.rated else None,
        later=later.groups,
        touches=planned.touches,
    )
    if not claims and not result.truncated and content(result)[0] == state.facts.plan_digest:
        return ProvisionOutcome(ProvisionResult(repeats=state.facts.plan, retry_at=result.retry_at))
    return ProvisionOutcome(result, launch_orders(claims, problem))


def _planned(problem: Problem, state: State, now: int, tracer: Tracer | None) -> tuple[Plan, DelayedPods]:
    """The plan, without the pods that must wait for another node. Only the final plan is traced.

    Without some of these pods the plan may open claims for others of them. In the end none of those that got a node
    recently is planned for.
    """
    effort = problem.settings.effort
    recent = recently_launched(state.facts, now)
    if not recent:
        return best_plan(problem, effort, tracer), DelayedPods()
    recent = {pod.uid: recent[pod.uid] for pod in problem.pods if pod.uid in recent}
    planned, waiting = best_plan(problem, effort), frozenset[str]()
    for retries_left in reversed(range(MAX_RETRIES)):
        early = too_early(planned, recent)
        if not early:
            break
        waiting = waiting | early if retries_left else frozenset(recent)
        planned = best_plan(problem_without(problem, waiting), effort)
    if tracer is not None:
        planned = best_plan(problem_without(problem, waiting), effort, tracer)
    return planned, delayed_pods(waiting, recent, problem, state.facts)


def planned_claim(name: str, opened: OpenedClaim) -> PlannedClaim:
    return PlannedClaim(
        name=name,
        node_pool=opened.node_pool,
        pods=opened.pods,
        instance_types=opened.instance_types,
        requirements=opened.requirements,
        requests=opened.requests,
        price=opened.price,
        capacity_types=opened.capacity_types,
        labels=opened.labels,
        min_values_relaxed=opened.min_values_relaxed,
        overlaid=opened.overlaid,
        drivers=opened.drivers,
    )


def claim_names(pools: list[str], state: State) -> list[str]:
    """Names as in L-139: `<nodepool>-<five letters>`, made from the record's id and the position. Replay makes the same
    names, and no other claim of the plan or of the record has one of them."""
    names: dict[str, None] = {}
    for index, pool in enumerate(pools):
        attempt = 0
        while (name := _name(pool, state, index, attempt)) in names or f"nodeclaim/{name}" in state.facts.streams:
            attempt += 1
        names[name] = None
    return list(names)


def _name(pool: str, state: State, index: int, attempt: int) -> str:
    seed = f"{state.facts.record}/{state.facts.position}/{index}/{attempt}".encode()
    number = int.from_bytes(blake2b(seed, digest_size=8).digest())
    letters = ""
    for _ in range(5):
        number, digit = divmod(number, len(_ALPHABET))
        letters += _ALPHABET[digit]
    return f"{pool}-{letters}"


def launch_orders(claims: tuple[PlannedClaim, ...], problem: Problem) -> tuple[LaunchInstance, ...]:
    """What the cloud is asked for: one order for each claim."""
    inputs = {p.pool.name: p for p in problem.pools}
    launches = []
    for claim in claims:
        pool_input = inputs[claim.node_pool]
        pool = pool_input.pool
        choice = choose_offers(
            problem.catalogues[pool_input.catalogue],
            claim.instance_types,
            Requirements.of_specs(claim.requirements),
            problem.unavailable_to(pool_input),
            max_types=problem.settings.max_launch_types,
        )
        launches.append(
            LaunchInstance(
                claim=claim.name,
                node_pool=claim.node_pool,
                node_class=pool.node_class,
                capacity_type=choice.capacity_type,
                offers=choice.offers,
                reservation=choice.reservation,
                tenancy=choice.tenancy,
                requests=claim.requests,
                labels=claim.labels,
                taints=(*pool.taints, *pool.startup_taints),
                draw=(*draw_of(by_price="price" in claim.overlaid, relaxed=claim.min_values_relaxed), DOUBTS),
            )
        )
    return tuple(launches)


def _planned_annotations(claim: PlannedClaim) -> dict[str, str]:
    """Annotations: whether minValues were lowered, and which overlays count (L-56, L-94, S-110, S-164)."""
    relaxed = {MIN_VALUES_RELAXED: str(claim.min_values_relaxed).lower()}
    return relaxed | {f"karpenter.sh/{what}-overlay-applied": "true" for what in claim.overlaid}


def _drivers_annotation(claim: PlannedClaim) -> dict[str, str]:
    """The annotation that names the drivers of devices to wait for (S-160)."""
    return {DRA_DRIVERS: ",".join(claim.drivers)} if claim.drivers else {}


def requested(claim: PlannedClaim, pool: NodePool, decision: int) -> ev.Requested:
    """The event for a planned claim (L-139…L-143, S-163). `decision`: the position of its plan."""
    return ev.Requested(
        claim=claim.name,
        node_pool=pool.name,
        node_class=pool.node_class,
        requirements=claim.requirements,
        instance_types=claim.instance_types,
        requests=claim.requests,
        pods=claim.pods,
        price=claim.price,
        decision=decision,
        labels=claim.labels,
        annotations={
            **pool.annotations,
            **hash_annotations(pool),
            **_planned_annotations(claim),
            **_drivers_annotation(claim),
        },
        taints=pool.taints,
        startup_taints=pool.startup_taints,
        expire_after=pool.expire_after,
        termination_grace_period=pool.termination_grace_period,
    )
