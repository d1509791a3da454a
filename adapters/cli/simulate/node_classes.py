"""What EC2NodeClasses resolve to in a simulation: images, subnets and security groups by what their terms say.

The same terms give the same ids, and other terms other ids. So a class whose terms change drifts its nodes as in EC2.
An alias `…@latest` stays the image that it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kerf.adapters.aws.ami_families import VARIANTS, image_queries
from kerf.adapters.aws.catalogue.regions import zone_id
from kerf.engine.model.karpenter.ec2nodeclasses import (
    AMITerm,
    EC2NodeClass,
    ResolvedAMI,
    ResolvedSecurityGroup,
    ResolvedSubnet,
    SecurityGroupTerm,
    SubnetTerm,
)
from kerf.engine.model.karpenter.nodepools import RequirementSpec
from kerf.engine.model.labels import ARCH

KUBERNETES = "1.34"
"""The version for which an alias names images."""


def resolver(zones: Sequence[str]) -> Callable[[EC2NodeClass], EC2NodeClass]:
    """A function that resolves a class in a cloud with these zones. What a status already says of images, subnets and
    groups is replaced."""

    def resolved(node_class: EC2NodeClass) -> EC2NodeClass:
        spec = node_class.spec
        status = replace(
            node_class.status,
            amis=tuple(_images(spec.ami_selector_terms)),
            subnets=tuple(_subnets(spec.subnet_selector_terms, zones)),
            security_groups=tuple(_groups(spec.security_group_selector_terms)),
        )
        return replace(node_class, status=status)

    return resolved


def _images(terms: Iterable[AMITerm]) -> Iterator[ResolvedAMI]:
    for term in terms:
        if not term.alias:
            yield ResolvedAMI(term.id or _made("ami", term))
            continue
        for query in image_queries(term.alias, KUBERNETES):
            arch = RequirementSpec(ARCH, "In", ("arm64" if "arm64" in query.parameter else "amd64",))
            for variant in query.variants or ("",):
                yield ResolvedAMI(_made("ami", query), requirements=(*VARIANTS.get(variant, ()), arch))


def _subnets(terms: Iterable[SubnetTerm], zones: Sequence[str]) -> Iterator[ResolvedSubnet]:
    """One subnet in each zone for tags; a subnet with an id lies in the first zone that has none yet."""
    named = [term.id for term in terms if term.id]
    for at, subnet in enumerate(named):
        zone = zones[at % len(zones)]
        yield ResolvedSubnet(subnet, zone, zone_id(zone))
    for term in terms:
        if not term.id:
            for zone in zones:
                yield ResolvedSubnet(_made("subnet", term, zone), zone, zone_id(zone))


def _groups(terms: Iterable[SecurityGroupTerm]) -> Iterator[ResolvedSecurityGroup]:
    for term in terms:
        yield ResolvedSecurityGroup(term.id or _made("sg", term), term.name)


def _made(prefix: str, term: Struct, zone: str = "") -> str:
    """An id that follows from a term."""
    text = msgspec.json.encode((term, zone), order="deterministic")
    return f"{prefix}-{blake2b(text, digest_size=9).hexdigest()[:17]}"
