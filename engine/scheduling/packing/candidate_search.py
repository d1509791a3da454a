"""Where a class can still look for a place: existing nodes and packed claims, none of them asked twice.

A node or a claim only fills up and narrows, so most refusals are final. One kind is not: a domain that a spread or an
affinity refuses now may be allowed later. Such an answer depends only on the domains of a node, or on the narrowed
template of a claim. So candidates with the same domains or narrowed template form a group, and a whole group is skipped
while its answer is no. The cost is then groups × demands per pod, and candidates × demands once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush, heapreplace

from kerf.engine.model.kubernetes.pods import Resources
from kerf.engine.scheduling.explain.refusals import explain_claim
from kerf.engine.scheduling.explain.tracer import Tracer
from kerf.engine.scheduling.launchable.templates import NarrowedTemplate, Template
from kerf.engine.scheduling.packing.existing_node import ExistingNode
from kerf.engine.scheduling.packing.nodes_by_domain import DomainNodes, NodesByDomain
from kerf.engine.scheduling.packing.packed_claim import PackedClaim
from kerf.engine.scheduling.packing.reservations import Reservations
from kerf.engine.scheduling.pods.demand import Demand, NodeDomains
from kerf.engine.scheduling.pods.pod_class import PodClass


class NodeSearch:
    """Finds the first existing node that accepts, in the order of S-76 (S-88 step 1)."""

    def __init__(self, nodes: Sequence[ExistingNode], by_domain: NodesByDomain, tracer: Tracer | None) -> None:
        self._nodes = nodes
        self._tracer = tracer
        self._by_domain = by_domain
        self._looks: dict[int, dict[NodeDomains, int]] = {}

    def find(self, pod_class: PodClass) -> ExistingNode | None:
        if not self._nodes:
            return None
        demand = pod_class.demand
        hosts = demand.follows
        if hosts is not None:
            there = (node for node in self._nodes if node.host in hosts)
            return next((node for node in there if self._allowed(node, demand) and node.accepts(pod_class)), None)
        looked = self._looks.setdefault(pod_class.number, {})
        best = len(self._nodes)
        for domains, group in self._by_domain.of(pod_class):
            if demand.allows_domains(domains):
                best = self._first(pod_class, domains, group, looked, best)
        return self._nodes[best] if best < len(self._nodes) else None

    def takes(self, node: ExistingNode, pod_class: PodClass) -> bool:
        """Whether this node accepts."""
        hosts = pod_class.demand.follows
        return (
            (hosts is None or node.host in hosts) and self._allowed(node, pod_class.demand) and node.accepts(pod_class)
        )

    def _allowed(self, node: ExistingNode, demand: Demand) -> bool:
        return demand.allows_domains(tuple(node.domains(key) for key in demand.keys))

    def _first(
        self, pod_class: PodClass, domains: NodeDomains, group: DomainNodes, looked: dict[NodeDomains, int], best: int
    ) -> int:
        """The number of the first node in a group that accepts; `best` if none before that one does. Earlier ones have
        refused for good."""
        at, nodes, numbers = looked.get(domains, 0), self._nodes, group.numbers
        cpu, memory = pod_class.cpu, pod_class.memory
        accepts = ExistingNode.accepts if self._by_domain.traced else ExistingNode.accepts_more
        while at < len(numbers) or group.read_on():
            if numbers[at] >= best and self._tracer is None:
                break
            node = nodes[numbers[at]]
            if cpu <= node.cpu and memory <= node.memory and accepts(node, pod_class):
                looked[domains] = at
                return min(best, numbers[at])
            if self._tracer is not None:
                self._tracer.node_refused(pod_class, node.name, node.refusal(pod_class))
            at += 1
        looked[domains] = at
        return best

    def explain(self, pod_class: PodClass) -> None:
        """Tell the tracer about the nodes that topology keeps a class from. `find` skips these in whole groups."""
        assert self._tracer is not None
        looked = self._looks.get(pod_class.number, {})
        for domains, numbers in self._by_domain.whole(pod_class.demand).items():
            for number in numbers[looked.get(domains, 0) :]:
                node = self._nodes[number]
                self._tracer.node_refused(pod_class, node.name, node.refusal(pod_class))


class _DemandSearch:
    """Where one demand can still look among the claims. Entries of the heaps are (pods, order, index) and may be out of
    date."""

    __slots__ = ("heaps", "requests", "reserved", "seen", "small", "undecided", "version")

    def __init__(self) -> None:
        self.seen = 0  # how much of the log of moves has been read
        self.heaps: dict[NarrowedTemplate, tuple[Template, list[tuple[int, int, int]]]] = {}
        self.requests: Resources = {}
        self.small: list[int] = []  # claims that had no room for `requests`
        self.undecided: list[int] = []  # claims that refused under the options they had, and may be given others
        self.version = -1
        self.reserved = -1


class ClaimSearch:
    """Finds the claim of this pass with the fewest pods that accepts (S-88 step 2, S-89)."""

    def __init__(self, claims: list[PackedClaim], reservations: Reservations, tracer: Tracer | None) -> None:
        self._claims = claims
        self._reservations = reservations
        self._tracer = tracer
        self._looks: dict[int, _DemandSearch] = {}
        self._moves: list[int] = []  # claims as they were opened or narrowed
        self._states: list[NarrowedTemplate] = []  # of the claims, as logged

    def state_of(self, claim: PackedClaim) -> NarrowedTemplate | None:
        """The narrowed template that the log has for a claim; None for a new claim."""
        return self._states[claim.index] if claim.index < len(self._states) else None

    def moved(self, claim: PackedClaim) -> None:
        """Log that a claim is new or has been narrowed, so that classes it refused ask again."""
        if claim.index == len(self._states):
            self._states.append(claim.narrowed)
        self._states[claim.index] = claim.narrowed
        self._moves.append(claim.index)

    def find(self, pod_class: PodClass) -> PackedClaim | None:
        """The claim with the fewest pods that accepts. It is narrowed to what the pod needs."""
        if not self._claims:
            return None
        demand = pod_class.demand
        hosts = demand.follows
        if hosts is not None:
            return self._follow(pod_class, [host for host in hosts if isinstance(host, int)])
        look = self._looks.get(demand.number)
        if look is None:
            look = self._looks[demand.number] = _DemandSearch()
        self._catch_up(look, pod_class)
        while (heap := self._least(look, demand)) is not None:
            claim = self._claims[heap[0][2]]
            if self._accepts(claim, pod_class):
                return claim
            heappop(heap)
            self._refused(look, claim, pod_class)
        return None

    def _accepts(self, claim: PackedClaim, pod_class: PodClass) -> bool:
        demand = pod_class.demand
        if not demand.allows_host(claim.index):
            return False
        options = demand.options(claim.template, claim.narrowed)
        return bool(options) and claim.accept(pod_class, options, self._reservations)

    def _follow(self, pod_class: PodClass, hosts: list[int]) -> PackedClaim | None:
        """The claim to use where affinity over the hostname leaves only these claims."""
        there = (self._claims[host] for host in hosts)
        claims = sorted(there, key=lambda claim: (len(claim.pods), claim.order, claim.index))
        return next((claim for claim in claims if self._accepts(claim, pod_class)), None)

    def _least(self, look: _DemandSearch, demand: Demand) -> list[tuple[int, int, int]] | None:
        """The heap whose first claim has the fewest pods, among the narrowed templates that topology allows now."""
        best: list[tuple[int, int, int]] | None = None
        for state, (template, heap) in look.heaps.items():
            if not heap or not demand.options(template, state):
                continue
            self._tidy(heap, state)
            if heap and (best is None or heap[0] < best[0]):
                best = heap
        return best

    def _tidy(self, heap: list[tuple[int, int, int]], narrowed: NarrowedTemplate) -> None:
        """Bring the first entry of a heap up to date: the claim may have grown, or been narrowed further."""
        while heap:
            pods, order, index = heap[0]
            claim = self._claims[index]
            if claim.narrowed is not narrowed:
                heappop(heap)
            elif pods != len(claim.pods) or order != claim.order:
                heapreplace(heap, (len(claim.pods), claim.order, index))
            else:
                return

    def _catch_up(self, look: _DemandSearch, pod_class: PodClass) -> None:
        """Look at new and narrowed claims, and again at claims whose refusal may have lost its cause."""
        again: list[int] = []
        if look.requests != pod_class.requests:
            look.requests = pod_class.requests
            again, look.small = look.small, []
        version = pod_class.demand.version
        if look.undecided and (version != look.version or self._reservations.epoch != look.reserved):
            again, look.undecided = again + look.undecided, []
        look.version, look.reserved = version, self._reservations.epoch
        if look.seen < len(self._moves):
            again += self._moves[look.seen :]
            look.seen = len(self._moves)
        if again:
            self._push(look, again, pod_class)

    def _push(self, look: _DemandSearch, indices: Iterable[int], pod_class: PodClass) -> None:
        """Put claims on the heaps of their narrowed templates, unless they certainly refuse the class."""
        demand, heaps, small, claims = pod_class.demand, look.heaps, look.small, self._claims
        first = not heaps
        for index in dict.fromkeys(indices):  # a claim may have moved more than once
            claim = claims[index]
            if not claim.may_fit(pod_class):
                small.append(index)
                self._tell(claim, pod_class)
                continue
            known = heaps.get(claim.narrowed)
            if known is None and demand.never(claim.template, claim.narrowed):
                self._tell(claim, pod_class)
                continue
            if known is None:
                known = heaps[claim.narrowed] = claim.template, []
            if first:
                known[1].append((len(claim.pods), claim.order, index))
            else:
                heappush(known[1], (len(claim.pods), claim.order, index))
        if first:
            for _, heap in heaps.values():
                heapify(heap)

    def _refused(self, look: _DemandSearch, claim: PackedClaim, pod_class: PodClass) -> None:
        """Keep a claim that may accept later: another class of the demand with smaller requests, or this class in
        another domain or once reserved capacity is given back (S-115)."""
        demand = pod_class.demand
        self._tell(claim, pod_class)
        if not demand.allows_host(claim.index):
            return
        following = claim.template.step(claim.narrowed, demand.requirements)
        narrows = bool(demand.keys) and following is not claim.narrowed
        reservable = isinstance(following, NarrowedTemplate) and following.reservable
        (look.undecided if claim.may_fit(pod_class) and (narrows or reservable) else look.small).append(claim.index)

    def _tell(self, claim: PackedClaim, pod_class: PodClass) -> None:
        if self._tracer is not None:
            self._tracer.claim_refused(pod_class, claim.index, explain_claim(claim, pod_class))
