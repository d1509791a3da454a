"""Static NodePools: S-190…S-193, D-160…D-166."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kerf.engine.model import labels as lbl
from kerf.engine.model.content_digest import content
from kerf.engine.model.instance_types import Catalogue, Offering
from kerf.engine.model.karpenter.nodeclass_terms import NodeClassTerms
from kerf.engine.model.karpenter.nodeoverlays import NodeOverlay
from kerf.engine.model.karpenter.nodepool_hash import hashed
from kerf.engine.model.karpenter.nodepools import Budget, RequirementSpec
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import DAEMONSET, Owner, Pod, PodShape
from kerf.engine.record import claim_events as ev
from kerf.engine.record.decisions import LaunchInstance, StaticResult
from kerf.engine.record.observations import (
    CatalogueSeen,
    LaunchAnswered,
    NodeClaimDeletionSeen,
    NodeClassSeen,
    Observation,
)
from kerf.engine.state import snapshot
from kerf.projections.karpenter_logs import KarpenterLog
from kerf.projections.kubernetes_events.decision_events import DecisionEvents
from tests.support.events import told
from tests.support.metrics import counted, value
from tests.support.records import re_derived
from tests.support.world import CATALOGUE, NODE_CLASS, START, World
from tests.support.worlds.static_nodepools import by_instance, launch_all, put, static, working


def world(replicas: int = 2, *, gate: bool = True, **changes: object) -> World:
    made = World(static_capacity=gate)
    made.prepare(static(replicas, **changes))
    return made


def decided(made: World) -> list[StaticResult]:
    found = [e.payload.result for e in made.store.entries if e.type == "decision.made"]
    return [result for result in found if isinstance(result, StaticResult)]


def states(made: World) -> list[str]:
    return sorted(claim.state for claim in made.runtime.state.facts.claims.values())


def test_s191_a_pool_is_filled_to_its_replicas_without_a_pod() -> None:
    made = world(3)
    launches = [order for _, order in made.launches()]
    assert [type(order) for order in launches] == [LaunchInstance] * 3
    assert states(made) == ["requested"] * 3
    (result,) = decided(made)
    assert (result.running, result.replicas, len(result.claims)) == (0, 3, 3)
    assert made.after(3_600_000) == []
    assert re_derived(made.store) == made.store.entries


def test_d160_nothing_happens_without_the_gate() -> None:
    made = world(3, gate=False)
    assert made.intents == []
    assert decided(made) == []


def test_s192_claims_are_made_straight_from_the_template() -> None:
    made = world(1, labels={"team": "a"})
    (claim,) = made.runtime.state.facts.claims.values()
    assert [(r.key, r.operator, r.values) for r in claim.requirements] == [
        ("karpenter.k8s.aws/ec2nodeclass", "In", ("default",)),
        (lbl.CAPACITY_TYPE, "In", ("on-demand",)),
        (lbl.NODEPOOL, "In", ("default",)),
        ("team", "In", ("a",)),
    ]
    assert claim.requests == {}
    assert claim.pods == ()
    assert claim.labels == {"karpenter.k8s.aws/ec2nodeclass": "default", lbl.NODEPOOL: "default", "team": "a"}


def test_s192_an_open_custom_label_gets_a_value() -> None:
    """An open custom label gets a value (S-165)."""
    made = World(static_capacity=True)
    given = static(1)
    made.prepare(replace(given, requirements=(*given.requirements, RequirementSpec("rack", "In", ("r2", "r1")))))
    (claim,) = made.runtime.state.facts.claims.values()
    assert claim.labels["rack"] == "r1"


def test_it_launches_the_cheapest_type_that_the_template_allows() -> None:
    made = World(static_capacity=True)
    wanted = RequirementSpec(lbl.INSTANCE_TYPE, "In", ("m5.xlarge", "r5.large"))
    made.prepare(replace(static(1), requirements=(*static(1).requirements, wanted)))
    ((_, order),) = made.launches()
    assert [offer.instance_type for offer in order.offers] == ["r5.large", "r5.large", "m5.xlarge", "m5.xlarge"]


def test_a218_node_overlays_count_for_it_as_for_others() -> None:
    """S-164, A-276: the types, the price, the order in which EC2 draws, and the annotations follow from the prices of
    overlays."""
    made = World(static_capacity=True, node_overlays=True)
    cheap = RequirementSpec(lbl.INSTANCE_TYPE, "In", ("m5.xlarge",))
    made.see(Observation(NodeOverlay("o", requirements=(cheap,), price=0.001)))
    made.prepare(static(1))
    ((_, order),) = made.launches()
    assert (order.offers[0].instance_type, order.offers[0].price, order.by_price) == ("m5.xlarge", 0.001, True)
    (claim,) = made.runtime.state.facts.claims.values()
    assert (claim.price, claim.annotations[lbl.PRICE_OVERLAY_APPLIED]) == (0.001, "true")
    assert re_derived(made.store) == made.store.entries


def test_s66_s191_a_pool_that_no_type_fits_is_told_so_and_again_for_as_long_as_it_lasts() -> None:
    """No pod waits for it: nothing else would tell."""
    made, none = World(static_capacity=True), RequirementSpec(lbl.INSTANCE_TYPE, "In", ("nosuch",))
    made.prepare(replace(static(2), requirements=(none,)))
    assert [result.reason.code for result in decided(made)] == ["static-no-offering"]
    (event,) = [event for event in told(made) if event.reason == "NoCompatibleInstanceTypes"]
    assert (event.about.kind, event.about.name, event.type) == ("NodePool", "default", "Warning")
    assert "leave none of its 4 instance types" in event.message
    assert DecisionEvents(made.runtime.state).lasting(made.now) == [event]
    lines = [line for entry in made.store.entries for line in KarpenterLog().apply(entry)]
    (line,) = [line for line in lines if line["controller"] == "static"]
    assert (line["message"], line["NodePool"]) == ("no instance type for static nodeclaim(s)", {"name": "default"})
    made.see(Observation(static(2)))
    assert DecisionEvents(made.runtime.state).lasting(made.now) == []


def test_a208_a218_an_overlay_that_names_a_missing_price_lets_a_pool_have_its_size() -> None:
    unsold = tuple(
        replace(kind, offerings=tuple(replace(o, price=0.0, available=False) for o in kind.offerings))
        for kind in CATALOGUE.types
    )
    made = World(static_capacity=True, node_overlays=True)
    made.prepare(static(1), replace(CATALOGUE, types=unsold))
    assert [result.reason.code for result in decided(made)] == ["static-no-offering"]
    sells = RequirementSpec(lbl.INSTANCE_TYPE, "In", ("m5.large",))
    made.see(Observation(NodeOverlay("o", requirements=(sells,), price=0.05)))
    ((_, order),) = made.launches()
    assert {(offer.instance_type, offer.price) for offer in order.offers} == {("m5.large", 0.05)}
    assert re_derived(made.store) == made.store.entries


@pytest.mark.parametrize(("limit", "granted"), [(0, 0), (2, 2), (9, 3)])
def test_d163_the_limit_on_nodes_bounds_the_size(limit: int, granted: int) -> None:
    made = world(3, limits={"nodes": limit})
    assert len(made.launches()) == granted
    if limit < 3:
        made.see(Observation(static(4, limits={"nodes": limit})))
        assert len(made.runtime.state.facts.claims) == granted
        assert [r.reason.code for r in decided(made)][-1] == "static-limit"
    assert re_derived(made.store) == made.store.entries


def test_d163_claims_on_their_way_out_count_against_the_limit() -> None:
    made = world(1, limits={"nodes": 1})
    launch_all(made)
    (name,) = made.runtime.state.facts.claims
    made.see(Observation(NodeClaimDeletionSeen(name, "kubectl")))
    assert made.launches() == []
    made.answer_all()
    made.instance("i-1", "gone")
    assert len(made.launches()) == 1


def reserving(made: World, **left: int) -> None:
    """The cheapest type has these reservations besides."""
    cheapest, *others = CATALOGUE.types
    offerings = tuple(
        Offering("us-west-2a", lbl.RESERVED, 0.0, reservation_id=name, reservation_capacity=count)
        for name, count in left.items()
    )
    sold = {**cheapest.requirements, lbl.CAPACITY_TYPE: ("on-demand", "spot", "reserved")}
    kind = replace(cheapest, offerings=cheapest.offerings + offerings, requirements=sold)
    catalogue = Catalogue((kind, *others), source="reserving")
    digest, _ = content(catalogue)
    made.see(Observation(CatalogueSeen(NODE_CLASS.key, digest), {digest: catalogue}))


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (("on-demand", "reserved"), ["more", "less", "more", "", ""]),
        (("reserved",), ["more", "less", "more", "more", "more"]),
    ],
)
def test_a210_launches_at_once_take_no_more_of_a_reservation_than_it_has(
    kinds: tuple[str, ...], expected: list[str]
) -> None:
    """Where nothing else is to be had they ask for it all the same, and EC2 says no."""
    made = World(static_capacity=True)
    given = replace(static(0), requirements=(RequirementSpec(lbl.CAPACITY_TYPE, "In", kinds),))
    made.prepare(given)
    reserving(made, less=1, more=2)
    made.see(Observation(replace(given, replicas=5)))
    assert [order.reservation for _, order in made.launches()] == expected
    assert re_derived(made.store) == made.store.entries


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (("on-demand", "reserved"), ["more", "less", "more", ""]),
        (("reserved",), ["more", "less", "more"]),
    ],
)
def test_d167_drifted_nodes_that_are_replaced_at_once_share_what_a_reservation_has_left(
    kinds: tuple[str, ...], expected: list[str]
) -> None:
    """A-210. Those beyond it failed once. Where nothing else is to be had the fourth stays for now."""
    made = World(static_capacity=True)
    given = replace(static(4), requirements=(RequirementSpec(lbl.CAPACITY_TYPE, "In", kinds),), budgets=(Budget("4"),))
    made.prepare(replace(given, replicas=0))
    terms = NodeClassTerms(hash="1")
    made.see(Observation(NodeClassSeen(NODE_CLASS.group, NODE_CLASS.kind, NODE_CLASS.name, ready=True, terms=terms)))
    reserving(made, first=4)
    made.see(Observation(hashed(given)))
    working(made, 4)
    made.answer_all()
    reserving(made, less=1, more=2)
    made.see(Observation(hashed(replace(given, labels={"generation": "2"}))))
    while made.now < START + 60_000 and not made.launches():
        made.after(1_000)
    assert [order.reservation for _, order in made.launches()] == expected
    offered = [sorted({offer.instance_type for offer in order.offers}) for _, order in made.launches()]
    assert offered[:3] == [["c5.large"]] * 3
    assert all(len(types) > 1 for types in offered[3:])
    assert re_derived(made.store) == made.store.entries


def test_a_limit_is_said_once() -> None:
    made = world(3, limits={"nodes": 1})
    for _ in range(3):
        made.see(Observation(static(3, limits={"nodes": 1}, weight=len(decided(made)))))
    assert [r.reason.code for r in decided(made)] == ["static-scale-up", "static-limit"]


def test_l252_l257_not_while_it_is_not_valid() -> None:
    """Nobody has written the condition of a new object yet."""
    bad = (RequirementSpec("team", "In", ("bad value!",)),)
    made = World(static_capacity=True)
    made.prepare(replace(static(3), requirements=bad))
    assert made.intents == []
    assert [r.reason.code for r in decided(made)] == ["static-not-ready"]
    made.see(Observation(static(3)))
    assert len(made.launches()) == 3


def test_s191_not_while_its_nodeclass_is_not_ready() -> None:
    made = World(static_capacity=True)
    made.see(Observation(static(2)))
    assert made.intents == []
    made.prepare(static(2))
    assert len(made.launches()) == 2


def test_s191_not_for_a_pool_that_is_being_deleted() -> None:
    assert world(2, deleting=1).launches() == []


def test_d164_a_claim_that_goes_is_replaced_at_once() -> None:
    made = world(2)
    launch_all(made)
    made.see(Observation(NodeClaimDeletionSeen(sorted(made.runtime.state.facts.claims)[0], "kubectl")))
    assert len(made.launches()) == 1
    assert states(made) == ["launched", "requested", "tainted"]


def test_launches_that_fail_are_tried_again_after_a_pause_that_doubles() -> None:
    made = world(1)
    for pause in (10_000, 20_000, 40_000):
        ((ref, order),) = made.launches()
        made.see(Observation(LaunchAnswered(ref, order.claim, kind="nodeclass-not-ready", code="X")))
        assert made.launches() == []
        assert made.runtime.next_due() == made.now + pause
        made.after(pause)
    working(made, 1)
    assert made.runtime.state.facts.static["default"].failures == 0
    assert re_derived(made.store) == made.store.entries


def test_d164_instances_that_end_before_they_join_are_launched_again_after_a_pause_that_doubles() -> None:
    made = world(1)
    for number, pause in enumerate((10_000, 20_000, 40_000)):
        launch_all(made, number)
        made.instance(f"i-{number}", "gone")
        assert made.launches() == []
        assert made.runtime.next_due() == made.now + pause
        made.after(pause)
    working(made, 1)
    assert made.runtime.state.facts.static["default"].failures == 0
    assert re_derived(made.store) == made.store.entries


def test_a_pause_that_ends_with_nothing_left_to_do_ends() -> None:
    made = world(1)
    ((ref, order),) = made.launches()
    made.see(Observation(LaunchAnswered(ref, order.claim, kind="nodeclass-not-ready", code="X")))
    made.see(Observation(static(0)))
    made.after(10_000)
    assert made.runtime.next_due() is None
    assert re_derived(made.store) == made.store.entries


# ── scale-down ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_d165_d170_a_scale_down_is_no_disruption_of_the_metrics_and_events() -> None:
    """The reason `overprovisioned` is the record's alone: the reference defines it and never says it."""
    made = world(2)
    working(made, 2)
    made.see(Observation(static(1)))
    assert "tainted" in states(made) or "draining" in states(made)
    assert value(counted(made), "karpenter_nodeclaims_disrupted_total") == 0
    assert "DisruptionTerminating" not in {event.reason for event in told(made)}


def test_d166_unlaunched_claims_go_first() -> None:
    made = world(3)
    ((ref, order), *_) = made.launches()
    made.answer_launch(ref, order)
    made.see(Observation(static(1)))
    assert states(made) == ["launched"]
    cancelled = [e.payload for e in made.store.entries if isinstance(e.payload, ev.Cancelled)]
    assert len(cancelled) == 2
    assert re_derived(made.store) == made.store.entries


def test_d166_then_empty_nodes_then_by_cost() -> None:
    made = world(4)
    working(made, 4)
    put(made, "dear", "n1", deletion_cost=1 << 28)
    put(made, "cheap", "n2")
    put(made, "kept", "n3", do_not_disrupt="true")
    order = []
    for replicas in (3, 2, 1, 0):
        before = by_instance(made)
        made.see(Observation(static(replicas)))
        order += [i for i, state in by_instance(made).items() if state == "tainted" and before.get(i) != "tainted"]
    assert order == ["i-4", "i-2", "i-1", "i-3"]
    whys = {e.payload.why for e in made.store.entries if isinstance(e.payload, ev.Tainted)}
    assert whys == {"overprovisioned"}
    assert re_derived(made.store) == made.store.entries


def test_d166_daemons_leave_a_node_empty_unless_one_must_not_be_disrupted() -> None:
    made = world(3)
    working(made, 3)
    shape = PodShape(requests={"cpu": 1}, grace=0)
    digest, _ = content(shape)
    owner = Owner(DAEMONSET, "agent", "uid-ds")
    for node, mark in (("n1", "true"), ("n2", "")):
        daemon = Pod(
            f"uid-{node}", "kube-system", f"agent-{node}", digest, created=made.now, node=node, phase="Running",
            ready=True, owner=owner, do_not_disrupt=mark,
        )  # fmt: skip
        made.see(Observation(daemon, {digest: shape}))
    put(made, "web", "n3")
    made.see(Observation(static(2)))
    assert [i for i, state in by_instance(made).items() if state == "tainted"] == ["i-2"]


def test_d165_no_budget_holds_a_scale_down_up() -> None:
    made = world(3, budgets=())
    working(made, 3)
    made.see(Observation(static(0)))
    assert states(made) == ["tainted"] * 3


def test_a_new_writer_looks_at_the_size_again() -> None:
    """The state that a snapshot gives asks the same question, and adds nothing where there is nothing to do."""
    made = world(2)
    state = made.runtime.state
    twin = snapshot.decode(snapshot.encode(state)[0], state.indexes.blobs)
    assert list(twin.indexes.static) == ["default"]
    before = len(made.store.entries)
    made.runtime = made.start()
    assert [e.type for e in made.store.entries[before:]] == ["record.office-taken"]


def test_a_node_that_is_not_of_the_pool_does_not_count() -> None:
    made = World(static_capacity=True)
    made.see(Observation(Node("mine", labels={lbl.NODEPOOL: "other"})))
    made.see(Observation(NodeClassSeen(NODE_CLASS.group, NODE_CLASS.kind, NODE_CLASS.name, ready=True)))
    made.prepare(static(1))
    assert len(made.launches()) == 1
