"""Conditions of NodeOverlays and CapacityBuffers (L-54, L-58 to L-61)."""

from __future__ import annotations

from kerf.engine.model.content_digest import content
from kerf.engine.model.karpenter.capacity_buffers import CapacityBuffer
from kerf.engine.model.karpenter.nodeoverlays import NodeOverlay
from kerf.engine.model.kubernetes.pod_templates import PodTemplate
from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.record.observations import Observation
from kerf.projections.status.overlays_and_buffers import BufferStatus, BufferStatuses, overlay_statuses
from tests.support.world import World

Mi = 1 << 20


def overlay(name: str, **fields: object) -> NodeOverlay:
    return NodeOverlay(name=name, uid=name, requirements=(), **fields)  # type: ignore[arg-type]


def reasons(world: World) -> dict[str, dict[str, tuple[bool, str]]]:
    state = world.runtime.state
    return {
        overlay_status.name: {c.type: (c.true, c.reason) for c in overlay_status.conditions}
        for overlay_status in overlay_statuses(state)
    }


def test_overlays_of_equal_weight_conflict_and_ready_follows() -> None:
    """Overlays of equal weight conflict, and Ready follows from that (L-54)."""
    world = World(node_overlays=True)
    world.prepare()
    world.see(Observation(overlay("a", price=1.0)), Observation(overlay("b", price=2.0)))
    found = reasons(world)
    assert found["b"] == {"ValidationSucceeded": (True, "ValidationSucceeded"), "Ready": (True, "Ready")}
    assert found["a"] == {"ValidationSucceeded": (False, "Conflict"), "Ready": (False, "UnhealthyDependents")}


def test_l67_the_status_names_the_generation_that_was_looked_at() -> None:
    world = World(node_overlays=True, capacity_buffers=True)
    world.prepare()
    buffer = CapacityBuffer("u1", "shop", "b", template="t", replicas=2, generation=4)
    world.see(Observation(overlay("a", price=1.0, generation=3)), Observation(buffer))
    assert [status.generation for status in overlay_statuses(world.runtime.state)] == [3]
    assert buffers(world).generation == 4


def test_nothing_is_said_where_the_gates_are_off() -> None:
    world = World()
    world.prepare()
    world.see(Observation(overlay("a", price=1.0)))
    assert not reasons(world)
    assert not BufferStatuses().statuses(world.runtime.state)


def buffers(world: World) -> BufferStatus:
    told = BufferStatuses()
    for entry in world.store.entries:
        told.apply(entry)
    (found,) = told.statuses(world.runtime.state)
    return found


def said(status: BufferStatus) -> dict[str, tuple[bool, str]]:
    return {condition.type: (condition.true, condition.reason) for condition in status.conditions}


def test_a_buffer_without_its_template_is_not_ready() -> None:
    """A buffer without its template is not ready (L-60, L-61)."""
    world = World(capacity_buffers=True)
    world.prepare()
    world.see(Observation(CapacityBuffer("u1", "shop", "b", template="t", replicas=2)))
    status = buffers(world)
    assert (status.replicas, status.template, status.template_generation) == (None, "", None)
    assert said(status) == {
        "ReadyForProvisioning": (False, "PodTemplateNotFound"), "Provisioning": (False, "NotReadyForProvisioning"),
    }  # fmt: skip


def test_a_buffer_says_what_it_comes_to_and_whether_its_room_is_there() -> None:
    """A buffer says what it comes to and whether its room is there (L-58, L-59, L-61)."""
    world = World(capacity_buffers=True)
    world.prepare()
    shape = PodShape(requests={"memory": 512 * Mi})
    digest, _ = content(shape)
    template = Observation(PodTemplate("shop", "t", digest, generation=3), {digest: shape})
    world.see(template, Observation(CapacityBuffer("u1", "shop", "b", template="t", replicas=2)))
    world.after(20_000)
    status = buffers(world)
    assert (status.replicas, status.template, status.template_generation, status.namespace) == (2, "t", 3, "shop")
    assert said(status) == {
        "ReadyForProvisioning": (True, "Resolved"), "Provisioning": (False, "RequiresNewCapacity"),
    }  # fmt: skip
