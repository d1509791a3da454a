"""Moves leave the room that CapacityBuffers keep (S-180): a node that is launched for them again would be the next to
go."""

from __future__ import annotations

from kerf.engine.disruption.cluster import Cluster, ClusterNode
from kerf.engine.disruption.rebinding import Rebinding
from kerf.engine.model.kubernetes.pods import Pod
from tests.support.scenarios.clusters import cluster, node, pending, pod


def kept(count: int, cpu: int = 900) -> tuple[Pod, ...]:
    return tuple(pending(f"buffer-{number}", cpu) for number in range(count))


def held(*nodes: ClusterNode, buffers: tuple[Pod, ...]) -> Cluster:
    return cluster(*nodes, pending=buffers, virtual=frozenset(buffer.uid for buffer in buffers))


def test_a_pod_that_might_take_a_buffers_room_stays() -> None:
    """There is room for it elsewhere, which the scheduler need not take."""
    nodes = (node("a", "small", pod("p", 400)), node("b", "small", buffers=2), node("c", "small", pod("q", 1_500)))
    given = held(*nodes, buffers=kept(2))
    assert Rebinding(given).unbound(["a"], ()) == {"uid-buffer-1"}


def test_a_pod_moves_where_the_buffer_has_room_elsewhere() -> None:
    nodes = (node("a", "small", pod("p", 1_000)), node("b", "small", buffers=2), node("c", "large"))
    assert Rebinding(held(*nodes, buffers=kept(2))).unbound(["a"], ()) == frozenset()


def test_a_buffer_without_room_anyway_keeps_no_pod_from_moving() -> None:
    nodes = (node("a", "small", pod("p", 1_000)), node("b", "small"), node("c", "small", pod("q", 1_000)))
    assert Rebinding(held(*nodes, buffers=kept(1, 90_000))).unbound(["a"], ()) == frozenset()


def test_without_buffers_nothing_is_asked() -> None:
    nodes = (node("a", "small", pod("p", 1_000)), node("b", "small"))
    assert Rebinding(cluster(*nodes)).unbound(["a"], ()) == frozenset()
