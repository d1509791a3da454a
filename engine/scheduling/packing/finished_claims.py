"""Turn packed claims into what a NodeClaim will say (S-160…S-166)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import islice

from msgspec import Struct

from kerf.engine.model.karpenter.nodepools import RequirementSpec
from kerf.engine.model.karpenter.requirements import Requirement, Requirements
from kerf.engine.model.kubernetes.pods import Resources
from kerf.engine.model.labels import (
    CAPACITY_TYPE,
    HOSTNAME,
    INSTANCE_TYPE,
    PARTITION,
    RESERVATION_ID,
    RESERVED,
    WELL_KNOWN,
)
from kerf.engine.scheduling.explain.refusals import types_by_price
from kerf.engine.scheduling.explain.tracer import PricedType
from kerf.engine.scheduling.launchable.compiled_catalogue import CompiledCatalogue, bits
from kerf.engine.scheduling.launchable.templates import PLANNING_ONLY_LABELS, NarrowedTemplate, Template
from kerf.engine.scheduling.matching.resources import added
from kerf.engine.scheduling.packing.packed_claim import PackedClaim
from kerf.engine.scheduling.plan import OpenedClaim
from kerf.engine.scheduling.problem.problem import by_name


def final_template(claim: PackedClaim) -> NarrowedTemplate:
    """The claim's requirements after packing: if it holds reservations, narrowed to these (S-160)."""
    if not claim.held:
        return claim.narrowed
    narrowed = claim.narrowed.requirements.without([CAPACITY_TYPE]).merged(
        [
            Requirement(CAPACITY_TYPE, False, frozenset([RESERVED])),
            Requirement(RESERVATION_ID, False, claim.held),
        ]
    )
    return claim.template.at(narrowed)


class ClaimSpec(Struct, frozen=True):
    """What claims with equal requirements and types share, ready for the NodeClaim. `chosen`: the types, cheapest
    first, cut to the maximum (S-162); `mask`: their numbers."""

    chosen: tuple[PricedType, ...]
    mask: int
    instance_types: tuple[str, ...]
    requirements: tuple[RequirementSpec, ...]
    capacity_types: tuple[str, ...]
    labels: dict[str, str]
    constraints: tuple[Requirement, ...]
    price: float
    overlaid: tuple[str, ...]


def claim_spec(claim: PackedClaim, most: int) -> ClaimSpec:
    """What the claim will say, with at most so many types. It is worked out once for equal claims of a NodePool."""
    template, narrowed, types = claim.template, final_template(claim), claim.types
    known = template.worked_out
    key = narrowed, types, most
    spec: ClaimSpec | None = known.get(key)
    if spec is None:
        spec = known[key] = _claim_spec(template, narrowed, types, most)
    return spec


def _claim_spec(template: Template, narrowed: NarrowedTemplate, types: int, most: int) -> ClaimSpec:
    chosen = tuple(islice(types_by_price(template, narrowed, types), most))
    mask = sum(1 << template.catalogue.numbers[candidate.instance_type] for candidate in chosen)
    constraints = narrowed.requirements.without([HOSTNAME, *PLANNING_ONLY_LABELS])
    capacity_types = _capacity_types(template, narrowed, mask)
    return ClaimSpec(
        chosen=chosen,
        mask=mask,
        instance_types=tuple(candidate.instance_type for candidate in chosen),
        requirements=tuple(
            spec
            for requirement in _launch_requirements(constraints, chosen, capacity_types)
            for spec in requirement.specs()
        ),
        capacity_types=capacity_types,
        labels=claim_labels(template.labels, constraints) | partition_label(constraints, template.catalogue),
        constraints=tuple(constraints),
        price=next((candidate.price for candidate in chosen if math.isfinite(candidate.price)), 0.0),
        overlaid=_overlaid(template, mask),
    )


def _overlaid(template: Template, types: int) -> tuple[str, ...]:
    """What NodeOverlays have changed of some of the types (S-164)."""
    catalogue = template.catalogue
    return tuple(
        sorted({what for number in bits(types & catalogue.overlaid) for what in catalogue.types[number].overlaid})
    )


def opened_claim(claim: PackedClaim, launch: ClaimSpec, drivers: tuple[str, ...] = ()) -> OpenedClaim:
    """The claim as the plan gives it. `drivers`: those whose devices it must publish for its pods (S-160)."""
    return OpenedClaim(
        node_pool=claim.template.name,
        pods=tuple(pod.uid for pod in sorted(claim.pods, key=by_name)),
        instance_types=launch.instance_types,
        requirements=launch.requirements,
        requests=dict(sorted(added(claim.requests, daemon_overhead(claim)).items())),
        price=launch.price,
        capacity_types=launch.capacity_types,
        labels=launch.labels,
        min_values_relaxed=claim.relaxed,
        reservations=tuple(sorted(claim.held)),
        constraints=launch.constraints,
        overlaid=launch.overlaid,
        drivers=drivers,
    )


def daemon_overhead(claim: PackedClaim) -> Resources:
    """What daemons will take of the node at least (S-161): for each resource, the minimum over the daemon groups that
    are left; a resource that one group does not use is dropped. Unlike in the reference, a group without daemons counts
    too."""
    groups = [group.requests for group in claim.template.groups if group.types & claim.types]
    if not groups:
        return {}
    shared = set(groups[0]).intersection(*groups[1:])
    return {name: min(group[name] for group in groups) for name in sorted(shared)}


def _capacity_types(template: Template, narrowed: NarrowedTemplate, types: int) -> tuple[str, ...]:
    """The capacity types of the usable, available offerings of these types (S-164)."""
    capacity_types = {
        template.slots[number].capacity_type for number in narrowed.slots if template.available[number] & types
    }
    return tuple(sorted(capacity_types))


def _launch_requirements(
    constraints: Requirements, chosen: tuple[PricedType, ...], capacity_types: tuple[str, ...]
) -> Requirements:
    """The constraints with the chosen instance types and the capacity types by name; minValues are kept (S-164)."""
    return constraints.without([INSTANCE_TYPE]).merged(
        [
            Requirement(
                INSTANCE_TYPE,
                False,
                frozenset(candidate.instance_type for candidate in chosen),
                min_values=constraints.get(INSTANCE_TYPE).min_values,
            ),
            Requirement(CAPACITY_TYPE, False, frozenset(capacity_types)),
        ]
    )


def claim_labels(own: Mapping[str, str], constraints: Requirements) -> dict[str, str]:
    """The template's own labels, and a value for each further label that the constraints mention (S-165)."""
    labels = dict(own)
    for constraint in constraints:
        value = constraint.any_value()
        if constraint.key not in WELL_KNOWN and value:
            labels[constraint.key] = value
    return dict(sorted(labels.items()))


def partition_label(constraints: Requirements, catalogue: CompiledCatalogue) -> dict[str, str]:
    """The lowest partition of the placement group that the constraints allow, as a label (A-246, A-317). None where
    they ask for none: the cloud chooses one then, and nobody is told."""
    asked, known = constraints.find(PARTITION), catalogue.labels.get(PARTITION)
    if asked is None or known is None:
        return {}
    lowest = min((value for value in known.values if asked.has(value)), default="")
    return {PARTITION: lowest} if lowest else {}
