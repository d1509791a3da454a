"""Nodes as the cluster's scheduler sees them: what exists, and planned claims as their cheapest type with its cheapest
offering."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping

from kerf.engine.model.instance_types import Catalogue, InstanceType, Offering
from kerf.engine.model.kubernetes.pods import HostPort, Resources, Taint, assumed
from kerf.engine.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE, ZONE_ID
from kerf.engine.scheduling.launchable.compiled_catalogue import compiled_catalogue
from kerf.engine.scheduling.launchable.daemons import Daemon, reserved_for_daemons
from kerf.engine.scheduling.matching.requirements import Requirements
from kerf.engine.scheduling.matching.resources import added
from kerf.engine.scheduling.matching.resources import total as summed
from kerf.engine.scheduling.plan import OpenedClaim
from kerf.engine.scheduling.pods.pod_volumes import Attachment, claim_names, volumes_of_claims
from kerf.engine.scheduling.problem.problem import NodeInput, Problem

NOTHING: Resources = {}
MAX_CACHED_CLASSES = 32
"""Of so many kinds of pods it is kept what they think of a node."""

NodeScores = tuple[float, float, int]
"""How much pods like a node, how many soft taints repel them, and its score."""


class NodeInfo:
    """A node with what is free on it. Seats of one `kind` are equal but for their names, -1 is like no other.
    `assumed`: what the pods that are there count as for scores, beyond what they request. `attached` and `limits`: the
    volumes that are there already, and how many of a driver there may be. `open`: what is known of labels that the
    node will have, and has not got yet."""

    def __init__(self, name: str, labels: dict[str, str], taints: tuple[Taint, ...], free: Resources,
                 total: Resources, ports: tuple[HostPort, ...] = (), kind: int = -1,
                 assumed: Resources = NOTHING) -> None:  # fmt: skip
        self.name = name
        self.labels = labels
        self.known = Requirements.of_labels(labels)
        self.taints = taints
        self.free = free
        self.ports = ports
        self.kind = kind
        self.sound = all(amount >= 0 for amount in free.values())
        self.total = total.get("cpu", 0), total.get("memory", 0)
        self.assumed = assumed
        self.limits: Mapping[str, int] = {}
        self.attached: frozenset[Attachment] = frozenset()
        self.open = Requirements()
        self._likings: dict[Hashable, NodeScores | None] = {}

    def fresh(self, name: str = "") -> NodeInfo:
        """The same node, or one like it of another name."""
        made = NodeInfo.__new__(NodeInfo)
        made.name, made.labels, made.known, made.taints = name or self.name, self.labels, self.known, self.taints
        made.free, made.ports, made.kind, made.sound = self.free, self.ports, self.kind, self.sound
        made.total, made.assumed, made.limits, made.attached = self.total, self.assumed, self.limits, self.attached
        made.open = self.open
        made._likings = {}
        return made

    def liking(self, kind: Hashable, look: Callable[[NodeInfo], NodeScores | None]) -> NodeScores | None:
        """What pods of a kind think of it while nothing is bound to it, as they found when they looked first: problems
        share a node."""
        known = self._likings
        if kind not in known:
            if len(known) >= MAX_CACHED_CLASSES:
                known.clear()
            known[kind] = look(self)
        return known[kind]

    def attach(self, attached: Iterable[Attachment], limits: Mapping[str, int]) -> None:
        self.attached, self.limits = frozenset(attached), limits


def existing_node(given: NodeInput, expected: Iterable[Daemon], problem: Problem) -> NodeInfo:
    """Of a node as it is; problems share it."""
    what = NodeInfo, problem.daemons, problem.settings.ignore_dra_requests, tuple(problem.catalogues)
    made = given.compiled(what, lambda: _existing_node(given, expected, problem))
    facts = problem.volumes
    if facts is not None and given.name in facts.limits:
        there = [each for each in problem.bound if each.node == given.name and problem.shapes[each.shape].volumes]
        claims = [name for each in there for name in claim_names(each.namespace, each.name, problem.shapes[each.shape])]
        made = made.fresh()
        made.attach(volumes_of_claims(facts, claims).attached, facts.limits[given.name])
    return made


def _existing_node(given: NodeInput, expected: Iterable[Daemon], problem: Problem) -> NodeInfo:
    narrowed = Requirements.of_specs(given.requirements).without(given.labels)
    labels = {each.key: min(each.values) for each in narrowed if each.single} | given.labels
    known = Requirements.of_labels(labels)
    waiting = reserved_for_daemons(expected, given.taints, known, given.bound_daemons)
    free = {name: amount - waiting.get(name, 0) for name, amount in given.available.items()}
    total = given.total
    if not total:
        kind = instance_type_named(problem.catalogues.values(), labels.get(INSTANCE_TYPE, ""))
        total = kind.allocatable() if kind is not None else given.available
    there = added(given.assumed, _assumed_requests(expected, given.taints, known))
    made = NodeInfo(given.name, labels, given.taints, free, total, given.host_ports, assumed=there)
    made.open = narrowed.without(labels)
    return made


def planned_node(
    name: str, claim: OpenedClaim, expected: Iterable[Daemon], problem: Problem, like: int = -1
) -> NodeInfo:
    """The node that a claim becomes if it gets the first of its types; `like` is its kind."""
    pool = next(each for each in problem.pools if each.pool.name == claim.node_pool)
    types = compiled_catalogue(pool.catalogue, problem.catalogues[pool.catalogue])
    kind = types.types[types.numbers[claim.instance_types[0]]]
    labels = {each.key: min(each.values) for each in claim.constraints if each.single}
    labels |= {key: values[0] for key, values in sorted(kind.requirements.items()) if len(values) == 1}
    labels |= {INSTANCE_TYPE: kind.name, **claim.labels, **_offering_labels(claim, kind, problem.unavailable)}
    known = Requirements.of_labels(labels)
    waiting = reserved_for_daemons(expected, pool.pool.taints, known, {})
    total = kind.allocatable()
    free = {name: amount - waiting.get(name, 0) for name, amount in total.items()}
    there = _assumed_requests(expected, pool.pool.taints, known)
    return NodeInfo(name, labels, pool.pool.taints, free, total, kind=like, assumed=there)


def _assumed_requests(expected: Iterable[Daemon], taints: tuple[Taint, ...], labels: Requirements) -> Resources:
    return summed(assumed(each.requests) for each in expected if each.expected_on(taints, labels))


def _offering_labels(
    claim: OpenedClaim, kind: InstanceType, unavailable: frozenset[tuple[str, str, str]]
) -> dict[str, str]:
    """The labels that come from the cheapest offering that the claim may use."""
    constraints = Requirements(claim.constraints)
    zones, zone_ids, sold = constraints.get(ZONE), constraints.get(ZONE_ID), constraints.get(CAPACITY_TYPE)

    def usable(offer: Offering) -> bool:
        return (
            offer.available
            and offer.capacity_type in claim.capacity_types
            and zones.has(offer.zone)
            and sold.has(offer.capacity_type)
            and (not offer.zone_id or zone_ids.has(offer.zone_id))
            and not (unavailable and _unavailable_keys(offer, kind) & unavailable)
        )

    offers = [each for each in kind.offerings if usable(each)]
    if not offers:
        return {}
    best = min(offers, key=lambda each: (each.price, each.zone, each.capacity_type))
    return {ZONE: best.zone, CAPACITY_TYPE: best.capacity_type, **({ZONE_ID: best.zone_id} if best.zone_id else {})}


def _unavailable_keys(offer: Offering, kind: InstanceType) -> set[tuple[str, str, str]]:
    """What stands for an offering of a type in `Problem.unavailable`."""
    return {(c, t, z) for c in (offer.capacity_type, "") for t in (kind.name, "") for z in (offer.zone, "")}


def instance_type_named(catalogues: Iterable[Catalogue], name: str) -> InstanceType | None:
    return next((each for catalogue in catalogues for each in catalogue.types if each.name == name), None)
