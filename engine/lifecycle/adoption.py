"""`adopt(found, state, now)`: a NodeClaim object that the record does not know becomes a claim (design, idea 5).

One with an instance enters the state that its object shows. One without an instance is launched, as the reference
launches it (L-145, L-147), but an instance with its tag is looked for first: an earlier record may have started one.
"""

from __future__ import annotations

from kerf.engine.errors import InputError
from kerf.engine.lifecycle.reasons import LifecycleCode
from kerf.engine.lifecycle.step import Step, wait
from kerf.engine.model import labels as lbl
from kerf.engine.model.disruption_reasons import DisruptionReason
from kerf.engine.model.durations import parse_time
from kerf.engine.model.instance_types import InstanceType
from kerf.engine.model.karpenter.nodeclaim_objects import NodeClaimObject
from kerf.engine.model.karpenter.requirements import Requirements
from kerf.engine.model.reasons import Reason
from kerf.engine.nodeclaim.state_table import INITIALIZED, LAUNCHED, REGISTERED, TAINTED
from kerf.engine.record import claim_events as ev
from kerf.engine.record.decisions import LaunchInstance, draw_of
from kerf.engine.scheduling.claims_without_pods import claim_without_pods
from kerf.engine.scheduling.launchable.launch_offers import offerings_of
from kerf.engine.state.state import Found, State

VERSION = 4
MAX_WAIT = 60_000
"""How long (ms) an object waits for what belongs to it: the instance types of its NodeClass, which know its price, and
its Node, without which it would be taken for a claim whose Node was deleted."""
ACTOR = "unknown"
NODE_DELETED = "node deleted"
"""Who deletes a NodeClaim whose Node somebody deleted (L-193)."""


def due_at(state: State) -> int:
    """When the first object that was found has waited long enough (ms since the epoch), 0 for never."""
    return min((found.at + MAX_WAIT for found in _ours(state)), default=0)


def awaited_instances(state: State) -> set[str]:
    """The instances of objects that were found and become claims within `MAX_WAIT`."""
    return {found.claim.provider_id.rpartition("/")[2] for found in _ours(state) if found.claim.provider_id}


def _ours(state: State) -> list[Found]:
    return [found for found in state.facts.found.values() if managed(found.claim, state)]


def adopt(found: Found, state: State, now: int) -> Step:
    """The claim's first events. A `Requested` has no decision yet: the caller knows its position."""
    claim = found.claim
    if not managed(claim, state):
        return wait(LifecycleCode.ADOPT_NOT_MANAGED)
    if not _complete(claim, state) and now < found.at + MAX_WAIT:
        return wait(LifecycleCode.ADOPT_WAITING, due=found.at + MAX_WAIT)
    if claim.provider_id:
        return Step(events=(adopted(claim, state),), reason=Reason.of(LifecycleCode.ADOPTED))
    if claim.deleting:  # nothing was launched: there is nothing to end
        events = (requested_of(claim, (), 0.0), ev.Cancelled(claim.name, ACTOR))
        return Step(events=events, reason=Reason.of(LifecycleCode.CANCELLED))
    return _launch(claim, state, now)


def managed(claim: NodeClaimObject, state: State) -> bool:
    """Whether the object is kerf's: of the kind of NodeClass that this cloud has, even if there is none (L-48)."""
    kind = f"{claim.node_class.group}/{claim.node_class.kind}"
    return kind == state.facts.settings.node_classes or any(
        key.startswith(f"{kind}/") for key in state.facts.node_classes
    )


def _complete(claim: NodeClaimObject, state: State) -> bool:
    ref = claim.node_class
    types = f"{ref.group}/{ref.kind}/{ref.name}" in state.facts.catalogues
    return types and (not claim.node or claim.provider_id in state.indexes.nodes_by_provider)


def adopted(claim: NodeClaimObject, state: State) -> ev.Adopted:
    labels = claim.labels
    since = {condition.type: condition.since or claim.created for condition in claim.conditions if _true(condition)}
    registered = since.get("Registered", 0) if claim.node else 0
    initialized = since.get("Initialized", 0) if registered else 0
    return ev.Adopted(
        claim=claim.name,
        state=_state(claim, bool(registered), bool(initialized)),
        node_pool=labels.get(lbl.NODEPOOL, ""),
        node_class=claim.node_class,
        instance=claim.provider_id.rpartition("/")[2],
        provider_id=claim.provider_id,
        instance_type=labels.get(lbl.INSTANCE_TYPE, ""),
        zone=labels.get(lbl.ZONE, ""),
        capacity_type=labels.get(lbl.CAPACITY_TYPE, ""),
        price=_price(claim, state),
        node=claim.node if registered else "",
        created=claim.created,
        requirements=claim.requirements,
        requests=claim.requests,
        capacity=claim.capacity,
        allocatable=claim.allocatable,
        labels=labels,
        annotations=claim.annotations,
        taints=claim.taints,
        startup_taints=claim.startup_taints,
        expire_after=claim.expire_after,
        termination_grace_period=claim.termination_grace_period,
        image=claim.image,
        launched=since.get("Launched", 0),
        registered=registered,
        initialized=initialized,
        last_pod_event=claim.last_pod_event,
        why=DisruptionReason.DELETED.value if claim.deleting else "",
        deadline=deadline(claim),
    )


def _true(condition: object) -> bool:
    return getattr(condition, "status", "") == "True"


def _state(claim: NodeClaimObject, registered: bool, initialized: bool) -> str:
    if claim.deleting:
        return TAINTED
    if initialized:
        return INITIALIZED
    return REGISTERED if registered else LAUNCHED


def deadline(claim: NodeClaimObject) -> int | None:
    """When pods go by force; what was promised before stands (L-189)."""
    if not claim.deleting:
        return None
    told = claim.annotations.get(lbl.TERMINATION_TIMESTAMP)
    if told:
        try:
            return parse_time(told)
        except InputError:
            pass  # written by hand: the grace period counts
    grace = claim.termination_grace_period
    return None if grace is None else claim.deleting + grace


def _price(claim: NodeClaimObject, state: State) -> float:
    """That of its offering today; 0.0 when the catalogue does not have it."""
    ref = claim.node_class
    digest = state.facts.catalogues.get(f"{ref.group}/{ref.kind}/{ref.name}", "")
    name = claim.labels.get(lbl.INSTANCE_TYPE, "")
    found: InstanceType | None = state.indexes.blobs.instance_type(digest, name) if digest else None
    where = (claim.labels.get(lbl.ZONE), claim.labels.get(lbl.CAPACITY_TYPE))
    tenancy = claim.labels.get(lbl.TENANCY, lbl.DEFAULT_TENANCY)
    offerings = offerings_of(found, tenancy) if found is not None else ()
    return min((o.price for o in offerings if (o.zone, o.capacity_type) == where), default=0.0)


def _launch(claim: NodeClaimObject, state: State, now: int) -> Step:
    requirements = Requirements.of_specs(claim.requirements)
    asked = claim_without_pods(requirements, claim.labels, claim.requests, claim.node_class, state, now)
    order = LaunchInstance(
        claim=claim.name,
        node_pool=claim.labels.get(lbl.NODEPOOL, ""),
        node_class=claim.node_class,
        capacity_type=asked.choice.capacity_type,
        offers=asked.choice.offers,
        reservation=asked.choice.reservation,
        tenancy=asked.choice.tenancy,
        requests=claim.requests,
        labels=claim.labels,
        taints=(*claim.taints, *claim.startup_taints),
        look=True,
        draw=draw_of(
            by_price="price" in asked.overlaid or lbl.PRICE_OVERLAY_APPLIED in claim.annotations,
            relaxed=claim.annotations.get(lbl.MIN_VALUES_RELAXED) == "true",
        ),
    )
    requested = requested_of(claim, asked.instance_types, asked.price)
    return Step(events=(requested,), intents=(order,), reason=Reason.of(LifecycleCode.ADOPT_LAUNCH))


def requested_of(claim: NodeClaimObject, instance_types: tuple[str, ...], price: float) -> ev.Requested:
    """The first event of a claim that kerf found as an object. `price` is USD per hour; its pods are not known."""
    return ev.Requested(
        claim=claim.name,
        node_pool=claim.labels.get(lbl.NODEPOOL, ""),
        node_class=claim.node_class,
        requirements=claim.requirements,
        instance_types=instance_types,
        requests=claim.requests,
        pods=(),
        price=price,
        decision=0,
        labels=claim.labels,
        annotations=claim.annotations,
        taints=claim.taints,
        startup_taints=claim.startup_taints,
        expire_after=claim.expire_after,
        termination_grace_period=claim.termination_grace_period,
    )
