"""Pass after pass over random problems: a limit of steps loses nobody and ends, and what was planned stays."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem.problem import Problem
from tests.support.judges.plans import faults
from tests.support.scenarios.shuffle import shuffled
from tests.support.strategies.examples import examples
from tests.support.strategies.plans import problems

few = settings(max_examples=examples(40), deadline=None)
questions = problems()


def placed(planned: Plan) -> set[str]:
    return {uid for claim in planned.claims for uid in claim.pods} | {
        uid for placement in planned.placements for uid in placement.pods
    }


def all_pods(planned: Plan) -> list[str]:
    on_new = [uid for claim in planned.claims for uid in claim.pods]
    on_old = [uid for placement in planned.placements for uid in placement.pods]
    left = [uid for group in (*planned.unplaced, *planned.ignored) for uid in group.pods]
    return sorted([*planned.truncated, *on_new, *on_old, *left])


def again(given_problem: Problem, planned: Plan) -> Problem:
    """The same question with the pods on existing nodes planned there, and without those that it opens claims for."""
    targets = {uid: placement.claim or placement.node for placement in planned.placements for uid in placement.pods}
    on_new = {uid for claim in planned.claims for uid in claim.pods}
    pods = tuple(replace(pod, target=targets.get(pod.uid, "")) for pod in given_problem.pods if pod.uid not in on_new)
    return replace(given_problem, pods=pods)


@given(questions, st.integers(1, 6))
@few
def test_a_limit_of_steps_loses_nobody_and_the_rest_comes_to_an_end(question: Problem, steps: int) -> None:
    left = replace(question, settings=replace(question.settings, max_steps=steps))
    for _ in range(len(question.pods) + 1):
        planned = plan(left)
        assert faults(left, planned) == []
        assert all_pods(planned) == sorted(pod.uid for pod in left.pods)
        if not planned.truncated:
            return
        rest = frozenset(planned.truncated)
        there = {uid for placement in planned.placements for uid in placement.pods}
        following = again(left, planned)
        pods = tuple(pod for pod in following.pods if pod.uid in rest or pod.uid in there)
        assert len([pod for pod in pods if not pod.target]) < len([pod for pod in left.pods if not pod.target])
        left = replace(following, pods=pods)
    raise AssertionError("the rest never came to an end")


@given(questions, st.integers(0, 5))
@few
def test_what_was_planned_on_nodes_stays_whoever_comes_after(question: Problem, seed: int) -> None:
    half = replace(question, pods=question.pods[::2])
    before = plan(half)
    held = {uid: placement.node for placement in before.placements for uid in placement.pods}
    targets = {uid: placement.claim or placement.node for placement in before.placements for uid in placement.pods}
    later = replace(question, pods=tuple(replace(pod, target=targets.get(pod.uid, "")) for pod in question.pods))
    after = plan(later)
    assert faults(later, after) == []
    now = {uid: placement.node for placement in after.placements for uid in placement.pods}
    assert {uid: now.get(uid) for uid in held} == held
    assert plan(shuffled(later, random.Random(seed))) == after


@given(questions)
@few
def test_pods_of_buffers_take_no_room_from_others(question: Problem) -> None:
    """Without limits, which buffers use up as well, the real pods have the places that they have without them."""
    free = replace(question, pools=tuple(replace(e, pool=replace(e.pool, limits=None)) for e in question.pools))
    virtual = tuple(replace(pod, virtual=True) for pod in free.pods[1::2])
    real = free.pods[::2]
    alone = plan(replace(free, pods=real))
    both = plan(replace(free, pods=(*real, *virtual)))
    on_nodes = {(placement.node, uid) for placement in alone.placements for uid in placement.pods}
    assert on_nodes <= {(placement.node, uid) for placement in both.placements for uid in placement.pods}
    assert placed(alone) <= placed(both)
