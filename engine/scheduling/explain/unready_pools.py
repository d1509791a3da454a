"""Name the NodePools that are not ready to pods without a place which their nodes would suit.

A NodePool that is not ready takes no part in a plan (S-61), so the plan itself has no reason for it. The pods that are
meant for it were told of other NodePools alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.karpenter.requirements import Requirements
from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.model.labels import NODEPOOL, WELL_KNOWN
from kerf.engine.record.decisions import Unplaced
from kerf.engine.scheduling.matching.taints import tolerates_all
from kerf.engine.scheduling.planner import usable_pools
from kerf.engine.scheduling.pods.pod_requirements import requirements_of
from kerf.engine.scheduling.problem.problem import Problem
from kerf.engine.scheduling.reasons import SchedulingCode, reason


def with_unready_pools(unplaced: tuple[Unplaced, ...], problem: Problem) -> tuple[Unplaced, ...]:
    """The groups with a further reason for each NodePool that is not ready and would suit by labels and taints. Where
    no NodePool takes part, the reason says so already."""
    pools = [given.pool for given in problem.pools if not given.pool.ready]
    unready = [pool for pool in pools if not pool.deleting and pool.replicas is None]
    if not unready or not usable_pools(problem.pools):
        return unplaced
    return tuple(told for group in unplaced for told in _told(group, unready, problem))


def _told(group: Unplaced, unready: list[NodePool], problem: Problem) -> Iterator[Unplaced]:
    shapes = {pod.uid: pod.shape for pod in problem.pods}
    digests = dict.fromkeys(shapes[uid] for uid in group.pods)
    suiting = {digest: tuple(p.name for p in unready if _suits(p, problem.shapes[digest])) for digest in digests}
    for names in dict.fromkeys(suiting.values()):
        pods = tuple(uid for uid in group.pods if suiting[shapes[uid]] == names)
        yield Unplaced(pods, (*group.reasons, *(reason(SchedulingCode.NOT_READY, node_pool=name) for name in names)))


def _suits(pool: NodePool, shape: PodShape) -> bool:
    own = Requirements.of_labels({**pool.labels, NODEPOOL: pool.name})
    given = own.merged(Requirements.of_specs(pool.requirements))
    asked = requirements_of(shape, preferences=False)
    return tolerates_all(pool.taints, shape.tolerations) and given.compatible(asked, WELL_KNOWN)
