"""What is launched for devices: the drivers that a NodeClaim names (S-160), and what the funnel tells."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.scheduling.explain.funnel_tracer import FunnelTracer
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.planner import plan
from tests.support.scenarios.device_problems import (
    DRIVER,
    claim,
    gpu,
    published,
    question,
    solved,
    template,
    types,
)


def drivers(planned: Plan) -> list[tuple[str, ...]]:
    return [opened.drivers for opened in planned.claims]


def test_s160_a_claim_names_the_drivers_of_the_devices_that_it_brings() -> None:
    net = published("net", replace(gpu("g0"), attributes={}), all_nodes=True)
    pods = {"a": ["c"], "plain": []}
    assert drivers(solved([claim("c")], pods, types(x=template(gpu("g0"))))) == [(DRIVER,)]
    assert drivers(solved([claim("c")], pods, types(x=()), slices=[net])) == [()]


def test_the_funnel_tells_of_types_without_the_devices() -> None:
    tracer = FunnelTracer()
    given = question([claim("c")], {"a": ["c"]}, types(bare=(), one=template(gpu("g0"))))
    plan(given, tracer)
    ((look,),) = (pod_class.pools for pod_class in tracer.funnel.classes)
    assert [(cut.what, cut.types, cut.wanted) for cut in look.funnel.cuts] == [("devices", 1, "default/c")]
    assert [option.instance_type for option in look.funnel.left] == ["one"]
    assert [(miss.what, miss.example) for miss in look.funnel.near] == [("devices", "bare")]
