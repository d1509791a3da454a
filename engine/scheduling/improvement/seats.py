"""Nodes as the cluster's scheduler sees them: what exists, and planned claims as their cheapest type with its cheapest
offering."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping

from kerf.engine.model.instances import Catalogue, InstanceType, Offering
from kerf.engine.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE, ZONE_ID
from kerf.engine.model.pods import HostPort, PodShape, Resources, Taint
from kerf.engine.scheduling.catalogue import compiled
from kerf.engine.scheduling.daemons import Daemon, reserved_for
from kerf.engine.scheduling.hostports import conflicts
from kerf.engine.scheduling.plan import OpenedClaim
from kerf.engine.scheduling.problem import NodeInput, Problem
from kerf.engine.scheduling.requirements import Requirements
from kerf.engine.scheduling.resources import added
from kerf.engine.scheduling.volumes import Attachment, claim_names, of_claims

DEFAULT_REQUESTS = (("cpu", 100), ("memory", 200 * 2**20))
"""What a pod without requests counts as for the score of the least allocated node."""
KNOWN_KINDS = 32
"""Of so many kinds of pods it is kept what they think of a node."""

Scored = tuple[int, int]
"""CPU and memory."""
Liking = tuple[float, float, int]
"""How much pods like a node, how many soft taints repel them, and its score."""


def counted(requests: Resources) -> Scored:
    """What a pod with these requests counts as for the score of the least allocated node."""
    cpu, memory = (requests.get(name) or least for name, least in DEFAULT_REQUESTS)
    return cpu, memory


class Seat:
    """A node with what is free on it. `version` counts the pods bound since; seats of one `kind` are equal but for
    their names, -1 is like no other."""

    def __init__(self, name: str, labels: dict[str, str], taints: tuple[Taint, ...], free: Resources,
                 total: Resources, ports: tuple[HostPort, ...] = (), kind: int = -1) -> None:  # fmt: skip
        self.name = name
        self.labels = labels
        self.known = Requirements.of_labels(labels)
        self.taints = taints
        self.free = free
        self.ports = ports
        self.kind = kind
        self._sound = all(amount >= 0 for amount in free.values())
        self._total = total.get("cpu", 0), total.get("memory", 0)
        self._scored = free.get("cpu", 0), free.get("memory", 0)
        self._limits: Mapping[str, int] = {}
        self._attached: frozenset[Attachment] = frozenset()
        self.version = 0
        self.origin = self  # as it was before anything was bound to it
        self._likings: dict[Hashable, Liking | None] = {}

    def fresh(self, name: str = "") -> Seat:
        """The same node, or one like it of another name, for pods to be bound to it; nothing must be bound to this
        one."""
        made = Seat.__new__(Seat)
        made.name, made.labels, made.known, made.taints = name or self.name, self.labels, self.known, self.taints
        made.free, made.ports, made.kind, made.version = self.free, self.ports, self.kind, 0
        made._sound, made._total, made._scored = self._sound, self._total, self._scored
        made._limits, made._attached = self._limits, self._attached
        made.origin = self
        made._likings = {}
        return made

    def liking(self, kind: Hashable, look: Callable[[Seat], Liking | None]) -> Liking | None:
        """What pods of a kind think of it while nothing is bound to it, as they found when they looked first: problems
        share a node."""
        known = self._likings
        if kind not in known:
            if len(known) >= KNOWN_KINDS:
                known.clear()
            known[kind] = look(self)
        return known[kind]

    def attach(self, attached: Iterable[Attachment], limits: Mapping[str, int]) -> None:
        """The volumes that are there already, and how many of a driver there may be."""
        self._attached, self._limits = frozenset(attached), limits

    def holds(self, shape: PodShape, requests: Resources, volumes: frozenset[Attachment] = frozenset()) -> bool:
        if not self._sound:
            return False
        free = self.free
        for name, amount in requests.items():
            if amount > free.get(name, 0):
                return False
        return not (shape.host_ports and conflicts(shape.host_ports, self.ports)) and self._attaches(volumes)

    def _attaches(self, volumes: frozenset[Attachment]) -> bool:
        if not self._limits or volumes <= self._attached:
            return True
        drivers = Counter(driver for driver, _ in self._attached | volumes)
        return all(drivers[driver] <= limit for driver, limit in self._limits.items())

    def score(self, requests: Resources, counted: Scored, newer: bool = False) -> int:
        """0 to 200: the least allocated node (CPU and memory, `counted` as pods without requests are), and the one on
        which both are used alike, or, with a `newer` scheduler, are used more alike than before."""
        free = self.free
        (cpu, memory), (cpu_left, memory_left) = self._total, self._scored
        least = present = 0
        if cpu:
            present += 1
            least += max(0, cpu_left - counted[0]) * 100 // cpu
        if memory:
            present += 1
            least += max(0, memory_left - counted[1]) * 100 // memory
        more_cpu, more_memory = requests.get("cpu", 0), requests.get("memory", 0)
        cpu_free, memory_free = free.get("cpu", 0), free.get("memory", 0)
        even = 100
        if present == 2:
            even = _evenness((cpu - cpu_free + more_cpu) / cpu, (memory - memory_free + more_memory) / memory)
        if newer:
            before = _evenness((cpu - cpu_free) / cpu, (memory - memory_free) / memory) if present == 2 else 100
            even = 50 + (50 + even - before) // 2 if more_cpu or more_memory else 0
        return least // max(1, present) + even

    def bind(
        self, shape: PodShape, requests: Resources, counted: Scored, volumes: frozenset[Attachment] = frozenset()
    ) -> None:
        self.free = added(self.free, requests, -1)
        self._scored = self._scored[0] - counted[0], self._scored[1] - counted[1]
        self.ports += shape.host_ports
        self._attached |= volumes
        self.version += 1


def _evenness(cpu: float, memory: float) -> int:
    """50 to 100: the less the parts that are used differ (half of that is the standard deviation of two)."""
    return int((1 - abs(min(1.0, cpu) - min(1.0, memory)) / 2) * 100)


def existing(given: NodeInput, expected: Iterable[Daemon], problem: Problem) -> Seat:
    """Of a node as it is; nothing must be bound to it (see `Seat.fresh`): problems share it."""
    what = Seat, problem.daemons, problem.settings.ignore_dra_requests, tuple(problem.catalogues)
    made = given.compiled(what, lambda: _compiled(given, expected, problem))
    facts = problem.volumes
    if facts is not None and given.name in facts.limits:
        there = [each for each in problem.bound if each.node == given.name and problem.shapes[each.shape].volumes]
        claims = [name for each in there for name in claim_names(each.namespace, each.name, problem.shapes[each.shape])]
        made = made.fresh()
        made.attach(of_claims(facts, claims).attached, facts.limits[given.name])
    return made


def _compiled(given: NodeInput, expected: Iterable[Daemon], problem: Problem) -> Seat:
    labels = Requirements.of_labels(given.labels)
    waiting = reserved_for(expected, given.taints, labels, given.bound_daemons)
    free = {name: amount - waiting.get(name, 0) for name, amount in given.available.items()}
    kind = type_named(problem.catalogues.values(), given.labels.get(INSTANCE_TYPE, ""))
    total = kind.allocatable() if kind is not None else given.available
    return Seat(given.name, given.labels, given.taints, free, total, given.host_ports)


def planned(name: str, claim: OpenedClaim, expected: Iterable[Daemon], problem: Problem, like: int = -1) -> Seat:
    """The node that a claim becomes if it gets the first of its types; `like` is its kind."""
    pool = next(each for each in problem.pools if each.pool.name == claim.node_pool)
    types = compiled(pool.catalogue, problem.catalogues[pool.catalogue])
    kind = types.types[types.numbers[claim.instance_types[0]]]
    labels = {key: values[0] for key, values in sorted(kind.requirements.items()) if len(values) == 1}
    labels |= {INSTANCE_TYPE: kind.name, **claim.labels, **_place(claim, kind, problem.unavailable)}
    waiting = reserved_for(expected, pool.pool.taints, Requirements.of_labels(labels), {})
    total = kind.allocatable()
    free = {name: amount - waiting.get(name, 0) for name, amount in total.items()}
    return Seat(name, labels, pool.pool.taints, free, total, kind=like)


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
