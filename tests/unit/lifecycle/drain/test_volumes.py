"""W-79, L-199, D-155, D-156: an instance ends when its volumes are detached."""

from __future__ import annotations

from kerf.engine.model.content_digest import content
from kerf.engine.model.kubernetes.pods import Pod, PodShape, Toleration, VolumeRef
from kerf.engine.model.kubernetes.volumes import VolumeAttachment, VolumeClaim
from kerf.engine.record.claim_events import Drained, VolumesDetached
from kerf.engine.record.decisions import EvictPod, LaunchInstance, TerminateInstance
from kerf.engine.record.observations import NodeClaimDeletionSeen, ObjectGone, Observation
from tests.support.lives import PODS, claim_of, in_service, show_taint, types
from tests.support.world import World


def serving(**changes: object) -> World:
    """The node `n1` is in service, and empty."""
    world = in_service(**changes)
    for name in PODS:
        world.gone(name)
    return world


def put(world: World, name: str, *tolerations: Toleration, claim: str = "data") -> None:
    shape = PodShape(volumes=(VolumeRef("v", claim=claim),), tolerations=tolerations, grace=0)
    digest, _ = content(shape)
    pod = Pod(f"uid-{name}", "default", name, digest, node="n1", phase="Running", started=world.now)
    world.see(Observation(pod, {digest: shape}))


def attach(world: World, volume: str, claim: str = "") -> None:
    if claim:
        world.see(Observation(VolumeClaim("default", claim, volume, "gp3", "Bound", bind_completed=True)))
    world.see(Observation(VolumeAttachment(f"attachment-of-{volume}", "n1", volume)))


def detach(world: World, volume: str) -> None:
    world.see(Observation(ObjectGone("volumeattachment", f"attachment-of-{volume}")))


def drain(world: World) -> None:
    """The pod `a`, if there is one, leaves; five seconds pass."""
    world.see(Observation(NodeClaimDeletionSeen(claim_of(world).name, "kubectl")))
    world.answer_all()
    show_taint(world)
    world.answer_all()
    world.see(Observation(ObjectGone("pod", "uid-a")))
    world.after(5_000)


def ends(world: World) -> bool:
    """Nothing else happens, but that pods which stayed to the end get another place (S-46)."""
    others = [type(intent) for _, intent in world.intents if not isinstance(intent, LaunchInstance)]
    return others == [TerminateInstance]


def detached(world: World) -> VolumesDetached:
    (event,) = [e.payload for e in world.store.entries if isinstance(e.payload, VolumesDetached)]
    return event


def test_w79_the_volume_of_a_drained_pod_is_awaited() -> None:
    world = serving()
    put(world, "a")
    attach(world, "pv-1", "data")
    drain(world)
    assert claim_of(world).drained
    assert world.after(3_600_000) == []
    detach(world, "pv-1")
    assert ends(world)
    assert detached(world) == VolumesDetached(claim_of(world).name, 3_600_000)


def test_w79_the_volume_of_a_pod_that_stays_is_not() -> None:
    world = serving()
    put(world, "agent", Toleration(operator="Exists"))
    attach(world, "pv-1", "data")
    drain(world)
    assert ends(world)
    assert "claim.volumes-detached" not in types(world)


def test_w79_past_the_deadline_the_instance_ends_all_the_same() -> None:
    world = serving(termination_grace_period=60_000)
    put(world, "a")
    attach(world, "pv-1", "data")
    drain(world)
    world.after(claim_of(world).tainted + 60_000 - world.now)
    assert not ends(world)
    world.after(1)
    assert ends(world)
    assert detached(world).left == ("pv-1",)


def test_d155_an_inline_volume_is_not_awaited_one_of_nobody_is() -> None:
    """Nor one whose claim is missing: it may be anybody's."""
    world = serving()
    world.see(Observation(VolumeAttachment("inline", "n1")))
    drain(world)
    assert ends(world)
    world = serving()
    put(world, "agent", Toleration(operator="Exists"))  # of a claim that is not there
    attach(world, "pv-1")
    drain(world)
    assert not ends(world)
    detach(world, "pv-1")
    assert ends(world)


def test_d146_a_pod_that_comes_while_volumes_are_awaited_is_awaited_too() -> None:
    world = serving()
    attach(world, "pv-1")
    drain(world)
    put(world, "late", claim="other")
    assert [type(intent) for _, intent in world.intents] == [EvictPod]
    world.answer_all()
    detach(world, "pv-1")
    assert not ends(world)
    world.see(Observation(ObjectGone("pod", "uid-late")))
    assert ends(world)
    assert types(world).count("claim.drained") == 1


def test_w78_with_nothing_attached_nothing_is_said_of_volumes() -> None:
    world = serving()
    drain(world)
    assert ends(world)
    (event,) = [e.payload for e in world.store.entries if isinstance(e.payload, Drained)]
    assert event == Drained(claim_of(world).name, 5_000)


def test_attachments_of_other_nodes_and_of_nodes_that_stay_change_nothing() -> None:
    world = serving()
    claim = claim_of(world)
    world.see(Observation(VolumeAttachment("x", "n1", "pv-1")), Observation(VolumeAttachment("y", "n2", "pv-2")))
    assert world.runtime.state.indexes.touched == {}
    world.see(Observation(ObjectGone("volumeattachment", "x")))
    drain(world)
    assert claim.volumes == 0
    assert ends(world)
