"""The packing loop: takes pods in order and puts each on the first candidate that accepts it (S-85…S-93, S-31).

Candidates come in the order of S-88: existing nodes; then claims of this pass, those with the fewest pods first; then a
new claim of the first NodePool that can have one. Among claims with as many pods, one that has just grown comes first,
which is what a stable sort before every attempt gives (S-89).

All candidates are asked the same: taints, host ports, requirements, topology, types and resources, reservations. What
depends on room alone is asked of the class, everything else of its `Demand`, which many classes share.
`candidate_search` remembers who refused whom for good.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from kerf.engine.model.reasons import Reason
from kerf.engine.scheduling.explain.refusals import explain_template, trace_opening
from kerf.engine.scheduling.explain.tracer import Tracer
from kerf.engine.scheduling.launchable.templates import NarrowedTemplate, Template
from kerf.engine.scheduling.packing.candidate_search import ClaimSearch, NodeSearch
from kerf.engine.scheduling.packing.existing_node import ExistingNode
from kerf.engine.scheduling.packing.nodes_by_domain import NodesByDomain
from kerf.engine.scheduling.packing.packed_claim import PackedClaim
from kerf.engine.scheduling.packing.reservations import Reservations
from kerf.engine.scheduling.pods.demand import Option
from kerf.engine.scheduling.pods.pod_class import PodClass
from kerf.engine.scheduling.pods.pod_classes import PodClasses
from kerf.engine.scheduling.problem.problem import PendingPod
from kerf.engine.scheduling.reasons import BY_TOPOLOGY, SchedulingCode, reason
from kerf.engine.scheduling.topology.topology import Topology

Candidate = ExistingNode | PackedClaim
QueuedPod = tuple[PendingPod, PodClass]


class _NewClaimAttempts:
    """Which templates cannot open a claim for a class any more, and why."""

    __slots__ = ("deferred", "final", "untried")

    def __init__(self) -> None:
        self.final: dict[int, Reason | None] = {}  # by place of the template; None if nobody reads it
        self.untried: dict[int, Sequence[Option]] = {}  # refused under these options, which may change
        self.deferred: Reason | None = None


class Packing:
    """The packing of one pass. `claims`: in the order in which they were opened."""

    def __init__(
        self,
        nodes: Sequence[ExistingNode],
        by_domain: NodesByDomain,
        templates: Sequence[Template],
        classes: PodClasses,
        topology: Topology,
        best_effort: bool,
        steps: int,
        tracer: Tracer | None,
        most_claims: float = math.inf,
        told: bool = True,
        affordable: Mapping[str, int] | None = None,
    ) -> None:
        """Set up one pass.

        `nodes`: in the order of S-76. `by_domain`: these nodes by domain; may be shared by all passes over them,
        whatever room they have left. `templates`: in the order of S-63. `best_effort`: minValues may be lowered when
        a claim is opened (S-39). `steps`: how many attempts to place a pod there may be.

        `most_claims`: a plan with more claims is of no use. Once more are opened, the pods without a place are
        `truncated`. It has no effect where there is reserved capacity: how many claims a plan has depends on whether
        that is used. `affordable`: likewise a plan is of no use in which a claim can be of none of these types, by
        NodePool. `told`: whether somebody reads the reasons; else only pods that wait for reserved capacity get one."""
        self.nodes = list(nodes)
        self.filled: dict[int, ExistingNode] = {}  # those that have been given pods
        self.templates = templates
        self.claims: list[PackedClaim] = []
        self.reservations = Reservations(templates)
        self._classes = classes
        self._topology = topology
        self._best_effort = best_effort
        self._tracer = tracer
        self._told = told
        self._on_nodes = NodeSearch(self.nodes, by_domain, tracer)
        self._on_claims = ClaimSearch(self.claims, self.reservations, tracer)
        self._openings: dict[int, _NewClaimAttempts] = {}
        self._grown = 0
        self._steps = max(1, steps)
        self._most_claims = math.inf if self.reservations.left else most_claims
        self._affordable = None if self.reservations.left else affordable
        self.too_dear = False
        self.truncated: list[PendingPod] = []

    def run(
        self, queue: Iterable[tuple[PendingPod, PodClass]]
    ) -> list[tuple[PendingPod, PodClass, tuple[Reason, ...]]]:
        """Place all pods. Returns those without a place, each with the class that it failed as and the reasons. Failed
        pods are tried again until a whole round places none (S-86, S-87). When the steps are used up, pods that were
        not asked since the last placement are `truncated`."""
        left = self._as_planned(list(queue))
        waiting = self._rounds(queued for queued in left if not queued[0].virtual)
        waiting += self._rounds(queued for queued in left if queued[0].virtual)  # what is left of the room (S-180)
        why: dict[int, tuple[Reason, ...]] = {}
        for _, pod_class in waiting:
            if pod_class.number not in why:
                why[pod_class.number] = self._reasons_for(pod_class)
        return [(pod, pod_class, why[pod_class.number]) for pod, pod_class in waiting]

    def _rounds(self, queue: Iterable[QueuedPod]) -> list[QueuedPod]:
        """The pods without a place, after a whole round without a placement or when the steps are used up."""
        waiting = deque(queue)
        failed_in_a_row = 0
        while failed_in_a_row < len(waiting):
            if len(self.claims) > self._most_claims or self.too_dear:
                self.truncated += [pod for pod, _ in waiting]
                return []
            if self._steps <= 0:
                asked_again = len(waiting) - failed_in_a_row
                self.truncated += [waiting.popleft()[0] for _ in range(asked_again)]
                break
            pod, pod_class = waiting.popleft()
            if self._place(pod, pod_class):
                failed_in_a_row = 0
            else:
                waiting.append((pod, pod_class))
                failed_in_a_row += 1
        return list(waiting)

    def _as_planned(self, queue: list[QueuedPod]) -> list[QueuedPod]:
        """Place pods where an earlier plan put them, as long as they fit; return the others. Otherwise new pods would
        take the room of nodes that were launched for these pods, and kube-scheduler binds these there anyway. It costs
        no steps, so that a pass that continues another one has all its steps for the rest."""
        if not any(pod.target for pod, _ in queue):
            return queue
        targets = {node.claim or node.name: number for number, node in enumerate(self.nodes)}
        aimed = [queued for queued in queue if queued[0].target in targets]
        if not aimed:
            return queue
        left, waiting = len(aimed) + 1, aimed
        while waiting and len(waiting) < left:
            left = len(waiting)
            waiting = [queued for queued in waiting if not self._onto(self.nodes[targets[queued[0].target]], *queued)]
        placed = {pod.uid for pod, _ in aimed} - {pod.uid for pod, _ in waiting}
        return [queued for queued in queue if queued[0].uid not in placed]

    def _onto(self, node: ExistingNode, pod: PendingPod, pod_class: PodClass) -> bool:
        relaxed: PodClass | None = pod_class
        while relaxed is not None:
            if self._on_nodes.takes(node, relaxed):
                self._take(node, pod, relaxed)
                return True
            relaxed = self._classes.relaxed(relaxed)
        return False

    def _place(self, pod: PendingPod, pod_class: PodClass) -> bool:
        """Place one pod, giving up one preference after another (S-31). Until then each preference counts as required
        (S-36). In the queue the pod keeps them all (S-35). Candidates are asked one after another, with the same result
        as the reference's parallel workers (S-91)."""
        relaxed: PodClass | None = pod_class
        while relaxed is not None:
            self._steps -= 1
            place = self._on_nodes.find(relaxed) or self._on_claims.find(relaxed) or self._on_new(relaxed)
            if place is not None:
                self._take(place, pod, relaxed)
                return True
            if self._opening(relaxed).deferred is not None:
                return False  # S-32: never relaxed
            relaxed = self._classes.relaxed(relaxed)
        return False

    def _take(self, place: Candidate, pod: PendingPod, pod_class: PodClass) -> None:
        if isinstance(place, ExistingNode):
            if place.shared:
                place = self.nodes[place.number] = self.filled[place.number] = place.own()
            place.take(pod, pod_class)
            if pod_class.devices is not None:
                pod_class.devices.take_site(place.name)
        else:
            moved = place.narrowed is not self._on_claims.state_of(place)
            if moved:
                self._topology.settled(place.template, place.narrowed)
            place.take(pod, pod_class)
            if self._affordable is not None and not place.types & self._affordable[place.template.name]:
                self.too_dear = True
            if pod_class.devices is not None:
                pod_class.devices.take_claim(place.index, place.narrowed, place)
            if len(place.pods) > 1:
                self._grown += 1
                place.order = -self._grown
            if moved:
                self._on_claims.moved(place)
        if self._tracer is not None:
            self._tracer.placed(pod, pod_class, place.name if isinstance(place, ExistingNode) else place.index)

    # ── a new claim ──────────────────────────────────────

    def _opening(self, pod_class: PodClass) -> _NewClaimAttempts:
        attempts = self._openings.get(pod_class.number)
        if attempts is None:
            attempts = self._openings[pod_class.number] = _NewClaimAttempts()
        return attempts

    def _on_new(self, pod_class: PodClass) -> PackedClaim | None:
        """A new claim of the first template that can have one (S-98)."""
        opening, demand = self._opening(pod_class), pod_class.demand
        opening.deferred = None
        for place, template in enumerate(self.templates):
            if place in opening.final:
                continue
            options = demand.options(template, template.base)
            claim = self._open(template, pod_class, options) if opening.untried.get(place) is not options else None
            if claim is None:
                self._refuse(opening, place, template, pod_class, options)
                continue
            if not claim.accept(pod_class, ((0, claim.narrowed),), self.reservations):
                opening.deferred = reason(SchedulingCode.RESERVATION, node_pool=template.name)  # S-90
                return None
            if self._tracer is not None:
                trace_opening(claim, pod_class, self._tracer)
            template.spend(claim.types)
            self.claims.append(claim)
            return claim
        return None

    def _refuse(
        self, opening: _NewClaimAttempts, place: int, template: Template, pod_class: PodClass, options: Sequence[Option]
    ) -> None:
        if pod_class.demand.keys and not pod_class.demand.never(template, template.base):
            opening.untried[place] = options  # other domains may do later
        else:
            told = self._told and not pod_class.of_new_nodes
            opening.final[place] = explain_template(template, pod_class, self._tracer) if told else None

    def _open(self, template: Template, pod_class: PodClass, options: Sequence[Option]) -> PackedClaim | None:
        """A new claim for the first pod of a class, narrowed but not accepted yet; None if the template cannot have one
        (S-69, S-98, S-99). Of the domains that topology leaves it takes the lowest rank, then the cheapest (S-100,
        S-140)."""
        if template.node_limit_reached or not pod_class.demand.allows_host(len(self.claims)):
            return None
        allowed = template.within_limits(template.types)
        claims: list[tuple[int, float, int, PackedClaim]] = []
        for number, (rank, option) in enumerate(options):
            if claims and rank > claims[0][0]:
                break
            claim = self._opened(template, pod_class, option, allowed)
            if claim is not None:
                only = len(options) == 1
                order = 0.0 if only else template.precedence(claim.index, claim.narrowed, claim.types)
                claims.append((rank, order, number, claim))
        return min(claims, key=lambda each: each[:3])[3] if claims else None

    def _opened(
        self, template: Template, pod_class: PodClass, narrowed: NarrowedTemplate, allowed: int
    ) -> PackedClaim | None:
        """A new claim under one option; None if no type is left. Only here minValues may be lowered, by policy
        BestEffort; pods that join must keep to them (S-109). A template with lowered minValues is preferred to the next
        template."""
        if pod_class.devices is not None:
            index, types = len(self.claims), allowed & narrowed.viable
            with_devices = pod_class.devices.narrowed(index, template, narrowed, types)
            if with_devices is None:
                return None
            narrowed, allowed = with_devices, pod_class.devices.capable(index, with_devices, types)
        types = template.survivors(allowed & narrowed.viable, pod_class.requests, pod_class.ports, ())
        unmet = template.unmet_min_values(narrowed.min_values, types)
        if not types or (unmet and not self._best_effort):
            return None
        if unmet:
            narrowed = template.at(narrowed.requirements.with_min_values(unmet))
        return PackedClaim(len(self.claims), template, narrowed, types, bool(unmet))

    # ── reasons ──────────────────────────────────────

    def _reasons_for(self, pod_class: PodClass) -> tuple[Reason, ...]:
        """Why a class has no place: the reason of each template, for the most relaxed class that was tried. If it has
        several required terms, each is given up for the next, so a term that topology alone is in the way of is told
        rather than the last one. Something may be done about it (see `optimizer.first_plan`)."""
        relaxed, by_term = pod_class, {pod_class.shape.required_terms[:1]: pod_class}
        while self._opening(relaxed).deferred is None and (weaker := self._classes.relaxed(relaxed)) is not None:
            relaxed = by_term[weaker.shape.required_terms[:1]] = weaker
        deferred = self._opening(relaxed).deferred
        if deferred is not None:
            return (deferred,)
        if not self._told:
            return ()
        if len(by_term) > 1:
            relaxed = next(filter(self._kept_out_by_topology, by_term.values()), relaxed)
        if self._tracer is not None:
            self._on_nodes.explain(relaxed)
        return self._reasons_as(relaxed, self._tracer)

    def _kept_out_by_topology(self, pod_class: PodClass) -> bool:
        return any(why.code in BY_TOPOLOGY for why in self._reasons_as(pod_class, None))

    def _reasons_as(self, pod_class: PodClass, tracer: Tracer | None) -> tuple[Reason, ...]:
        """Why each template has no new claim for just this class."""
        if pod_class.of_new_nodes:
            return tuple(self._reason_where_left_out(template, pod_class, tracer) for template in self.templates)
        final = self._opening(pod_class).final
        return tuple(
            final.get(place) or explain_template(template, pod_class, tracer)
            for place, template in enumerate(self.templates)
        )

    def _reason_where_left_out(self, template: Template, pod_class: PodClass, tracer: Tracer | None) -> Reason:
        """Why a NodePool launches no node for a class for which something is left out, after all pods are placed."""
        anywhere = self._classes.for_any_new_node(pod_class)
        claim = self._open(template, anywhere, anywhere.demand.options(template, template.base))
        if claim is None:
            return explain_template(template, anywhere, tracer)
        why = reason(SchedulingCode.LEFT_OUT, node_pool=template.name)
        if tracer is not None:
            trace_opening(claim, anywhere, tracer, why)
        return why
