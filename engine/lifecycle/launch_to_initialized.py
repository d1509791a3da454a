"""`advance(claim, state, now)`: from the request to a node in service (lifecycle.md 3.3 to 3.7)."""

from __future__ import annotations

from collections.abc import Container

from kerf.engine.lifecycle.initialization import not_initialized_because
from kerf.engine.lifecycle.published_devices import drivers_missing
from kerf.engine.lifecycle.reasons import LifecycleCode
from kerf.engine.lifecycle.step import VISIBLE_WITHIN, Step, ask, wait
from kerf.engine.model import labels as lbl
from kerf.engine.model.disruption_reasons import DisruptionReason
from kerf.engine.model.instance_types import InstanceType
from kerf.engine.model.karpenter.nodepools import NodePool, RequirementSpec
from kerf.engine.model.karpenter.requirements import unmet
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import Resources
from kerf.engine.model.reasons import Reason
from kerf.engine.nodeclaim import effect_keys
from kerf.engine.nodeclaim.claim import ENDED, NodeClaim
from kerf.engine.nodeclaim.state_table import INITIALIZED, LAUNCHED, REGISTERED, REQUESTED
from kerf.engine.record import claim_events as ev
from kerf.engine.record.decisions import DeleteNode, InitializeNode, RegisterNode, UntaintNode
from kerf.engine.record.observations import LaunchAnswered
from kerf.engine.scheduling.launchable.launch_offers import offerings_of
from kerf.engine.scheduling.launchable.pool_catalogues import PoolCatalogues, without
from kerf.engine.state.node_of_claim import node_of
from kerf.engine.state.state import State

VERSION = 9
MAX_PAUSE = 3_600_000
"""The longest pause (ms) between orders that put back what another controller undoes again and again."""


def advance(claim: NodeClaim, state: State, now: int) -> Step:
    """The next step of a claim that is not on its way out."""
    if claim.state == REQUESTED:
        return _launch(claim, state, now)
    if is_gone(claim, state):
        return _vanished(claim, node_of(claim, state), now)
    if claim.state == LAUNCHED:
        return _register(claim, state, now)
    if claim.state == REGISTERED:
        return _initialize(claim, state, now)
    assert claim.state == INITIALIZED
    return _in_service(claim, node_of(claim, state), now)


def _in_service(claim: NodeClaim, node: Node | None, now: int) -> Step:
    """Keep a node that stays as it should be.

    It does not carry the disrupted taint, whoever put it there (D-20). It has the label of its NodeClass, and those of
    reserved capacity only as long as it runs on some (L-242, L-250).
    """
    if node is None:
        return wait(LifecycleCode.IN_SERVICE)
    if any((t.key, t.effect) == (lbl.DISRUPTED_TAINT, "NoSchedule") for t in node.taints):
        order = UntaintNode(claim.name, node.name)
        return _undone_again(claim, effect_keys.UNTAINT, now) or ask(
            claim, effect_keys.UNTAINT, order, now, code=LifecycleCode.UNTAINT
        )
    labels = _labels_to_restore(claim, node)
    if labels is None:
        return wait(LifecycleCode.IN_SERVICE)
    return _undone_again(claim, effect_keys.REGISTER, now) or ask(
        claim, effect_keys.REGISTER, labels, now, code=LifecycleCode.RELABEL
    )


def _undone_again(claim: NodeClaim, key: str, now: int) -> Step | None:
    """Wait, where another controller undoes the effect each time: the pauses double. None if the effect may be asked
    for now. Attempts that were refused do not count."""
    effect = claim.effect(key)
    if effect is None or not effect.ok:
        return None
    due = effect.answered + min(VISIBLE_WITHIN << min(effect.done, 6), MAX_PAUSE)
    return wait(LifecycleCode.WAITING_TO_REPEAT, effect=key, due=due) if now < due else None


def _labels_to_restore(claim: NodeClaim, node: Node) -> RegisterNode | None:
    ref = claim.node_class
    labels = {f"{ref.group}/{ref.kind.lower()}": ref.name}
    gone: tuple[str, ...] = ()
    if claim.capacity_type == lbl.ON_DEMAND and node.labels.get(lbl.CAPACITY_TYPE) == lbl.RESERVED:
        labels[lbl.CAPACITY_TYPE] = lbl.ON_DEMAND
        gone = tuple(key for key in lbl.OF_RESERVATIONS if key in node.labels)
    if not gone and all(node.labels.get(key) == value for key, value in labels.items()):
        return None
    return RegisterNode(claim.name, node.name, labels, without=gone)


def is_gone(claim: NodeClaim, state: State) -> bool:
    """Whether its instance is gone: the cloud says so, or does not list it and its Node is not ready (L-237)."""
    if claim.instance_status in ENDED:
        return True
    node = node_of(claim, state)
    return bool(claim.unlisted and claim.registered) and not (node is not None and node.ready)


def _vanished(claim: NodeClaim, node: Node | None, now: int) -> Step:
    """Delete the Node of an instance that is gone although kerf did not end it, then end the claim (L-237). A Node that
    outlived its claim would keep kerf's finalizer for ever. An instance that is only not listed may run on: it is ended
    after its claim, as one that belongs to none (L-191)."""
    ended = claim.instance_status in ENDED
    if node is not None and ended:
        return ask(
            claim, effect_keys.DELETE_NODE, DeleteNode(claim.name, node.name), now, code=LifecycleCode.INSTANCE_VANISHED
        )
    if node is not None:
        return ask(
            claim, effect_keys.DELETE_NODE, DeleteNode(claim.name, node.name), now, code=LifecycleCode.GARBAGE_COLLECTED
        )
    status = claim.instance_status if ended else ev.UNLISTED
    gone = ev.InstanceVanished(claim.name, claim.instance, status, *claim.lifetime(now))
    return Step(events=(gone,), reason=Reason.of(LifecycleCode.INSTANCE_VANISHED, instance=claim.instance))


# ── launch ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _launch(claim: NodeClaim, state: State, now: int) -> Step:
    answer = claim.answer
    if answer is not None and answer.instance:
        return Step(events=(launched(claim, answer, state, now),), reason=Reason.of(LifecycleCode.LAUNCHED))
    if claim.deletion:
        return Step(events=(ev.Cancelled(claim.name, claim.deletion),), reason=Reason.of(LifecycleCode.CANCELLED))
    deadline = claim.created + state.facts.settings.launch_timeout
    if now >= deadline:  # L-178
        said = answer.message if answer is not None else ""
        timed_out = ev.LaunchTimedOut(claim.name, now - claim.created, said)
        return Step(events=(timed_out,), reason=Reason.of(DisruptionReason.LAUNCH_TIMEOUT))
    if answer is None:
        return wait(LifecycleCode.WAITING_FOR_CLOUD, due=deadline)
    if answer.kind in (LifecycleCode.INSUFFICIENT_CAPACITY, LifecycleCode.NODECLASS_NOT_READY):  # L-152, L-153
        failed = ev.LaunchFailed(claim.name, answer.kind, answer.code, answer.message, len(answer.errors))
        return Step(events=(failed,), reason=Reason(answer.kind))
    return _launch_again(claim, state, now, deadline)


def _launch_again(claim: NodeClaim, state: State, now: int, deadline: int) -> Step:
    """Try a failed launch again, with the first attempt's order and token, so that an answer that was lost is found
    (L-154, L-155)."""
    order = state.facts.launches[claim.name]
    return ask(claim, effect_keys.LAUNCH, order, now, code=LifecycleCode.LAUNCH_AGAIN, due=deadline)


def launched(claim: NodeClaim, answer: LaunchAnswered, state: State, now: int) -> ev.Launched:
    """The event of a launch: what was started, with the capacity and price of its type, overlays included (L-151,
    A-218)."""
    order = state.facts.launches.get(claim.name)
    catalogues = PoolCatalogues(state)
    digest, lacks = catalogues.of_claim(claim), catalogues.not_asked_for(claim)
    found = state.indexes.blobs.instance_type(digest, answer.instance_type) if digest else None
    tenancy = order.tenancy if order is not None else lbl.DEFAULT_TENANCY
    labels = _labels(found, answer, order.reservation if order is not None else "", tenancy)
    return ev.Launched(
        claim=claim.name,
        instance=answer.instance,
        provider_id=answer.provider_id,
        instance_type=answer.instance_type,
        zone=answer.zone,
        capacity_type=answer.capacity_type,
        price=_price(found, answer, tenancy),
        capacity=_given(found.capacity, lacks) if found is not None else {},
        allocatable=_given(found.allocatable(), lacks) if found is not None else {},
        labels=labels,
        image=answer.image,
        took=now - claim.created,
        class_hash=answer.class_hash or _class_hash(claim, state),
        subnet=answer.subnet,
        security_groups=answer.security_groups,
        unmet=unmet(claim.requirements, {**labels, **claim.labels}),
    )


def _given(resources: Resources, lacks: Container[str]) -> Resources:
    """What a node has of the resources of its type (A-315)."""
    return {name: amount for name, amount in without(resources, lacks).items() if amount}


def _class_hash(claim: NodeClaim, state: State) -> str:
    ref = claim.node_class
    known = state.facts.node_classes.get(f"{ref.group}/{ref.kind}/{ref.name}")
    return known.terms.hash if known is not None and known.terms is not None else ""


def _price(found: InstanceType | None, answer: LaunchAnswered, tenancy: str) -> float:
    """The price of the offering that was taken; 0.0 when the catalogue no longer has it."""
    offerings = offerings_of(found, tenancy) if found is not None else ()
    taken = (o.price for o in offerings if (o.zone, o.capacity_type) == (answer.zone, answer.capacity_type))
    return min(taken, default=0.0)


def _labels(found: InstanceType | None, answer: LaunchAnswered, reservation: str, tenancy: str) -> dict[str, str]:
    """Every label of the type with exactly one value but for those of reservations, then what the launch decided: among
    it the reservation, if it used one, and the tenancy, if the cloud knows it (A-316)."""
    requirements = found.requirements if found is not None else {}
    single = {key: values[0] for key, values in sorted(requirements.items()) if len(values) == 1}
    for key in lbl.OF_RESERVATIONS:
        single.pop(key, None)
    if answer.capacity_type == lbl.RESERVED and reservation:
        offerings = found.offerings if found is not None else ()
        single[lbl.RESERVATION_ID] = reservation
        for offering in (o for o in offerings if o.reservation_id == reservation and o.reservation_type):
            single[lbl.RESERVATION_TYPE] = offering.reservation_type
            single[lbl.RESERVATION_INTERRUPTIBLE] = str(offering.interruptible).lower()
    single |= {
        lbl.INSTANCE_TYPE: answer.instance_type,
        lbl.ZONE: answer.zone,
        lbl.CAPACITY_TYPE: answer.capacity_type,
    }
    if lbl.TENANCY in requirements:
        single[lbl.TENANCY] = tenancy
    if answer.zone_id:
        single[lbl.ZONE_ID] = answer.zone_id
    else:
        single.pop(lbl.ZONE_ID, None)
    return single


# ── registration and initialization ────────────────────────────────────────────────────────────────────────────────


def _register(claim: NodeClaim, state: State, now: int) -> Step:
    node = node_of(claim, state)
    if node is None:
        return wait(LifecycleCode.NODE_NOT_FOUND)  # L-161; the limit is the disruption decider's (L-179)
    if node.labels.get(lbl.REGISTERED) == "true":
        registered = ev.Registered(claim.name, node.name, now - claim.created)
        return Step(events=(registered,), reason=Reason.of(LifecycleCode.REGISTERED))
    annotations = {k: v for k, v in claim.annotations.items() if k != lbl.TERMINATION_TIMESTAMP}
    taints = () if node.labels.get(lbl.DO_NOT_SYNC_TAINTS) == "true" else (*claim.taints, *claim.startup_taints)
    order = RegisterNode(claim.name, node.name, claim.labels, annotations, taints)  # L-163
    return ask(claim, effect_keys.REGISTER, order, now, code=LifecycleCode.REGISTER)


def _not_given(claim: NodeClaim, node: Node, pool: NodePool | None) -> tuple[RequirementSpec, ...]:
    """The claim's requirements that its node does not meet: for pods the Node's labels count, and for what the NodePool
    asks for the claim's own, too (D-125)."""
    of_pool = {lbl.normalise(spec.key) for spec in pool.requirements} if pool is not None else frozenset[str]()
    lacking = {*unmet(claim.requirements, node.labels)}
    lacking |= {spec for spec in unmet(claim.requirements, claim.labels) if spec.key in of_pool}
    return tuple(spec for spec in claim.requirements if spec in lacking)


def _initialize(claim: NodeClaim, state: State, now: int) -> Step:
    node = node_of(claim, state)
    if node is None:
        return wait(LifecycleCode.NODE_NOT_FOUND)  # L-170
    if node.labels.get(lbl.INITIALIZED) == "true":
        lacking = _not_given(claim, node, state.facts.pools.get(claim.node_pool))
        initialized = ev.Initialized(claim.name, node.name, now - claim.created, lacking)
        return Step(events=(initialized,), reason=Reason.of(LifecycleCode.INITIALIZED))
    missing = not_initialized_because(claim, node) or drivers_missing(claim, node, state)
    if missing is not None:
        return Step(reason=missing)
    return ask(claim, effect_keys.INITIALIZE, InitializeNode(claim.name, node.name), now, code=LifecycleCode.INITIALIZE)
