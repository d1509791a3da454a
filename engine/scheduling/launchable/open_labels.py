"""Labels that a NodePool leaves open: its nodes have them, with whatever value pods ask for (S-126, S-165).

Such a NodePool names no values. But a pod may be spread over the label, or follow others that have it, so nodes of the
NodePool can come to have each value that is known from elsewhere. Well-known labels are left to instance types and
offerings.
"""

from __future__ import annotations

from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.labels import WELL_KNOWN, normalise
from kerf.engine.scheduling.matching.requirements import Requirements
from kerf.engine.scheduling.problem.problem import Problem

OpenLabels = tuple[tuple[str, tuple[str, ...]], ...]
"""The labels that a NodePool leaves open, each with the values that are known of it; both sorted."""


def open_labels(pool: NodePool, problem: Problem) -> OpenLabels:
    """What is known of the labels that the NodePool leaves open: the values that NodePools list and nodes have."""
    asked = (requirement for requirement in Requirements.of_specs(pool.requirements) if requirement.complement)
    keys = sorted({requirement.key for requirement in asked} - WELL_KNOWN - pool.labels.keys())
    return tuple((key, values) for key in keys if (values := _known_values(key, problem)))


def _known_values(key: str, problem: Problem) -> tuple[str, ...]:
    values: set[str] = set()
    for other in problem.pools:
        asked = Requirements.of_specs(other.pool.requirements).merged(Requirements.of_labels(other.pool.labels))
        requirement = asked.find(key)
        if requirement is not None and not requirement.complement:
            values |= requirement.values
    for node in problem.nodes:
        values.update(value for label, value in node.labels.items() if normalise(label) == key)
    return tuple(sorted(values))
