"""What topology counts, and on which nodes (S-117, S-122)."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from kerf.engine.model.karpenter.requirements import NO_REQUIREMENTS, Requirements
from kerf.engine.model.kubernetes.pods import Taint, Toleration
from kerf.engine.model.labels import WELL_KNOWN
from kerf.engine.scheduling.launchable.templates import NarrowedTemplate, Template
from kerf.engine.scheduling.matching.taints import PREFER_NO_SCHEDULE, untolerated
from kerf.engine.scheduling.topology.rules import Domain, DomainCount, SpreadRule


class NodeFilter(Struct, frozen=True, cache_hash=True):
    """The nodes that a spread constraint looks at (S-122). Filters are equal if they admit the same nodes (unlike
    S-121). PreferNoSchedule taints keep no pod away, so they do not count.

    `keys`: labels that such a node must have, whatever their values. They are those of the pod's other hard
    constraints, because kube-scheduler looks at no node that lacks one of them. `of_new_nodes`: what nodes for such a
    pod must meet besides to be launched (see `PendingPod`).
    """

    alternatives: tuple[Requirements, ...]
    tolerations: tuple[Toleration, ...]
    by_affinity: bool
    by_taints: bool
    keys: tuple[str, ...] = ()
    of_new_nodes: Requirements = NO_REQUIREMENTS

    def reachable(self, taints: Iterable[Taint]) -> bool:
        """Whether the pod tolerates the taints."""
        return not untolerated((taint for taint in taints if taint.effect != PREFER_NO_SCHEDULE), self.tolerations)

    def admits_node(self, taints: Iterable[Taint], labels: Requirements) -> bool:
        """Whether the constraint looks at a node. `labels`: those that it has, and what is known of those that it will
        get."""
        if (self.by_taints and not self.reachable(taints)) or not all(map(labels.__contains__, self.keys)):
            return False
        return not self.by_affinity or any(map(labels.compatible, self.alternatives))

    def labelled(self, template: Template, narrowed: NarrowedTemplate) -> bool:
        """Whether nodes of this narrowed template have all the labels of `keys`."""
        return all(template.domains(narrowed, key) for key in self.keys)

    def admits_claim(self, template: Template, narrowed: NarrowedTemplate) -> bool:
        if (self.by_taints and not self.reachable(template.pool.taints)) or not self.labelled(template, narrowed):
            return False
        return not self.by_affinity or any(
            narrowed.requirements.compatible(alternative, WELL_KNOWN) for alternative in self.alternatives
        )


class PodCount(DomainCount):
    """Counts pods on the nodes that a filter admits, for the pod with a spread constraint; without a filter on all
    nodes.

    * `possible`: a pod on a claim counts in each domain that the claim can still get (S-148).
    * `hard`: the constraints over this count that must hold.
    * `late`: domains in which pods were placed before the count knew enough: before these pods were counted, or before
      another domain was opened. And how many of the pods ask nothing of others, so that they may be bound last.
    """

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

    def open(self, domain: Domain) -> None:
        """Register a domain that gets its first node in this pass. kube-scheduler counts it for all pods, also for
        those that have been placed as if it were not there."""
        if domain not in self.counts and self.hard:
            self.late = {**dict.fromkeys(self.counts, 0), **self.late}
        self.know(domain)

    @property
    def uneven(self) -> bool:
        """Whether pods that were placed too early break a constraint."""
        return any(
            self.counts[domain] - free - rule.least > rule.max_skew
            for domain, free in self.late.items()
            for rule in self.hard
        )

    def admits_node(self, taints: Iterable[Taint], labels: Requirements) -> bool:
        return self.filter is None or self.filter.admits_node(taints, labels)

    def admits_claim(self, template: Template, narrowed: NarrowedTemplate) -> bool:
        if self.filter is None:
            return True
        admitted = self._admitted.get(narrowed)
        if admitted is None:
            admitted = self._admitted[narrowed] = self.filter.admits_claim(template, narrowed)
        return admitted
