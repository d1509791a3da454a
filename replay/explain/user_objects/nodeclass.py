"""Explain a NodeClass: whether nodes can be launched with it, what it selects, and which NodePools use it."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, to_builtins

from kerf.engine.model.karpenter.ec2nodeclasses import EC2NodeClass, Part
from kerf.engine.model.karpenter.nodeclaim_objects import Condition
from kerf.engine.model.karpenter.nodeclass_terms import NodeClassTerms
from kerf.engine.model.karpenter.nodepools import NodeClassRef, RequirementSpec
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.record.observations import NodeClassSeen
from kerf.engine.state.state import State
from kerf.projections.status.nodeclass import class_conditions, resolved_class
from kerf.replay.explain.user_objects.drifted import drifted_by

READY, NOT_READY, GONE = "ready", "not ready", "gone"


class Found(Struct, frozen=True):
    """Something in the cloud. `name` and `told` are "" where the record does not tell; `told` is the zone of a subnet,
    and which types boot an image."""

    id: str
    name: str = ""
    told: str = ""


class Selected(Struct, frozen=True):
    """What the terms `by` of a NodeClass select. No terms where the record has only what they selected."""

    what: str
    by: tuple[str, ...]
    found: tuple[Found, ...]


class PoolOfClass(Struct, frozen=True):
    """A NodePool of the NodeClass ("" where nodes have none): how many nodes it has, how many of them drifted, and by
    what."""

    node_pool: str
    nodes: int
    drifted: int
    drifted_by: dict[str, int] = {}


class NodeClassExplanation(Struct, frozen=True, kw_only=True):
    """All that is known of one NodeClass.

    `status` is READY, NOT_READY or GONE; of one that is not ready, `reason` and `message` say why. `selected` is empty
    where the record does not tell, or it selects nothing.
    """

    node_class: str
    kind: str = ""
    position: int
    at: int
    status: str
    reason: str = ""
    message: str = ""
    conditions: tuple[Condition, ...] = ()
    selected: tuple[Selected, ...] = ()
    role: str = ""
    instance_profile: str = ""
    node_pools: tuple[PoolOfClass, ...] = ()


def explain_node_class(state: State, name: str) -> NodeClassExplanation:
    """Explain the NodeClass `name`. Of several kinds that have one of this name it is the first."""
    facts = state.facts
    seen = next((facts.node_classes[key] for key in sorted(facts.node_classes) if key.endswith(f"/{name}")), None)
    if seen is None:
        return NodeClassExplanation(node_class=name, position=facts.position, at=facts.at, status=GONE)
    conditions, known = class_conditions(seen, state.indexes.blobs), resolved_class(seen, state.indexes.blobs)
    said = next((each for each in conditions if each.type == "Ready" and each.reason == seen.reason), None)
    return NodeClassExplanation(
        node_class=name,
        kind=seen.kind,
        position=facts.position,
        at=facts.at,
        status=READY if seen.ready else NOT_READY,
        reason=seen.reason,
        message=said.message if said is not None else "",
        conditions=conditions,
        selected=_selected(known) if known is not None else _recorded(seen.terms),
        role=known.spec.role if known is not None else (seen.terms or NodeClassTerms()).static.get("role", ""),
        instance_profile=known.status.instance_profile or known.spec.instance_profile if known is not None else "",
        node_pools=_pools(state, seen),
    )


def _selected(known: EC2NodeClass) -> tuple[Selected, ...]:
    spec, status = known.spec, known.status
    images: dict[str, list[str]] = {}
    names = {image.id: image.name for image in status.amis}
    for image in status.amis:  # one for each variant of types that boots it
        images.setdefault(image.id, []).append(_types(image.requirements))
    found = [
        Selected(
            "images",
            _words(spec.ami_selector_terms),
            tuple(Found(image, names[image], " or ".join(filter(None, types))) for image, types in images.items()),
        ),
        Selected(
            "subnets",
            _words(spec.subnet_selector_terms),
            tuple(Found(subnet.id, told=subnet.zone) for subnet in status.subnets),
        ),
        Selected(
            "security groups",
            _words(spec.security_group_selector_terms),
            tuple(Found(group.id, group.name) for group in status.security_groups),
        ),
        Selected(
            "capacity reservations",
            _words(spec.capacity_reservation_selector_terms),
            tuple(Found(each.id, told=each.instance_type) for each in status.capacity_reservations),
        ),
    ]
    return tuple(each for each in found if each.by or each.found)


def _recorded(terms: NodeClassTerms | None) -> tuple[Selected, ...]:
    """Return what the fold knows where the object itself is not in the record."""
    if terms is None:
        return ()
    zones = {subnet: zone for zone, subnets in terms.zones.items() for subnet in subnets}
    found = {
        "images": [Found(image) for image in dict.fromkeys(image.id for image in terms.images)],
        "subnets": [Found(subnet, told=zones.get(subnet, "")) for subnet in terms.subnets],
        "security groups": [Found(group) for group in terms.security_groups],
        "capacity reservations": [Found(reservation) for reservation in terms.reservations],
    }
    return tuple(Selected(what, (), tuple(each)) for what, each in found.items() if each)


def _words(terms: Iterable[Part]) -> tuple[str, ...]:
    """Return selector terms as in the manifest, each in a few words: "tags karpenter.sh/discovery=shop"."""
    return tuple(
        " and ".join(
            f"{field} " + (", ".join(f"{key}={text}" for key, text in value.items()) if field == "tags" else str(value))
            for field, value in to_builtins(term).items()
        )
        for term in terms
    )


def _types(requirements: Iterable[RequirementSpec]) -> str:
    """Return in short which types boot an image: "instance-gpu-count Exists, arch In amd64"."""
    return ", ".join(" ".join((each.key.rpartition("/")[2], each.operator, *each.values)) for each in requirements)


def _pools(state: State, seen: NodeClassSeen) -> tuple[PoolOfClass, ...]:
    ref, facts = NodeClassRef(seen.group, seen.kind, seen.name), state.facts
    nodes: dict[str, list[NodeClaim]] = {name: [] for name, pool in facts.pools.items() if pool.node_class == ref}
    for claim in facts.claims.values():
        if claim.node_class == ref:
            nodes.setdefault(claim.node_pool, []).append(claim)
    return tuple(_pool(name, claims) for name, claims in sorted(nodes.items()))


def _pool(name: str, claims: list[NodeClaim]) -> PoolOfClass:
    reasons = drifted_by(claims)
    return PoolOfClass(name, len(claims), sum(reasons.values()), reasons)
