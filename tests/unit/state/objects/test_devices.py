"""S-194…S-199, L-175 live: what the state knows of devices reaches the planner and the initialization of nodes."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.disruption.cluster import what_if
from kerf.engine.disruption.cluster_from_state import cluster_of
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.labels import DRA_DRIVERS
from kerf.engine.nodeclaim.state_table import INITIALIZED, REGISTERED
from kerf.engine.record.decisions import Decision, InitializeNode, ProvisionResult
from kerf.engine.record.observations import NodeClaimDeletionSeen, ObjectGone, Observation
from kerf.engine.scheduling.planner import plan
from kerf.engine.state import snapshot
from tests.support.lives import PROVIDER, UNREGISTERED, claim_of
from tests.support.manifests.gpus import DRIVER, WITH_GPUS, allocated, claim, gpu_world, published, see
from tests.support.world import Mi, World

ASKS = ("g=own",)


def result(world: World) -> ProvisionResult:
    """That of the latest pass."""
    made = [e.payload for e in world.store.entries if isinstance(e.payload, Decision)]
    return next(d.result for d in reversed(made) if isinstance(d.result, ProvisionResult))


def codes(world: World) -> list[str]:
    return [why.code for group in result(world).unplaced for why in group.reasons]


def asked() -> World:
    """Pod `a` waits with the claim `own`, and a node is asked for."""
    world = gpu_world()
    see(world, claim("own"))
    world.pending("a", resource_claims=ASKS)
    world.after(1_000)
    return world


def registered(world: World) -> World:
    """The node `n1` is there and registered, and its driver has said nothing yet."""
    ((ref, order),) = world.launches()
    world.answer_launch(ref, order)
    world.node("n1", PROVIDER, taints=(UNREGISTERED,))
    world.answer_all()
    world.node("n1", PROVIDER, registered="true")
    return world


def test_s194_a_pod_with_a_claim_gets_no_node_while_dra_requests_are_ignored() -> None:
    world = gpu_world(ignore_dra_requests=True)
    see(world, claim("own"))
    world.pending("a", resource_claims=ASKS)
    assert world.after(1_000) == []
    assert codes(world) == ["resource-claims-ignored"]


def test_s195_a_pod_waits_for_its_claim_and_is_planned_when_that_shows() -> None:
    world = gpu_world()
    world.pending("a", resource_claims=("g@template",))
    world.after(1_000)
    assert codes(world) == ["resource-claim"]
    see(world, claim("a-g-1", made_for="uid-a", own_name="g"))
    world.after(1_000)
    ((_, order),) = world.launches()
    assert {offer.instance_type for offer in order.offers} == {WITH_GPUS}


def test_s195_a_claim_that_is_gone_is_found_no_more() -> None:
    world = gpu_world()
    see(world, claim("own"))
    world.see(Observation(ObjectGone("resourceclaim", "default/own")))
    world.pending("a", resource_claims=ASKS)
    assert world.after(1_000) == []
    assert codes(world) == ["resource-claim"]


def test_s160_the_nodeclaim_says_whose_devices_it_is_launched_for() -> None:
    assert claim_of(asked()).annotations[DRA_DRIVERS] == DRIVER


def test_s160_a_nodeclaim_for_pods_without_claims_does_not() -> None:
    world = gpu_world()
    world.pending("a")
    world.after(1_000)
    assert DRA_DRIVERS not in claim_of(world).annotations


def test_l175_a_node_is_not_initialized_before_its_driver_has_published_and_no_second_one_is_launched() -> None:
    world = registered(asked())
    assert claim_of(world).state == REGISTERED
    assert world.after(60_000) == []
    world.pending("b")  # a pass that looks at `a` again
    world.after(1_000)
    assert world.launches() == []
    see(world, published("n1", count=2))
    assert world.intents == []  # its pool is not complete
    see(world, published("n1"))
    assert [type(intent) for _, intent in world.intents] == [InitializeNode]
    world.node("n1", PROVIDER, registered="true", initialized="true")
    assert claim_of(world).state == INITIALIZED
    assert world.after(60_000) == []


def test_l175_slices_of_another_driver_or_node_do_not_count() -> None:
    world = registered(asked())
    see(world, published("n1", driver="other.example.com"), published("n2"))
    assert world.intents == []


def test_l175_nobody_waits_while_dra_requests_are_ignored() -> None:
    world = gpu_world(ignore_dra_requests=True)
    world.pending("a")
    world.after(1_000)
    registered(world)
    assert [type(intent) for _, intent in world.intents] == [InitializeNode]


def served(world: World) -> World:
    """`n1` is initialized and its devices are published."""
    registered(world)
    see(world, published("n1"))
    world.node("n1", PROVIDER, registered="true", initialized="true")
    return world


def test_s198_devices_of_running_pods_are_not_given_away_again() -> None:
    world = served(asked())
    see(world, allocated(claim("own"), "n1", "gpu-0", pod="uid-a"))
    world.bind("a", "n1")
    see(world, claim("b"), claim("c"))
    world.pending("b", "c", resource_claims=("g=b",))
    world.after(1_000)
    assert world.launches() == []  # both share the claim `b`
    world.pending("d", resource_claims=("g=c",))
    world.after(1_000)
    assert len(world.launches()) == 1  # and gpu-1 is for that


def test_s199_a_claim_that_is_allocated_keeps_its_pods_on_its_node() -> None:
    world = served(asked())
    see(world, allocated(claim("own"), "n1", "gpu-0", pod="uid-a"))
    world.bind("a", "n1")
    world.pending("b", resource_claims=ASKS)
    world.after(1_000)
    (placement,) = result(world).placements
    assert (placement.node, placement.pods) == ("n1", ("uid-b",))
    world.pending("c", resource_claims=ASKS, node_selector={"topology.kubernetes.io/zone": "us-west-2b"})
    world.after(1_000)
    assert world.launches() == []


def test_s198_the_claim_of_a_pod_that_has_to_move_is_allocated_anew() -> None:
    world = served(asked())
    see(world, allocated(claim("own"), "n1", "gpu-0", pod="uid-a"))
    world.bind("a", "n1")
    world.see(Observation(NodeClaimDeletionSeen(claim_of(world).name, "kubectl")))
    world.answer_all()
    world.after(1_000)
    ((_, order),) = world.launches()
    assert {offer.instance_type for offer in order.offers} == {WITH_GPUS}


def moving(own: str) -> World:
    """Pod `a` has to leave `n1`, with the claim `own` that was made for it; a plan has put it on `n2`, which others
    made."""
    world = gpu_world()
    made = claim(own, made_for="uid-a", own_name="g")
    see(world, made)
    world.pending("a", resource_claims=("g@template",))
    world.after(1_000)
    served(world)
    see(world, allocated(made, "n1", "gpu-0", pod="uid-a"))
    world.bind("a", "n1")
    see(world, Node("n2", ready=True, allocatable={"cpu": 4_000, "memory": 1536 * Mi, "pods": 9}), published("n2"))
    world.see(Observation(NodeClaimDeletionSeen(claim_of(world).name, "kubectl")))
    world.answer_all()
    world.after(1_000)
    assert world.runtime.state.facts.targets == {"uid-a": "n2"}
    return world


def test_a_pod_whose_claim_is_seen_gone_before_it_is_counts_where_it_was_promised_a_place() -> None:
    """S-46, D-88: its end is seen later. Where it went its successor is, and room for nobody else."""
    world = moving("a-g-1")
    world.see(Observation(ObjectGone("resourceclaim", "default/a-g-1")))
    world.after(1_000)
    assert world.runtime.state.facts.targets == {"uid-a": "n2"}
    assert codes(world) == []
    world.pending("z", memory=1024 * Mi)  # it would have fitted beside nothing else
    world.after(1_000)
    assert world.runtime.state.facts.targets["uid-a"] == "n2"
    assert world.runtime.state.facts.targets["uid-z"] != "n2"


def test_d88_so_it_does_for_a_disruption_pass() -> None:
    world = moving("a-g-1")
    world.see(Observation(ObjectGone("resourceclaim", "default/a-g-1")))
    world.after(1_000)
    planned = plan(what_if(cluster_of(world.runtime.state, world.now), frozenset(), respect_settling=True))
    assert [(placement.node, placement.pods) for placement in planned.placements] == [("n2", ("uid-a",))]


def test_the_successor_has_the_device_there_and_the_pod_asks_for_no_other() -> None:
    world = moving("a-g-1")
    world.see(Observation(ObjectGone("resourceclaim", "default/a-g-1")))
    later = (claim(f"later-g-{n}", made_for=f"uid-later-{n}", own_name="g") for n in (0, 1))
    see(world, *(allocated(successor, "n2", f"gpu-{n}", pod=successor.made_for) for n, successor in enumerate(later)))
    world.after(1_000)
    assert world.runtime.state.facts.targets == {"uid-a": "n2"}
    assert world.launches() == []


def test_s195_a_pod_that_stays_and_whose_claim_is_gone_has_no_other_place() -> None:
    """It may be gone as well: what is to go with its node is not known."""
    world = moving("a-g-1")
    see(world, Node("n3", ready=True, allocatable={"cpu": 4_000, "memory": 1536 * Mi, "pods": 9}))
    see(world, claim("s-g-1", made_for="uid-s", own_name="g"))
    world.pending("s", resource_claims=("g@template",))
    world.bind("s", "n2")
    world.see(Observation(ObjectGone("resourceclaim", "default/s-g-1")))
    asked = what_if(cluster_of(world.runtime.state, world.now), frozenset(["n2"]), respect_settling=True)
    assert [group.pods for group in plan(asked).unplaced if group.reasons[0].code == "resource-claim"] == [("uid-s",)]


def test_a_snapshot_knows_the_same_of_devices() -> None:
    world = gpu_world()
    see(world, claim("z", made_for="u", own_name="g"), claim("a", made_for="u", own_name="g"), published("n1"))
    see(world, replace(published("n1"), node="n2"))
    state = world.runtime.state
    again = snapshot.decode(snapshot.encode(state)[0], state.indexes.blobs)
    for known in (state, again):
        assert {key: sorted(names) for key, names in known.indexes.made_claims.items()} == {("u", "g"): ["a", "z"]}
        assert {key: sorted(names) for key, names in known.indexes.slices_by_node.items()} == {
            "n1": ["n1-gpus"],
            "n2": ["n1-gpus"],
        }
    world.see(
        Observation(ObjectGone("resourceslice", "n1-gpus")), Observation(ObjectGone("resourceclaim", "default/a"))
    )
    assert state.indexes.slices_by_node == {}
    assert state.indexes.made_claims == {("u", "g"): {"z": None}}
