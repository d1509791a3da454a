"""Plans of random problems: valid, complete, deterministic, and equal to packing pod by pod."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from kerf.engine.scheduling.explain.funnel_tracer import FunnelTracer
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem.problem import Problem
from tests.support.judges.slow_planner import pack, violations
from tests.support.scenarios.shuffle import shuffled
from tests.support.strategies.plans import problems, relaxed_settings


@given(problems())
@relaxed_settings
def test_a_plan_is_valid_and_places_or_explains_every_pod(given_problem: Problem) -> None:
    planned = plan(given_problem)
    assert violations(given_problem, planned) == []
    assert all(group.reasons for group in planned.unplaced)


@given(problems())
@relaxed_settings
def test_s85_to_s106_classes_and_bitsets_give_what_pod_by_pod_gives(given_problem: Problem) -> None:
    """`pack` decides nothing by class and remembers no refusal."""
    planned = plan(given_problem)
    claims, nodes, unplaced = pack(given_problem)
    assert sorted((c.node_pool, sorted(c.pods), sorted(c.instance_types)) for c in planned.claims) == claims
    assert {placement.node: sorted(placement.pods) for placement in planned.placements} == nodes
    assert sorted(uid for group in planned.unplaced for uid in group.pods) == unplaced


@given(problems(), st.randoms(use_true_random=False))
@relaxed_settings
def test_the_order_in_which_things_are_listed_does_not_matter(given_problem: Problem, shuffle: random.Random) -> None:
    other = shuffled(given_problem, shuffle)
    assert plan(other) == plan(given_problem)


@given(problems())
@relaxed_settings
def test_a_tracer_changes_nothing_and_its_funnels_add_up(given_problem: Problem) -> None:
    tracer = FunnelTracer()
    assert plan(given_problem, tracer) == plan(given_problem)
    for pod_class in tracer.funnel.classes:
        for look in pod_class.pools:
            left = look.funnel.types - sum(cut.types for cut in look.funnel.cuts)
            assert len(look.funnel.left) == left
            assert (look.reason is None) <= (left > 0)
