"""The tracer: what ruled what out, and what would have done (the funnel)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kerf.engine.model import labels as lbl
from kerf.engine.model.instance_types import Catalogue, InstanceType, Offering
from kerf.engine.model.kubernetes.pods import (
    AffinityTerm,
    HostPort,
    Selector,
    SpreadConstraint,
    Taint,
    Toleration,
    VolumeRef,
)
from kerf.engine.model.kubernetes.volumes import Volume, VolumeClaim, VolumeFacts
from kerf.engine.scheduling.explain.funnel_tracer import Funnel, FunnelTracer
from kerf.engine.scheduling.explain.tracer import Cut, NearMiss
from kerf.engine.scheduling.optimizer.partial_problems import without_types
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem.problem import NodeInput, Problem
from kerf.engine.scheduling.reasons import SchedulingCode, sentence
from tests.support.scenarios.problems import GI, Workloads, instance_type, ladder, pool, problem, shape, spec, term

SOLD_OUT = frozenset([("spot", "", ""), ("on-demand", "", "")])


def funnel_of(given: Problem) -> Funnel:
    tracer = FunnelTracer()
    assert plan(given, tracer) == plan(given)  # being watched changes nothing
    return tracer.funnel


def test_a_placed_class_shows_cuts_what_is_left_and_where_it_went() -> None:
    work = Workloads().add("a", 2, shape(3000))
    funnel = funnel_of(problem(work, ladder(2, 4, 8), pool("p", limits={"cpu": 7000})))
    (only,) = funnel.classes
    look, second = only.pools
    assert look.reason is None
    assert second.reason is not None
    assert second.reason.code == SchedulingCode.LIMITS
    assert look.funnel.types == 3
    assert look.funnel.cuts == (Cut("limits", 1, "cpu", "7000"), Cut("resource", 1, "cpu", "3000"))
    assert [option.instance_type for option in look.funnel.left] == ["t04"]
    assert only.placed == ((0, ("a-0",)),)
    assert only.unplaced == ("a-1",)
    assert funnel.claims[0].left == look.funnel.left


def test_a_nodepool_is_shown_with_its_weight() -> None:
    """It is why a dearer one is asked first."""
    pools = (replace(pool("heavy"), weight=90), pool("light"))
    funnel = funnel_of(problem(Workloads().add("x", 1, shape(100)), ladder(2), *pools))
    assert [(look.funnel.node_pool, look.funnel.weight) for look in funnel.classes[0].pools] == [("heavy", 90)]


def test_near_miss_of_a_zone() -> None:
    """'2 types fit if zone z4 were allowed', and for the pod's side 'if it did not ask for z4'."""
    types = (instance_type("a", 2, zones=("z1", "z4")), instance_type("b", 4, zones=("z4",)), instance_type("c", 8))
    work = Workloads().add("x", 1, shape(node_selector={lbl.ZONE: "z4"}))
    funnel = funnel_of(problem(work, Catalogue(types), pool("p", spec(lbl.ZONE, "In", "z1", "z2"))))
    (look,) = funnel.classes[0].pools
    assert look.reason is not None
    assert look.reason.code == SchedulingCode.REQUIREMENTS
    assert NearMiss("requirement", 2, "a", lbl.ZONE, ("z4",), side="node-pool") in look.funnel.near
    assert NearMiss("requirement", 2, "a", lbl.ZONE, ("z1", "z2"), side="pod") in look.funnel.near


@pytest.mark.parametrize(
    ("tolerated", "told"),
    [
        (Toleration("dedicated", value="bacth", effect="NoSchedule"), ("dedicated=bacth:NoSchedule",)),
        (Toleration("dedicatde", operator="Exists"), ("dedicatde",)),
        (Toleration("node.kubernetes.io/not-ready", operator="Exists", effect="NoExecute"), ()),
    ],
)
def test_a_taint_shows_what_is_tolerated_of_its_key(tolerated: Toleration, told: tuple[str, ...]) -> None:
    work = Workloads().add("x", 1, shape(tolerations=(tolerated,)))
    funnel = funnel_of(
        problem(work, ladder(2), replace(pool("p"), taints=(Taint("dedicated", "NoSchedule", "batch"),)))
    )
    (look,) = funnel.classes[0].pools
    assert look.funnel.cuts == (Cut("taint", 1, "dedicated", "dedicated=batch:NoSchedule", tolerated=told),)


@pytest.mark.parametrize(("asked", "meant"), [("m5.lagre", ("m5.large",)), ("c5.large", ()), ("z9", ())])
def test_a_near_miss_of_a_mistyped_value_says_what_may_be_meant(asked: str, meant: tuple[str, ...]) -> None:
    """A type that is there and does not do is not mistyped, however much it is like one that would."""
    catalogue = Catalogue((instance_type("m5.large", 2), instance_type("c5.large", 2)))
    plain = pool("p", spec(lbl.INSTANCE_TYPE, "NotIn", "c5.large"))
    work = Workloads().add("x", 1, shape(node_selector={lbl.INSTANCE_TYPE: asked}))
    (look,) = funnel_of(problem(work, catalogue, plain)).classes[0].pools
    assert [miss.meant for miss in look.funnel.near if miss.side == "pod"] == [meant]


def test_a_mistyped_value_of_the_node_pool_is_told_by_the_pool_that_has_nothing_to_launch() -> None:
    catalogue = Catalogue((instance_type("m5.large", 2), instance_type("c5.large", 2)))
    typo = pool("p", spec(lbl.INSTANCE_TYPE, "In", "m5.lagre"))
    (dropped,) = funnel_of(problem(Workloads().add("x", 1, shape()), catalogue, typo)).classes[0].pools
    values, meant = ("c5.large", "m5.large"), ("m5.large",)
    assert dropped.funnel.near == (
        NearMiss("requirement", 2, "c5.large", lbl.INSTANCE_TYPE, values, side="node-pool", meant=meant),
    )


@pytest.mark.parametrize(
    ("gib", "values", "meant"), [(1, ("c5.large", "m5.large"), ("m5.large",)), (5, ("c5.large",), ())]
)
def test_what_would_help_a_node_pool_without_types_depends_on_what_pods_ask_for(
    gib: int, values: tuple[str, ...], meant: tuple[str, ...]
) -> None:
    """S-66. A type that is too small for them would not do, whatever the NodePool allowed; nor is another one meant
    instead of it."""
    catalogue = Catalogue((instance_type("m5.large", 2, price=9.0), instance_type("c5.large", 4)))
    typo = pool("p", spec(lbl.INSTANCE_TYPE, "In", "m5.lagre"))
    work = Workloads().add("small", 1, shape()).add("x", 1, shape(memory=gib * GI))
    funnel = funnel_of(problem(work, catalogue, typo))
    assert funnel.dropped == ()
    found = next(pod_class for pod_class in funnel.classes if pod_class.unplaced == ("x-0",))
    (dropped,) = found.pools
    assert dropped.funnel.cuts == (Cut("requirement", 2, lbl.INSTANCE_TYPE, f"{lbl.INSTANCE_TYPE} In [m5.lagre]"),)
    assert [(miss.values, miss.meant) for miss in dropped.funnel.near] == [(values, meant)]


def test_a_node_pool_without_types_that_nothing_would_help_has_no_near_miss() -> None:
    """S-66. Its taint stops the pod besides, so no single change is enough."""
    typo = pool("p", spec(lbl.INSTANCE_TYPE, "In", "t03"), taints=(Taint("a", "NoSchedule"),))
    (dropped,) = funnel_of(problem(Workloads().add("x", 1, shape()), ladder(2, 4), typo)).classes[0].pools
    assert dropped.funnel.near == ()


def test_without_pods_a_node_pool_without_types_is_told_of_all_the_same() -> None:
    """A NodePool without instance types is told of even if no pod waits (S-66)."""
    typo = pool("p", spec(lbl.INSTANCE_TYPE, "In", "t03"))
    (dropped,) = funnel_of(problem(Workloads(), ladder(2, 4), typo)).dropped
    assert dropped.funnel.types == 2
    assert dropped.funnel.near == ()


def test_instance_types_that_would_do_are_named_cheapest_first() -> None:
    types = tuple(
        instance_type(name, 4, price=price) for name, price in (("a", 3.0), ("b", 1.0), ("c", 2.0), ("d", 9.0))
    )
    work = Workloads().add("x", 1, shape(node_selector={lbl.INSTANCE_TYPE: "z"}))
    (look,) = funnel_of(problem(work, Catalogue(types), pool("p"))).classes[0].pools
    assert [miss.values for miss in look.funnel.near] == [("b", "c", "a", "d")]


def _sold(name: str, **prices: float) -> InstanceType:
    """A type with one price a zone and capacity type: z1_spot."""
    offers = tuple(
        Offering(zone, lbl.SPOT if kind == "spot" else lbl.ON_DEMAND, price)
        for (zone, kind), price in ((key.split("_"), price) for key, price in prices.items())
    )
    return instance_type(name, 4, offerings=offers)


@pytest.mark.parametrize(
    "wanted",
    [
        {"node_selector": {lbl.INSTANCE_TYPE: "z"}},
        {"cpu": 9000},
        {"tolerations": ()},
        {"node_selector": {lbl.ARCH: "arm64"}},
    ],
)
def test_the_cheapest_of_a_near_miss_is_what_would_be_launched(wanted: dict[str, Any]) -> None:
    """S-204. What a type costs as spot capacity, or in another zone, is nothing to a NodePool for neither."""
    types = (_sold("a", z1_spot=0.1, z2_od=0.2, z1_od=3.0), _sold("b", z1_spot=0.9, z1_od=2.0))
    own = spec(lbl.CAPACITY_TYPE, "In", lbl.ON_DEMAND), spec(lbl.ZONE, "In", "z1")
    stained = (Taint("t", "NoSchedule"),) if "tolerations" in wanted else ()
    work = Workloads().add("x", 1, shape(**wanted))
    (look,) = funnel_of(problem(work, Catalogue(types), pool("p", *own, taints=stained))).classes[0].pools
    (miss,) = look.funnel.near
    assert (miss.types, miss.example) == (2, "b")
    if miss.key == lbl.INSTANCE_TYPE:
        assert miss.values == ("b", "a")


def test_the_cheapest_of_types_that_are_sold_out_is_the_one_that_would_be() -> None:
    """The cheapest of types that are sold out is the one that would be (S-204)."""
    types = (_sold("a", z1_spot=0.1, z1_od=3.0), _sold("b", z1_spot=0.9, z1_od=2.0))
    plain = pool("p", spec(lbl.CAPACITY_TYPE, "In", lbl.ON_DEMAND))
    given = problem(Workloads().add("x", 1, shape()), Catalogue(types), plain, unavailable=SOLD_OUT)
    (look,) = funnel_of(given).classes[0].pools
    assert look.funnel.near == (NearMiss("unavailable", 2, "b"),)


def test_a_mistyped_value_of_a_label_of_the_node_pool_is_told() -> None:
    """Types know nothing of the NodePool's name; what may be meant is what the NodePool is called."""
    work = Workloads().add("x", 1, shape(node_selector={lbl.NODEPOOL: "genral"}))
    (look,) = funnel_of(problem(work, ladder(2), pool("general"))).classes[0].pools
    assert [miss.meant for miss in look.funnel.near if miss.side == "pod"] == [("general",)]


@pytest.mark.parametrize(("bound", "nearest"), [(("Gt", "16"), ("16", "8", "4")), (("Lt", "4"), ("4", "8", "16"))])
def test_numbers_that_would_do_are_named_from_the_bound_on(bound: tuple[str, str], nearest: tuple[str, ...]) -> None:
    types = tuple(instance_type(f"t{n}", 4, labels={"cpus": (str(n),)}) for n in (4, 8, 16))
    work = Workloads().add("x", 1, shape(required_terms=(term(("cpus", bound[0], (bound[1],))),)))
    (look,) = funnel_of(problem(work, Catalogue(types), pool("p", spec("cpus", "Exists")))).classes[0].pools
    assert [miss.values for miss in look.funnel.near] == [nearest]


def test_near_miss_of_a_resource_and_of_a_limit() -> None:
    funnel = funnel_of(problem(Workloads().add("x", 1, shape(5000)), ladder(2, 4)))
    (look,) = funnel.classes[0].pools
    assert look.funnel.near == (NearMiss("resource", 1, "t04", "cpu", short=1000),)
    funnel = funnel_of(problem(Workloads().add("x", 1, shape(3000)), ladder(2, 4, 8), pool("p", limits={"cpu": 3500})))
    (look,) = funnel.classes[0].pools
    assert look.funnel.near[0] == NearMiss("limits", 1, "t04", "cpu", short=500)


@pytest.mark.parametrize(
    ("key", "taken", "near"),
    [
        (lbl.ZONE, (), (NearMiss("limits", 1, "t02", "cpu", short=1000),)),
        (lbl.ZONE, ("z1", "z2", "z3"), ()),
        ("rack", (), ()),
    ],
)
def test_near_miss_of_a_limit_for_pods_that_are_spread(
    key: str, taken: tuple[str, ...], near: tuple[NearMiss, ...]
) -> None:
    """S-129. No node can be launched within the limits, so the spread knows no zone: to raise them is the one change.
    It is not enough where pods have to be apart from others besides, or spread over a label that no node has."""
    spread = SpreadConstraint(key, selector=Selector({"app": "x"}))
    apart = AffinityTerm(lbl.ZONE, Selector({"app": "other"}))
    other = shape(100, labels={"app": "other"})
    nodes = [NodeInput(zone, "", {lbl.ZONE: zone}, (), {"cpu": 100, "memory": GI, "pods": 9}) for zone in taken]
    work = Workloads().add("x", 2, shape(1500, labels={"app": "x"}, spread=(spread,), anti_affinity=(apart,)))
    given = problem(
        work, ladder(2, 4), pool("p", limits={"cpu": 1000}), nodes=nodes, bound=[(other, name) for name in taken]
    )
    (look,) = funnel_of(given).classes[0].pools
    assert look.reason is not None
    assert look.reason.code == SchedulingCode.LIMITS
    assert look.funnel.near == near


def test_types_without_any_of_a_resource_are_no_near_miss() -> None:
    """To ask for one GPU less is to ask for none: what helps is the type that the NodePool leaves out."""
    gpu = instance_type("g4", 4, extra={"nvidia.com/gpu": 1})
    catalogue = Catalogue((*ladder(2, 4).types, gpu))
    plain = pool("p", spec(lbl.INSTANCE_TYPE, "NotIn", "g4"))
    work = Workloads().add("x", 1, shape(extra={"nvidia.com/gpu": 1}))
    (look,) = funnel_of(problem(work, catalogue, plain)).classes[0].pools
    assert look.funnel.near == (NearMiss("requirement", 1, "g4", lbl.INSTANCE_TYPE, ("g4",), side="node-pool"),)
    (look,) = funnel_of(problem(work, ladder(2, 4))).classes[0].pools
    assert look.funnel.near == ()


def test_near_miss_of_an_unknown_label() -> None:
    funnel = funnel_of(problem(Workloads().add("x", 1, shape(node_selector={"team": "red"})), ladder(2)))
    (look,) = funnel.classes[0].pools
    assert set(look.funnel.near) == {
        NearMiss("requirement", 1, "t02", "team", ("red",), side="node-pool"),
        NearMiss("requirement", 1, "t02", "team", side="pod"),
    }


@pytest.mark.parametrize("other", [{lbl.NODEPOOL: "another"}, {"tier": "gold"}])
def test_two_labels_that_stand_in_the_way_have_no_near_miss(other: dict[str, str]) -> None:
    """A label that the NodePool does not have hides those that it has otherwise (S-17). The funnel has both."""
    silver = replace(pool("p"), labels={"tier": "silver"})
    work = Workloads().add("x", 1, shape(node_selector={"team": "red", **other}))
    (look,) = funnel_of(problem(work, ladder(2), silver)).classes[0].pools
    assert look.funnel.near == ()


def test_types_that_a_search_leaves_out_are_not_said_to_be_sold_out() -> None:
    """A search for a cheaper plan asks without some types (`Problem.unavailable`); t04 is sold out besides."""
    gone = without_types(["t02", "t08"]) | {("spot", "t04", ""), ("on-demand", "t04", "")}
    funnel = funnel_of(problem(Workloads().add("x", 1, shape()), ladder(2, 4, 8, 16), unavailable=gone))
    (look,) = funnel.classes[0].pools
    assert look.funnel.cuts == (Cut("left-out", 2), Cut("unavailable", 1))
    assert look.funnel.near == (NearMiss("unavailable", 1, "t04"),)


def test_a_type_that_is_not_on_offer_is_not_said_to_have_had_no_capacity() -> None:
    """A-200: a cloud lists offerings that cannot be had, such as those without a price. Nobody has tried them."""
    types = (instance_type("a", 2), instance_type("b", 2, available=False), instance_type("c", 2))
    gone = frozenset([(kind, "c", "") for kind in (lbl.SPOT, lbl.ON_DEMAND)])
    (look,) = funnel_of(problem(Workloads().add("x", 1, shape()), Catalogue(types), unavailable=gone)).classes[0].pools
    assert look.funnel.cuts == (Cut("offering", 1), Cut("unavailable", 1))
    only = pool("p", spec(lbl.INSTANCE_TYPE, "In", "b"))
    (look,) = funnel_of(problem(Workloads().add("x", 1, shape()), Catalogue(types), only)).classes[0].pools
    assert look.funnel.cuts == (
        Cut("requirement", 2, lbl.INSTANCE_TYPE, f"{lbl.INSTANCE_TYPE} In [b]"),
        Cut("offering", 1),
    )
    assert [(miss.what, miss.example) for miss in look.funnel.near] == [("requirement", "a"), ("offering", "b")]


def test_near_miss_of_a_sold_out_offering_and_of_a_taint() -> None:
    work = Workloads().add("x", 1, shape())
    funnel = funnel_of(problem(work, ladder(2, 4), unavailable=frozenset([("spot", "", ""), ("on-demand", "", "")])))
    (dropped,) = funnel.classes[0].pools
    assert dropped.funnel.cuts == (Cut("unavailable", 2),)
    assert dropped.funnel.near == (NearMiss("unavailable", 2, "t02"),)
    funnel = funnel_of(problem(work, ladder(2), pool("p", taints=(Taint("a", "NoSchedule", "b"),))))
    (look,) = funnel.classes[0].pools
    assert look.funnel.cuts == (Cut("taint", 1, "a", "a=b:NoSchedule"),)
    assert look.funnel.near == (NearMiss("taint", 1, "t02", "a"),)


def test_refusals_of_nodes_and_claims_are_named() -> None:
    node = NodeInput("n", "", {}, (Taint("a", "NoSchedule"),), {"cpu": 9000, "memory": GI, "pods": 9})
    full = NodeInput("o", "", {}, (), {"cpu": 90, "memory": GI, "pods": 9})
    work = Workloads().add("x", 1, shape(1900)).add("y", 1, shape(1000, host_ports=(HostPort(1),)))
    work.add("z", 1, shape(400, host_ports=(HostPort(1),))).add("q", 1, shape(300, node_selector={"team": "red"}))
    funnel = funnel_of(problem(work, ladder(2), nodes=[node, full]))
    refused = {
        (pod_class.number, refusal.place): refusal.reason.code
        for pod_class in funnel.classes
        for refusal in pod_class.refused
    }
    assert refused[0, "n"] == SchedulingCode.TAINTS
    assert refused[0, "o"] == SchedulingCode.RESOURCES
    assert refused[1, 0] == SchedulingCode.RESOURCES
    assert refused[2, 1] == SchedulingCode.HOST_PORTS
    assert refused[3, 0] == SchedulingCode.LABEL_UNDEFINED
    texts = [sentence(refusal.reason) for pod_class in funnel.classes for refusal in pod_class.refused]
    assert "NodePool default: host ports 1/TCP are taken" in texts


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"node_selector": {"n": "3"}}, SchedulingCode.TYPES_REQUIREMENTS),
        ({"cpu": 9000}, SchedulingCode.TYPES_RESOURCES),
        ({"cpu": 3000, "node_selector": {"n": "2"}}, SchedulingCode.TYPES_RESOURCES),
        ({"required_terms": (term(("n", "In", ("2",)), (lbl.ZONE, "In", ("z2",))),)}, SchedulingCode.TYPES_OFFERINGS),
    ],
)
def test_s111_which_kind_of_reason(fields: dict[str, Any], code: SchedulingCode) -> None:
    """Types carry every zone as a label; type 2 is on offer in z1 only."""
    types = (
        instance_type("t2", 2, labels={"n": ("2",), lbl.ZONE: ("z1", "z2", "z3")}, zones=("z1",)),
        instance_type("t4", 4, labels={"n": ("4",), lbl.ZONE: ("z1", "z2", "z3")}),
    )
    given = problem(
        Workloads().add("a", 1, shape(**fields)), Catalogue(types), pool("p", spec("n", "In", "2", "3", "4"))
    )
    (group,) = plan(given).unplaced
    assert group.reasons[0].code == code


def test_near_miss_of_topology_over_zones() -> None:
    """Zone z1 is taken, and the NodePool allows no other: either the anti-affinity or the NodePool would have to."""
    apart = AffinityTerm(lbl.ZONE, Selector({"app": "x"}))
    work = Workloads().add("x", 2, shape(500, labels={"app": "x"}, anti_affinity=(apart,)))
    funnel = funnel_of(problem(work, ladder(2, 4), pool("p", spec(lbl.ZONE, "In", "z1"))))
    *_, look = funnel.classes[0].pools
    assert look.reason is not None
    assert look.reason.code == SchedulingCode.TOPOLOGY
    assert NearMiss("topology", 2, "t02", lbl.ZONE, ("z1",), side="anti-affinity") in look.funnel.near
    assert NearMiss("requirement", 2, "t02", lbl.ZONE, ("z2", "z3"), side="node-pool") in look.funnel.near


def test_who_follows_pods_that_are_nowhere_is_helped_by_no_other_zone() -> None:
    """A zone that has no nodes yet is empty: good for a spread or an anti-affinity, and nobody is to be followed."""
    follow = AffinityTerm(lbl.ZONE, Selector({"app": "nobody"}))
    work = Workloads().add("x", 1, shape(500, affinity=(follow,)))
    (look,) = funnel_of(problem(work, ladder(2), pool("p", spec(lbl.ZONE, "In", "z1")))).classes[0].pools
    assert look.funnel.cuts == (Cut("topology", 1, "", lbl.ZONE),)
    assert look.funnel.near == (NearMiss("topology", 1, "t02", lbl.ZONE, ("z1",), side="affinity"),)


def test_topology_cuts_the_types_that_are_not_sold_where_it_lets_the_pod_go() -> None:
    apart = AffinityTerm(lbl.ZONE, Selector({"app": "x"}))
    types = (instance_type("a", 2, zones=("z1",)), instance_type("b", 2, zones=("z1", "z2")))
    work = Workloads().add("x", 2, shape(500, labels={"app": "x"}, anti_affinity=(apart,)))
    first, second = funnel_of(problem(work, Catalogue(types))).classes[0].pools
    assert first.funnel.cuts == ()
    assert second.funnel.cuts == (Cut("topology", 1, "", lbl.ZONE),)
    assert [option.instance_type for option in second.funnel.left] == ["b"]


@pytest.mark.parametrize(
    ("volume", "cuts", "near"),
    [
        ("z2", (Cut("volumes", 2, "", f"{lbl.ZONE} In [z2]"),), [("node-pool", ("z2",), 2)]),
        ("z1", (), []),
        ("z9", (Cut("volumes", 2, "", f"{lbl.ZONE} In [z9]"),), []),
    ],
)
def test_near_miss_of_a_volume(volume: str, cuts: tuple[Cut, ...], near: list[Any]) -> None:
    """S-156. What would help is the volume's zone, not a type that is sold elsewhere."""
    facts = VolumeFacts(
        claims={"default/data": VolumeClaim("default", "data", volume="pv", bind_completed=True)},
        volumes={"pv": Volume("pv", terms=(term((lbl.ZONE, "In", (volume,))),))},
    )
    types = (*ladder(2, 4).types, instance_type("other", 8, labels={"family": ("o",)}))
    work = Workloads().add("x", 1, shape(500, volumes=(VolumeRef("v", "data"),)))
    given = replace(
        problem(
            work, Catalogue(types), pool("p", spec(lbl.ZONE, "In", "z1"), spec(lbl.INSTANCE_TYPE, "NotIn", "other"))
        ),
        volumes=facts,
    )
    (look,) = funnel_of(given).classes[0].pools
    assert look.funnel.cuts == (Cut("requirement", 1, lbl.INSTANCE_TYPE, f"{lbl.INSTANCE_TYPE} NotIn [other]"), *cuts)
    assert [(miss.side, miss.values, miss.types) for miss in look.funnel.near if miss.key == lbl.ZONE] == near
    if cuts:
        assert all(miss.key == lbl.ZONE for miss in look.funnel.near)


def test_where_a_volume_is_and_nothing_had_capacity_it_is_the_capacity_that_lacks() -> None:
    facts = VolumeFacts(
        claims={"default/data": VolumeClaim("default", "data", volume="pv", bind_completed=True)},
        volumes={"pv": Volume("pv", terms=(term((lbl.ZONE, "In", ("z1",))),))},
    )
    types = (instance_type("a", 2, zones=("z1", "z2")), instance_type("b", 2, zones=("z2",)))
    work = Workloads().add("x", 1, shape(500, volumes=(VolumeRef("v", "data"),)))
    given = problem(work, Catalogue(types), unavailable=frozenset([("", "a", "z1")]))
    (look,) = funnel_of(replace(given, volumes=facts)).classes[0].pools
    assert look.reason is not None
    assert look.reason.code == SchedulingCode.VOLUME_TOPOLOGY
    assert look.funnel.cuts == (Cut("volumes", 1, "", f"{lbl.ZONE} In [z1]"), Cut("unavailable", 1))
    assert look.funnel.near == (NearMiss("unavailable", 1, "a"),)


def test_the_pods_own_conflict_comes_before_the_limits() -> None:
    limited = pool("p", limits={"nodes": 0}, taints=(Taint("a", "NoSchedule"),))
    (look,) = funnel_of(problem(Workloads().add("w", 1, shape(500)), ladder(2), limited)).classes[0].pools
    assert look.reason is not None
    assert look.reason.code == SchedulingCode.TAINTS


@pytest.mark.parametrize(("used", "short"), [(2, 1), (3, 2)])
def test_a_limit_on_nodes_says_how_many_more_it_would_have_to_leave(used: int, short: int) -> None:
    given = problem(Workloads().add("w", 1, shape(500)), ladder(2), pool("p", limits={"nodes": 2}))
    given = replace(given, pools=tuple(replace(found, usage={"nodes": used}) for found in given.pools))
    (look,) = funnel_of(given).classes[0].pools
    assert [(miss.key, miss.short) for miss in look.funnel.near if miss.what == "limits"] == [("nodes", short)]
