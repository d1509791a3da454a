"""Prepared questions about one cluster give what each of them gives when it is asked from the beginning (D-87…D-93)."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kerf.engine.disruption.cluster import Cluster, moving_pods, what_if
from kerf.engine.disruption.consolidation.commands import decide
from kerf.engine.disruption.consolidation.replacement_bound import Bound
from kerf.engine.disruption.consolidation.sequential_search import MIN_SAVINGS
from kerf.engine.disruption.eligibility import consolidation, find_candidates
from kerf.engine.disruption.prepared_simulation import PreparedSimulations, suited
from kerf.engine.disruption.rebinding import Rebinding
from kerf.engine.disruption.simulation import Simulator
from kerf.engine.model import labels as lbl
from kerf.engine.model.instance_types import Catalogue, InstanceType, Offering
from kerf.engine.model.karpenter.nodepools import Budget, RequirementSpec
from kerf.engine.model.kubernetes.pods import AffinityTerm, Selector, SpreadConstraint, Toleration
from kerf.engine.model.reasons import Reason
from kerf.engine.record.decisions import Placement, Unplaced
from kerf.engine.scheduling.kube_scheduler.scheduler import unbound_pods
from kerf.engine.scheduling.plan import OpenedClaim, Plan
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem.problem import Problem
from tests.support.scenarios.clusters import DAEMON, NOW, SIZES, capacity, cluster, node, pod, pool
from tests.support.strategies.examples import examples

SEEDS = st.integers(0, 1 << 32)
APPS, ZONES = ("web", "api", "db"), ("a", "b", "c")


def in_zones(name: str, cpu: int) -> InstanceType:
    offers = tuple(
        Offering(zone, kind, cpu / 20_000 * (0.5 if kind == "spot" else 1))
        for zone in ZONES
        for kind in ("on-demand", "spot")
    )
    requirements = {lbl.CAPACITY_TYPE: ("on-demand", "spot"), lbl.ZONE: ZONES}
    return InstanceType(name, capacity(cpu), requirements=requirements, offerings=offers)


IN_ZONES = Catalogue(tuple(in_zones(name, cpu) for name, cpu in SIZES.items()))


def made(seed: int, *, affinity: bool = False) -> Cluster:
    """Up to ten nodes in three zones with pods that spread and keep apart; some nodes are settling, on their way out,
    or not initialized, some have one hostname, and the NodePool's limits may be near."""
    dice = random.Random(seed)
    manners = {app: _manners(app, dice, affinity) for app in APPS}
    nodes = []
    for number in range(dice.randint(2, 10)):
        size, left, pods = dice.choice(list(SIZES)), 0, []
        left = SIZES[size]
        for index in range(dice.randint(0, 5)):
            cpu, app = dice.choice([100, 300, 700, 1_500]), dice.choice(APPS)
            if cpu <= left:
                left -= cpu
                more: dict[str, Any] = {"owner": DAEMON} if dice.random() < 0.1 else {}
                more |= {"deleting": NOW - 1_000} if dice.random() < 0.05 else {}
                more |= {"do_not_disrupt": "true"} if dice.random() < 0.05 else {}
                more |= {"phase": "Pending"} if dice.random() < 0.05 else {}
                pods.append(pod(f"p{number}-{index}", cpu, labels={"app": app}, **manners[app], **more))
        changes: dict[str, Any] = {
            "labels": {lbl.ZONE: dice.choice(ZONES), **({lbl.HOSTNAME: "shared"} if dice.random() < 0.1 else {})},
            "marked": dice.random() < 0.1,
            "tracked": dice.random() < 0.95,
            "initialized": dice.random() < 0.9,
            "initialized_since": NOW - 3_600_000,
            "last_pod_event": NOW - dice.choice([1_000, 3_000_000, 3_000_000]),
            "consolidatable": True,
        }
        nodes.append(node(f"n{number}", size, *pods, **changes))
    waiting = tuple(
        pod(f"w{n}", 300, labels={"app": app}, phase="Pending", ready=False, unschedulable=True, **manners[app])
        for n in range(dice.choice([0, 0, 1, 2]))
        for app in [dice.choice(APPS)]
    )
    limits = {"cpu": dice.randint(8, 80) * 1_000} if dice.random() < 0.3 else None
    given = pool(consolidate_after=30_000, limits=limits, budgets=(Budget("100%"),))
    if dice.random() < 0.4:  # some nodes are where it launches none any more
        given = replace(given, requirements=(*given.requirements, RequirementSpec(lbl.ZONE, "In", ("a", "b"))))
    pools = [given]
    if dice.random() < 0.5:
        kinds = RequirementSpec(lbl.CAPACITY_TYPE, "In", (dice.choice(["on-demand", "spot"]),))
        pools += [pool("equal", requirements=(kinds,), limits={"cpu": 4_000} if dice.random() < 0.3 else None)]
    found = cluster(*nodes, pools=tuple(pools), pending=waiting, catalogue=IN_ZONES, live=dice.random() < 0.5)
    shapes = {
        waiting_pod.shape: found.shapes[waiting_pod.shape]
        for waiting_pod in (*waiting, *(pod for node in nodes for pod in node.pods))
    }
    return replace(found, base=replace(found.base, shapes=shapes))


def _manners(app: str, dice: random.Random, affinity: bool) -> dict[str, Any]:
    own = Selector({"app": app})
    found: dict[str, Any] = {}
    if dice.random() < 0.6:
        hard = dice.choice(["DoNotSchedule", "ScheduleAnyway"])
        key, taints = dice.choice([lbl.ZONE, lbl.HOSTNAME]), dice.choice(["Ignore", "Honor"])
        found["spread"] = (SpreadConstraint(key, dice.randint(1, 2), hard, own, node_taints_policy=taints),)
    if dice.random() < 0.3:
        other, key = Selector({"app": dice.choice(APPS)}), dice.choice([lbl.ZONE, lbl.HOSTNAME])
        found["anti_affinity"] = (AffinityTerm(key, other, weight=dice.choice([0, 0, 10])),)
    if affinity and dice.random() < 0.5:
        other = Selector({"app": dice.choice(APPS)})
        found["affinity"] = (AffinityTerm(lbl.ZONE, other, weight=dice.choice([0, 10])),)
    if dice.random() < 0.2:
        found["tolerations"] = (Toleration(key="odd", operator="Exists"),)
    return found


def leavers(given: Cluster, dice: random.Random) -> frozenset[str]:
    names = [cluster_node.name for cluster_node in given.nodes]
    return frozenset(dice.sample(names, dice.randint(0, min(4, len(names)))))


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(seed=SEEDS, asked=st.integers(0, 1 << 32))
def test_d87_prepared_questions_give_the_same_plans(seed: int, asked: int) -> None:
    """In any order, each as if nobody had asked before."""
    start, dice = made(seed), random.Random(asked)
    assert suited(start)
    for consolidating in (True, False):
        questions = PreparedSimulations(start, consolidating=consolidating)
        for _ in range(5):
            leaving = leavers(start, dice)
            problem = what_if(start, leaving, respect_settling=consolidating)
            found = questions.plan(leaving, 1)
            if found is not None:
                assert told(found.planned) == told(plan(problem, most_claims=1, told=False))
                assert (len(found.asked), found.nodes) == (len(problem.pods), len(problem.nodes))
                assert found.bound == len(problem.bound)


@settings(max_examples=examples(100), deadline=None)
@given(seed=SEEDS, asked=st.integers(0, 1 << 32))
def test_simulations_and_their_cost_are_the_same(seed: int, asked: int) -> None:
    start, dice = made(seed, affinity=True), random.Random(asked)
    one = Simulator(start, most_claims=1)
    for _ in range(4):
        leaving, before = leavers(start, dice), one.work
        alone = Simulator(start, most_claims=1, prepared=False)
        first = dice.choice(["", *(given.pool.name for given in start.pools)])
        assert one.without(leaving, first_pool=first) == alone.without(leaving, first_pool=first)
        assert one.work - before <= alone.work  # what nobody may leave for is asked once


@settings(max_examples=examples(150), deadline=None)
@given(seed=SEEDS, spot=st.booleans(), asked=st.integers(0, 1 << 32))
def test_d98_d102_what_the_bound_refuses_no_simulation_grants(seed: int, spot: bool, asked: int) -> None:
    """Whatever the nodes' capacity type, and whether NodePools may launch spot nodes."""
    dice = random.Random(asked)
    start = on_spot(made(seed, affinity=dice.random() < 0.2), dice) if spot else made(seed)
    simulator = Simulator(start, most_claims=1)
    bound, candidates = Bound(simulator), find_candidates(start, consolidation).chosen
    for _ in range(6):
        tried = dice.sample(candidates, min(dice.randint(1, 3), len(candidates)))
        if tried and bound.refusal(tried):
            granted = decide(Simulator(start, most_claims=1, prepared=False), tried)
            assert isinstance(granted, Reason) or granted.savings <= MIN_SAVINGS


def on_spot(start: Cluster, dice: random.Random) -> Cluster:
    """The cluster with spot nodes, and a NodePool that may launch some."""
    nodes = tuple(
        replace(node, place=replace(node.place, labels={**node.labels, lbl.CAPACITY_TYPE: "spot"}))
        if dice.random() < 0.8
        else node
        for node in start.nodes
    )
    kept = [spec for spec in start.pools[0].pool.requirements if spec.key != lbl.CAPACITY_TYPE]
    pools = tuple(
        replace(pool_input, pool=replace(pool_input.pool, requirements=tuple(kept))) for pool_input in start.pools
    )
    return replace(start, nodes=nodes, base=replace(start.base, pools=pools))


def told(made: Plan) -> Any:
    """A plan, but for which pods without a place are told of together, and which of several rules is named."""

    def alone(groups: Iterable[Unplaced]) -> list[Any]:
        return sorted(
            (uid, sorted({reason.code for reason in group.reasons})) for group in groups for uid in group.pods
        )

    return made.claims, made.placements, alone(made.unplaced), alone(made.ignored), made.truncated


# ── what the scheduler makes of it ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(seed=SEEDS, asked=st.integers(0, 1 << 32))
def test_the_scheduler_is_asked_the_same(seed: int, asked: int) -> None:
    start, dice = made(seed, affinity=True), random.Random(asked)
    binding = Rebinding(start)
    anyway = left(start, frozenset(), ())
    for _ in range(4):
        leaving = leavers(start, dice)
        claims = plan(what_if(start, leaving, respect_settling=True)).claims
        found = left(start, leaving, claims)
        assert binding.unbound(leaving, claims) == found - anyway


def left(given: Cluster, leaving: frozenset[str], claims: tuple[OpenedClaim, ...]) -> frozenset[str]:
    """Asked from the beginning."""
    going, gone = moving_pods(given, leaving)
    problem = smallest_first(what_if(given, leaving, respect_settling=False))
    on_new = frozenset(uid for claim in claims for uid in claim.pods)
    others = tuple(pod.uid for pod in (*going, *gone) if pod.uid not in on_new)
    problem = replace(
        problem, pods=tuple(waiting_pod for waiting_pod in problem.pods if waiting_pod.uid in on_new.union(others))
    )
    return frozenset(unbound_pods(problem, Plan(claims=claims, placements=(Placement("", "", others),))))


def smallest_first(problem: Problem) -> Problem:
    sizes = {digest: sorted(shape.requests.items()) for digest, shape in problem.shapes.items()}
    ranked = sorted(problem.pods, key=lambda pod: (sizes[pod.shape], pod.namespace, pod.name, pod.uid))
    return replace(problem, pods=tuple(replace(pod, created=rank) for rank, pod in enumerate(ranked)))
