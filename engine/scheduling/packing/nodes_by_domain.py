"""Existing nodes grouped by their domains of topology, for each class without the nodes that refuse it anyway.

A node only fills up during a pass. So one that refuses a class before the first pod is placed refuses it to the end,
and also in every other question about the same nodes with as much room or less. This is found out once for each node,
and only for the nodes that somebody comes to look at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from kerf.engine.scheduling.packing.existing_node import ExistingNode
from kerf.engine.scheduling.pods.demand import Demand, NodeDomains
from kerf.engine.scheduling.pods.pod_class import PodClass


class DomainNodes:
    """The numbers of nodes in the same domains, ascending. `numbers`: those found so far that do not refuse."""

    __slots__ = ("_rest", "numbers")

    def __init__(self, rest: Iterable[int]) -> None:
        self.numbers: list[int] = []
        self._rest = iter(rest)

    def read_on(self) -> bool:
        """Look for one more node; return whether there is one."""
        for number in self._rest:
            self.numbers.append(number)
            return True
        return False


class NodesByDomain:
    """The nodes of one problem by domain, as they are before any pod is placed."""

    def __init__(self, nodes: Sequence[ExistingNode], *, traced: bool) -> None:
        """`nodes`: in the order of S-76. `traced`: keep nodes that refuse, because the tracer reports each of them."""
        self._nodes = nodes
        self.traced = traced
        self._on_host = Counter(node.host for node in nodes)
        self._by_keys: dict[tuple[str, ...], dict[NodeDomains, list[int]]] = {}
        self._by_class: dict[int, list[tuple[NodeDomains, DomainNodes]]] = {}

    def of(self, pod_class: PodClass) -> list[tuple[NodeDomains, DomainNodes]]:
        by_domains = self._by_class.get(pod_class.number)
        if by_domains is None:
            by_domains = self._by_class[pod_class.number] = [
                (domains, DomainNodes(number for number in numbers if self._takes(self._nodes[number], pod_class)))
                for domains, numbers in self.whole(pod_class.demand).items()
            ]
        return by_domains

    def takers(self, pod_class: PodClass) -> Iterator[int]:
        """The numbers of the nodes that would take a pod of the class as their first one, rules over domains apart."""
        for _, group in self.of(pod_class):
            at = 0
            while at < len(group.numbers) or group.read_on():
                yield group.numbers[at]
                at += 1

    def whole(self, demand: Demand) -> dict[NodeDomains, list[int]]:
        """The nodes by their domains, including those that refuse."""
        by_domains = self._by_keys.get(demand.keys)
        if by_domains is None:
            by_domains = self._by_keys[demand.keys] = {}
            for number, node in enumerate(self._nodes):
                by_domains.setdefault(tuple(node.domains(key) for key in demand.keys), []).append(number)
        return by_domains

    def _takes(self, node: ExistingNode, pod_class: PodClass) -> bool:
        """Whether the node would take a pod of the class as its first one. A host refuses until pods leave it, and then
        its node leaves too, unless several nodes have its name."""
        if self.traced:
            return True
        if pod_class.cpu > node.cpu or pod_class.memory > node.memory or not node.has_room(pod_class):
            return False
        refused = self._on_host[node.host] == 1 and pod_class.demand.refused_before(node.host)
        return not refused and node.suits(pod_class)
