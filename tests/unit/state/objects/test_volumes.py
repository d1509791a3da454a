"""S-152…S-159 live: what the state knows of volumes reaches the planner, and a change of it brings the next pass."""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.model import labels as lbl
from kerf.engine.model.content_digest import content
from kerf.engine.model.kubernetes.pods import Pod, PodShape, VolumeRef
from kerf.engine.model.kubernetes.volumes import EBS, CSINode, StorageClass, Volume, VolumeAttachment, VolumeClaim
from kerf.engine.record.decisions import LaunchInstance
from kerf.engine.record.observations import ObjectGone, Observation
from kerf.engine.state import snapshot
from tests.support.lives import in_service
from tests.support.world import World
from tests.support.worlds.volumes import result, see, zone

WAITS = StorageClass("gp3", EBS)
DATA = (VolumeRef("data", claim="data"),)


def waiting(*objects: Struct) -> World:
    """Pod `a` waits with a volume of the claim `data`, and a pass has looked at it."""
    world = World()
    world.prepare()
    see(world, *objects)
    world.pending("a", volumes=DATA)
    world.after(1_000)
    return world


def problem(world: World) -> str:
    """Why the latest pass left its pod out."""
    (ignored,) = result(world).ignored
    (why,) = ignored.reasons
    assert why.code == "volume"
    return str(why.params["problem"])


def zones(world: World) -> set[str]:
    """Those that the only launch may draw from."""
    ((_, order),) = world.launches()
    return {offer.zone for offer in order.offers}


def test_s153_a_pod_whose_claim_is_missing_is_reported_and_planned_when_the_claim_shows() -> None:
    world = waiting(WAITS)
    assert problem(world) == "there is no such claim"
    see(world, VolumeClaim("default", "data", storage_class="gp3"))
    world.after(1_000)
    assert zones(world) == {"us-west-2a", "us-west-2b"}


def test_s153_an_unbound_claim_of_a_class_that_binds_at_once_holds_its_pod_until_it_is_bound() -> None:
    world = waiting(StorageClass("fast", EBS, immediate=True), VolumeClaim("default", "data", storage_class="fast"))
    assert "binds at once" in problem(world)
    see(world, VolumeClaim("default", "data", "pv-1", "fast", "Bound", bind_completed=True))
    world.after(1_000)
    assert problem(world) == "volume pv-1 is gone"
    see(world, Volume("pv-1", EBS, (zone("us-west-2b"),)))
    world.after(1_000)
    assert zones(world) == {"us-west-2b"}


def test_s154_the_zone_of_a_bound_volume_is_the_zone_of_its_node() -> None:
    bound = VolumeClaim("default", "data", "pv-1", "gp3", "Bound", bind_completed=True)
    assert zones(waiting(WAITS, bound, Volume("pv-1", EBS, (zone("us-west-2b"),)))) == {"us-west-2b"}


def test_s154_allowed_topologies_narrow_an_unbound_volume() -> None:
    narrow = StorageClass("gp3", EBS, topologies=(zone("us-west-2a"),))
    assert zones(waiting(narrow, VolumeClaim("default", "data", storage_class="gp3"))) == {"us-west-2a"}


def test_s152_an_ephemeral_volume_has_the_claim_of_its_pod() -> None:
    world = World()
    world.prepare()
    world.pending("a", volumes=(VolumeRef("scratch", storage_class="gp3"),))
    world.after(1_000)
    assert problem(world) == "there is no such claim"
    see(world, WAITS, VolumeClaim("default", "a-scratch", storage_class="gp3"))
    world.after(1_000)
    assert len(world.launches()) == 1


def test_a_claim_that_goes_away_again_holds_the_pod() -> None:
    world = waiting()
    see(world, WAITS, VolumeClaim("default", "data", storage_class="gp3", deleting=world.now))
    world.after(1_000)
    assert problem(world) == "the claim is being deleted"
    see(world, ObjectGone("pvc", "default/data"))
    world.after(1_000)
    assert problem(world) == "there is no such claim"


def with_a_volume_on_n1(limit: int) -> World:
    """`n1` takes `limit` volumes; one of its pods has one."""
    world = in_service()
    see(world, WAITS, CSINode("n1", {EBS: limit}), Volume("pv-1", EBS, (zone("us-west-2a"),)))
    see(world, VolumeClaim("default", "own", "pv-1", "gp3", "Bound", bind_completed=True))
    shape = PodShape(volumes=(VolumeRef("own", claim="own"),))
    digest, _ = content(shape)
    world.see(Observation(Pod("uid-v", "default", "v", digest, node="n1", phase="Running"), {digest: shape}))
    see(world, VolumeClaim("default", "data", storage_class="gp3"))
    world.pending("p", memory=1, volumes=DATA)
    world.after(1_000)
    return world


def test_s159_volumes_that_are_there_count_against_the_limit_of_a_node() -> None:
    full = with_a_volume_on_n1(limit=1)
    assert [type(intent) for _, intent in full.intents] == [LaunchInstance]
    roomy = with_a_volume_on_n1(limit=2)
    assert roomy.launches() == []
    assert [placed.node for placed in result(roomy).placements] == ["n1"]


def test_volumes_change_nothing_for_pods_that_have_none() -> None:
    world = World()
    world.pending("a")
    world.after(1_000)
    assert world.runtime.next_due() is None
    see(world, WAITS, VolumeClaim("default", "data"), Volume("pv-1"), CSINode("n1", {EBS: 1}))
    assert world.runtime.next_due() is None


def test_the_index_of_attachments_is_the_same_from_a_snapshot() -> None:
    world = in_service()
    see(world, VolumeAttachment("a-1", "n1", "pv-1"), VolumeAttachment("a-2", "n1", "pv-2"))
    see(world, VolumeAttachment("a-2", "n2", "pv-2"), ObjectGone("volumeattachment", "a-1"))
    state = world.runtime.state
    assert state.indexes.attachments_by_node == {"n2": {"a-2": None}}
    data, _ = snapshot.encode(state)
    assert snapshot.decode(data, state.indexes.blobs).indexes.attachments_by_node == {"n2": {"a-2": None}}


def test_zones_of_volumes_are_read_in_every_spelling() -> None:
    """S-5: the EBS driver has a key of its own."""
    assert lbl.normalise("topology.ebs.csi.aws.com/zone") == lbl.ZONE
