"""Labels that a NodePool leaves open: its nodes have them, with whatever value pods ask for (S-126, S-165).

Such a NodePool names no values. But a pod may be spread over the label, or follow others that have it, so nodes of the
NodePool can come to have each value that is known from elsewhere. Well-known labels are left to instance types and
offerings.
"""

from __future__ import annotations

from typing import NamedTuple

from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.karpenter.requirements import Requirements
from kerf.engine.model.labels import WELL_KNOWN
from kerf.engine.scheduling.problem.problem import Problem


class OpenLabel(NamedTuple):
    """What is known of a label that a NodePool leaves open: the values that NodePools list, and those that only nodes
    have; both sorted."""

    listed: tuple[str, ...]
    of_nodes: tuple[str, ...]


NOTHING_KNOWN = OpenLabel((), ())
OpenLabels = tuple[tuple[str, OpenLabel], ...]
"""The labels that a NodePool leaves open, sorted, as far as anything is known of them."""


def open_labels(pool: NodePool, problem: Problem) -> OpenLabels:
    """The labels that the NodePool leaves open."""
    asked = (requirement for requirement in Requirements.of_specs(pool.requirements) if requirement.complement)
    keys = sorted({requirement.key for requirement in asked} - WELL_KNOWN - pool.labels.keys())
    return tuple((key, known) for key in keys if any(known := _known_values(key, problem)))


def _known_values(key: str, problem: Problem) -> OpenLabel:
    listed: set[str] = set()
    for other in problem.pools:
        asked = Requirements.of_specs(other.pool.requirements).merged(Requirements.of_labels(other.pool.labels))
        requirement = asked.find(key)
        if requirement is not None and not requirement.complement:
            listed |= requirement.values
    of_nodes = {node.labels[key] for node in problem.nodes if key in node.labels}
    return OpenLabel(tuple(sorted(listed)), tuple(sorted(of_nodes - listed)))
