"""Drift against the NodeClass: what each provider asks of its nodes, in one form for all (A-332…A-341)."""

from __future__ import annotations

from collections.abc import Callable

from kerf.engine.disruption.drift.facts import Drift, Facts, Unknown
from kerf.engine.model import labels as lbl
from kerf.engine.model.disruption_reasons import DriftReason
from kerf.engine.model.karpenter.nodeclaim_templates import Difference, differences
from kerf.engine.model.karpenter.nodeclass_terms import (
    NodeClassTerms,
    image_for,
    made,
    own_hash,
    unselected_reservation,
)
from kerf.engine.model.reasons import Reason
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.record.observations import NodeClassSeen

GOING = "Deleting"
"""The reason of a NodeClass that is being deleted: nothing drifts from it (A-332)."""
Finding = Drift | Unknown | None


def _about(check: Callable[[NodeClaim, NodeClassSeen, NodeClassTerms, Facts], Finding]) -> Callable[..., Finding]:
    """The check, made only against a NodeClass that exists, is not being deleted, and says what it asks for."""

    def checked(claim: NodeClaim, facts: Facts) -> Finding:
        seen = facts.node_class
        if seen is None or seen.reason == GOING or seen.terms is None:
            return None
        return check(claim, seen, seen.terms, facts)

    return checked


def static(claim: NodeClaim, seen: NodeClassSeen, terms: NodeClassTerms, facts: Facts) -> Finding:
    """Drift of the NodeClass's static fields, by their hashes (A-334). A claim that another controller made is compared
    by that controller's hashes, others by kerf's own."""
    key = f"{seen.group}/{seen.kind.lower()}-hash"
    hashes = (claim.annotations.get(key), seen.annotations.get(key))
    versions = (claim.annotations.get(f"{key}-version"), seen.annotations.get(f"{key}-version"))
    theirs = all(hashes) and all(versions) and not own_hash(key, claim.annotations)
    if theirs and versions[0] == versions[1] and hashes[0] != hashes[1]:
        return Drift(Reason.of(DriftReason.NODECLASS_DRIFT, nodeclass=seen.name))
    if not claim.class_hash or claim.class_hash == terms.hash or made(claim.class_hash) != made(terms.hash):
        return None
    was = facts.templates.get(claim.class_hash)
    return Drift(
        Reason.of(DriftReason.NODECLASS_DRIFT, nodeclass=seen.name),
        differences(was, terms.static) if was is not None else (),
    )


def image(claim: NodeClaim, seen: NodeClassSeen, terms: NodeClassTerms, facts: Facts) -> Finding:
    """Drift of the image: it is not the one that the claim's type would boot today (A-335)."""
    kind = facts.blobs.instance_type(facts.catalogue, claim.instance_type) if facts.catalogue else None
    wanted = image_for(terms.images, kind) if kind is not None else ""
    if not wanted or not claim.image:
        return Unknown("ami-drift")
    if wanted == claim.image:
        return None
    return Drift(Reason.of(DriftReason.AMI_DRIFT, nodeclass=seen.name), (Difference("image", "", claim.image, wanted),))


def security_groups(claim: NodeClaim, seen: NodeClassSeen, terms: NodeClassTerms, facts: Facts) -> Finding:
    """Whether a claim has other security groups than its NodeClass selects (A-336)."""
    if not claim.security_groups or not terms.security_groups:
        return Unknown("security-group-drift")
    mine, wanted = set(claim.security_groups), set(terms.security_groups)
    gone = tuple(Difference("securityGroups", "", group, None) for group in sorted(mine - wanted))
    new = tuple(Difference("securityGroups", "", None, group) for group in sorted(wanted - mine))
    return Drift(Reason.of(DriftReason.SECURITY_GROUP_DRIFT, nodeclass=seen.name), gone + new) if gone or new else None


def subnet(claim: NodeClaim, seen: NodeClassSeen, terms: NodeClassTerms, facts: Facts) -> Finding:
    """Whether a claim's subnet is none that its NodeClass selects (A-337)."""
    if not claim.subnet or not terms.subnets:
        return Unknown("subnet-drift")
    if claim.subnet in terms.subnets:
        return None
    return Drift(
        Reason.of(DriftReason.SUBNET_DRIFT, nodeclass=seen.name), (Difference("subnets", "", claim.subnet, None),)
    )


def reservation(claim: NodeClaim, seen: NodeClassSeen, terms: NodeClassTerms, facts: Facts) -> Finding:
    """Drift of the capacity reservation: the NodeClass no longer selects it. A reservation that has ended is not
    selected either, and its instances go on as on-demand: until the cloud says that this one still runs on its
    reservation, nobody can tell (A-338, A-443)."""
    mine = unselected_reservation(claim.labels, terms)
    if not mine:
        return None
    if not facts.off_selection:
        return Unknown(DriftReason.CAPACITY_RESERVATION_DRIFT.value)
    gone = Difference("capacityReservations", "", mine, None)
    return Drift(Reason.of(DriftReason.CAPACITY_RESERVATION_DRIFT, nodeclass=seen.name), (gone,))


def placement_group(claim: NodeClaim, seen: NodeClassSeen, terms: NodeClassTerms, facts: Facts) -> Finding:
    """Drift of the placement group, where the NodeClass's group is known (A-339). A selector that comes or goes is
    drift of static fields (A-334)."""
    mine = claim.labels.get(lbl.PLACEMENT_GROUP, "")
    if not terms.placement_group or mine == terms.placement_group:
        return None
    other = Difference("placementGroup", "", mine or None, terms.placement_group)
    return Drift(Reason.of(DriftReason.PLACEMENT_GROUP_DRIFT, nodeclass=seen.name), (other,))


CLASS_CHECKS = tuple(_about(check) for check in (static, image, security_groups, subnet, reservation, placement_group))
"""In the order of A-333. Each is made by itself: one that cannot be made does not hide the others (unlike A-340)."""
