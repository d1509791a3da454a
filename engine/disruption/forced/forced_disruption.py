"""Forced disruption: which claims have to go because there is no choice.

The methods are interruption, node repair, deletion by a user, the registration limit and expiration. They look at each
claim about which something changed. What kerf chooses to disrupt (empty, drifted and underutilized nodes) is decided
for all nodes together, in `disruption_pass`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.disruption.forced.finding import LIFECYCLE, Finding, keep, remove
from kerf.engine.disruption.forced.node_repair import unhealthy
from kerf.engine.lifecycle.launch_to_initialized import is_gone
from kerf.engine.lifecycle.reasons import LifecycleCode
from kerf.engine.lifecycle.step import may_ask, soonest
from kerf.engine.model.disruption_reasons import DisruptionCode, DisruptionReason, strength
from kerf.engine.model.reasons import Reason
from kerf.engine.nodeclaim import effect_keys
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.state_table import GOING, LAUNCHED, STEADY
from kerf.engine.record import claim_events as ev
from kerf.engine.record.decisions import DisruptResult, Intent, TaintNode, Verdict
from kerf.engine.record.observations import FAILED_CHECKS
from kerf.engine.state.node_of_claim import node_of
from kerf.engine.state.state import State

VERSION = 7


class ForcedDisruptions(Struct, frozen=True):
    """What is recorded and asked for. `due` says by claim when its verdict may change although nothing happens (ms
    since the epoch)."""

    result: DisruptResult
    intents: tuple[Intent, ...]
    events: tuple[Struct, ...]
    due: dict[str, int]


def disrupt_by_force(state: State, now: int, claims: Iterable[str]) -> ForcedDisruptions:
    """Looks at the named claims. Only verdicts that differ from the claim's latest one are in the result."""
    verdicts: list[Verdict] = []
    intents: list[Intent] = []
    events: list[Struct] = []
    due: dict[str, int] = {}
    for name in sorted(claims):
        claim = state.facts.claims[name]
        finding = strongest_finding(claim, state, now)
        if finding.due:
            due[name] = finding.due
        if finding.note:
            verdicts.append(Verdict(name, finding.method, "note", finding.reason))
        if finding.remove:
            if finding.reason.code != claim.verdict:
                verdicts.append(Verdict(name, finding.method, "remove", finding.reason))
            events.append(_claim_event(claim, finding, now))
            intents.extend(_taint(claim, state, now))
    return ForcedDisruptions(DisruptResult(tuple(verdicts)), tuple(intents), tuple(events), due)


def strongest_finding(claim: NodeClaim, state: State, now: int) -> Finding:
    """The strongest finding of all methods; for a claim that is on its way out, only a stronger reason counts."""
    if claim.state in GOING:
        return _stronger_finding(claim, state, now)
    if claim.state not in STEADY:
        return Finding(LIFECYCLE, Reason.of(DisruptionCode.NOT_LAUNCHED))
    if is_gone(claim, state):
        # it is over as soon as its Node is gone
        return Finding(LIFECYCLE, Reason(claim.verdict or LifecycleCode.INSTANCE_VANISHED.value))
    findings: list[Finding] = []
    for method in FORCEFUL:
        findings.append(method(claim, state, now))
        if findings[-1].remove:
            return findings[-1]
    shown = next((finding for finding in findings if finding.note), findings[-1])
    due = soonest(*(finding.due for finding in findings))
    return Finding(shown.method, shown.reason, due=due, note=shown.note)


def _stronger_finding(claim: NodeClaim, state: State, now: int) -> Finding:
    """For a claim on its way out: a reason that is stronger than the one that it goes for, if there is one."""
    findings = [method(claim, state, now) for method in FORCEFUL]
    hurried = claim.interruption in FAILED_CHECKS and claim.detail not in FAILED_CHECKS
    stronger = [
        finding
        for finding in findings
        if strength(finding.method) > strength(claim.why)
        or (hurried and finding.method == claim.why == DisruptionReason.INTERRUPTED)
    ]
    for finding in stronger:
        if finding.remove:
            return finding
    due = soonest(*(finding.due for finding in stronger))
    for finding in stronger:
        if finding.note:
            return replace(finding, due=due)
    return Finding(LIFECYCLE, Reason(claim.verdict or DisruptionCode.GOING.value), due=due)


def _claim_event(claim: NodeClaim, finding: Finding, now: int) -> ev.Tainted | ev.ReasonRaised:
    grace = claim.termination_grace_period
    detail = str(finding.reason.params.get("detail", ""))
    if claim.state in GOING:
        deadline = claim.deadline
        if _leaves_no_time(finding, detail) and (deadline is None or deadline > now):
            deadline = now
        return ev.ReasonRaised(claim.name, finding.method, claim.why, deadline, detail)
    deadline = None if grace is None else now + grace  # L-189
    if _leaves_no_time(finding, detail):
        deadline = now
    return ev.Tainted(claim.name, finding.method, deadline, detail, age=now - claim.created)


def _leaves_no_time(finding: Finding, detail: str) -> bool:
    """Whether the node is broken: then its deadline is now (D-136, A-361)."""
    if finding.method == DisruptionReason.INTERRUPTED:
        return detail in FAILED_CHECKS
    return finding.method == DisruptionReason.UNHEALTHY


def _taint(claim: NodeClaim, state: State, now: int) -> list[Intent]:
    node = node_of(claim, state)
    if node is None or not claim.registered or not may_ask(claim.effect(effect_keys.TAINT), now):
        return []
    return [TaintNode(claim.name, node.name)]


# ── the methods without a choice ───────────────────────────────────────────────────────────────────────────────────


def interrupted(claim: NodeClaim, state: State, now: int) -> Finding:
    """Remove a claim whose instance EC2 will interrupt, stop or terminate (A-355…A-360)."""
    if claim.interruption:
        return remove(DisruptionReason.INTERRUPTED, DisruptionReason.INTERRUPTED, detail=claim.interruption)
    return keep(DisruptionReason.INTERRUPTED, DisruptionCode.NOT_INTERRUPTED)


def deleted(claim: NodeClaim, state: State, now: int) -> Finding:
    """Remove a claim that a user deleted (L-189…L-192), or whose Node a user deleted (L-193)."""
    if claim.deletion:
        return remove(DisruptionReason.DELETED, DisruptionReason.DELETED, detail=claim.deletion)
    if claim.state in GOING:  # kerf itself deletes the Node in the end
        return keep(DisruptionReason.DELETED, DisruptionCode.NOT_DELETED)
    node = node_of(claim, state)
    if node.deleting if node is not None else claim.registered:  # a kubelet does not make its Node a second time
        return remove(DisruptionReason.DELETED, DisruptionCode.NODE_DELETED, detail=claim.node)
    return keep(DisruptionReason.DELETED, DisruptionCode.NOT_DELETED)


def expired(claim: NodeClaim, state: State, now: int) -> Finding:
    """Remove a claim that has reached its expireAfter, whatever the budgets say (D-131). No claim expires while the
    clocks differ."""
    if claim.expire_after is None:
        return keep(DisruptionReason.EXPIRED, DisruptionCode.NEVER_EXPIRES)
    if state.facts.clocks_differ:
        return keep(DisruptionReason.EXPIRED, DisruptionCode.CLOCKS_DIFFER)
    at = claim.created + claim.expire_after
    if now >= at:
        return remove(DisruptionReason.EXPIRED, DisruptionReason.EXPIRED, age=now - claim.created)
    return keep(DisruptionReason.EXPIRED, DisruptionCode.NOT_EXPIRED, due=at)


def registration_timeout(claim: NodeClaim, state: State, now: int) -> Finding:
    """Remove a claim whose node has not registered within the limit: it never will (L-179)."""
    if claim.state != LAUNCHED:
        return keep(DisruptionReason.REGISTRATION_TIMEOUT, DisruptionCode.REGISTERED)
    at = claim.created + state.facts.settings.registration_timeout
    if now >= at:
        return remove(
            DisruptionReason.REGISTRATION_TIMEOUT, DisruptionReason.REGISTRATION_TIMEOUT, waited=now - claim.created
        )
    return keep(DisruptionReason.REGISTRATION_TIMEOUT, DisruptionCode.REGISTERING, due=at)


Method = Callable[[NodeClaim, State, int], Finding]
FORCEFUL: tuple[Method, ...] = (interrupted, unhealthy, deleted, registration_timeout, expired)
"""In the order of strength: the first that removes the claim wins."""
