"""The effective zone of each pod before anything is placed (S-176).

It is the one zone that the pod can go to; `flexible` if there are several, or nothing limits them; `none` if there is
none.
"""

from __future__ import annotations

from collections.abc import Iterable

from kerf.engine.model.karpenter.requirements import Requirements
from kerf.engine.model.labels import ZONE
from kerf.engine.scheduling.launchable.templates import template_of
from kerf.engine.scheduling.packing.existing_node import ExistingNode
from kerf.engine.scheduling.pods.pod_class import PodClass
from kerf.engine.scheduling.pods.pod_classes import PodClasses
from kerf.engine.scheduling.pods.pod_requirements import requirements_of
from kerf.engine.scheduling.pods.pod_volumes import claim_names
from kerf.engine.scheduling.problem.problem import Problem
from kerf.engine.scheduling.topology.rules import AffinityRule
from kerf.engine.scheduling.topology.topology import Topology

FLEXIBLE, NONE = "flexible", "none"


def effective_zones(problem: Problem) -> dict[str, str]:
    """The effective zone of each pod, by its uid."""
    templates = [template_of(pool_input, problem, (), strict=False) for pool_input in problem.pools]
    nodes = [ExistingNode(node, ()) for node in problem.nodes]
    topology = Topology(problem, templates, nodes, [ExistingNode(node_input, ()) for node_input in problem.leaving])
    classes = PodClasses(problem.shapes, topology, problem.settings.preference_policy, False, problem.volumes)
    zones = {zone for template in templates for zone in template.domains(template.base, ZONE)}
    zones |= {zone for node in nodes for zone in node.domains(ZONE) or ()}
    zone_of_class: dict[int, str] = {}
    zone_of_pod = {}
    for pod in problem.pods:
        shape = problem.shapes[pod.shape]
        claims = claim_names(pod.namespace, pod.name, shape) if shape.volumes else ()
        pod_class = classes.of(pod.namespace, pod.shape, claims)
        if pod_class.number not in zone_of_class:
            zone_of_class[pod_class.number] = _zone(pod_class, zones)
        zone_of_pod[pod.uid] = zone_of_class[pod_class.number]
    return zone_of_pod


def _zone(pod_class: PodClass, zones: Iterable[str]) -> str:
    allowed = _allowed(pod_class, zones)
    if allowed is not None and not allowed:
        return NONE
    strict = _values(requirements_of(pod_class.original_shape, preferences=False))
    each_volumes = [_values(alternative) for alternative in pod_class.demand.alternatives]
    volumes = _union(each_volumes)
    limits = [limit for limit in (strict, volumes, allowed) if limit is not None]
    if not limits:
        return FLEXIBLE
    left = frozenset.intersection(*limits)
    return FLEXIBLE if len(left) > 1 else next(iter(left), NONE)


def _allowed(pod_class: PodClass, zones: Iterable[str]) -> frozenset[str] | None:
    """The zones that spreads, affinity and anti-affinity leave, preferences included; None if no rule is about
    zones."""
    rules = [rule for rule in pod_class.demand.rules if rule.key == ZONE]
    binding = [rule for rule in rules if not (isinstance(rule, AffinityRule) and rule.first)]
    if not binding:
        return None
    asked = pod_class.requirements.get(ZONE)
    return frozenset(zone for zone in zones if asked.has(zone) and all(rule.allows(zone) for rule in binding))


def _values(requirements: Requirements) -> frozenset[str] | None:
    """The zones of an In requirement."""
    requirement = requirements.find(ZONE)
    return requirement.values if requirement is not None and not requirement.complement else None


def _union(volumes: list[frozenset[str] | None]) -> frozenset[str] | None:
    """The zones that some volume alternative allows; None if there are no volumes, or one alternative allows every
    zone."""
    if not volumes or any(volume is None for volume in volumes):
        return None
    return frozenset(zone for volume in volumes for zone in volume or ())
