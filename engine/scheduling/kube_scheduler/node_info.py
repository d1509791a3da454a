"""Nodes as kube-scheduler sees them before it binds a pod: labels, taints, and what is free.

A NodeClaim that is only planned becomes the node that EC2 would most likely deliver: its cheapest type with its
cheapest offering.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping

from kerf.engine.model.instance_types import Catalogue, InstanceType, Offering
from kerf.engine.model.karpenter.requirements import Requirements
from kerf.engine.model.kubernetes.pods import ASSUMED, HostPort, Resources, Taint, assumed
from kerf.engine.model.labels import CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, TENANCY, ZONE, ZONE_ID
from kerf.engine.scheduling.kube_scheduler.scores import NodeScores
from kerf.engine.scheduling.launchable.compiled_catalogue import compiled_catalogue
from kerf.engine.scheduling.launchable.daemons import Daemon, ports_of_daemons, reserved_for_daemons
from kerf.engine.scheduling.launchable.launch_offers import offerings_of, tenancy_of
from kerf.engine.scheduling.matching.resources import added
from kerf.engine.scheduling.matching.resources import total as summed
from kerf.engine.scheduling.plan import OpenedClaim
from kerf.engine.scheduling.pods.pod_volumes import Attachment, claim_names, volumes_of_claims
from kerf.engine.scheduling.problem.problem import NodeInput, Problem

NO_RESOURCES: Resources = {}
MAX_CACHED_CLASSES = 64
"""A node remembers the scores of this many classes of pods."""


class NodeInfo:
    """One node, with what the pods that are bound to it already leave free.

    `label_requirements`: its labels, to be matched against requirements. `open_labels`: labels that a node on its way
    will get, of which only a set of values is known yet. `allocatable`: CPU and memory. `assumed`: what the pods there
    count as in scores beyond what they request. `scored_left`: what scores take for free. `overcommitted`: some
    resource is used beyond what there is, so that nothing fits. `kind`: new nodes of one kind are equal but for their
    names; -1 is like no other.
    """

    def __init__(self, name: str, labels: dict[str, str], taints: tuple[Taint, ...], free: Resources,
                 total: Resources, host_ports: tuple[HostPort, ...] = (), kind: int = -1,
                 assumed: Resources = NO_RESOURCES) -> None:  # fmt: skip
        self.name = name
        self.labels = labels
        self.label_requirements = Requirements.of_labels(labels)
        self.taints = taints
        self.free = free
        self.host_ports = host_ports
        self.kind = kind
        self.overcommitted = any(amount < 0 for amount in free.values())
        self.allocatable = total.get("cpu", 0), total.get("memory", 0)
        self.assumed = assumed
        cpu, memory = (free.get(name, 0) - assumed.get(name, 0) for name, _ in ASSUMED)
        self.scored_left = cpu, memory
        self.volume_limits: Mapping[str, int] = {}
        self.attached_volumes: frozenset[Attachment] = frozenset()
        self.open_labels = Requirements()
        self._scores: dict[Hashable, NodeScores | None] = {}

    def domain(self, topology_key: str) -> str | None:
        """The node's value of a topology key; None if it has none. Its name stands for a missing hostname."""
        return self.labels.get(topology_key, self.name if topology_key == HOSTNAME else None)

    def copy(self, name: str = "") -> NodeInfo:
        """The same node, or one like it with another name, without its remembered scores."""
        copy = NodeInfo.__new__(NodeInfo)
        copy.name, copy.labels, copy.taints = name or self.name, self.labels, self.taints
        copy.label_requirements, copy.open_labels = self.label_requirements, self.open_labels
        copy.free, copy.host_ports, copy.kind = self.free, self.host_ports, self.kind
        copy.overcommitted, copy.allocatable, copy.assumed = self.overcommitted, self.allocatable, self.assumed
        copy.scored_left = self.scored_left
        copy.volume_limits, copy.attached_volumes = self.volume_limits, self.attached_volumes
        copy._scores = {}
        return copy

    def scores_for(self, pod_class: Hashable, compute: Callable[[NodeInfo], NodeScores | None]) -> NodeScores | None:
        """The scores of the node, as it is now, for a class of pods: computed once. None if the filters refuse it.

        Successive problems share one NodeInfo for an unchanged node, which saves most of this work.
        """
        known = self._scores
        if pod_class not in known:
            if len(known) >= MAX_CACHED_CLASSES:
                known.clear()
            known[pod_class] = compute(self)
        return known[pod_class]

    def attach_volumes(self, attached: Iterable[Attachment], limits: Mapping[str, int]) -> None:
        """Set the volumes that are attached already, and how many of each CSI driver there may be."""
        self.attached_volumes, self.volume_limits = frozenset(attached), limits


def existing_node(node: NodeInput, daemons: Iterable[Daemon], problem: Problem) -> NodeInfo:
    """A node of the problem, less what DaemonSets (`daemons`) still reserve on it. Successive problems share it."""
    depends_on = NodeInfo, problem.daemons, problem.settings.ignore_dra_requests, tuple(problem.catalogues)
    info = node.compiled(depends_on, lambda: _compiled(node, daemons, problem))
    facts = problem.volumes
    if facts is not None and node.name in facts.limits:
        bound = [pod for pod in problem.bound if pod.node == node.name and problem.shapes[pod.shape].volumes]
        claims = [name for pod in bound for name in claim_names(pod.namespace, pod.name, problem.shapes[pod.shape])]
        info = info.copy()
        info.attach_volumes(volumes_of_claims(facts, claims).attached, facts.limits[node.name])
    return info


def _compiled(node: NodeInput, daemons: Iterable[Daemon], problem: Problem) -> NodeInfo:
    narrowed = Requirements.of_specs(node.requirements).without(node.labels)
    labels = {requirement.key: min(requirement.values) for requirement in narrowed if requirement.single} | node.labels
    requirements = Requirements.of_labels(labels)
    reserved = reserved_for_daemons(daemons, node.taints, requirements, node.bound_daemons)
    free = {name: amount - reserved.get(name, 0) for name, amount in node.available.items()}
    total = node.total
    if not total:
        instance_type = instance_type_named(problem.catalogues.values(), labels.get(INSTANCE_TYPE, ""))
        total = instance_type.allocatable() if instance_type is not None else node.available
    assumed_there = added(node.assumed, _assumed_requests(daemons, node.taints, requirements))
    ports = node.host_ports + ports_of_daemons(daemons, node.taints, requirements)
    info = NodeInfo(node.name, labels, node.taints, free, total, ports, assumed=assumed_there)
    info.open_labels = narrowed.without(labels)
    return info


def planned_node(
    name: str, claim: OpenedClaim, daemons: Iterable[Daemon], problem: Problem, kind: int = -1
) -> NodeInfo:
    """The node that a planned claim becomes if it gets the first of its types, less what DaemonSets reserve on it."""
    pool = next(pool_input for pool_input in problem.pools if pool_input.pool.name == claim.node_pool)
    types = compiled_catalogue(pool.catalogue, problem.catalogues[pool.catalogue])
    instance_type = types.types[types.numbers[claim.instance_types[0]]]
    labels = {constraint.key: min(constraint.values) for constraint in claim.constraints if constraint.single}
    labels |= {key: values[0] for key, values in sorted(instance_type.requirements.items()) if len(values) == 1}
    labels |= {
        INSTANCE_TYPE: instance_type.name,
        **claim.labels,
        **_offering_labels(claim, instance_type, problem.unavailable_to(pool)),
    }
    requirements = Requirements.of_labels(labels)
    reserved = reserved_for_daemons(daemons, pool.pool.taints, requirements, {})
    total = instance_type.allocatable()
    free = {name: amount - reserved.get(name, 0) for name, amount in total.items()}
    assumed_there = _assumed_requests(daemons, pool.pool.taints, requirements)
    ports = ports_of_daemons(daemons, pool.pool.taints, requirements)
    return NodeInfo(name, labels, pool.pool.taints, free, total, ports, kind, assumed=assumed_there)


def _assumed_requests(daemons: Iterable[Daemon], taints: tuple[Taint, ...], labels: Requirements) -> Resources:
    """What the DaemonSet pods of such a node count as in scores beyond what they request."""
    return summed(assumed(daemon.requests) for daemon in daemons if daemon.expected_on(taints, labels))


def _offering_labels(
    claim: OpenedClaim, instance_type: InstanceType, unavailable: frozenset[tuple[str, str, str]]
) -> dict[str, str]:
    """The labels that the cheapest offering gives the node that the claim may use; none if no offering is usable."""
    constraints = Requirements(claim.constraints)
    zones, zone_ids = constraints.get(ZONE), constraints.get(ZONE_ID)
    capacity_types, tenancy = constraints.get(CAPACITY_TYPE), tenancy_of(constraints)

    def usable(offering: Offering) -> bool:
        return (
            offering.available
            and offering.capacity_type in claim.capacity_types
            and zones.has(offering.zone)
            and capacity_types.has(offering.capacity_type)
            and (not offering.zone_id or zone_ids.has(offering.zone_id))
            and not (unavailable and _unavailable_keys(offering, instance_type) & unavailable)
        )

    offerings = [offering for offering in offerings_of(instance_type, tenancy) if usable(offering)]
    if not offerings:
        return {}
    best = min(offerings, key=lambda offering: (offering.price, offering.zone, offering.capacity_type))
    return {
        ZONE: best.zone,
        CAPACITY_TYPE: best.capacity_type,
        **({ZONE_ID: best.zone_id} if best.zone_id else {}),
        **({TENANCY: tenancy} if TENANCY in instance_type.requirements else {}),
    }


def _unavailable_keys(offering: Offering, instance_type: InstanceType) -> set[tuple[str, str, str]]:
    """All entries of `Problem.unavailable` that would rule out this offering; "" stands for any type or zone."""
    return {
        (capacity_type, name, zone)
        for capacity_type in (offering.capacity_type, "")
        for name in (instance_type.name, "")
        for zone in (offering.zone, "")
    }


def instance_type_named(catalogues: Iterable[Catalogue], name: str) -> InstanceType | None:
    """The type of this name in the first catalogue that has it."""
    return next(
        (instance_type for catalogue in catalogues for instance_type in catalogue.types if instance_type.name == name),
        None,
    )
