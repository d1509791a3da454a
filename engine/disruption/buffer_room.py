"""Whether pods that move may take the room that CapacityBuffers keep.

Nobody knows which nodes kube-scheduler will choose. For room that is lost a node is launched again (S-180), and
consolidation begins anew.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kerf.engine.disruption.cluster import Cluster, what_if
from kerf.engine.scheduling.kube_scheduler.scheduler import KubeScheduler
from kerf.engine.scheduling.matching.resources import added, total
from kerf.engine.scheduling.problem.problem import NodeInput, PendingPod, Problem


def buffer_pods_without_room(cluster: Cluster, leaving: frozenset[str]) -> frozenset[str]:
    """The pods of buffers (uids) that would have no room any more in the worst case: without the leaving nodes,
    kube-scheduler puts all other pods that it can onto the nodes that hold room for buffers."""
    if not cluster.virtual:
        return frozenset()
    problem = what_if(cluster, leaving, respect_settling=False)
    holding = frozenset(node.name for node in cluster.nodes if node.buffers)
    only_holding = replace(problem, nodes=tuple(node for node in problem.nodes if node.name in holding))
    moved = {pod.uid: pod for pod in problem.pods if pod.uid not in cluster.virtual}
    of_moved, _ = KubeScheduler(only_holding).bind((), frozenset(moved))
    assert of_moved is not None  # the touches are not limited
    pods_on: dict[str, list[PendingPod]] = {}
    for uid, name in sorted(of_moved.node_of.items()):
        pods_on.setdefault(name, []).append(moved[uid])
    nodes = tuple(_with_pods(node, pods_on.get(node.name, ()), problem) for node in problem.nodes)
    of_buffers, _ = KubeScheduler(replace(problem, nodes=nodes)).bind((), cluster.virtual)
    assert of_buffers is not None
    return frozenset(of_buffers.unbound)


def _with_pods(node: NodeInput, pods: Sequence[PendingPod], problem: Problem) -> NodeInput:
    used = total({**problem.shapes[pod.shape].requests, "pods": 1} for pod in pods)
    return replace(node, available=added(node.available, used, -1)) if pods else node
