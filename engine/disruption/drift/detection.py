"""Drift: which NodeClaims differ from what their NodePool and NodeClass ask for, and in which fields (D-122…D-127).

A claim is looked at when something that its verdict follows from has changed, and once when it is an hour old. A
verdict is recorded when it changes. Nothing is removed here: drifted nodes are replaced in `replacement`, by a
disruption pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

from msgspec import Struct

from kerf.engine.disruption.drift.facts import Drift, Facts, Unknown
from kerf.engine.disruption.drift.node_class_checks import CLASS_CHECKS
from kerf.engine.model import labels as lbl
from kerf.engine.model.disruption_reasons import DisruptionCode, DisruptionReason, DriftReason
from kerf.engine.model.instance_types import InstanceType, Offering
from kerf.engine.model.karpenter.nodeclaim_templates import Difference, differences
from kerf.engine.model.karpenter.nodepools import RequirementSpec
from kerf.engine.model.karpenter.requirements import Requirements
from kerf.engine.model.reasons import Reason
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.state_table import STEADY
from kerf.engine.record.decisions import Verdict
from kerf.engine.state.nodeclaims.drift import AS_ASKED, DRIFTED
from kerf.engine.state.state import State

VERSION = 2
INSTANCE_TYPE_CHECK_AGE = 3_600_000
"""How old a claim is (ms) when its instance type is first looked for in the catalogue (D-126)."""


class DriftVerdicts(Struct, frozen=True):
    """`verdicts` differ from the recorded ones. `due` says by claim when to look again although nothing changes (ms
    since the epoch)."""

    verdicts: tuple[Verdict, ...]
    due: dict[str, int]


def detect_drift(state: State, now: int, claims: Iterable[str]) -> DriftVerdicts:
    """Looks at the named claims, unless all that their verdicts follow from is as it was the last time."""
    verdicts: list[Verdict] = []
    due: dict[str, int] = {}
    latest_inputs = state.indexes.drift_inputs
    if len(latest_inputs) > 2 * len(state.facts.claims) + 1_000:
        latest_inputs.clear()  # of claims that are over
    for name in sorted(claims):
        claim = state.facts.claims[name]
        facts = _facts(claim, state, now)
        if facts is None:
            continue
        if not facts.old_enough:
            due[name] = claim.created + INSTANCE_TYPE_CHECK_AGE
        if _same_inputs(latest_inputs.get(name), facts):
            continue
        latest_inputs[name] = facts
        verdict = _verdict(claim, facts)
        if verdict is not None:
            verdicts.append(verdict)
    return DriftVerdicts(tuple(verdicts), due)


def not_compared(claim: NodeClaim, state: State, now: int) -> tuple[str, ...]:
    """The kinds of drift (codes of `DriftReason`) that nobody can tell of a claim now: what it has, or what is asked
    for, is not known."""
    facts = _facts(claim, state, now)
    findings = (check(claim, facts) for check in CHECKS) if facts is not None else ()
    return tuple(finding.code for finding in findings if isinstance(finding, Unknown))


def _facts(claim: NodeClaim, state: State, now: int) -> Facts | None:
    """What the claim's verdict follows from. None for a claim without a verdict: nothing is launched yet, it is on its
    way out, or its NodePool is not there (A-332)."""
    facts = state.facts
    pool = facts.pools.get(claim.node_pool)
    if claim.state not in STEADY or pool is None:
        return None
    key = f"{pool.node_class.group}/{pool.node_class.kind}/{pool.node_class.name}"
    return Facts(
        pool=pool,
        node_class=facts.node_classes.get(key),
        catalogue=facts.catalogues.get(key, ""),
        labels=claim.labels,
        annotations=claim.annotations,
        class_hash=claim.class_hash,
        old_enough=now >= claim.created + INSTANCE_TYPE_CHECK_AGE,
        off_selection=claim.off_selection,
        templates=facts.made_from,
        blobs=state.indexes.blobs,
    )


def _same_inputs(before: Facts | None, now: Facts) -> bool:
    """Whether the verdict must be the same. The inputs are values of the state: what has not changed is the same
    object."""
    return before is not None and all(
        a is b or (isinstance(a, str) and a == b) for a, b in zip(before.inputs, now.inputs, strict=True)
    )


def _verdict(claim: NodeClaim, facts: Facts) -> Verdict | None:
    """The claim's verdict, if it is another than the recorded one. A check that cannot be made leaves its former result
    (D-122)."""
    unknown = set()
    for check in CHECKS:
        found = check(claim, facts)
        if isinstance(found, Drift):
            if (found.reason, found.differences) == (claim.drift, claim.differences):
                return None
            return Verdict(claim.name, DisruptionReason.DRIFTED.value, DRIFTED, found.reason, found.differences)
        if isinstance(found, Unknown):
            unknown.add(found.code)
    if claim.drift is None or claim.drift.code in unknown:
        return None
    return Verdict(claim.name, DisruptionReason.DRIFTED.value, AS_ASKED, Reason.of(DisruptionCode.NOT_DRIFTED))


# ── what the NodePool asks for ─────────────────────────────────────────────────────────────────────────────────────


def template(claim: NodeClaim, facts: Facts) -> Drift | None:
    """Drift of the template: claim and NodePool have hashes of the same version that differ (D-124).

    The fields are known if the record has seen the template that the claim was made from.
    """
    pool, own = facts.pool, claim.annotations
    mine, version = own.get(lbl.NODEPOOL_HASH), own.get(lbl.NODEPOOL_HASH_VERSION)
    if not mine or not pool.hash or version != facts.hash_version or mine == pool.hash:
        return None
    was, now = facts.templates.get(mine), facts.templates.get(pool.hash)
    fields = differences(was, now) if was is not None and now is not None else ()
    return Drift(Reason.of(DriftReason.NODEPOOL_DRIFTED, nodepool=pool.name), fields)


def requirements(claim: NodeClaim, facts: Facts) -> Drift | None:
    """Drift of the requirements: the claim's labels do not meet those of the NodePool's template, strictly (D-125)."""
    own = {lbl.normalise(key): value for key, value in claim.labels.items()}
    unmet = []
    for requirement in sorted(_compiled(facts.pool.requirements), key=lambda each: each.key):
        value = own.get(requirement.key)
        if not requirement.met_by(value):
            wanted = str(requirement).removeprefix(requirement.key).strip()
            unmet.append(Difference("requirements", requirement.key, value, wanted))
    return Drift(Reason.of(DriftReason.REQUIREMENTS_DRIFTED, nodepool=facts.pool.name), tuple(unmet)) if unmet else None


@lru_cache(maxsize=256)
def _compiled(specs: tuple[RequirementSpec, ...]) -> Requirements:
    return Requirements.of_specs(specs)


# ── what can be bought ─────────────────────────────────────────────────────────────────────────────────────────────


def instance_type(claim: NodeClaim, facts: Facts) -> Drift | Unknown | None:
    """Drift of the instance type: the NodePool no longer has it, or it is not sold any more as the claim has it
    (D-126)."""
    if not facts.old_enough:
        return None
    if not facts.catalogue or not facts.blobs.catalogue(facts.catalogue).types:
        return Unknown(DriftReason.INSTANCE_TYPE_NOT_FOUND.value)
    name = claim.labels.get(lbl.INSTANCE_TYPE, claim.instance_type)
    found = facts.blobs.instance_type(facts.catalogue, name)
    if found is not None and any(_sold(offering, claim) for offering in found.offerings):
        return None
    reason = Reason.of(DriftReason.INSTANCE_TYPE_NOT_FOUND, instance_type=name)
    return Drift(reason, (Difference("instanceType", "", name, _where(found, claim)),))


def _sold(offering: Offering, claim: NodeClaim) -> bool:
    """Whether the offering is what the claim has, available or not. A reserved one may go on as on-demand."""
    kind = claim.labels.get(lbl.CAPACITY_TYPE, claim.capacity_type)
    kinds = (kind, lbl.ON_DEMAND) if kind == lbl.RESERVED else (kind,)
    zone, zone_id = claim.labels.get(lbl.ZONE, claim.zone), claim.labels.get(lbl.ZONE_ID, "")
    if offering.capacity_type not in kinds or offering.zone != zone:
        return False
    return not (zone_id and offering.zone_id) or zone_id == offering.zone_id


def _where(found: InstanceType | None, claim: NodeClaim) -> str | None:
    """What is left of the type: None for nothing, else that it is sold in other ways only."""
    return None if found is None else f"not sold as {claim.capacity_type} in {claim.zone}"


Check = Callable[[NodeClaim, Facts], Drift | Unknown | None]
CHECKS: tuple[Check, ...] = (template, requirements, instance_type, *CLASS_CHECKS)
"""In the order of D-122: the first check that finds something gives the reason."""
