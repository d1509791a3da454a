"""The fold of what came of NodePools' launches: whether their nodes register (L-182…L-185), and have the labels that
they were launched for."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.content_digest import content
from kerf.engine.model.disruption_reasons import DisruptionReason
from kerf.engine.model.karpenter.nodepool_health import REGISTRATION_FAILED, PoolHealth, after, after_launch, anew
from kerf.engine.model.karpenter.nodepools import NodePool, RequirementSpec
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.record.claim_events import Initialized, Launched, LaunchTimedOut, Registered, Tainted
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import NodeClassSeen
from kerf.engine.state.state import State


def pool_seen(state: State, pool: NodePool, entry: Entry) -> None:
    """A NodePool that was edited starts anew; one of the same name with another uid is another. Either may end what
    waiting pods were launched for in vain, so they no longer pause for it (S-57)."""
    health = state.facts.health.get(pool.name)
    spec = spec_of(pool)
    if health is not None and health.uid == pool.uid and health.pool == spec:
        return
    state.facts.launched_for.clear()
    if health is None or health.uid != pool.uid:
        known = state.facts.node_classes.get(_class_of(pool))
        made_by = _version(known) if known is not None else ""
        state.facts.health[pool.name] = PoolHealth(pool.uid, entry.at, spec, made_by, since=entry.at)
    else:
        state.facts.health[pool.name] = replace(anew(health, entry.at), pool=spec)


def spec_of(pool: NodePool) -> str:
    """The digest of what it asks for."""
    return content(replace(pool, uid="", ready=True, generation=0, hash_version="", deleting=0))[0]


def class_seen(state: State, seen: NodeClassSeen, entry: Entry) -> None:
    """A NodeClass that was edited starts the NodePools that refer to it anew, and ends pauses as they do."""
    version = _version(seen)
    for name, pool in state.facts.pools.items():
        health = state.facts.health.get(name)
        if health is None or health.node_class == version or _class_of(pool) != f"{seen.group}/{seen.kind}/{seen.name}":
            continue
        fresh = anew(health, entry.at) if health.node_class else health
        state.facts.launched_for.clear()
        state.facts.health[name] = replace(fresh, node_class=version)


def count_registration(state: State, claim: NodeClaim, event: Struct, entry: Entry) -> None:
    """Count claims of the NodePool as it is now, and of their ends only the two time limits: the cloud's lack of
    capacity says nothing of the nodes (L-183)."""
    health = state.facts.health.get(claim.node_pool)
    if health is None or claim.created < health.first_seen:
        return
    if isinstance(event, Registered):
        health = after(health, True, entry.at)
    elif isinstance(event, LaunchTimedOut):
        reason = claim.answer.code if claim.answer is not None and claim.answer.code else "LaunchFailed"
        health = after(health, False, entry.at, reason=reason, message=event.message)
    elif isinstance(event, Tainted) and event.why == DisruptionReason.REGISTRATION_TIMEOUT:
        message = f"{claim.instance} of NodeClaim {claim.name} joined with no node"
        health = after(health, False, entry.at, reason=REGISTRATION_FAILED, message=message)
    else:
        return
    state.facts.health[claim.node_pool] = health


def count_labels(state: State, claim: NodeClaim, event: Struct, unmet_before: tuple[RequirementSpec, ...]) -> None:
    """Counts what a launch did not give of what it was made for (D-125), for the NodePool as it is now. A launch is
    known to have given it when its node is ready."""
    health = state.facts.health.get(claim.node_pool)
    if health is None or claim.created < health.changed or not isinstance(event, Launched | Initialized):
        return
    ready = isinstance(event, Initialized)
    met = [spec for spec in claim.requirements if spec not in event.unmet] if ready and health.in_vain else []
    new = [spec for spec in event.unmet if spec not in unmet_before]
    state.facts.health[claim.node_pool] = after_launch(health, new, met)


def _class_of(pool: NodePool) -> str:
    ref = pool.node_class
    return f"{ref.group}/{ref.kind}/{ref.name}"


def _version(seen: NodeClassSeen) -> str:
    """Its generation, and for a source without generations what it asks for."""
    return f"{seen.uid}/{seen.generation}/{seen.terms.hash if seen.terms is not None else ''}"
