"""Whether pods that move may take the room that CapacityBuffers keep. Whom the cluster's scheduler likes nobody knows;
for room that is lost a node is launched again (S-180), and consolidation begins anew."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kerf.engine.disruption.cluster import Cluster, what_if
from kerf.engine.scheduling.kube_scheduler.scheduler import KubeScheduler
from kerf.engine.scheduling.matching.resources import added, total
from kerf.engine.scheduling.problem.problem import NodeInput, PendingPod, Problem


def crowded_out(cluster: Cluster, leaving: frozenset[str]) -> frozenset[str]:
    """The pods of buffers (uids) that would have no room any more if, without these nodes, the scheduler put all pods
    that it can onto the nodes that hold room."""
    if not cluster.virtual:
        return frozenset()
    problem = what_if(cluster, leaving, respect_settling=False)
    holding = frozenset(node.name for node in cluster.nodes if node.buffers)
    narrow = replace(problem, nodes=tuple(node for node in problem.nodes if node.name in holding))
    moved = {pod.uid: pod for pod in problem.pods if pod.uid not in cluster.virtual}
    found, _ = KubeScheduler(narrow).bind((), frozenset(moved))
    assert found is not None  # there is no end to the effort
    taken: dict[str, list[PendingPod]] = {}
    for uid, name in sorted(found.node_of.items()):
        taken.setdefault(name, []).append(moved[uid])
    nodes = tuple(_filled(node, taken.get(node.name, ()), problem) for node in problem.nodes)
    rest, _ = KubeScheduler(replace(problem, nodes=nodes)).bind((), cluster.virtual)
    assert rest is not None
    return frozenset(rest.unbound)


def _filled(node: NodeInput, pods: Sequence[PendingPod], problem: Problem) -> NodeInput:
    used = total({**problem.shapes[pod.shape].requests, "pods": 1} for pod in pods)
    return replace(node, available=added(node.available, used, -1)) if pods else node
