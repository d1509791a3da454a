"""The order in which pods of a node that goes come back to the cluster's scheduler (D-143, D-144)."""

from __future__ import annotations

from kerf.engine.disruption.binding import Binding
from tests.unit.disruption.clusters import cluster, node, pod

ONLY_B = {"node_selector": {"only": "b"}}


def left_over(**of_the_bound: object) -> frozenset[str]:
    """Of a node whose small pod may go anywhere, and whose other pod has room on `b` alone. `b` is the emptier one."""
    bound = pod("bound", 1_500, **ONLY_B, **of_the_bound)
    leaving = node("a", "large", pod("free", 900), bound)
    nodes = (leaving, node("b", "small", labels={"only": "b"}), node("c", "small", pod("there", 600)))
    return Binding(cluster(*nodes)).left_over(["a"], ())


def test_d143_critical_pods_come_back_after_the_others_whatever_their_priority() -> None:
    """They are evicted when the others are gone: by then the other pod has taken their place."""
    assert left_over(priority=2_000_000_000, priority_class="system-cluster-critical") == {"uid-bound"}


def test_d144_the_number_of_a_priority_makes_no_pod_critical() -> None:
    """Both are evicted at once, and the scheduler takes the higher one first."""
    assert left_over(priority=2_000_000_000) == frozenset()
    assert left_over() == {"uid-bound"}
