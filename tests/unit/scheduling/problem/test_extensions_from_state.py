"""Default spread, overlays, buffers and devices in a running controller, and its record made again."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from kerf.engine.disruption.cluster_from_state import cluster_of
from kerf.engine.model import labels as lbl
from kerf.engine.model.content_digest import content
from kerf.engine.model.karpenter.capacity_buffers import CapacityBuffer
from kerf.engine.model.karpenter.nodeoverlays import NodeOverlay
from kerf.engine.model.karpenter.nodepools import RequirementSpec
from kerf.engine.model.kubernetes.pod_templates import PodTemplate
from kerf.engine.model.kubernetes.pods import Owner, Pod, PodShape, Selector, SpreadConstraint
from kerf.engine.model.kubernetes.workloads import Workload
from kerf.engine.record.decisions import LaunchInstance, ProvisionResult
from kerf.engine.record.observations import ObjectGone, Observation
from kerf.engine.scheduling.problem.from_state import problem_of
from kerf.engine.scheduling.reasons import SchedulingCode
from kerf.engine.state import snapshot
from kerf.engine.state.load import load
from kerf.replay.verify.verify import verify
from tests.support.world import Mi, World, pool

FUSE = "smarter-devices/fuse"


def results(world: World) -> list[ProvisionResult]:
    found = [e.payload.result for e in world.store.scan() if e.type == "decision.made"]
    return [result for result in found if isinstance(result, ProvisionResult)]


def launches(intents: Any) -> list[LaunchInstance]:
    return [intent for intent in intents if isinstance(intent, LaunchInstance)]


def honest(world: World) -> None:
    """Decided again the same, and folded again to the same state."""
    assert verify(world.store).exit_code == 0
    assert snapshot.digest(load(world.store)) == snapshot.digest(world.runtime.state)


# ── default spread ──────────────────────────────────────


def owned(world: World, name: str, owner: str) -> Observation:
    shape = PodShape(requests={"memory": 100 * Mi}, labels={"app": "a"}, grace=0)
    digest, _ = content(shape)
    pod = Pod(
        f"uid-{name}", "default", name, digest, created=world.now, unschedulable=True,
        owner=Owner("apps/v1/ReplicaSet", owner),
    )  # fmt: skip
    return Observation(pod, {digest: shape})


def test_s150_pods_of_a_replica_set_are_spread_by_the_settings() -> None:
    world = World(default_spread=(SpreadConstraint(lbl.ZONE),))
    world.prepare()
    replica_set = Workload("apps/v1/ReplicaSet", "default", "a-1", "", selector=Selector({"app": "a"}))
    world.see(Observation(replica_set), *(owned(world, f"p{i}", "a-1") for i in range(4)))
    world.after(1_000)
    assert sorted(len(claim.pods) for claim in results(world)[-1].claims) == [2, 2]
    honest(world)


def test_s150_without_the_setting_they_share_a_node() -> None:
    world = World()
    world.prepare()
    replica_set = Workload("apps/v1/ReplicaSet", "default", "a-1", "", selector=Selector({"app": "a"}))
    world.see(Observation(replica_set), *(owned(world, f"p{i}", "a-1") for i in range(4)))
    assert len(launches(world.after(1_000))) == 1


# ── devices ──────────────────────────────────────


def test_s194_the_reason_is_in_the_record() -> None:
    world = World()
    world.prepare()
    world.pending("a", resource_claims=("gpu",))
    assert launches(world.after(1_000)) == []
    (left,) = results(world)[-1].unplaced
    assert [reason.code for reason in left.reasons] == [SchedulingCode.RESOURCE_CLAIMS]
    honest(world)


# ── overlays ──────────────────────────────────────


def test_s185_the_overlays_price_decides_and_stands_in_the_launch() -> None:
    cheap = NodeOverlay("r5", requirements=(RequirementSpec(lbl.INSTANCE_TYPE, "In", ("r5.large",)),), price=0.01)
    for gate, expected in ((True, ("r5.large", 0.01)), (False, ("c5.large", 0.085))):
        world = World(node_overlays=gate)
        world.prepare()
        world.see(Observation(cheap))
        world.pending("a")
        (order,) = launches(world.after(1_000))
        assert (order.offers[0].instance_type, order.offers[0].price) == expected
        assert order.by_price == gate, "A-275, A-276"
        assert results(world)[-1].claims[0].price == expected[1]
        (claim,) = world.runtime.state.facts.claims.values()
        assert ("karpenter.sh/price-overlay-applied" in claim.annotations) == gate
        assert "karpenter.sh/capacity-overlay-applied" not in claim.annotations
        honest(world)


def test_a280_the_launch_says_that_min_values_were_lowered() -> None:
    for least, relaxed in ((2, False), (9, True)):
        world = World(min_values_policy="BestEffort")
        world.prepare(replace(pool(), requirements=(RequirementSpec(lbl.INSTANCE_TYPE, "Exists", min_values=least),)))
        world.pending("a")
        (order,) = launches(world.after(1_000))
        assert order.relaxed == relaxed


def test_s186_a_claim_on_its_way_already_has_what_an_overlay_promises() -> None:
    world = World(node_overlays=True)
    world.prepare()
    world.see(Observation(NodeOverlay("fuse", capacity={FUSE: 8})))
    world.pending("a")
    world.after(1_000)
    ((ref, order),) = world.launches()
    for _ in range(2):  # once before the cloud has answered, once after
        (place,) = problem_of(world.runtime.state, world.now).nodes
        assert place.available[FUSE] == 8
        world.answer_launch(ref, order)
    honest(world)


def test_s188_pods_that_wait_are_planned_again_when_an_overlay_comes_or_goes() -> None:
    world = World(node_overlays=True)
    world.prepare()
    shape = PodShape(requests={FUSE: 1})
    digest, _ = content(shape)
    world.see(Observation(Pod("u", "default", "p", digest, unschedulable=True), {digest: shape}))
    assert launches(world.after(1_000)) == []
    world.see(Observation(NodeOverlay("fuse", capacity={FUSE: 8})))
    assert len(launches(world.after(1_000))) == 1
    world.see(Observation(ObjectGone("nodeoverlay", "fuse")))
    assert world.runtime.state.facts.overlays == {}
    honest(world)


# ── buffers ──────────────────────────────────────


def with_buffer(replicas: int = 2, **settings: Any) -> World:
    world = World(**{"capacity_buffers": True, **settings})
    world.prepare()
    shape = PodShape(requests={"memory": 5_000 * Mi})
    digest, _ = content(shape)
    world.see(
        Observation(PodTemplate("default", "spare", digest), {digest: shape}),
        Observation(CapacityBuffer("buf", "default", "b", template="spare", replicas=replicas)),
    )
    return world


def test_s180_a_buffer_opens_nodes_although_no_pod_waits() -> None:
    """S-169: and nothing is kept of where its pods are to go."""
    world = with_buffer()
    orders = launches(world.after(1_000))
    facts = world.runtime.state.facts
    assert len(orders) == 1
    assert facts.buffered == {orders[0].claim: 2}
    assert facts.targets == {}
    assert world.after(60_000) == []
    honest(world)


def test_s177_without_the_gate_it_asks_for_nothing() -> None:
    world = with_buffer(capacity_buffers=False)
    assert world.after(60_000) == []
    assert results(world) == []


def test_s180_pods_take_the_room_and_the_buffer_asks_for_more() -> None:
    world = with_buffer(1)
    world.after(1_000)
    ((ref, order),) = world.launches()
    world.answer_launch(ref, order)
    world.pending("a", memory=5_000 * Mi)
    orders = launches(world.after(1_000))
    assert len(orders) == 1
    facts = world.runtime.state.facts
    assert facts.targets == {"uid-a": order.claim}
    assert facts.buffered == {orders[0].claim: 1}
    honest(world)


def test_s171_pods_of_buffers_nominate_nobody() -> None:
    world = with_buffer(1)
    world.after(1_000)
    ((ref, order),) = world.launches()
    world.answer_launch(ref, order)
    world.see(Observation(CapacityBuffer("buf", "default", "b", template="spare", replicas=1, percentage=1)))
    world.after(1_000)
    state = world.runtime.state
    assert [placement.claim for placement in results(world)[-1].placements] == [order.claim]
    assert state.facts.claims[order.claim].nominated_until == 0
    assert not state.indexes.waiting_for.get(order.claim)


def test_s181_a_buffer_that_goes_gives_its_room_back() -> None:
    world = with_buffer(1)
    world.after(1_000)
    world.see(Observation(ObjectGone("capacitybuffer", "default/b")))
    world.pending("a", memory=5_000 * Mi)
    world.after(1_000)
    assert world.runtime.state.facts.buffered == {}
    honest(world)


def test_s178_a_buffer_follows_the_scale_of_its_workload() -> None:
    world = World(capacity_buffers=True)
    world.prepare()
    shape = PodShape(requests={"memory": 5_000 * Mi})
    digest, _ = content(shape)
    workload = Workload("apps/v1/Deployment", "default", "d", digest, replicas=10)
    world.see(
        Observation(workload, {digest: shape}),
        Observation(CapacityBuffer("buf", "default", "b", kind=workload.kind, workload="d", percentage=10)),
    )
    world.after(1_000)
    assert sum(world.runtime.state.facts.buffered.values()) == 1
    world.see(Observation(Workload("apps/v1/Deployment", "default", "d", digest, replicas=31), {digest: shape}))
    world.after(1_000)
    assert sum(world.runtime.state.facts.buffered.values()) == 4
    honest(world)


def test_s182_a_pass_that_goes_on_keeps_what_the_one_before_put_where() -> None:
    world = with_buffer(3, max_steps=2)
    world.after(1_000)
    assert len(results(world)[-1].truncated) == 1
    world.after(1)
    assert sum(world.runtime.state.facts.buffered.values()) == 3
    honest(world)


def test_d9_each_pass_says_anew_which_nodes_keep_room() -> None:
    """A node of which it says nothing keeps none, and may be empty again."""
    world = with_buffer(2)
    world.after(1_000)
    ((ref, order),) = world.launches()
    world.answer_launch(ref, order)
    provider = "aws:///us-west-2a/i-1"
    world.node("n1", provider)
    world.node("n1", provider, registered="true")
    world.node("n1", provider, registered="true", initialized="true")
    state = world.runtime.state
    assert state.facts.buffered == {order.claim: 2}
    assert cluster_of(state, world.now).nodes[0].buffers == 2
    world.see(Observation(CapacityBuffer("buf", "default", "b", template="spare", replicas=1)))
    world.after(1_000)
    assert state.facts.buffered == {order.claim: 1}
    world.see(Observation(CapacityBuffer("buf", "default", "b", template="spare", replicas=0)))
    world.after(1_000)
    assert state.facts.buffered == {}
    assert cluster_of(state, world.now).nodes[0].buffers == 0
    honest(world)
