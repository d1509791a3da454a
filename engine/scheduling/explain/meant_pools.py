"""Which NodePools a pod is meant for: those that give the labels by which it selects, as it asks for them."""

from __future__ import annotations

from collections.abc import Collection

from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.model.labels import normalise
from kerf.engine.scheduling.matching.requirements import Requirements
from kerf.engine.scheduling.pods.pod_requirements import requirements_of
from kerf.engine.state.state import State


def gives_labels(state: State, node_pool: str, shape: PodShape, keys: Collection[str]) -> bool:
    """Whether nodes of this NodePool have these labels (keys) as such a pod asks for them. False of unknown ones."""
    pool = state.facts.pools.get(node_pool)
    if pool is None:
        return False
    given = Requirements.of_specs(pool.requirements).merged(Requirements.of_labels(pool.labels))
    wanted = {normalise(key) for key in keys}
    asked = requirements_of(shape, preferences=False)
    return given.compatible(Requirements(entry for entry in asked if entry.key in wanted))
