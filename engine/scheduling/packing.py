"""The packing loop: pods in order, each to the first candidate that accepts it (S-85…S-93, S-31).

The order of candidates is that of S-88: existing nodes, then claims opened in this pass with the fewest
pods first, then a new claim from the first NodePool that can. Claims with as many pods stand in the order
that a stable sort before every attempt leaves (S-89): a claim that has just grown comes before those that
had as many pods already.

Pipeline for one attempt: existing nodes → open claims → templates. Each of the three asks the same things
of a candidate in the same order: taints, host ports, requirements, [topology comes here], types and
resources, reservations.

Nothing is searched twice. A class remembers which candidates refused it for good (`_Search`): a node or a
claim only fills up and narrows, a NodePool's limits only shrink. So looking costs classes × candidates
once, and a further pod of a class costs a few heap operations.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush, heapreplace

from kerf.engine.model.reasons import Reason
from kerf.engine.scheduling.claims import Claim
from kerf.engine.scheduling.classes import PodClass, PodClasses
from kerf.engine.scheduling.explain import explain_claim, explain_template, trace_opening
from kerf.engine.scheduling.nodes import ExistingNode
from kerf.engine.scheduling.problem import PendingPod
from kerf.engine.scheduling.reasons import Code, reason
from kerf.engine.scheduling.reservations import Reservations
from kerf.engine.scheduling.taints import untolerated
from kerf.engine.scheduling.templates import State, Template
from kerf.engine.scheduling.trace import Tracer

Place = ExistingNode | Claim


class _Search:
    """Where one class may still look."""

    __slots__ = ("claims", "deferred", "heap", "node", "parked", "reasons", "template")

    def __init__(self) -> None:
        self.node = 0  # existing nodes before this one refused
        self.claims = 0  # claims from this one on have not been looked at
        self.heap: list[tuple[int, int, int]] = []  # (pods, order, index) of claims that may accept; may be stale
        self.parked: list[tuple[Claim, int, int]] = []  # refused, not for good; with the epochs of the refusal
        self.template = 0  # templates before this one refused
        self.reasons: list[Reason] = []  # why, in their order
        self.deferred: Reason | None = None


class Packing:
    """One pass. `claims` are in the order of opening."""

    def __init__(
        self,
        nodes: Iterable[ExistingNode],
        templates: Sequence[Template],
        classes: PodClasses,
        best_effort: bool,
        tracer: Tracer | None,
    ) -> None:
        """`templates`: in the order of S-63; `best_effort`: minValues may be lowered when a claim is
        opened (S-39)."""
        self.nodes = sorted(nodes, key=lambda each: each.order)
        self.templates = templates
        self.claims: list[Claim] = []
        self.reservations = Reservations(templates)
        self._classes = classes
        self._best_effort = best_effort
        self._tracer = tracer
        self._searches: dict[int, _Search] = {}
        self._grown = 0

    def run(
        self, queue: Iterable[tuple[PendingPod, PodClass]]
    ) -> list[tuple[PendingPod, PodClass, tuple[Reason, ...]]]:
        """Place all pods; those that have no place come back with the class they failed as and the reasons
        (S-86, S-87: failed pods are tried again until a whole round places none)."""
        waiting = deque(queue)
        failed_in_a_row = 0
        failures: dict[str, tuple[PodClass, tuple[Reason, ...]]] = {}
        while failed_in_a_row < len(waiting):
            pod, wanted = waiting.popleft()
            failure = self._place(pod, wanted)
            if failure is None:
                failed_in_a_row = 0
                failures.pop(pod.uid, None)
                continue
            failures[pod.uid] = (wanted, failure)
            waiting.append((pod, wanted))
            failed_in_a_row += 1
        return [(pod, *failures[pod.uid]) for pod, _ in waiting]

    def _place(self, pod: PendingPod, wanted: PodClass) -> tuple[Reason, ...] | None:
        """Place one pod, giving up one preference at a time (S-31); None if it has a place, else why not."""
        rung: PodClass = wanted
        while True:
            search = self._searches.get(rung.number)
            if search is None:
                search = self._searches[rung.number] = _Search()
            place = self._on_node(rung, search) or self._on_claim(rung, search) or self._on_new(rung, search)
            if place is not None:
                self._take(place, pod, rung, search)
                return None
            if search.deferred is not None:
                return (search.deferred,)  # S-32: never relaxed
            weaker = self._classes.relaxed(rung)
            if weaker is None:
                return tuple(search.reasons)
            rung = weaker

    def _take(self, place: Place, pod: PendingPod, wanted: PodClass, search: _Search) -> None:
        if isinstance(place, ExistingNode):
            place.take(pod, wanted)
        else:
            place.take(pod)
            if len(place.pods) > 1:
                self._grown += 1
                place.order = -self._grown
            heapreplace(search.heap, (len(place.pods), place.order, place.index))
        if self._tracer is not None:
            self._tracer.placed(pod, wanted, place.name if isinstance(place, ExistingNode) else place.index)

    # ── the three kinds of candidates ──────────────────────────────────────

    def _on_node(self, wanted: PodClass, search: _Search) -> ExistingNode | None:
        while search.node < len(self.nodes):
            node = self.nodes[search.node]
            if node.accepts(wanted):
                return node
            if self._tracer is not None:
                self._tracer.node_refused(wanted, node.name, node.refusal(wanted))
            search.node += 1
        return None

    def _on_claim(self, wanted: PodClass, search: _Search) -> Claim | None:
        """The open claim with the fewest pods that accepts; it is then at the top of the class's heap."""
        self._look_again(search)
        heap = search.heap
        for claim in self.claims[search.claims :]:
            if claim.may_fit(wanted):
                heappush(heap, (len(claim.pods), claim.order, claim.index))
            elif self._tracer is not None:
                self._tracer.claim_refused(wanted, claim.index, explain_claim(claim, wanted))
        search.claims = len(self.claims)
        while heap:
            count, _, index = heap[0]
            claim = self.claims[index]
            if count != len(claim.pods):  # it has grown since: a claim only ever moves back
                heapreplace(heap, (len(claim.pods), claim.order, index))
                continue
            if claim.accept(wanted, self.reservations):
                return claim
            heappop(heap)
            if claim.may_change_its_mind(wanted):
                search.parked.append((claim, claim.epoch, self.reservations.epoch))
            if self._tracer is not None:
                self._tracer.claim_refused(wanted, index, explain_claim(claim, wanted))
        return None

    def _look_again(self, search: _Search) -> None:
        """Put parked claims back that have changed in what they were refused for."""
        if not search.parked:
            return
        still = []
        for claim, epoch, reserved in search.parked:
            if claim.epoch != epoch or self.reservations.epoch != reserved:
                heappush(search.heap, (len(claim.pods), claim.order, claim.index))
            else:
                still.append((claim, epoch, reserved))
        search.parked = still

    def _on_new(self, wanted: PodClass, search: _Search) -> Claim | None:
        """A new claim from the first template that can; put at the top of the class's heap."""
        search.deferred = None
        while search.template < len(self.templates):
            template = self.templates[search.template]
            claim = self._open(template, wanted)
            if claim is None:
                search.reasons.append(explain_template(template, wanted, self._tracer))
                search.template += 1
                continue
            if not claim.accept(wanted, self.reservations):
                search.deferred = reason(Code.RESERVATION, node_pool=template.name)  # S-90
                return None
            if self._tracer is not None:
                trace_opening(template, wanted, self._tracer)
            template.spend(claim.types)
            self.claims.append(claim)
            search.claims = len(self.claims)
            heappush(search.heap, (0, 0, claim.index))  # before all others
            return claim
        return None

    def _open(self, template: Template, wanted: PodClass) -> Claim | None:
        """A claim for the first pod of a class, not yet accepted; None if the template cannot (S-69, S-98,
        S-99)."""
        if template.node_limit_reached or untolerated(template.pool.taints, wanted.tolerations):
            return None
        following = template.step(template.state, wanted.requirements)
        if not isinstance(following, State):
            return None
        candidates = template.within_limits(template.types) & following.viable
        types = template.survivors(candidates, wanted.requests, wanted.ports, ())
        unmet = template.unmet_min_values(following.min_values, types)
        if not types or (unmet and not self._best_effort):
            return None
        if unmet:
            following = template.at(following.requirements.with_min_values(unmet))
        return Claim(len(self.claims), template, following, types, bool(unmet))
