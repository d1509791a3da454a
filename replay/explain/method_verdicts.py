"""Say for one node what each disruption method decides about it: why it stays, since when, and what would change that.

The present verdict is computed from the state at a position; the history is read from the record.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, structs

from kerf.engine.disruption import eligibility
from kerf.engine.disruption.budgets import window_ends
from kerf.engine.disruption.cluster import Cluster, ClusterNode
from kerf.engine.disruption.cluster_from_state import NEVER, cluster_of, cluster_when_moves_start, quiet_at
from kerf.engine.disruption.consolidation.young_pods import settled_at
from kerf.engine.disruption.drift.detection import not_compared
from kerf.engine.disruption.drift.static_nodepools import replace_drifted_static
from kerf.engine.disruption.forced.finding import Finding
from kerf.engine.disruption.forced.forced_disruption import FORCEFUL
from kerf.engine.disruption.forced.node_repair import POLICIES, first_due
from kerf.engine.disruption.moves.budget_headroom import BudgetHeadroom
from kerf.engine.disruption.moves.cluster_with_moves import with_moves
from kerf.engine.disruption.why_nodes_stay import METHOD
from kerf.engine.lifecycle.step import soonest
from kerf.engine.model.disruption_reasons import DisruptionCode, DisruptionReason
from kerf.engine.model.karpenter.nodeclaim_templates import Difference
from kerf.engine.model.reasons import Reason
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.state_table import INITIALIZED, STEADY
from kerf.engine.scheduling.pods.evictability import FOREVER, protected_until
from kerf.engine.state.node_of_claim import node_of
from kerf.engine.state.nodeclaims.drift import AS_ASKED
from kerf.engine.state.nodeclaims.drift import DRIFTED as HAS_DRIFTED
from kerf.engine.state.state import State
from kerf.projections.prose.explanation_codes import ChangeCode, ExplanationCode
from kerf.replay.history.histories import RecordedVerdict
from kerf.replay.what_if.blockers import unreadable_budget
from kerf.replay.what_if.node import WhatWouldChange, WouldGo, consolidation, drift, emptiness, explore_changes, node_in

EMPTINESS, CONSOLIDATION, DRIFT = "emptiness", "consolidation", "drift"

_METHOD_OF_MOVE: dict[str, str] = {
    DisruptionReason.EMPTY: EMPTINESS,
    DisruptionReason.UNDERUTILIZED: CONSOLIDATION,
    DisruptionReason.DRIFTED: DRIFT,
}
_METHOD_OF_FORCED: dict[str, str] = {
    DisruptionReason.EXPIRED: "expiration",
    DisruptionReason.UNHEALTHY: "repair",
    DisruptionReason.INTERRUPTED: "interruption",
    DisruptionReason.DELETED: "deletion",
    DisruptionReason.REGISTRATION_TIMEOUT: "registration",
}
"""The methods of forced disruption by the names that users know, in the order in which they are shown. A method whose
reason is not here is shown after these, by the code of its reason."""
_SHOWN_ORDER = tuple(_METHOD_OF_FORCED)
_METHOD_OF_VERDICT = {**_METHOD_OF_MOVE, METHOD: CONSOLIDATION, **_METHOD_OF_FORCED}
_EMPTINESS_CODES = (DisruptionCode.EMPTY_NOT_LONG_ENOUGH, DisruptionCode.HOLDS_BUFFERS)


class MethodVerdict(Struct, frozen=True, kw_only=True):
    """What one disruption method says of a node.

    `reason` is why the method leaves the node, or why it would take it (`acts`). `due` is when that may change by
    itself (ms since the epoch, 0 for never). `history` holds the recorded verdicts of this method where they changed.
    `way` says what would have to change, for the methods that kerf chooses to use. `drifted` is what the node has
    drifted by, `differences` the fields. `not_compared`: the kinds of drift that nobody can tell.
    """

    method: str
    reason: Reason
    acts: bool = False
    due: int = 0
    drifted: Reason | None = None
    differences: tuple[Difference, ...] = ()
    history: tuple[RecordedVerdict, ...] = ()
    way: WhatWouldChange | None = None
    not_compared: tuple[str, ...] = ()


def method_verdicts(claim: NodeClaim, state: State, recorded: Iterable[RecordedVerdict]) -> tuple[MethodVerdict, ...]:
    """Return the verdict of each method on a claim that is launched and not on its way out; none for another claim."""
    if claim.state not in STEADY:
        return ()
    histories = _verdicts_by_method(recorded)
    verdicts = list(_voluntary_methods(claim, state, histories)) if claim.state == INITIALIZED else []
    findings = [method(claim, state, state.facts.at) for method in FORCEFUL]
    for finding in sorted(findings, key=_shown_at):
        if finding.reason.code == DisruptionCode.REGISTERED:
            continue
        name = _METHOD_OF_VERDICT.get(finding.method, finding.method)
        verdicts.append(
            MethodVerdict(
                method=name,
                reason=_health_reason(claim, state)
                if finding.reason.code == DisruptionCode.NODE_HEALTHY
                else finding.reason,
                acts=finding.remove,
                due=finding.due,
                history=tuple(histories.get(name, ())),
            )
        )
    return tuple(verdicts)


def _shown_at(finding: Finding) -> int:
    return _SHOWN_ORDER.index(finding.method) if finding.method in _SHOWN_ORDER else len(_SHOWN_ORDER)


def _health_reason(claim: NodeClaim, state: State) -> Reason:
    """Say why a node is not repaired: repair is off, the node is healthy, or it is unhealthy for a short time only."""
    policies = POLICIES.get(claim.node_class.group, ()) if state.facts.settings.node_repair else ()
    if not policies:
        return Reason.of(ExplanationCode.REPAIR_OFF)
    node = node_of(claim, state)
    if node is None:
        return Reason.of(DisruptionCode.NO_NODE)
    bad_condition = first_due(node, policies)
    if bad_condition is None:
        return Reason.of(DisruptionCode.NODE_HEALTHY)
    return Reason.of(ExplanationCode.ILL_FOR_A_WHILE, condition=bad_condition.type, status=bad_condition.status)


def _voluntary_methods(
    claim: NodeClaim, state: State, histories: dict[str, list[RecordedVerdict]]
) -> Iterable[MethodVerdict]:
    """Give the verdicts of emptiness, drift and consolidation, the methods that kerf chooses to use."""
    now = state.facts.at
    proposed = [move.move for _, move in sorted(state.facts.moves.items()) if not move.started]
    own_move = next((move for move in proposed if claim.name in move.claims), None)
    others = [move for move in proposed if move is not own_move]
    soon, at_once = with_moves(cluster_when_moves_start(state, now), others), with_moves(cluster_of(state, now), others)
    methods = (
        (EMPTINESS, emptiness, DisruptionReason.EMPTY, soon),
        (DRIFT, drift, DisruptionReason.DRIFTED, at_once),
        (CONSOLIDATION, consolidation, DisruptionReason.UNDERUTILIZED, soon),
    )
    for name, ask, why, cluster in methods:
        answer = _static_drift(claim, state, cluster) if name == DRIFT else None
        answer = _while_clocks_differ(answer or explore_changes(cluster, claim.name, ask, why), state)
        reason = answer.verdict or Reason.of(ExplanationCode.WOULD_GO, why=why.value)
        if own_move is not None and _METHOD_OF_MOVE.get(own_move.why) == name:
            has_room = BudgetHeadroom(state).allows(own_move)
            code = DisruptionCode.MOVE_PROPOSED if has_room else ExplanationCode.WAITS_FOR_BUDGET
            reason = Reason.of(code, why=own_move.why)
        drifted = name == DRIFT and bool(claim.drifted_since)
        yield MethodVerdict(
            method=name,
            reason=_precise_reason(
                reason, name, state, claim, unreadable_budget(cluster, node_in(cluster, claim.name), why)
            ),
            acts=answer.verdict is None,
            due=_due(reason, claim, state, node_in(cluster, claim.name)),
            drifted=claim.drift if drifted else None,
            differences=claim.differences if drifted else (),
            history=tuple(histories.get(name, ())),
            way=answer,
            not_compared=not_compared(claim, state, now) if name == DRIFT else (),
        )


def _static_drift(claim: NodeClaim, state: State, cluster: Cluster) -> WhatWouldChange | None:
    """Ask static drift, which replaces a drifted node of a static NodePool straight from its template (D-167).
    Return None for a node that it does not decide about."""
    pool = state.facts.pools.get(claim.node_pool)
    if pool is None or pool.replicas is None or not claim.drifted_since:
        return None
    refused: dict[str, Reason] = {}
    moves, _ = replace_drifted_static(cluster, state, refused)
    move = next((other for other in moves if claim.name in other.claims), None)
    if move is not None:
        types = tuple(new.instance_types[0] for new in move.replacements)
        goes = WouldGo(claims=move.claims, replacements=types, price=sum(new.price for new in move.replacements))
        return WhatWouldChange(verdict=None, goes=goes)
    node = node_in(cluster, claim.name)
    refusal = eligibility.judge_node(node, cluster, eventual=True)
    reason = refusal if isinstance(refusal, Reason) else refused.get(node.name, Reason.of(DisruptionCode.NOT_LOOKED_AT))
    return WhatWouldChange(verdict=reason, stays=reason)


def _while_clocks_differ(answer: WhatWouldChange, state: State) -> WhatWouldChange:
    """Say of a method that would take the node that it does not, because there is no disruption pass before the clocks
    agree."""
    if answer.verdict is not None or not state.facts.clocks_differ:
        return answer
    verdict, change = Reason.of(ExplanationCode.CLOCKS_DISAGREE), Reason.of(ChangeCode.CLOCKS_AGREED)
    return structs.replace(answer, verdict=verdict, changes=(change,))


def _precise_reason(reason: Reason, method: str, state: State, claim: NodeClaim, unread: Reason | None) -> Reason:
    """Say the reason in the words of a disruption pass. `unread` is a budget that cannot be read and so allows
    nothing."""
    if reason.code == DisruptionCode.BUDGET and unread is not None:
        return unread
    if reason.code == DisruptionCode.NOT_CONSOLIDATABLE and method == EMPTINESS:
        return Reason.of(DisruptionCode.EMPTY_NOT_LONG_ENOUGH)
    if reason.code == DisruptionCode.NOMINATED and state.indexes.waiting_for.get(claim.name):
        return Reason.of(DisruptionCode.AWAITING_PODS)
    return reason


def _due(reason: Reason, claim: NodeClaim, state: State, node: ClusterNode) -> int:
    """Return when this reason may end by itself (ms since the epoch), or 0."""
    now, facts = state.facts.at, state.facts
    at = 0
    match reason.code:
        case DisruptionCode.NOT_CONSOLIDATABLE | DisruptionCode.EMPTY_NOT_LONG_ENOUGH:
            at = quiet_at(claim, state)
        case DisruptionCode.NOMINATED | DisruptionCode.AWAITING_PODS:
            at = claim.nominated_until
        case DisruptionCode.HELD_BACK:
            at = facts.holds[claim.name].until if claim.name in facts.holds else 0
        case DisruptionCode.MOVED_LATELY:
            at = settled_at((node,), reason, now)
        case DisruptionCode.POD_DO_NOT_DISRUPT:
            at = max((protected_until(pod) for pod in node.pods), default=0)
        case DisruptionCode.BUDGET:
            pool = facts.pools.get(claim.node_pool)
            at = window_ends(pool, now) if pool is not None else 0
        case _:
            return 0
    return soonest(at) if now < at < min(NEVER, FOREVER) else 0


def _verdicts_by_method(recorded: Iterable[RecordedVerdict]) -> dict[str, list[RecordedVerdict]]:
    """Sort the recorded verdicts by method and keep those that changed. A pass records one verdict for emptiness and
    consolidation together; its code tells which of the two it is of."""
    by_method: dict[str, list[RecordedVerdict]] = {}
    for recorded_verdict in recorded:
        verdict = recorded_verdict.verdict
        method = _METHOD_OF_VERDICT.get(verdict.method, verdict.method)
        if verdict.method == METHOD and verdict.reason.code in _EMPTINESS_CODES:
            method = EMPTINESS
        elif verdict.method == METHOD and verdict.reason.code == DisruptionCode.MOVE_PROPOSED:
            method = _METHOD_OF_MOVE.get(str(verdict.reason.params.get("why", "")), method)
        elif verdict.action in (HAS_DRIFTED, AS_ASKED):
            method = DRIFT
        before = by_method.setdefault(method, [])
        if not before or (before[-1].verdict.reason, before[-1].verdict.differences) != (
            verdict.reason,
            verdict.differences,
        ):
            before.append(recorded_verdict)
    return by_method
