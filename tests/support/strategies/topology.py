"""Strategies for planning problems with topology."""

from __future__ import annotations

from hypothesis import strategies as st
from msgspec.structs import replace

from kerf.engine.model import labels as lbl
from kerf.engine.model.kubernetes.pods import AffinityTerm, Expression, PodShape, Selector, SpreadConstraint
from kerf.engine.scheduling.problem.problem import NodeInput, Problem
from tests.support.scenarios.problems import GI, Workloads, problem, shape
from tests.support.strategies.plans import catalogues, pools
from tests.support.strategies.plans import shapes as plain_shapes

KEYS = st.sampled_from([lbl.ZONE, lbl.HOSTNAME, lbl.ZONE, lbl.HOSTNAME, lbl.CAPACITY_TYPE, "team"])
APPS = ("a", "b", "c")
SELECTORS = st.sampled_from(
    [Selector({"app": app}) for app in APPS] + [Selector(), Selector(expressions=(Expression("app", "NotIn", ("a",)),))]
)


@st.composite
def spreads(draw: st.DrawFn) -> SpreadConstraint:
    return SpreadConstraint(
        draw(KEYS),
        draw(st.integers(1, 3)),
        draw(st.sampled_from(["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"])),
        draw(SELECTORS),
        draw(st.sampled_from([None, None, 2, 4])),
        node_affinity_policy=draw(st.sampled_from(["Honor", "Honor", "Ignore"])),
        node_taints_policy=draw(st.sampled_from(["Honor", "Ignore"])),
    )


@st.composite
def terms(draw: st.DrawFn) -> AffinityTerm:
    return AffinityTerm(draw(KEYS), draw(SELECTORS), weight=draw(st.sampled_from([0, 0, 5])))


@st.composite
def shapes(draw: st.DrawFn) -> PodShape:
    own = {"app": draw(st.sampled_from(APPS))}
    kind = draw(st.sampled_from(["plain", "spread", "near", "apart", "mixed"]))
    return replace(
        draw(plain_shapes(ports=False)),
        labels=own,
        spread=tuple(draw(st.lists(spreads(), max_size=2))) if kind in ("spread", "mixed") else (),
        affinity=tuple(draw(st.lists(terms(), max_size=1))) if kind in ("near", "mixed") else (),
        anti_affinity=tuple(draw(st.lists(terms(), max_size=2))) if kind in ("apart", "mixed") else (),
    )


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    work = Workloads()
    for number in range(draw(st.integers(1, 5))):
        work.add(f"w{number}", draw(st.integers(1, 7)), draw(shapes()), created=draw(st.integers(0, 1)))
    nodes = [
        NodeInput(
            f"n{number}",
            "",
            draw(st.sampled_from([{lbl.ZONE: "z1"}, {"team": "red", lbl.ZONE: "z2"}, {}])),
            (),
            {"cpu": draw(st.sampled_from([500, 2500])), "memory": 4 * GI, "pods": 5},
        )
        for number in range(draw(st.integers(0, 3)))
    ]
    bound = [
        (draw(st.sampled_from([shape(labels={"app": app}) for app in APPS])), draw(st.sampled_from(nodes)).name)
        for _ in range(draw(st.integers(0, 4)) if nodes else 0)
    ]
    return problem(work, draw(catalogues()), *draw(pools()), nodes=nodes, bound=bound)
