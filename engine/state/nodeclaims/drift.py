"""The fold of what drift compares: what NodePools and NodeClasses ask for, and what claims were made from
(D-124…D-129, A-334); and of drift decisions (D-122, D-123)."""

from __future__ import annotations

from kerf.engine.model.karpenter.nodeclaim_templates import pool_template
from kerf.engine.model.karpenter.nodeclass_terms import made_anew, own_hash, unselected_reservation
from kerf.engine.model.karpenter.nodepool_hash import VERSION
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.labels import CAPACITY_TYPE, NODEPOOL_HASH, NODEPOOL_HASH_VERSION, RESERVED
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.state_table import STEADY
from kerf.engine.record.decisions import DisruptResult
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import NodeClassSeen
from kerf.engine.state.provisioning_window import note_disruption_change
from kerf.engine.state.state import Facts, State

DRIFT = "drift"
"""The decider's name."""
DRIFTED, AS_ASKED = "drifted", "not-drifted"
"""Actions of its verdicts."""


def keep_nodepool_template(state: State, pool: NodePool) -> None:
    """Keeps the template of a NodePool that was seen, for as long as a NodeClaim was made from it."""
    facts = state.facts
    if not pool.hash:
        return
    if pool.hash not in facts.made_from:
        facts.made_from[pool.hash] = pool_template(pool)
        _prune(facts)
    if pool.hash_version != VERSION:
        for claim in facts.claims.values():
            if claim.node_pool == pool.name:
                migrate_hash(claim, pool)


def migrate_hash(claim: NodeClaim, pool: NodePool) -> None:
    """Take a claim whose hash was made another way to be as its pool asks for now, unless it has drifted (D-128)."""
    annotations = claim.annotations
    if annotations.get(NODEPOOL_HASH_VERSION) == VERSION:
        return
    told = annotations.get(NODEPOOL_HASH) if claim.drifted_since else pool.hash
    claim.annotations = {**annotations, NODEPOOL_HASH_VERSION: VERSION} | ({NODEPOOL_HASH: told} if told else {})


def adopt_hashes(state: State, claim: NodeClaim) -> None:
    """Completes the hashes of an adopted claim: another writer made them, or there are none. What it was launched by an
    earlier record of kerf's says (A-318)."""
    facts = state.facts
    pool = facts.pools.get(claim.node_pool)
    if pool is not None and pool.hash and pool.hash_version != VERSION:
        migrate_hash(claim, pool)
    ref = claim.node_class
    known = facts.node_classes.get(f"{ref.group}/{ref.kind}/{ref.name}")
    claim.class_hash = claim.class_hash or own_hash(f"{ref.group}/{ref.kind.lower()}-hash", claim.annotations)
    if known is not None and known.terms is not None:
        claim.class_hash = made_anew(claim.class_hash, known.terms.hash, drifted=False)


def keep_nodeclass_terms(state: State, seen: NodeClassSeen, entry: Entry) -> None:
    """Keeps the terms of a NodeClass that changed, and has its claims looked at.

    A claim that was adopted before the class was seen is compared with these terms from now on.
    """
    facts, terms = state.facts, seen.terms
    if terms is not None and terms.hash not in facts.made_from:
        facts.made_from[terms.hash] = terms.static
        _prune(facts)
    for claim in _of_class(facts, seen.group, seen.kind, seen.name):
        state.indexes.touched[claim.name] = entry.position
        if terms is not None and claim.off_selection and not unselected_reservation(claim.labels, terms):
            claim.off_selection = False
        if terms is not None and claim.launched:
            claim.class_hash = made_anew(claim.class_hash, terms.hash, drifted=bool(claim.drifted_since))


def reservation_in_question(facts: Facts, claim: NodeClaim) -> bool:
    """Whether nobody can tell if a claim has drifted from its reservation: its NodeClass does not select it, and it may
    have ended (A-338)."""
    if claim.labels.get(CAPACITY_TYPE) != RESERVED or claim.off_selection or claim.state not in STEADY:
        return False
    pool = facts.pools.get(claim.node_pool)
    known = facts.node_classes.get(pool.node_class.key) if pool is not None else None
    return known is not None and known.terms is not None and bool(unselected_reservation(claim.labels, known.terms))


def look_at_claims_of_class(state: State, node_class: str, entry: Entry) -> None:
    """The instance types of a NodeClass changed: a claim's own may be gone (D-126)."""
    for claim in _of_class(state.facts, *node_class.split("/", 2)):
        state.indexes.touched[claim.name] = entry.position


def _of_class(facts: Facts, group: str, kind: str, name: str) -> list[NodeClaim]:
    wanted = (group, kind, name)
    return [c for c in facts.claims.values() if (c.node_class.group, c.node_class.kind, c.node_class.name) == wanted]


def _prune(facts: Facts) -> None:
    """Forgets what nothing is made from any more."""
    used = {pool.hash for pool in facts.pools.values()}
    used |= {c.terms.hash for c in facts.node_classes.values() if c.terms is not None}
    for claim in facts.claims.values():
        used |= {claim.class_hash, claim.annotations.get(NODEPOOL_HASH, "")}
    facts.made_from = {digest: template for digest, template in facts.made_from.items() if digest in used}


def drift_decided(state: State, result: DisruptResult, entry: Entry) -> None:
    """Note drift: an evaluation alone sets it or takes it back; another reason leaves its time (D-122, D-123)."""
    for verdict in result.verdicts:
        claim = state.facts.claims.get(verdict.claim)
        if claim is None:
            continue
        note_disruption_change(state.facts, entry.at)
        if verdict.action == DRIFTED:
            claim.drifted_since = claim.drifted_since or entry.at
            claim.drift, claim.differences = verdict.reason, verdict.differences
        else:
            claim.drifted_since, claim.drift, claim.differences = 0, None, ()
