"""Storage in the virtual cluster: where claims are bound, what is attached where, and when it is detached."""

from __future__ import annotations

from collections.abc import Callable

from kerf.adapters.simulation.cluster.controllers.workloads import PodTemplate, StatefulSet
from kerf.adapters.simulation.simulation import Simulation
from kerf.engine.model import labels as names
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import Expression, NodeTerm, Pod, PodShape, VolumeRef
from kerf.engine.model.kubernetes.volumes import EBS, CSINode, StorageClass, Volume, VolumeClaim

Make = Callable[..., PodShape]
MakeNode = Callable[..., Node]
WAITS = StorageClass("gp3", EBS)
AT_ONCE = StorageClass("now", EBS, immediate=True)
DATA = (VolumeRef("v", claim="data"),)


def put(world: Simulation, name: str, shape: PodShape) -> None:
    digest = world.cluster.api.keep_shape(shape)
    world.cluster.apply(Pod(name, "default", name, digest, created=world.clock.now))


def pass_(world: Simulation, milliseconds: int) -> None:
    world.clock.advance(world.clock.now + milliseconds)


def zone(name: str) -> dict[str, str]:
    return {names.ZONE: name}


def place(world: Simulation, name: str) -> str:
    return world.cluster.api.pods[name].node


def attached(world: Simulation) -> list[str]:
    return [attachment.node for attachment in world.cluster.api.attachments.values()]


def bound_to(zone_name: str, name: str = "pv") -> tuple[Volume, VolumeClaim]:
    term = NodeTerm((Expression("topology.ebs.csi.aws.com/zone", "In", (zone_name,)),))
    claim = VolumeClaim("default", "data", name, "gp3", "Bound", bind_completed=True)
    return Volume(name, EBS, (term,)), claim


def test_a_claim_that_waits_for_its_consumer_is_bound_in_the_zone_of_the_pod(
    world: Simulation, shape: Make, node: MakeNode
) -> None:
    for item in (WAITS, VolumeClaim("default", "data", storage_class="gp3"), node("n", labels=zone("z"))):
        world.cluster.apply(item)
    pass_(world, 2_000)
    assert not world.cluster.api.volumes
    put(world, "p", shape(volumes=DATA))
    pass_(world, 200)
    claim = world.cluster.api.claims["default/data"]
    assert (claim.phase, claim.bind_completed) == ("Bound", True)
    (expression,) = world.cluster.api.volumes[claim.volume].terms[0].expressions
    assert expression.values == ("z",)


def test_a_pod_goes_where_its_volume_is_and_waits_without_one(world: Simulation, shape: Make, node: MakeNode) -> None:
    world.cluster.apply(node("a", labels=zone("a")))
    world.cluster.apply(node("b", labels=zone("b")))
    put(world, "p", shape(volumes=DATA))
    pass_(world, 1_000)
    assert world.cluster.api.pods["p"].unschedulable
    for item in bound_to("b"):
        world.cluster.apply(item)
    pass_(world, 1_000)
    assert place(world, "p") == "b"


def test_allowed_topologies_hold_for_a_volume_that_is_still_to_be_made(
    world: Simulation, shape: Make, node: MakeNode
) -> None:
    only_b = NodeTerm((Expression(names.ZONE, "In", ("b",)),))
    world.cluster.apply(StorageClass("gp3", EBS, topologies=(only_b,)))
    world.cluster.apply(VolumeClaim("default", "data", storage_class="gp3"))
    world.cluster.apply(node("a", labels=zone("a")))
    put(world, "p", shape(volumes=DATA))
    pass_(world, 1_000)
    assert place(world, "p") == ""
    world.cluster.apply(node("b", labels=zone("b")))
    pass_(world, 1_000)
    assert place(world, "p") == "b"


def test_a_class_that_binds_at_once_needs_no_pod_and_the_default_class_no_name(
    world: Simulation, node: MakeNode
) -> None:
    world.cluster.apply(StorageClass("now", EBS, immediate=True, default=True))
    world.cluster.apply(VolumeClaim("default", "data"))
    pass_(world, 5_000)
    assert not world.cluster.api.volumes  # in which zone?
    world.cluster.apply(node("n", labels=zone("z")))
    pass_(world, 2_000)
    claim = world.cluster.api.claims["default/data"]
    assert (claim.storage_class, claim.phase) == ("now", "Bound")


def test_a_node_takes_no_more_volumes_than_its_driver_says(world: Simulation, shape: Make, node: MakeNode) -> None:
    """S-159: a claim that is there already does not count twice."""
    for item in (WAITS, node("n", labels=zone("z")), CSINode("n", {EBS: 1})):
        world.cluster.apply(item)
    for name in ("data", "more"):
        world.cluster.apply(VolumeClaim("default", name, storage_class="gp3"))
    put(world, "p1", shape(volumes=DATA))
    put(world, "p2", shape(volumes=DATA))
    put(world, "p3", shape(volumes=(VolumeRef("v", claim="more"),)))
    pass_(world, 1_000)
    assert [place(world, name) for name in ("p1", "p2", "p3")] == ["n", "n", ""]


def test_a_pod_starts_when_its_volume_is_attached_and_leaves_it_attached_for_a_while(
    world: Simulation, shape: Make, node: MakeNode
) -> None:
    """A volume follows its pod to another node only after it was detached from the first."""
    for item in (*bound_to("z"), node("n1", labels=zone("z")), node("n2", labels=zone("z"), cpus=3)):
        world.cluster.apply(item)
    put(world, "first", shape(cpu=3_500, volumes=DATA))
    pass_(world, 900)
    assert attached(world) == []
    pass_(world, 2_000)
    assert attached(world) == ["n1"]
    assert world.cluster.api.pods["first"].phase == "Running"
    put(world, "second", shape(cpu=2_000, volumes=DATA))
    pass_(world, 5_000)
    assert place(world, "second") == "n2"
    assert world.cluster.api.pods["second"].phase == "Pending"
    world.cluster.api.delete_pod(world.cluster.api.pods["first"], 0)
    pass_(world, 4_900)
    assert attached(world) == ["n1"]
    pass_(world, 3_000)
    assert attached(world) == ["n2"]
    assert world.cluster.api.pods["second"].phase == "Running"


def test_an_ephemeral_volume_comes_and_goes_with_its_pod(world: Simulation, shape: Make, node: MakeNode) -> None:
    """S-152: its claim is named after pod and volume."""
    for item in (WAITS, node("n", labels=zone("z"))):
        world.cluster.apply(item)
    put(world, "p", shape(volumes=(VolumeRef("scratch", storage_class="gp3"),)))
    pass_(world, 5_000)
    assert world.cluster.api.claims["default/p-scratch"].phase == "Bound"
    world.cluster.api.delete_pod(world.cluster.api.pods["p"], 0)
    pass_(world, 20_000)
    assert not world.cluster.api.claims
    assert not world.cluster.api.volumes
    assert attached(world) == []


def test_each_pod_of_a_stateful_set_has_a_claim_that_outlives_it(
    world: Simulation, shape: Make, node: MakeNode
) -> None:
    for item in (WAITS, node("n", labels=zone("z"))):
        world.cluster.apply(item)
    claims = (VolumeRef("data", storage_class="gp3"),)
    stateful = StatefulSet("db", "default", "db", 2, PodTemplate(shape()), claims=claims)
    world.cluster.workloads.apply(stateful)
    pass_(world, 20_000)
    assert sorted(world.cluster.api.claims) == ["default/data-db-0", "default/data-db-1"]
    volumes = sorted(world.cluster.api.volumes)
    world.cluster.api.delete_pod(world.cluster.api.pod_named("default", "db-0"), 0)  # type: ignore[arg-type]
    pass_(world, 20_000)
    assert sorted(world.cluster.api.volumes) == volumes
    assert all(pod.phase == "Running" for pod in world.cluster.api.pods.values())
