"""Which NodePools a pod is meant for: those that give the labels by which it selects, as it asks for them."""

from __future__ import annotations

from collections.abc import Callable, Collection

from kerf.engine.model.karpenter.requirements import Requirements
from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.model.labels import NODEPOOL, normalise
from kerf.engine.scheduling.pods.pod_requirements import requirements_of
from kerf.engine.state.state import State


def giving(state: State, shape: str) -> Callable[[str, Collection[str]], bool] | None:
    """`gives_labels` for pods of the shape with this digest; None without one."""
    return (lambda pool, keys: gives_labels(state, pool, state.indexes.blobs.shape(shape), keys)) if shape else None


def gives_labels(state: State, node_pool: str, shape: PodShape, keys: Collection[str]) -> bool:
    """Whether nodes of this NodePool have these labels (keys) as such a pod asks for them. False of unknown ones."""
    pool = state.facts.pools.get(node_pool)
    if pool is None:
        return False
    own = Requirements.of_labels({**pool.labels, NODEPOOL: node_pool})
    given = Requirements.of_specs(pool.requirements).merged(own)
    wanted = {normalise(key) for key in keys}
    asked = requirements_of(shape, preferences=False)
    return given.compatible(Requirements(entry for entry in asked if entry.key in wanted))
