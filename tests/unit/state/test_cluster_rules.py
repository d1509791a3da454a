"""What the state knows of nodes, claims and pods, rule by rule (docs/rules/lifecycle.md 4.2 and 5)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.disruption.cluster_from_state import cluster_of
from kerf.engine.model import labels as lbl
from kerf.engine.model.content_digest import content
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import (
    DAEMONSET,
    AffinityTerm,
    HostPort,
    Owner,
    Pod,
    PodShape,
    Selector,
    Taint,
    VolumeRef,
)
from kerf.engine.model.kubernetes.volumes import EBS, CSINode, StorageClass, Volume, VolumeClaim
from kerf.engine.record.decisions import Decision, LaunchInstance, ProposedMovesResult, UntaintNode
from kerf.engine.record.observations import NodeClaimDeletionSeen, ObjectGone, Observation
from kerf.engine.scheduling.problem.from_state import problem_of
from kerf.engine.state import snapshot
from tests.support.lives import DISRUPTED, PODS, PROVIDER, UNREGISTERED, claim_of, in_service, launched
from tests.support.world import World
from tests.support.worlds.volumes import result, see, zone

Mi = 2**20


def pod_on(world: World, name: str, node: str = "n1", **changes: Any) -> None:
    """A running pod of its own shape shows."""
    known: dict[str, Any] = {"created": world.now, "phase": "Running", "ready": True, "node": node} | changes
    shape = known.pop("shape", PodShape(requests={"memory": 1}))
    digest, _ = content(shape)
    world.see(Observation(Pod(f"uid-{name}", "default", name, digest, **known), {digest: shape}))


def launches(world: World) -> list[LaunchInstance]:
    return [order for _, order in world.launches()]


# ── pod events ──────────────────────────────────────────────────────────────────────────────────────────────────────


def quiet() -> World:
    """A node in service whose pods have not changed for a minute."""
    world = in_service()
    world.after(60_000)
    return world


def test_l243_a_pod_that_is_bound_ends_or_goes_is_an_event() -> None:
    for what in ("bound", "ended", "goes"):
        world = quiet()
        before = claim_of(world).last_pod_event
        if what == "bound":
            pod_on(world, "new")
        elif what == "ended":
            world.see(Observation(replace(world.pods["a"], phase="Succeeded")))
        else:
            world.see(Observation(replace(world.pods["a"], deleting=world.now + 30_000)))
        assert (what, claim_of(world).last_pod_event) == (what, world.now)
        assert before < world.now


def test_l243_what_is_no_event() -> None:
    """A daemon; a change of a pod that stays; the final end of one that was going already."""
    world = quiet()
    before = claim_of(world).last_pod_event
    pod_on(world, "agent", owner=Owner(DAEMONSET, "agent", "uid-agent"))
    world.see(Observation(replace(world.pods["a"], ready=False)))
    assert claim_of(world).last_pod_event == before
    world.see(Observation(replace(world.pods["a"], deleting=world.now + 30_000)))
    going = claim_of(world).last_pod_event
    assert going == world.now
    world.after(30_000)
    world.gone("a")
    assert claim_of(world).last_pod_event == going


def test_l243_events_within_ten_seconds_are_one() -> None:
    world = quiet()
    pod_on(world, "new")
    first = claim_of(world).last_pod_event
    world.after(9_999)
    pod_on(world, "later")
    assert claim_of(world).last_pod_event == first
    world.after(1)
    pod_on(world, "last")
    assert claim_of(world).last_pod_event == world.now == first + 10_000


def test_l243_a_restart_is_no_event() -> None:
    """Unlike the reference, whose watch shows every pod anew: consolidateAfter would begin again."""
    world = quiet()
    before = claim_of(world).last_pod_event
    world.runtime = world.start()
    for name in PODS:
        world.see(Observation(world.pods[name]))
    assert claim_of(world).last_pod_event == before


# ── nodes and claims ────────────────────────────────────────────────────────────────────────────────────────────────


def passes(world: World) -> list[ProposedMovesResult]:
    found = [entry.payload.result for entry in world.store.entries if isinstance(entry.payload, Decision)]
    return [result for result in found if isinstance(result, ProposedMovesResult)]


def test_d4_l262_a_node_without_its_claim_and_a_claim_without_its_node_are_there_alone() -> None:
    world = in_service()
    world.see(Observation(ObjectGone("node", "n1")))
    (alone,) = cluster_of(world.runtime.state, world.now).nodes
    assert (alone.place.claim, alone.has_node, alone.managed) == (claim_of(world).name, False, True)
    other = World()
    other.prepare()
    other.see(Observation(Node("n1", provider_id=PROVIDER, ready=True, created=other.now)))
    (alone,) = cluster_of(other.runtime.state, other.now).nodes
    assert (alone.place.claim, alone.name, alone.managed) == ("", "n1", False)
    other.see(Observation(ObjectGone("node", "n1")))
    assert cluster_of(other.runtime.state, other.now).nodes == ()


def test_l262_d27_what_is_gone_has_a_pass_look_again() -> None:
    world = quiet()
    world.after(60_000)
    assert world.runtime.state.facts.moves_changed == 0
    world.see(Observation(ObjectGone("node", "n1")))
    assert world.runtime.state.facts.moves_changed == world.now


def taints(world: World) -> tuple[Taint, ...]:
    """As a plan sees those of the one node."""
    (found,) = problem_of(world.runtime.state, world.now).nodes
    return found.taints


def test_l265_until_its_node_registers_the_taints_are_the_claims_without_those_for_the_start() -> None:
    own, startup = Taint("team", "NoSchedule", "a"), Taint("warming", "NoExecute")
    world = launched(startup_taints=(startup,))
    claim_of(world).taints = (own,)
    assert taints(world) == (own,)
    world.node("n1", PROVIDER, taints=(UNREGISTERED, Taint("odd", "NoSchedule")))
    assert taints(world) == (own,)


def test_l265_then_the_nodes_less_what_passes_until_it_is_initialized() -> None:
    startup, odd = Taint("warming", "NoExecute"), Taint("odd", "NoSchedule")
    fleeting = Taint("node.kubernetes.io/not-ready", "NoSchedule")
    world = launched(startup_taints=(startup,))
    world.node("n1", PROVIDER, taints=(UNREGISTERED,))
    world.answer_all()
    world.node("n1", PROVIDER, registered="true", taints=(startup, odd, fleeting))
    assert taints(world) == (odd,)
    world.node("n1", PROVIDER, registered="true")
    world.answer_all()
    world.node("n1", PROVIDER, registered="true", initialized="true", taints=(startup, fleeting))
    assert taints(world) == (startup, fleeting)


def test_l269_a_change_of_the_claim_keeps_pods_marks_and_nomination() -> None:
    """Also what its pods cost: no quirk."""
    world = in_service()
    world.see(Observation(replace(world.pods["a"], deletion_cost=134_217_728)))
    claim_of(world).nominated_until = world.now + 60_000

    def known() -> tuple[Any, ...]:
        (node,) = cluster_of(world.runtime.state, world.now).nodes
        return node.nominated, [(pod.name, pod.deletion_cost) for pod in node.pods]

    before = known()
    assert before == (True, [("a", 134_217_728), *((name, 0) for name in PODS[1:])])
    world.see(Observation(NodeClaimDeletionSeen(claim_of(world).name, "kubectl")))
    assert known() == before


def test_l279_l507_a_node_that_nobody_can_tell_the_instance_of_holds_nothing_up() -> None:
    """Unlike the reference, which would never have seen the whole cluster."""
    world = in_service()
    before = len(passes(world))
    world.see(Observation(Node("stray", ready=True, created=world.now, labels={lbl.NODEPOOL: "default"})))
    world.pending("large", memory=6_000 * Mi)
    world.after(1_000)
    assert len(launches(world)) == 1
    world.after(60_000)
    assert len(passes(world)) > before


def test_l285_d20_after_a_restart_a_taint_of_nobody_is_taken_off_and_marks_are_still_there() -> None:
    world = in_service()
    world.runtime = world.start()
    intents = world.node("n1", PROVIDER, registered="true", initialized="true", taints=(DISRUPTED,))
    assert intents == [UntaintNode(claim_of(world).name, "n1")]
    marked = in_service()
    marked.see(Observation(NodeClaimDeletionSeen(claim_of(marked).name, "kubectl")))
    marked.runtime = marked.start()
    assert claim_of(marked).why == "deleted"
    shown = marked.node("n1", PROVIDER, registered="true", initialized="true", taints=(DISRUPTED,))
    assert not [intent for intent in shown if isinstance(intent, UntaintNode)]


# ── pods on nodes ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("bound", "keeps_away"), [("n1", True), ("unheard-of", False)])
def test_l272_a_pod_that_wants_to_be_alone_counts_on_a_node_that_is_known(bound: str, keeps_away: bool) -> None:
    world = in_service()
    alone = PodShape(requests={"memory": 1}, anti_affinity=(AffinityTerm(lbl.HOSTNAME, Selector()),))
    pod_on(world, "shy", bound, shape=alone)
    world.pending("p", memory=1)
    world.after(1_000)
    assert bool(launches(world)) == keeps_away


def test_l272_a_preference_keeps_nobody_away() -> None:
    world = in_service()
    liking = PodShape(requests={"memory": 1}, anti_affinity=(AffinityTerm(lbl.HOSTNAME, Selector(), weight=100),))
    pod_on(world, "shy", shape=liking)
    world.pending("p", memory=1)
    world.after(1_000)
    assert launches(world) == []


@pytest.mark.parametrize(
    ("asked", "clash"),
    [
        (HostPort(80), True), (HostPort(80, ip="10.0.0.1"), True), (HostPort(81), False), (HostPort(80, "UDP"), False),
    ],
)  # fmt: skip
def test_l273_a_port_of_the_node_that_a_pod_has_taken(asked: HostPort, clash: bool) -> None:
    """An empty hostIP is every address."""
    world = in_service()
    pod_on(world, "web", shape=PodShape(requests={"memory": 1}, host_ports=(HostPort(80),)))
    world.pending("p", memory=1, host_ports=(asked,))
    world.after(1_000)
    assert bool(launches(world)) == clash


def full_of_volumes() -> World:
    """`n1` takes one volume of EBS, and one of its pods has it."""
    world = in_service()
    see(world, StorageClass("gp3", EBS), CSINode("n1", {EBS: 1}), Volume("pv-1", EBS, (zone("us-west-2a"),)))
    see(world, VolumeClaim("default", "own", "pv-1", "gp3", "Bound", bind_completed=True))
    pod_on(world, "v", shape=PodShape(requests={"memory": 1}, volumes=(VolumeRef("own", claim="own"),)))
    return world


@pytest.mark.parametrize(
    ("claim", "given", "fits"),
    [
        ("data", (StorageClass("gp3", EBS), VolumeClaim("default", "data", storage_class="gp3")), False),
        ("data", (StorageClass("nfs", "nfs.csi"), VolumeClaim("default", "data", storage_class="nfs")), True),
        ("data", (Volume("pv-2"), VolumeClaim("default", "data", "pv-2", "", "Bound", bind_completed=True)), True),
        (
            "data",
            (Volume("pv-2", EBS), VolumeClaim("default", "data", "pv-2", "", "Bound", bind_completed=True)),
            False,
        ),
        ("own", (), True),
    ],
    ids=["class", "class of another driver", "bound, not CSI", "bound", "shared"],
)
def test_l274_volumes_of_a_driver_are_counted_by_claims(claim: str, given: tuple[Struct, ...], fits: bool) -> None:
    """The driver is that of the bound volume, else that of the class; a claim that two pods share counts once."""
    world = full_of_volumes()
    see(world, *given)
    world.pending("p", memory=1, volumes=(VolumeRef("data", claim=claim),))
    world.after(1_000)
    assert (launches(world) == []) == fits
    placed = result(world).placements
    assert [pod.node for pod in placed] == (["n1"] if fits else [])


def test_the_state_of_these_worlds_is_the_same_from_a_snapshot() -> None:
    world = quiet()
    pod_on(world, "new")
    state = world.runtime.state
    twin = snapshot.decode(snapshot.encode(state)[0], state.indexes.blobs)
    assert twin.facts == state.facts
