"""The order in which pods of a node that goes come back to the cluster's scheduler (D-143, D-144)."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from kerf.engine.disruption.rebinding import Rebinding
from kerf.engine.model.content_digest import content
from kerf.engine.model.kubernetes.pods import PodShape
from tests.support.scenarios.clusters import SHAPES, SIZES, capacity, cluster, node, pod

ONLY_B: dict[str, Any] = {"node_selector": {"only": "b"}}


def left_over(**of_the_bound: Any) -> frozenset[str]:
    """Of a node whose small pod may go anywhere, and whose other pod has room on `b` alone. `b` is the emptier one."""
    bound = pod("bound", 1_500, **ONLY_B, **of_the_bound)
    leaving = node("a", "large", pod("free", 900), bound)
    nodes = (leaving, node("b", "small", labels={"only": "b"}), node("c", "small", pod("there", 600)))
    return Rebinding(cluster(*nodes)).unbound(["a"], ())


def test_d143_critical_pods_come_back_after_the_others_whatever_their_priority() -> None:
    """They are evicted when the others are gone: by then the other pod has taken their place."""
    assert left_over(priority=2_000_000_000, priority_class="system-cluster-critical") == {"uid-bound"}


def test_d144_the_number_of_a_priority_makes_no_pod_critical() -> None:
    """Both are evicted at once, and the scheduler takes the higher one first."""
    assert left_over(priority=2_000_000_000) == frozenset()
    assert left_over() == {"uid-bound"}


def test_pods_that_ask_for_much_memory_alone_are_large() -> None:
    """Those that ask for more CPU take their room: the node was replaced by one that is too small, and another one
    launched for the pod, again and again (make dst with budgets of 100%, seed 46)."""
    small = capacity(SIZES["small"])
    shape = PodShape(requests={"cpu": 100, "memory": small["memory"] - (100 << 20)})
    digest = content(shape)[0]
    SHAPES[digest] = shape
    heavy = replace(pod("heavy"), shape=digest)
    leaving = node("a", "large", heavy, pod("one", 200), pod("other", 200))
    emptiest, other = node("b", "small"), node("c", "small", pod("there", 600))
    assert Rebinding(cluster(leaving, emptiest, other)).unbound(["a"], ()) == {"uid-heavy"}
