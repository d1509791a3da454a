"""What pods gave up is told of each pod, also where pods that asked for less share their class (S-31, S-33)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kerf.engine.model import labels as lbl
from kerf.engine.model.kubernetes.pods import (
    AffinityTerm,
    PodShape,
    PreferredNodeTerm,
    Selector,
    SpreadConstraint,
    Taint,
)
from kerf.engine.scheduling.explain.funnel_tracer import FunnelTracer
from kerf.engine.scheduling.explain.relaxed_preferences import RelaxedPreference
from kerf.engine.scheduling.planner import plan
from tests.support.scenarios.problems import Workloads, ladder, pool, problem, shape, spec, term

NOWHERE = term((lbl.ZONE, "In", ("z9",)))
ASKED = f"{lbl.ZONE} In [z9]"
APP = Selector({"app": "x"})


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        (
            {"preferred_terms": (PreferredNodeTerm(7, NOWHERE),)},
            RelaxedPreference("preferred-term", (ASKED,), weight=7),
        ),
        ({"required_terms": (NOWHERE, term((lbl.ZONE, "In", ("z1",))))}, RelaxedPreference("required-term", (ASKED,))),
        ({"affinity": (AffinityTerm(lbl.ZONE, APP, weight=3),)}, RelaxedPreference("affinity", (), lbl.ZONE, 3)),
        (
            {"spread": (SpreadConstraint("rack", when_unsatisfiable="ScheduleAnyway", selector=APP),)},
            RelaxedPreference("spread", (), "rack"),
        ),
    ],
)
def test_each_kind_of_preference(fields: dict[str, Any], told: RelaxedPreference) -> None:
    work = Workloads().add("plain", 1, shape(500)).add("picky", 1, shape(500, **fields))
    given = problem(work, ladder(8))
    tracer = FunnelTracer(given.shapes.get)
    plan(given, tracer)
    relaxed = [given_up for found in tracer.funnel.classes for given_up in found.relaxed]
    assert [(given_up.pods, given_up.gave_up) for given_up in relaxed] == [(("picky-0",), (told,))]


def test_anti_affinity_and_soft_taints_come_in_the_order_in_which_they_are_given_up() -> None:
    apart = AffinityTerm(lbl.ZONE, APP, weight=3)
    work = Workloads().add("x", 2, shape(500, labels={"app": "x"}, anti_affinity=(apart,)))
    given = problem(work, ladder(8), pool("p", spec(lbl.ZONE, "In", "z1"), taints=(Taint("a", "PreferNoSchedule"),)))
    tracer = FunnelTracer(given.shapes.get)
    assert not plan(given, tracer).unplaced
    relaxed = [given_up for found in tracer.funnel.classes for given_up in found.relaxed]
    told = {uid: [one.what for one in given_up.gave_up] for given_up in relaxed for uid in given_up.pods}
    assert told == {"x-0": ["anti-affinity", "soft-taints"], "x-1": ["anti-affinity", "soft-taints"]}


@pytest.mark.parametrize("shapes", [None, lambda digest: None])
def test_where_the_shapes_are_not_known_nothing_is_told(shapes: Callable[[str], PodShape | None] | None) -> None:
    """A search for a cheaper plan asks about pods of shapes that it makes itself."""
    given = problem(Workloads().add("x", 1, shape(500, preferred_terms=(PreferredNodeTerm(7, NOWHERE),))), ladder(8))
    tracer = FunnelTracer(shapes)
    plan(given, tracer)
    assert not any(found.relaxed for found in tracer.funnel.classes)


def test_the_term_that_placed_a_pod_is_not_among_what_it_gave_up() -> None:
    """S-33, unlike the reference: the first term has its turn after all others, without the preference."""
    z1, z8 = term((lbl.ZONE, "In", ("z1",))), term((lbl.ZONE, "In", ("z8",)))
    wanted = shape(500, required_terms=(z1, NOWHERE), preferred_terms=(PreferredNodeTerm(7, z8),))
    given = problem(Workloads().add("picky", 1, wanted), ladder(8))
    tracer = FunnelTracer(given.shapes.get)
    assert plan(given, tracer).claims
    (found,) = (given_up for group in tracer.funnel.classes for given_up in group.relaxed)
    assert found.gave_up == (
        RelaxedPreference("required-term", (ASKED,)),
        RelaxedPreference("preferred-term", (f"{lbl.ZONE} In [z8]",), weight=7),
    )
