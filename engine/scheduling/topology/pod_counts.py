"""What is counted for topology, and on which nodes (S-117, S-122)."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from kerf.engine.model.kubernetes.pods import Taint, Toleration
from kerf.engine.model.labels import WELL_KNOWN
from kerf.engine.scheduling.launchable.templates import NarrowedTemplate, Template
from kerf.engine.scheduling.matching.requirements import Requirements
from kerf.engine.scheduling.matching.taints import PREFER_NO_SCHEDULE, untolerated
from kerf.engine.scheduling.topology.rules import Domain, DomainCount, SpreadRule


class NodeFilter(Struct, frozen=True, cache_hash=True):
    """Which nodes a spread constraint looks at (S-122). Unlike S-121, filters are equal only if they let the same
    through. PreferNoSchedule taints keep no pod away, so they do not count. `keys`: labels that such a node has,
    whatever their values: those of the pod's other hard constraints, for kube-scheduler looks at no node without one
    of them."""

    alternatives: tuple[Requirements, ...]
    tolerations: tuple[Toleration, ...]
    by_affinity: bool
    by_taints: bool
    keys: tuple[str, ...] = ()

    def reachable(self, taints: Iterable[Taint]) -> bool:
        """Whether the pod itself tolerates the taints."""
        return not untolerated((taint for taint in taints if taint.effect != PREFER_NO_SCHEDULE), self.tolerations)

    def admits_node(self, taints: Iterable[Taint], labels: Requirements) -> bool:
        """`labels`: those of the node, and what is known of those that it is still to get."""
        if (self.by_taints and not self.reachable(taints)) or any(key not in labels for key in self.keys):
            return False
        return not self.by_affinity or any(labels.compatible(alternative) for alternative in self.alternatives)

    def labelled(self, template: Template, state: NarrowedTemplate) -> bool:
        """Whether nodes of the state have all the labels."""
        return all(template.domains(state, key) for key in self.keys)

    def admits_claim(self, template: Template, state: NarrowedTemplate) -> bool:
        if (self.by_taints and not self.reachable(template.pool.taints)) or not self.labelled(template, state):
            return False
        return not self.by_affinity or any(
            state.requirements.compatible(alternative, WELL_KNOWN) for alternative in self.alternatives
        )


class PodCount(DomainCount):
    """A count of pods on the nodes that a filter admits: those of the pod with a spread constraint; all without a
    filter. `possible`: a pod on a claim counts in every domain that the claim may still come to be in (S-148). `hard`:
    the constraints over it that must be kept; `late`: the domains in which pods were counted after they were placed,
    and how many of these ask nothing of others: they may be bound last."""

    __slots__ = ("_admitted", "filter", "hard", "late", "possible")

    def __init__(self, number: int, key: str, node_filter: NodeFilter | None, possible: bool) -> None:
        super().__init__(number, key)
        self.filter = node_filter
        self.possible = possible
        self._admitted: dict[NarrowedTemplate, bool] = {}
        self.hard: list[SpreadRule] = []
        self.late: dict[Domain, int] = {}

    def restart(self, counts: dict[Domain, int], total: int) -> None:
        super().restart(counts, total)
        self.late.clear()

    @property
    def uneven(self) -> bool:
        """Whether a constraint is broken by pods that were counted late."""
        return any(
            self.counts[domain] - free - rule.least > rule.max_skew
            for domain, free in self.late.items()
            for rule in self.hard
        )

    def admits_node(self, taints: Iterable[Taint], labels: Requirements) -> bool:
        return self.filter is None or self.filter.admits_node(taints, labels)

    def admits_claim(self, template: Template, state: NarrowedTemplate) -> bool:
        if self.filter is None:
            return True
        admitted = self._admitted.get(state)
        if admitted is None:
            admitted = self._admitted[state] = self.filter.admits_claim(template, state)
        return admitted
