"""The search for an order of binding leaves the same pods unbound as the plain way, which goes through all pods again
and again (S-134).
"""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from kerf.engine.scheduling.kube_scheduler.binding_order import BindingOrder, PlacedPod, may_wait_for_others
from kerf.engine.scheduling.kube_scheduler.interpod_counts import InterpodCounts
from kerf.engine.scheduling.kube_scheduler.interpod_rules import InterpodRules
from kerf.engine.scheduling.kube_scheduler.node_info import NodeInfo, planned_node
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem.problem import Problem, ShapeKey
from tests.support.strategies.more_choice import pair

SEEDS = 120


def again_and_again(
    counts: InterpodCounts, rules: InterpodRules, pods: Iterable[PlacedPod], late: frozenset[ShapeKey]
) -> list[str]:
    ruled, held = list[PlacedPod](), list[PlacedPod]()
    for waiting in pods:
        (held if waiting[0] in late or not may_wait_for_others(rules, waiting[0]) else ruled).append(waiting)
    while ruled or any(waiting[0] in late for waiting in held):
        rest = []
        for waiting in ruled:
            if counts.allows(*waiting[:2]):
                counts.add_pod(*waiting[:2])
            else:
                rest.append(waiting)
        if len(rest) == len(ruled):
            ready = [waiting for waiting in held if waiting[0] not in late or counts.allows(*waiting[:2])]
            if not ready:
                return [uid for shape_key, _, uid in (*rest, *held) if may_wait_for_others(rules, shape_key)]
            first = rest[0] if rest else ready[0]
            spreads = [hard_spread.count for hard_spread in rules.by_shape[first[0]].hard_spreads]
            chosen = min(ready, key=lambda each: (counts.contention(each[0], each[1], spreads), each))
            held.remove(chosen)
            counts.add_pod(*chosen[:2])
        ruled = rest
    return []


def shuffled(made: Plan, rng: random.Random) -> Plan:
    """Some pods on other nodes than planned: there they may have to wait for others, or for ever."""
    uids = [uid for claim in made.claims for uid in claim.pods]
    for _ in range(rng.choice([0, 1, 3, len(uids)])):
        a, b = rng.randrange(len(uids)), rng.randrange(len(uids))
        uids[a], uids[b] = uids[b], uids[a]
    rest = iter(uids)
    return replace(made, claims=tuple(replace(c, pods=tuple(next(rest) for _ in c.pods)) for c in made.claims))


def seated(problem: Problem, made: Plan) -> tuple[list[NodeInfo], list[PlacedPod]]:
    nodes = [planned_node(f"~{number}", claim, (), problem) for number, claim in enumerate(made.claims)]
    pairs = {pod.uid: (pod.namespace, pod.shape) for pod in problem.pods}
    return nodes, [(pairs[uid], number, uid) for number, claim in enumerate(made.claims) for uid in claim.pods]


@pytest.mark.parametrize("some_are_late", [False, True])
def test_the_search_leaves_the_same_pods_unbound_as_going_through_all_again_and_again(some_are_late: bool) -> None:
    stuck = 0
    for seed in range(SEEDS):
        rng = random.Random(seed)
        problem = pair(seed, 4, 7)[0]
        made = plan(problem)
        if not made.claims:
            continue
        nodes, pods = seated(problem, shuffled(made, rng))
        rules = InterpodRules(problem)
        late = frozenset(pod[0] for pod in pods if some_are_late and rng.random() < 0.5)
        found = BindingOrder(InterpodCounts(problem, rules, nodes), rules, pods, late).unbound()
        assert found == again_and_again(InterpodCounts(problem, rules, nodes), rules, pods, late), f"seed {seed}"
        stuck += bool(found)
    assert stuck > SEEDS // 10
