"""Nodes as the cluster's scheduler sees them: what exists, and planned claims as their cheapest type with its cheapest
offering."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from kerf.engine.model.instances import Catalogue, InstanceType, Offering
from kerf.engine.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE, ZONE_ID
from kerf.engine.model.pods import HostPort, PodShape, Resources, Taint
from kerf.engine.scheduling.daemons import Daemon, reserved_for
from kerf.engine.scheduling.hostports import conflicts
from kerf.engine.scheduling.plan import OpenedClaim
from kerf.engine.scheduling.problem import NodeInput, Problem
from kerf.engine.scheduling.requirements import Requirements
from kerf.engine.scheduling.resources import added, fits
from kerf.engine.scheduling.volumes import Attachment, claim_names, of_claims

DEFAULT_REQUESTS = {"cpu": 100, "memory": 200 * 2**20}
"""What a pod without requests counts as for the score of the least allocated node."""


class Seat:
    """A node with what is free on it. `version` counts the pods bound since."""

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
        self._limits: Mapping[str, int] = {}
        self._attached: frozenset[Attachment] = frozenset()
        self.version = 0

    def fresh(self) -> Seat:
        """The same node before anything was bound to this copy of it."""
        made = Seat.__new__(Seat)
        made.name, made.labels, made.known, made.taints = self.name, self.labels, self.known, self.taints
        made.free, made.ports, made.version = self.free, self.ports, 0
        made._total, made._scored = self._total, self._scored
        made._limits, made._attached = self._limits, self._attached
        return made

    def attach(self, attached: Iterable[Attachment], limits: Mapping[str, int]) -> None:
        """The volumes that are there already, and how many of a driver there may be."""
        self._attached, self._limits = frozenset(attached), limits

    def holds(self, shape: PodShape, requests: Resources, volumes: frozenset[Attachment] = frozenset()) -> bool:
        return fits(requests, self.free) and not conflicts(shape.host_ports, self.ports) and self._attaches(volumes)

    def _attaches(self, volumes: frozenset[Attachment]) -> bool:
        if not self._limits or volumes <= self._attached:
            return True
        drivers = Counter(driver for driver, _ in self._attached | volumes)
        return all(drivers[driver] <= limit for driver, limit in self._limits.items())

    def score(self, requests: Resources, counted: Resources) -> int:
        """0 to 200: the least allocated node (CPU and memory, `counted` as pods without requests are), and the one on
        which both are used alike."""
        least, shares = 0, []
        for name, total in self._total.items():
            if not total:
                continue
            least += max(0, self._scored[name] - counted[name]) * 100 // total
            shares.append(min(1.0, (total - self.free.get(name, 0) + requests.get(name, 0)) / total))
        uneven = abs(shares[0] - shares[1]) / 2 if len(shares) == 2 else 0.0  # the standard deviation of two
        return least // max(1, len(shares)) + int((1 - uneven) * 100)

    def bind(
        self, shape: PodShape, requests: Resources, counted: Resources, volumes: frozenset[Attachment] = frozenset()
    ) -> None:
        self.free = added(self.free, requests, -1)
        self._scored = added(self._scored, counted, -1)
        self.ports += shape.host_ports
        self._attached |= volumes
        self.version += 1


def existing(given: NodeInput, expected: Iterable[Daemon], problem: Problem) -> Seat:
    labels = Requirements.of_labels(given.labels)
    waiting = reserved_for(expected, given.taints, labels, given.bound_daemons)
    free = {name: amount - waiting.get(name, 0) for name, amount in given.available.items()}
    kind = type_named(problem.catalogues.values(), given.labels.get(INSTANCE_TYPE, ""))
    total = kind.allocatable() if kind is not None else given.available
    made = Seat(given.name, given.labels, given.taints, free, total, given.host_ports)
    facts = problem.volumes
    if facts is not None and given.name in facts.limits:
        there = [each for each in problem.bound if each.node == given.name and problem.shapes[each.shape].volumes]
        claims = [name for each in there for name in claim_names(each.namespace, each.name, problem.shapes[each.shape])]
        made.attach(of_claims(facts, claims).attached, facts.limits[given.name])
    return made


def planned(name: str, claim: OpenedClaim, expected: Iterable[Daemon], problem: Problem) -> Seat:
    """The node that a claim becomes if it gets the first of its types."""
    pool = next(each for each in problem.pools if each.pool.name == claim.node_pool)
    kind = type_named([problem.catalogues[pool.catalogue]], claim.instance_types[0])
    assert kind is not None  # the planner took it from there
    labels = {key: values[0] for key, values in sorted(kind.requirements.items()) if len(values) == 1}
    labels |= {INSTANCE_TYPE: kind.name, **claim.labels, **_place(claim, kind, problem.unavailable)}
    waiting = reserved_for(expected, pool.pool.taints, Requirements.of_labels(labels), {})
    total = kind.allocatable()
    free = {name: amount - waiting.get(name, 0) for name, amount in total.items()}
    return Seat(name, labels, pool.pool.taints, free, total)


def _place(claim: OpenedClaim, kind: InstanceType, unavailable: frozenset[tuple[str, str, str]]) -> dict[str, str]:
    """The labels that come from the cheapest offering that the claim may use."""
    constraints = Requirements(claim.constraints)

    def usable(offer: Offering) -> bool:
        gone = {(c, t, z) for c in (offer.capacity_type, "") for t in (kind.name, "") for z in (offer.zone, "")}
        return (
            offer.available
            and not gone & unavailable
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


def type_named(catalogues: Iterable[Catalogue], name: str) -> InstanceType | None:
    return next((each for catalogue in catalogues for each in catalogue.types if each.name == name), None)
