"""What the cluster's scheduler would make of a plan: it does not know it, and binds pods in its own order.

The planned nodes are taken as their cheapest type with its cheapest offering, the pods are bound one by one in
the order of its queue (priority, then age), each to the feasible node with the highest score. Modelled are the
filters on resources, taints, node affinity and host ports, and the scores for least allocation, preferred node
affinity and PreferNoSchedule taints, with kube-scheduler's default weights; equal scores go to the first name.
What pods demand of one another is asked of `company`.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush, heapreplace

from kerf.engine.model.instances import Catalogue, InstanceType, Offering
from kerf.engine.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE, ZONE_ID
from kerf.engine.model.pods import HostPort, PodShape, Resources, Taint
from kerf.engine.scheduling.daemons import Daemon, daemons, reserved_for
from kerf.engine.scheduling.hostports import conflicts
from kerf.engine.scheduling.improvement.company import Company, Place, meets_one
from kerf.engine.scheduling.plan import OpenedClaim, Plan
from kerf.engine.scheduling.problem import NodeInput, PendingPod, Problem
from kerf.engine.scheduling.requirements import Requirements
from kerf.engine.scheduling.resources import added, fits
from kerf.engine.scheduling.shapes import alternatives_of
from kerf.engine.scheduling.taints import PREFER_NO_SCHEDULE, untolerated

LEAST_ALLOCATED, NODE_AFFINITY, TAINT_TOLERATION = 1, 2, 3
"""Weights of the default score plugins."""
DEFAULT_REQUESTS = {"cpu": 100, "memory": 200 * 2**20}
"""What a pod without requests counts as for the score."""


class Seat:
    """A node with what is free on it."""

    def __init__(self, name: str, labels: dict[str, str], taints: tuple[Taint, ...], free: Resources,
                 total: Resources, ports: tuple[HostPort, ...] = ()) -> None:  # fmt: skip
        self.name = name
        self.labels = labels
        self.known = Requirements.of_labels(labels)
        self.taints = taints
        self.free = free
        self.ports = ports
        self._total = {name: total.get(name, 0) for name in DEFAULT_REQUESTS}
        self._scored = {name: free.get(name, 0) for name in DEFAULT_REQUESTS}
        self.version = 0

    def holds(self, shape: PodShape, requests: Resources) -> bool:
        return fits(requests, self.free) and not conflicts(shape.host_ports, self.ports)

    def least_allocated(self, counted: Resources) -> float:
        """0 to 100: what would be left free of CPU and memory."""
        shares = [
            max(0.0, (self._scored[name] - counted[name]) / total) if total else 0.0
            for name, total in self._total.items()
        ]
        return 100 * sum(shares) / len(shares)

    def bind(self, shape: PodShape, requests: Resources, counted: Resources) -> None:
        self.free = added(self.free, requests, -1)
        self._scored = added(self._scored, counted, -1)
        self.ports += shape.host_ports
        self.version += 1


class _Class:
    """Pods of one shape before the scheduler: the feasible nodes by score, best first. Scores only fall as nodes
    fill, so a stale one is an upper bound and is worked out again when it comes to the top."""

    def __init__(self, shape: PodShape, seats: list[Seat]) -> None:
        self.shape = shape
        self.requests = {**shape.requests, "pods": 1}
        self.counted = {name: shape.requests.get(name) or least for name, least in DEFAULT_REQUESTS.items()}
        asked = alternatives_of(shape)
        possible = [number for number, seat in enumerate(seats) if _possible(shape, asked, seat)]
        self._fixed = dict(zip(possible, _fixed_scores(shape, [seats[number] for number in possible]), strict=True))
        self._heap = [self._entry(number, seats) for number in possible]
        heapify(self._heap)

    def _entry(self, number: int, seats: list[Seat]) -> tuple[float, int, int]:
        seat = seats[number]
        score = self._fixed[number] + LEAST_ALLOCATED * seat.least_allocated(self.counted)
        return -score, number, seat.version

    def best(self, pod: PendingPod, seats: list[Seat], company: Company, places: list[Place]) -> int | None:
        """The number of the seat that the pod is bound to."""
        refused: list[tuple[float, int, int]] = []
        found = None
        while self._heap:
            entry = self._heap[0]
            seat = seats[entry[1]]
            if entry[2] != seat.version:
                heapreplace(self._heap, self._entry(entry[1], seats))
            elif not seat.holds(self.shape, self.requests):
                heappop(self._heap)  # for good: nodes only fill up
            elif not company.allows((pod.namespace, pod.shape), places[entry[1]]):
                refused.append(heappop(self._heap))
            else:
                found = entry[1]
                break
        for entry in refused:
            heappush(self._heap, entry)
        return found


def unbound(problem: Problem, planned: Plan) -> tuple[str, ...]:
    """The uids of the pods that have a place in the plan and that the scheduler would find none for."""
    given = daemons(problem.daemons, problem.shapes)
    seats = [_existing(each, given, problem) for each in problem.nodes]
    seats += [_planned(number, each, given, problem) for number, each in enumerate(planned.claims)]
    seats.sort(key=lambda each: each.name)
    places = [Place(number, seat.labels, seat.known, seat.name) for number, seat in enumerate(seats)]
    company = Company(problem, places)
    classes: dict[str, _Class] = {}
    left = []
    placed = planned.placed
    for pod in sorted((each for each in problem.pods if each.uid in placed), key=lambda each: _rank(each, problem)):
        wanted = classes.get(pod.shape)
        if wanted is None:
            wanted = classes[pod.shape] = _Class(problem.shapes[pod.shape], seats)
        number = wanted.best(pod, seats, company, places)
        if number is None:
            left.append(pod.uid)
            continue
        seats[number].bind(wanted.shape, wanted.requests, wanted.counted)
        company.bound((pod.namespace, pod.shape), places[number])
    return tuple(sorted(left))


def _rank(pod: PendingPod, problem: Problem) -> tuple[int, int, str, str, str]:
    """The order of the scheduler's queue."""
    return -problem.shapes[pod.shape].priority, pod.created, pod.namespace, pod.name, pod.uid


# ── filters and scores that do not change ──────────────────────────────────────


def _possible(shape: PodShape, asked: tuple[Requirements, ...], seat: Seat) -> bool:
    hard = tuple(each for each in seat.taints if each.effect != PREFER_NO_SCHEDULE)
    if untolerated(hard, shape.tolerations):
        return False
    return meets_one(asked, seat.known)


def _fixed_scores(shape: PodShape, seats: list[Seat]) -> list[float]:
    """Preferred node affinity and soft taints, each brought to 0…100 over the feasible nodes."""
    liked = [
        sum(each.weight for each in shape.preferred_terms
            if seat.known.compatible(Requirements.of_expressions(each.term.expressions)))
        for seat in seats
    ]  # fmt: skip
    shunned = [
        sum(each.effect == PREFER_NO_SCHEDULE for each in untolerated(seat.taints, shape.tolerations)) for seat in seats
    ]
    most, worst = max(liked, default=0), max(shunned, default=0)
    return [
        NODE_AFFINITY * (100 * a / most if most else 0) + TAINT_TOLERATION * (100 - 100 * b / worst if worst else 100)
        for a, b in zip(liked, shunned, strict=True)
    ]


# ── nodes ──────────────────────────────────────


def _existing(given: NodeInput, expected: Iterable[Daemon], problem: Problem) -> Seat:
    labels = Requirements.of_labels(given.labels)
    waiting = reserved_for(expected, given.taints, labels, given.bound_daemons)
    free = {name: amount - waiting.get(name, 0) for name, amount in given.available.items()}
    kind = _type(problem.catalogues.values(), given.labels.get(INSTANCE_TYPE, ""))
    total = kind.allocatable() if kind is not None else given.available
    return Seat(given.name, given.labels, given.taints, free, total, given.host_ports)


def _planned(number: int, claim: OpenedClaim, expected: Iterable[Daemon], problem: Problem) -> Seat:
    pool = next(each for each in problem.pools if each.pool.name == claim.node_pool)
    kind = _type([problem.catalogues[pool.catalogue]], claim.instance_types[0])
    assert kind is not None  # the planner took it from there
    labels = {key: values[0] for key, values in sorted(kind.requirements.items()) if len(values) == 1}
    labels |= {INSTANCE_TYPE: kind.name, **claim.labels, **_place(claim, kind)}
    waiting = reserved_for(expected, pool.pool.taints, Requirements.of_labels(labels), {})
    total = kind.allocatable()
    free = {name: amount - waiting.get(name, 0) for name, amount in total.items()}
    return Seat(f"{claim.node_pool}/new-{number:06d}", labels, pool.pool.taints, free, total)


def _place(claim: OpenedClaim, kind: InstanceType) -> dict[str, str]:
    """The labels that come from the cheapest offering that the claim may use."""
    constraints = Requirements(claim.constraints)

    def usable(offer: Offering) -> bool:
        return (
            offer.available
            and offer.capacity_type in claim.capacity_types
            and constraints.get(ZONE).has(offer.zone)
            and constraints.get(CAPACITY_TYPE).has(offer.capacity_type)
            and (not offer.zone_id or constraints.get(ZONE_ID).has(offer.zone_id))
        )

    offers = [each for each in kind.offerings if usable(each)]
    if not offers:
        return {}
    best = min(offers, key=lambda each: (each.price, each.zone, each.capacity_type))
    return {ZONE: best.zone, CAPACITY_TYPE: best.capacity_type, **({ZONE_ID: best.zone_id} if best.zone_id else {})}


def _type(catalogues: Iterable[Catalogue], name: str) -> InstanceType | None:
    return next((each for catalogue in catalogues for each in catalogue.types if each.name == name), None)
