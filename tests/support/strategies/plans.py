"""Strategies for planning problems without topology."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from kerf.engine.model import labels as lbl
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.kubernetes.pods import HostPort, PodShape, Taint, Toleration
from kerf.engine.scheduling.problem.problem import NodeInput, Problem
from tests.support.scenarios.problems import GI, Workloads, instance_type, pool, problem, shape, spec, term
from tests.support.strategies.examples import examples

relaxed_settings = settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def catalogues(draw: st.DrawFn) -> Catalogue:
    sizes = draw(st.lists(st.sampled_from([1, 2, 4, 8, 16]), min_size=1, max_size=6))
    types = []
    for number, cpu in enumerate(sizes):
        family = draw(st.sampled_from(["a", "b", "c"]))
        types.append(
            instance_type(
                f"t{number}",
                cpu,
                memory=cpu * draw(st.sampled_from([1, 2, 4])) * GI,
                pods=draw(st.sampled_from([3, 8, 30])),
                zones=draw(st.sampled_from([("z1",), ("z1", "z2"), ("z1", "z2", "z3")])),
                capacity_types=draw(st.sampled_from([("on-demand",), ("on-demand", "spot")])),
                labels={"example.com/family": (family,), "example.com/size": (str(cpu),)},
            )
        )
    return Catalogue(tuple(types))


@st.composite
def pools(draw: st.DrawFn) -> list[NodePool]:
    made = []
    for name in draw(st.sampled_from([["p"], ["p", "q"]])):
        requirements = draw(
            st.lists(
                st.sampled_from(
                    [
                        spec(lbl.ZONE, "In", "z1", "z2"),
                        spec("example.com/size", "Gt", "1"),
                        spec("example.com/family", "Exists", least=2),
                        spec("team", "In", "red", "blue"),
                        spec(lbl.CAPACITY_TYPE, "NotIn", "spot"),
                    ]
                ),
                max_size=2,
                unique_by=lambda each: each.key,
            )
        )
        made.append(
            pool(
                name,
                *requirements,
                weight=draw(st.integers(0, 1)),
                taints=draw(st.sampled_from([(), (), (Taint("t", "NoSchedule"),)])),
                limits=draw(st.sampled_from([None, None, {"cpu": 20_000}, {"nodes": 3, "memory": 40 * GI}])),
            )
        )
    return made


@st.composite
def shapes(draw: st.DrawFn, ports: bool = True) -> PodShape:
    terms = draw(
        st.sampled_from(
            [
                (),
                (),
                (term((lbl.ZONE, "In", ("z1",))),),
                (term((lbl.ZONE, "NotIn", ("z1",))),),
                (term(("example.com/size", "Gt", ("2",))),),
                (term(("foo", "NotIn", ("bar",))),),
                (term(("foo", "In", ("baz",))),),
            ]
        )
    )
    return shape(
        draw(st.sampled_from([0, 100, 500, 900, 2000])),
        draw(st.sampled_from([0, GI // 2, GI, 3 * GI])),
        node_selector=draw(st.sampled_from([{}, {}, {"team": "red"}, {lbl.CAPACITY_TYPE: "spot"}])),
        tolerations=draw(st.sampled_from([(), (Toleration("t", "Exists"),)])),
        required_terms=terms,
        host_ports=draw(st.sampled_from([(), (), (HostPort(80),)])) if ports else (),
    )


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    work = Workloads()
    for number in range(draw(st.integers(1, 5))):
        work.add(f"w{number}", draw(st.integers(1, 9)), draw(shapes()), created=draw(st.integers(0, 1)))
    nodes = [
        NodeInput(
            f"n{number}",
            "",
            draw(st.sampled_from([{}, {lbl.ZONE: "z1"}, {"team": "red", lbl.ZONE: "z2"}])),
            draw(st.sampled_from([(), (Taint("t", "NoSchedule"),)])),
            {"cpu": draw(st.sampled_from([500, 2500])), "memory": 4 * GI, "pods": 5},
            initialized=draw(st.booleans()),
        )
        for number in range(draw(st.integers(0, 3)))
    ]
    daemons = draw(st.lists(shapes(), max_size=2))
    return problem(work, draw(catalogues()), *draw(pools()), nodes=nodes, daemons=daemons)
