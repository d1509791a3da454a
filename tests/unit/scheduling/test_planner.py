"""The planner against the worked examples of the scheduling specification (E-14…E-65)."""

from __future__ import annotations

from collections import Counter

import pytest

from kerf.engine.model import labels as lbl
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.kubernetes.pods import PodShape, Taint, Toleration, VolumeRef
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.planner import plan, usable_pools
from kerf.engine.scheduling.problem.problem import NodeInput, PoolInput
from kerf.engine.scheduling.reasons import SchedulingCode, sentence
from tests.support.scenarios.planned import codes, node, port, sizes
from tests.support.scenarios.problems import (
    GI,
    Workloads,
    instance_type,
    ladder,
    pool,
    preferred,
    problem,
    shape,
    spec,
    term,
)

SOFT = Taint("slow", "PreferNoSchedule")
HARD = Taint("dedicated", "NoSchedule", "x")


# ── NodePools and requirements ──────────────────────────────────────


def test_s51_no_pods_no_plan() -> None:
    assert plan(problem(Workloads(), ladder(2))) == Plan()


def test_e14_a_label_that_must_not_have_a_value() -> None:
    work = Workloads().add("a", 1, shape(required_terms=(term(("foo", "NotIn", ("x",))),)))
    (claim,) = plan(problem(work, ladder(2))).claims
    assert claim.labels["foo"] == "0"
    assert spec("foo", "NotIn", "x") in claim.requirements


def test_e15_exists_on_an_undefined_label_fails_and_does_not_exist_is_placed() -> None:
    work = Workloads().add("a", 1, shape(required_terms=(term(("foo", "Exists", ())),)))
    work.add("b", 1, shape(required_terms=(term(("foo", "DoesNotExist", ())),)))
    planned = plan(problem(work, ladder(2)))
    assert codes(planned) == {"a-0": [SchedulingCode.LABEL_UNDEFINED]}
    (claim,) = planned.claims
    assert claim.pods == ("b-0",)
    assert "foo" not in claim.labels


def test_s101_e16_e17_values_of_one_label() -> None:
    teams = pool("default", spec("foo", "In", "a", "b"))
    work = Workloads().add("x", 1, shape(node_selector={"foo": "a"}))
    work.add("y", 1, shape(required_terms=(term(("foo", "NotIn", ("b",))),)))
    (claim,) = plan(problem(work, ladder(2), teams)).claims
    assert claim.labels["foo"] == "a"
    work = Workloads().add("x", 1, shape(node_selector={"foo": "a"})).add("y", 1, shape(node_selector={"foo": "b"}))
    assert sizes(plan(problem(work, ladder(2), teams))) == [1, 1]


def test_e18_e20_refused_pods_are_ignored() -> None:
    work = Workloads().add("a", 2, shape(node_selector={lbl.HOSTNAME: "n"}))
    work.add("b", 1, shape(required_terms=(term((lbl.NODEPOOL, "DoesNotExist", ())),)))
    planned = plan(problem(work, ladder(2)))
    assert [(group.pods, [why.code for why in group.reasons]) for group in planned.ignored] == [
        (("a-0", "a-1"), [SchedulingCode.RESTRICTED_LABEL]),
        (("b-0",), [SchedulingCode.OPTED_OUT]),
    ]
    assert not planned.unplaced


def test_e22_of_equal_weight_the_later_name_is_used() -> None:
    work = Workloads().add("a", 1, shape())
    assert [claim.node_pool for claim in plan(problem(work, ladder(2), pool("a"), pool("b"))).claims] == ["b"]
    assert [claim.node_pool for claim in plan(problem(work, ladder(2), pool("a", weight=1), pool("b"))).claims] == ["a"]


def test_s61_pools_that_take_part_in_their_order() -> None:
    pools = [
        pool("a"),
        pool("b", weight=5),
        pool("c", ready=False),
        pool("d", replicas=3),
        pool("e", deleting=1),
        pool("f"),
    ]
    assert [pool_input.pool.name for pool_input in usable_pools(PoolInput(node_pool, "") for node_pool in pools)] == [
        "b",
        "f",
        "a",
    ]


def test_e23_without_a_usable_pool_nothing_is_tried() -> None:
    work = Workloads().add("a", 1, shape())
    planned = plan(problem(work, ladder(2), pool(ready=False), nodes=[node("n")]))
    assert codes(planned) == {"a-0": [SchedulingCode.NO_NODE_POOL]}
    assert not planned.placements


def test_e24_a_pool_without_types_leaves_the_existing_nodes() -> None:
    nothing = pool("default", spec(lbl.INSTANCE_TYPE, "In", "nosuch"))
    work = Workloads().add("a", 5, shape(1000))
    planned = plan(problem(work, ladder(2), nothing, nodes=[node("n")]))
    assert planned.placements[0].pods == ("a-0", "a-1", "a-2", "a-3")
    assert codes(planned) == {"a-4": [SchedulingCode.NO_INSTANCE_TYPES]}


def test_e25_the_only_offering_is_unavailable() -> None:
    work = Workloads().add("a", 1, shape(node_selector={lbl.CAPACITY_TYPE: "spot", lbl.ZONE: "z1"}))
    catalogue = ladder(2)
    assert len(plan(problem(work, catalogue)).claims) == 1
    planned = plan(problem(work, catalogue, unavailable=frozenset([("spot", "t02", "z1")])))
    assert codes(planned) == {"a-0": [SchedulingCode.TYPES_OFFERINGS]}


def test_e26_a_request_of_nothing_of_an_unknown_resource() -> None:
    work = Workloads().add("a", 1, shape(extra={"example.com/x": 0})).add("b", 1, shape(extra={"example.com/x": 1}))
    planned = plan(problem(work, ladder(2)))
    assert codes(planned) == {"b-0": [SchedulingCode.TYPES_RESOURCES]}


def test_e27_another_pod_defines_the_label() -> None:
    work = Workloads().add("small", 1, shape(100, node_selector={"foo": "baz"}))
    work.add("large", 1, shape(200, required_terms=(term(("foo", "NotIn", ("bar",))),)))
    (claim,) = plan(problem(work, ladder(2))).claims
    assert len(claim.pods) == 2
    assert claim.labels["foo"] == "baz"


def test_s87_e27_a_failed_pod_is_tried_again_after_progress() -> None:
    """The pod that needs the label comes first and fails; the one that defines it opens a claim; then it joins."""
    work = Workloads().add("large", 1, shape(200, node_selector={"foo": "baz"}))
    work.add("small", 1, shape(100, required_terms=(term(("foo", "NotIn", ("bar",))),)))
    planned = plan(problem(work, ladder(2)))
    assert sizes(planned) == [2]
    assert not planned.unplaced


def test_s96_a_claim_that_refused_for_an_unknown_label_is_asked_again_once_it_is_known() -> None:
    work = Workloads().add("large", 1, shape(300)).add("mid", 1, shape(200, node_selector={"foo": "baz"}))
    work.add("small", 1, shape(100, required_terms=(term(("foo", "NotIn", ("bar",))),)))
    planned = plan(problem(work, ladder(2)))
    assert sizes(planned) == [3]


# ── relaxation ──────────────────────────────────────────────────────


def zone(*values: str) -> tuple[str, str, tuple[str, ...]]:
    return lbl.ZONE, "In", values


def zones_of(planned: Plan) -> list[str]:
    return [
        value for claim in planned.claims for r in claim.constraints if r.key == lbl.ZONE for value in sorted(r.values)
    ]


def test_e28_or_terms_are_tried_in_turn() -> None:
    terms = tuple(term(zone(name)) for name in ("bad1", "bad2", "z1", "z2"))
    work = Workloads().add("a", 2, shape(required_terms=terms))
    assert zones_of(plan(problem(work, ladder(2)))) == ["z1"]


def test_e29_one_unsatisfiable_term_fails() -> None:
    work = Workloads().add("a", 1, shape(required_terms=(term(zone("bad")),)))
    assert codes(plan(problem(work, ladder(2)))) == {"a-0": [SchedulingCode.TYPES_REQUIREMENTS]}


def test_e30_preferences_are_given_up_heaviest_first() -> None:
    wish = (preferred(100, zone("z3")), preferred(50, zone("z2")), preferred(1, zone("z1")))
    work = Workloads().add("a", 1, shape(preferred_terms=wish))
    assert zones_of(plan(problem(work, ladder(2), pool("p", spec(lbl.ZONE, "In", "z1", "z2"))))) == ["z2"]


def test_e31_a_requirement_beats_a_preference() -> None:
    work = Workloads().add(
        "a", 1, shape(required_terms=(term(zone("z3")),), preferred_terms=(preferred(1, (lbl.ZONE, "NotIn", ("z3",))),))
    )
    assert zones_of(plan(problem(work, ladder(2)))) == ["z3"]


def test_s29_s37_policy_ignore_does_not_look_at_preferences() -> None:
    work = Workloads().add("a", 1, shape(preferred_terms=(preferred(1, zone("z2")),)))
    assert zones_of(plan(problem(work, ladder(2), preference_policy="Ignore"))) == []
    assert zones_of(plan(problem(work, ladder(2)))) == ["z2"]


def test_e32_e33_soft_taints() -> None:
    work = Workloads().add("a", 1, shape(preferred_terms=(preferred(1, zone("bad")), preferred(2, zone("worse")))))
    soft = pool("hi", weight=100, taints=(SOFT,))
    assert plan(problem(work, ladder(2), soft, pool("lo"))).claims[0].node_pool == "lo"
    assert plan(problem(work, ladder(2), soft)).claims[0].node_pool == "hi"


# ── taints ──────────────────────────────────────────────────────────


def test_s99_taints_keep_pods_off_and_startup_taints_do_not() -> None:
    work = Workloads().add("a", 1, shape())
    work.add("b", 1, shape(tolerations=(Toleration("dedicated", "Exists"),)))
    planned = plan(problem(work, ladder(2), pool("p", taints=(HARD,), startup_taints=(Taint("s", "NoSchedule"),))))
    assert codes(planned) == {"a-0": [SchedulingCode.TAINTS]}
    assert planned.claims[0].pods == ("b-0",)


# ── limits and daemons ──────────────────────────────────────────────


def test_e37_limits_count_the_largest_type_of_an_open_claim() -> None:
    work = Workloads().add("a", 2, shape(1500, host_ports=port()))
    planned = plan(problem(work, ladder(2, 4), pool(limits={"cpu": 3000})))
    assert sizes(planned) == [1]
    assert planned.claims[0].instance_types == ("t02",)
    assert codes(planned) == {"a-1": [SchedulingCode.LIMITS]}


def test_e38_used_up_limits_leave_the_existing_nodes() -> None:
    work = Workloads().add("a", 5, shape(1000))
    limited = pool(limits={"cpu": 20_000})
    planned = plan(problem(work, ladder(2), limited, nodes=[node("n")], usage={"default": {"cpu": 100_000}}))
    assert len(planned.placements[0].pods) == 4
    assert codes(planned) == {"a-4": [SchedulingCode.LIMITS]}


def test_e39_e40_the_limit_on_nodes() -> None:
    work = Workloads().add("a", 3, shape(host_ports=port()))
    limited = pool(limits={"nodes": 2})
    planned = plan(problem(work, ladder(2), limited, usage={"default": {"nodes": 1}}))
    assert sizes(planned) == [1]  # unlike in E-39
    assert codes(planned) == {"a-1": [SchedulingCode.NODE_LIMIT], "a-2": [SchedulingCode.NODE_LIMIT]}
    planned = plan(problem(work, ladder(2), limited, usage={"default": {"nodes": 2}}))
    assert codes(planned)["a-0"] == [SchedulingCode.NODE_LIMIT]
    planned = plan(problem(work, ladder(2), limited, usage={"default": {"nodes": 3}}))
    assert codes(planned)["a-0"] == [SchedulingCode.LIMITS]


def test_s69_a_resource_that_no_type_has_limits_nothing_until_overdrawn() -> None:
    work = Workloads().add("a", 1, shape())
    assert sizes(plan(problem(work, ladder(2), pool(limits={"gpu": 0})))) == [1]
    planned = plan(problem(work, ladder(2), pool(limits={"gpu": 0}), usage={"default": {"gpu": 1}}))
    assert codes(planned) == {"a-0": [SchedulingCode.LIMITS]}


def test_s102_e41_daemon_overhead() -> None:
    work = Workloads().add("a", 1, shape(1000, GI))
    (claim,) = plan(problem(work, ladder(2, 4, 8), daemons=[shape(2000, 2 * GI)])).claims
    assert claim.instance_types == ("t04", "t08")
    assert claim.requests == {"cpu": 3000, "memory": 3 * GI, "pods": 2}


def test_e42_host_ports_of_daemons() -> None:
    work = Workloads().add("a", 1, shape(host_ports=port()))
    planned = plan(problem(work, ladder(2, 4), daemons=[shape(host_ports=port())]))
    assert codes(planned) == {"a-0": [SchedulingCode.HOST_PORTS]}
    large = shape(host_ports=port(), node_selector={lbl.INSTANCE_TYPE: "t04"})
    assert plan(problem(work, ladder(2, 4), daemons=[large])).claims[0].instance_types == ("t02",)


def test_e43_requests_count_daemon_pods() -> None:
    work = Workloads().add("a", 2, shape(1000, 2**20))
    (claim,) = plan(problem(work, ladder(4), daemons=[shape(1000, 2**20)])).claims
    assert claim.requests == {"cpu": 3000, "memory": 3 * 2**20, "pods": 3}


def test_e44_e45_which_daemons_count() -> None:
    work = Workloads().add("a", 1, shape(tolerations=(Toleration("dedicated", "Exists"),)))
    tainted = pool(taints=(HARD,), startup_taints=(Taint("s", "NoSchedule"),))

    def pods(daemon: PodShape) -> int:
        return plan(problem(work, ladder(4), tainted, daemons=[daemon])).claims[0].requests["pods"]

    tolerant = (Toleration("dedicated", "Exists"),)
    assert pods(shape()) == 1
    assert pods(shape(tolerations=tolerant)) == 2
    assert pods(shape(tolerations=tolerant, required_terms=(term(("foo", "NotIn", ("x",))),))) == 2
    assert pods(shape(tolerations=tolerant, node_selector={"foo": "x"})) == 1


def test_s81_a_daemon_that_selects_a_label_of_types() -> None:
    """The nodes of such a type carry it, so the DaemonSet's pod will be there; on others it will not."""
    work = Workloads()
    work.add("w", 1, shape(1000))
    custom = {"example.com/disk": ("fast",)}
    types = Catalogue((instance_type("fast", 2, labels=custom), instance_type("plain", 2)))
    daemon = shape(1500, node_selector={"example.com/disk": "fast"})
    (claim,) = plan(problem(work, types, daemons=[daemon])).claims
    assert claim.instance_types == ("plain",)
    absent = shape(1500, required_terms=(term(("example.com/disk", "DoesNotExist", ())),))
    (claim,) = plan(problem(work, types, daemons=[absent])).claims
    assert claim.instance_types == ("fast",)


def test_s82_e46_every_term_of_a_daemon_is_tried_for_every_type() -> None:
    types = tuple(
        instance_type(f"{arch}-4", 4, labels={lbl.ARCH: (arch,)}, price=price)
        for arch, price in (("arm64", 1.0), ("amd64", 2.0))
    )
    daemon = shape(1000, required_terms=(term((lbl.ARCH, "In", ("amd64",))), term((lbl.ARCH, "In", ("arm64",)))))
    for arch in ("amd64", "arm64"):
        work = Workloads().add("a", 1, shape(1000, node_selector={lbl.ARCH: arch}))
        (claim,) = plan(problem(work, Catalogue(types), daemons=[daemon])).claims
        assert claim.requests["cpu"] == 2000


# ── existing nodes ──────────────────────────────────────────────────


def test_s94_e47_a_missing_label_on_an_existing_node() -> None:
    work = Workloads().add("a", 1, shape(node_selector={lbl.ZONE: "z1"}))
    planned = plan(problem(work, ladder(2), nodes=[node("n", labels={})]))
    assert not planned.placements
    assert sizes(planned) == [1]


def test_e48_initialized_nodes_come_first() -> None:
    nodes = [node(f"n{i:02d}", initialized=False) for i in range(20)] + [node("zz")]
    planned = plan(problem(Workloads().add("a", 1, shape()), ladder(2), nodes=nodes))
    assert [(placement.node, placement.claim) for placement in planned.placements] == [("zz", "claim-zz")]


def test_nodes_fill_in_order_and_then_a_claim_is_opened() -> None:
    work = Workloads().add("a", 10, shape(1000))
    planned = plan(problem(work, ladder(8), nodes=[node("b"), node("a", 2000)]))
    assert {placement.node: len(placement.pods) for placement in planned.placements} == {"a": 2, "b": 4}
    assert sizes(planned) == [4]


def test_s74_expected_daemons_are_kept_room_for() -> None:
    """E-53: more bound than expected credits nothing."""
    work = Workloads().add("a", 1, shape(3600))
    daemon = shape(500)

    def places(given: NodeInput) -> int:
        return len(plan(problem(work, ladder(8), nodes=[given], daemons=[daemon])).placements)

    assert places(node("n")) == 0
    assert places(node("n", bound_daemons={"cpu": 500, "pods": 1})) == 1
    assert places(node("n", 3500, bound_daemons={"cpu": 900, "pods": 1})) == 0


def test_taints_ports_and_requirements_of_existing_nodes() -> None:
    work = Workloads().add("a", 1, shape(host_ports=port()))
    assert not plan(problem(work, ladder(2), nodes=[node("n", taints=(HARD,))])).placements
    assert not plan(problem(work, ladder(2), nodes=[node("n", host_ports=port())])).placements
    assert plan(problem(work, ladder(2), nodes=[node("n", host_ports=port(81))])).placements


def test_a_node_on_its_way_takes_a_pod_only_if_whatever_comes_will_do() -> None:
    coming = node("n", labels={}, initialized=False, requirements=(spec(lbl.ZONE, "In", "z1", "z2"),))
    pinned = Workloads().add("a", 1, shape(node_selector={lbl.ZONE: "z1"}))
    assert not plan(problem(pinned, ladder(2), nodes=[coming])).placements
    either = Workloads().add("a", 1, shape(required_terms=(term((lbl.ZONE, "NotIn", ("z3",))),)))
    assert plan(problem(either, ladder(2), nodes=[coming])).placements


def test_s96_a_negation_defines_no_label_on_an_existing_node() -> None:
    """Unlike the reference (S-96): the node has no such label, so the second pod could not run there."""
    work = Workloads().add("large", 1, shape(200, required_terms=(term(("foo", "NotIn", ("bar",))),)))
    work.add("small", 1, shape(100, node_selector={"foo": "baz"}))
    planned = plan(problem(work, ladder(2), nodes=[node("n")]))
    assert planned.placements[0].pods == ("large-0",)
    assert codes(planned) == {"small-0": [SchedulingCode.LABEL_UNDEFINED]}


# ── packing ─────────────────────────────────────────────────────────


def test_e57_small_pods_fill_up_what_large_ones_leave() -> None:
    catalogue = Catalogue((instance_type("t", 16, memory=4 * GI, pods=5),))
    work = Workloads().add("a", 40, shape(10, 1_800_000_000))
    assert sizes(plan(problem(work, catalogue))) == [2] * 20
    work.add("b", 20, shape(10, 400_000_000))
    assert sizes(plan(problem(work, catalogue))) == [3] * 20


def test_e58_the_pod_limit() -> None:
    catalogue = Catalogue((instance_type("t", 16, pods=5),))
    assert sizes(plan(problem(Workloads().add("a", 25, shape(1)), catalogue))) == [5] * 5


def test_e59_every_claim_keeps_the_types_that_fit_it() -> None:
    work = Workloads().add("a", 1, shape(4500)).add("b", 1, shape(1000))
    planned = plan(problem(work, ladder(1, 3, 5)))
    assert [claim.instance_types for claim in planned.claims] == [("t05",), ("t01", "t03", "t05")]


def test_e60_host_ports_of_pods() -> None:
    two = Workloads().add("a", 1, shape(host_ports=port(8080))).add("b", 1, shape(90, host_ports=port(8080)))
    assert sizes(plan(problem(two, ladder(4)))) == [1, 1]
    mixed = Workloads().add("a", 1, shape(host_ports=port(8080)))
    mixed.add("b", 1, shape(90, host_ports=port(8080, "UDP")))
    assert sizes(plan(problem(mixed, ladder(4)))) == [2]


def test_e62_price_orders_types_and_rules_none_out() -> None:
    types = tuple(instance_type(f"t{i}", 2 * i, price=price) for i, price in ((1, 2.0), (2, 3.0), (3, 1.0)))
    (claim,) = plan(problem(Workloads().add("a", 1, shape()), Catalogue(types))).claims
    assert claim.instance_types == ("t3", "t1", "t2")
    assert claim.price == pytest.approx(0.3)
    assert claim.capacity_types == ("on-demand", "spot")


def test_s86_e64_hopeless_pods_end_the_loop_and_are_grouped() -> None:
    planned = plan(problem(Workloads().add("a", 3, shape(99_000)), ladder(2)))
    assert [group.pods for group in planned.unplaced] == [("a-0", "a-1", "a-2")]
    assert codes(planned)["a-0"] == [SchedulingCode.TYPES_RESOURCES]


def test_e65_the_claim_with_the_fewest_pods_takes_the_next() -> None:
    """A holds one huge and two small pods, B two; the next pod goes to B."""
    catalogue = Catalogue((instance_type("t", 10, memory=100 * GI),))
    work = Workloads().add("large", 2, shape(5100)).add("mid", 3, shape(1000)).add("small", 1, shape(10))
    planned = plan(problem(work, catalogue))
    assert sizes(planned) == [3, 3]
    assert Counter(len(claim.pods) for claim in planned.claims) == {3: 2}


def test_s85_large_pods_first_then_age_then_uid() -> None:
    catalogue = Catalogue((instance_type("t", 1, pods=1),))
    work = Workloads().add("b", 1, shape(100), created=5).add("a", 1, shape(100), created=6)
    work.add("c", 1, shape(100, 7), created=9).add("d", 1, shape(200), created=9).add("e", 1, shape(100), created=6)
    planned = plan(problem(work, catalogue))
    assert [claim.pods[0] for claim in planned.claims] == ["d-0", "c-0", "b-0", "a-0", "e-0"]


# ── what is not supported yet ───────────────────────────────────────


@pytest.mark.parametrize(
    ("given", "feature"),
    [
        (shape(volumes=(VolumeRef("v", "pvc"),)), "volumes"),
        (shape(resource_claims=("gpu",)), "resource claims"),
    ],
)
def test_unsupported_pods_stay_unplaced_by_name_of_the_feature(given: PodShape, feature: str) -> None:
    work = Workloads().add("a", 1, given).add("b", 1, shape())
    planned = plan(problem(work, ladder(2), nodes=[node("n")], ignore_dra_requests=False))
    assert codes(planned) == {"a-0": [SchedulingCode.NOT_SUPPORTED_YET]}
    assert planned.unplaced[0].reasons[0].params == {"features": [feature]}
    assert feature in sentence(planned.unplaced[0].reasons[0])
    assert planned.placements[0].pods == ("b-0",)
