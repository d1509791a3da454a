"""The NodePools that pods keep in every plan (S-63).

The planner fills a node up with whatever fits. So pods share a node of a NodePool of little weight with one that needs
that NodePool, although they could go to one of more weight. They may do so in other plans, too, but they open no node
there.
"""

from __future__ import annotations

from operator import le

from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.scheduling.launchable.compiled_catalogue import bits
from kerf.engine.scheduling.optimizer.instance_options import InstanceOptions, PodKind
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.pods.pod_classes import RESPECT
from kerf.engine.scheduling.pods.pod_requirements import requirements_of
from kerf.engine.scheduling.problem.problem import Problem, ShapeKey


def own_pools(
    problem: Problem, first: Plan, options: InstanceOptions, independent: frozenset[ShapeKey]
) -> dict[str, NodePool]:
    """The NodePool of each pod (uid) that the first plan puts on a new node. It is that of the node, or one of more
    weight where the pod could open a node by itself, if other pods on the node need theirs. Pods that others are tied
    to, and NodePools with limits, are as in the first plan."""
    weights = {pool.pool.weight for pool in problem.pools}
    heaviest: dict[ShapeKey, NodePool | None] = {}
    own: dict[str, NodePool] = {}
    for claim in first.claims:
        pool = problem.pool_of[claim.node_pool].pool
        heavier: dict[str, NodePool] = {}
        for pod in map(problem.pod_of.__getitem__, claim.pods) if pool.weight < max(weights) else ():
            if pod.shape_key in independent and not pod.of_new_nodes:
                if pod.shape_key not in heaviest:
                    heaviest[pod.shape_key] = _heaviest(problem, options, pod.shape)
                found = heaviest[pod.shape_key]
                if found is not None and found.weight > pool.weight:
                    heavier[pod.uid] = found
        own |= dict.fromkeys(claim.pods, pool) | (heavier if len(heavier) < len(claim.pods) else {})
    return own


def _heaviest(problem: Problem, options: InstanceOptions, digest: str) -> NodePool | None:
    """The NodePool of the most weight, among those without limits, that has a type for such a pod."""
    shape = problem.shapes[digest]
    asked = requirements_of(shape, problem.settings.preference_policy == RESPECT)
    kind = PodKind(options.amounts(shape.requests), asked, shape.tolerations)
    found: list[NodePool] = []
    for number, narrowed in options.narrowed_templates(kind, any_weight=True).items():
        template = options.templates[number]
        prices = options.prices(number, narrowed)
        types = (bit for bit in bits(narrowed.viable & template.types) if bit in prices)
        if not template.pool.limits and any(all(map(le, kind.amounts, options.room(number, bit))) for bit in types):
            found.append(template.pool)
    return max(found, key=lambda pool: pool.weight, default=None)
