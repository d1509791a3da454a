"""Explain the removal of a node from the record alone: what was found, what was decided, what came first, where pods
went."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from kerf.engine.disruption.cluster import Cluster
from kerf.engine.disruption.cluster_from_state import cluster_of
from kerf.engine.disruption.moves.cluster_with_moves import with_moves
from kerf.engine.disruption.moves.due_moves import validation_delay
from kerf.engine.model.disruption_reasons import BUDGET_REASONS, DisruptionCode, DisruptionReason
from kerf.engine.model.karpenter.nodeclaim_templates import Difference
from kerf.engine.model.reasons import Reason
from kerf.engine.record import claim_events as ev
from kerf.engine.record.decisions import Move
from kerf.engine.record.entries import Entry
from kerf.engine.record.errors import RecordShortened
from kerf.engine.record.observations import FAILED, ControllerDecided, InterruptionSeen
from kerf.engine.record.store import Store
from kerf.engine.state.load import load
from kerf.engine.state.nodeclaims.drift import DRIFTED as HAS_DRIFTED
from kerf.engine.state.state import State
from kerf.projections.prose.amounts import count, saved
from kerf.projections.prose.explanation_codes import BY_NOBODY_NAMED, ExplanationCode
from kerf.replay.history.histories import ClaimHistory, Histories, MoveHistory, RecordedVerdict
from kerf.replay.history.successor_pods import Successors, pods_to_move
from kerf.replay.what_if.blockers import budget_use

GARBAGE_COLLECTOR = "garbage collector"
_ENDING_EVENTS = (ev.LaunchFailed, ev.LaunchTimedOut, ev.Cancelled, ev.InstanceVanished)


class Cause(Struct, frozen=True, kw_only=True):
    """One link in the chain of causes: what happened at a position, as a coded reason."""

    position: int
    at: int
    reason: Reason


class ReplacementNode(Struct, frozen=True, kw_only=True):
    """A node that was launched before the other one went.

    `ready` is when it was in service (ms since the epoch, 0 for not yet). `node`, `instance_type` and `zone` are empty
    until they are known.
    """

    claim: str
    node: str = ""
    instance_type: str = ""
    zone: str = ""
    price: float = 0.0
    ready: int = 0


class RemovalMove(Struct, frozen=True, kw_only=True):
    """The move that the node went in.

    `looked_again` is the time from proposal to start, in ms. `budgets` say what the NodePools' disruption budgets
    allowed at the proposal. `savings` is in USD per hour.
    """

    ref: str
    why: str
    proposed: int
    started: int
    looked_again: int
    savings: float
    claims: tuple[str, ...]
    replacements: tuple[ReplacementNode, ...] = ()
    budgets: tuple[Reason, ...] = ()


class Force(Struct, frozen=True):
    """The first use of force in a drain: the decision at `position`, at a time in ms since the epoch, for a `reason`.
    `held` says of each pod that was there (namespace/name) what kept it."""

    position: int
    at: int
    reason: Reason
    held: dict[str, Reason]


class DrainedPod(Struct, frozen=True, kw_only=True):
    """A pod that was on the node when its drain began.

    `how`: evicted, forced, ended by itself, or still there. `planned` is where the move meant it to go. `successor` is
    the pod that replaced it, `node` where that one is. `held` is what had kept one that was deleted by force.
    """

    pod: str
    how: str
    planned: str = ""
    successor: str = ""
    node: str = ""
    held: Reason | None = None


class Removal(Struct, frozen=True, kw_only=True):
    """Why and how a claim went.

    `why` is the latest reason (drifted, empty, underutilized, expired, interrupted, unhealthy, deleted, …), `reason`
    what the decider said of it, `position` where the claim had to go. `differences` are the fields that drifted.
    `causes` is the chain of causes, oldest first. `over` says whether the claim is gone.
    """

    why: str
    reason: Reason
    position: int
    at: int
    decision: int
    differences: tuple[Difference, ...] = ()
    move: RemovalMove | None = None
    causes: tuple[Cause, ...] = ()
    pods: tuple[DrainedPod, ...] = ()
    over: bool = False


def removal_of(store: Store, histories: Histories, claim: ClaimHistory, force: Force | None = None) -> Removal | None:
    """Explain the removal of a claim, with the first use of `force` in its drain. Return None for a claim that does not
    have to go, also if it once had to and stays."""
    ending = _removal_event(claim)
    if ending is None:
        return None
    why = _why(ending.payload)
    move = _move_of(histories, claim, ending, why)
    reason, decision = _reason_and_decision(histories, claim, ending, why)
    drained = next((e for e in claim.events if isinstance(e.payload, ev.DrainStarted)), None)
    drift = _drift_verdict(claim, ending.position) if why == DisruptionReason.DRIFTED else None
    pool_gone = histories.pool_gone(claim.node_pool, ending.position)
    return Removal(
        why=why,
        reason=_precise_reason(reason, move),
        position=ending.position,
        at=ending.at,
        decision=decision,
        differences=drift.verdict.differences if drift is not None else (),
        move=_removal_move(store, histories, move) if move is not None else None,
        causes=tuple(_causes(claim, ending, reason, decision, move, pool_gone, force)),
        pods=_drained_pods(histories, claim, drained.position, move, force) if drained is not None else (),
        over=any(isinstance(e.payload, (*_ENDING_EVENTS, ev.Terminated)) for e in claim.events),
    )


def _precise_reason(reason: Reason, move: MoveHistory | None) -> Reason:
    """Say of a consolidation whether something replaced the node; the decision itself does not tell."""
    if reason.code != DisruptionReason.UNDERUTILIZED or move is None:
        return reason
    replaced = bool(move.move.replacements)
    return Reason.of(ExplanationCode.FITS_ON_A_CHEAPER_NODE if replaced else ExplanationCode.HAS_ROOM_ELSEWHERE)


def _removal_event(claim: ClaimHistory) -> Entry | None:
    """Return the event by which the claim has to go, for its latest reason; None after `Untainted`. That its instance
    vanished counts only if nothing else had asked for its end."""
    latest: Entry | None = None
    for entry in claim.events:
        event = entry.payload
        if isinstance(event, ev.Tainted | ev.ReasonRaised):
            latest = entry
        elif isinstance(event, ev.Untainted):
            latest = None
        elif (isinstance(event, ev.Adopted) and event.why) or (
            isinstance(event, _ENDING_EVENTS) and (latest is None or not isinstance(event, ev.InstanceVanished))
        ):
            latest = entry
    return latest


def _why(event: Struct) -> str:
    words: dict[type[Struct], str] = {
        ev.LaunchFailed: "launch-failed",
        ev.LaunchTimedOut: "launch-timed-out",
        ev.Cancelled: "cancelled",
        ev.InstanceVanished: "instance-vanished",
    }
    return words.get(type(event)) or str(getattr(event, "why", ""))


def _move_of(histories: Histories, claim: ClaimHistory, ending: Entry, why: str) -> MoveHistory | None:
    """Return the move that had started when the claim was tainted; None if a stronger reason came."""
    for ref in reversed(claim.moves):
        move = histories.moves[ref]
        step = move.started()
        if step is not None and step.position <= ending.position and move.move.why == why:
            return move
    return None


def _reason_and_decision(histories: Histories, claim: ClaimHistory, ending: Entry, why_word: str) -> tuple[Reason, int]:
    """Return what the decider said, and the position of its decision (0 for an end that nobody decided)."""
    removals = [
        verdict
        for verdict in claim.verdicts
        if verdict.position <= ending.position and verdict.verdict.action == "remove"
    ]
    for recorded in reversed(removals):
        if recorded.verdict.method == why_word:
            return recorded.verdict.reason, recorded.position
    resized = histories.resized.get(claim.name)
    if why_word == DisruptionReason.OVERPROVISIONED and resized is not None:
        return resized[1], resized[0]
    elsewhere = [e for e in claim.signals if isinstance(e.payload, ControllerDecided) and e.position <= ending.position]
    if elsewhere and elsewhere[-1].payload.why == why_word:
        return controller_reason(elsewhere[-1].payload), 0
    event = ending.payload
    params: dict[str, str | int | float | list[str]] = {}
    for name in ("instance", "status", "code", "message", "waited", "actor", "detail"):
        value = getattr(event, name, "")
        if value:
            params[name] = value
    decision = ending.cause if ending.cause in histories.decisions else 0
    return Reason(str(getattr(event, "kind", "")) or why_word, params), decision


def controller_reason(decided: ControllerDecided) -> Reason:
    """What another controller said, as a reason."""
    if decided.action == FAILED:
        return Reason.of(ExplanationCode.CONTROLLER_GAVE_UP, controller=decided.controller)
    first = f", after {count(decided.new_nodes, 'new node')}" if decided.new_nodes else ""
    saves = f", {saved(decided.savings)}" if decided.savings is not None else ""
    return Reason.of(
        ExplanationCode.CONTROLLER_DECIDED, controller=decided.controller, why=decided.why, first=first, saves=saves
    )


def _drift_verdict(claim: ClaimHistory, position: int) -> RecordedVerdict | None:
    earlier = (recorded for recorded in reversed(claim.verdicts) if recorded.position <= position)
    return next((recorded for recorded in earlier if recorded.verdict.action == HAS_DRIFTED), None)


# ── the move ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _removal_move(store: Store, histories: Histories, move: MoveHistory) -> RemovalMove:
    started = move.started()
    assert started is not None
    return RemovalMove(
        ref=move.ref,
        why=move.move.why,
        proposed=move.position,
        started=started.position,
        looked_again=started.at - move.at,
        savings=move.move.savings,
        claims=move.move.claims,
        replacements=tuple(replacement_node(histories, new.name) for new in move.move.replacements),
        budgets=_budgets_at_proposal(store, histories, move),
    )


def replacement_node(histories: Histories, name: str) -> ReplacementNode:
    claim = histories.claims.get(name)
    events = claim.events if claim is not None else []
    launched = next((e.payload for e in events if isinstance(e.payload, ev.Launched)), None)
    ready = next((e.at for e in events if isinstance(e.payload, ev.Initialized)), 0)
    return ReplacementNode(
        claim=name,
        node=claim.node if claim is not None else "",
        instance_type=launched.instance_type if launched is not None else "",
        zone=launched.zone if launched is not None else "",
        price=launched.price if launched is not None else 0.0,
        ready=ready,
    )


def _budgets_at_proposal(store: Store, histories: Histories, move: MoveHistory) -> tuple[Reason, ...]:
    pools = {histories.claims[name].node_pool for name in move.move.claims if name in histories.claims}
    named, asked = histories.pods.named, (move.position, move.at, move.move.why, tuple(sorted(pools)))
    if named is None:
        return budgets_before(store, *asked)
    return named.kept(("budgets", *asked), lambda: budgets_before(store, *asked))


def budgets_before(store: Store, position: int, at: int, why: str, pools: Iterable[str]) -> tuple[Reason, ...]:
    """Say what the budgets of NodePools allowed just before the pass at a position that proposed moves for the reason
    `why`."""
    state = _state_before(store, position, why)
    if state is None:
        return ()
    proposed = [move.move for _, move in sorted(state.facts.moves.items()) if not move.started]
    cluster = with_moves(cluster_of(state, at + validation_delay(why, state)), proposed)
    return _budget_uses(cluster, why, pools)


def budgets_at_start(store: Store, position: int, at: int, why: str, pools: Iterable[str]) -> tuple[Reason, ...]:
    """Say what the budgets of NodePools allowed just before the decision at a position that began a move for the reason
    `why`. Proposed moves do not count yet."""
    state = _state_before(store, position, why)
    return _budget_uses(cluster_of(state, at), why, pools) if state is not None else ()


def _state_before(store: Store, position: int, why: str) -> State | None:
    """None if no budget is for moves of this reason, or the record does not have the state any more."""
    if why not in BUDGET_REASONS:
        return None
    try:
        return load(store, position - 1)
    except RecordShortened:  # it was decided before the record's base
        return None


def _budget_uses(cluster: Cluster, why: str, pools: Iterable[str]) -> tuple[Reason, ...]:
    method = next(reason for reason in BUDGET_REASONS if reason == why)
    budgets_of = (cluster.pool(name) for name in sorted(pools))
    return tuple(budget_use(cluster, pool, method) for pool in budgets_of if pool is not None)


# ── the chain ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _causes(
    claim: ClaimHistory,
    ending: Entry,
    reason: Reason,
    decision: int,
    move: MoveHistory | None,
    pool_gone: Entry | None,
    force: Force | None,
) -> list[Cause]:
    """List what happened by position: what was seen, what was decided, and how the claim ended. `pool_gone` is the end
    of its NodePool, which takes its NodeClaims along, and `force` the first use of it."""
    causes: dict[int, Cause] = {}

    def add(position: int, at: int, reason: Reason) -> None:
        if position and position not in causes:
            causes[position] = Cause(position=position, at=at, reason=reason)

    drift = _drift_verdict(claim, ending.position) if _why(ending.payload) == DisruptionReason.DRIFTED else None
    if drift is not None:
        add(drift.position, drift.at, drift.verdict.reason)
    for entry in claim.signals:
        if entry.position <= ending.position:
            if getattr(entry.payload, "actor", "") == GARBAGE_COLLECTOR and pool_gone is not None:
                why_gone = Reason.of(ExplanationCode.NODEPOOL_GONE, nodepool=claim.node_pool)
                add(pool_gone.position, pool_gone.at, why_gone)
            add(entry.position, entry.at, _signal_reason(entry))
    if move is not None:
        proposed = Reason.of(DisruptionCode.MOVE_PROPOSED, why=move.move.why)
        drifts = move.move.why == DisruptionReason.DRIFTED
        add(move.position, move.at, Reason.of(ExplanationCode.GOES_AT_ONCE) if drifts else proposed)
        started = move.started()
        if started is not None:
            replaced = bool(move.move.replacements)
            code = ExplanationCode.MOVE_STARTED if replaced else ExplanationCode.MOVE_STARTED_ALONE
            add(started.position, started.at, Reason.of(code, why=move.move.why))
    elif decision:
        add(decision, ending.at, reason)
    for entry in claim.events:
        if entry.position >= ending.position:
            event_code = entry.type.removeprefix("claim.")
            if event_code not in ("pod-evicted", "pod-forced"):
                add(entry.position, entry.at, _event_reason(event_code, entry.payload))
    if force is not None:
        add(force.position, force.at, force.reason)
    return [causes[position] for position in sorted(causes)]


def _event_reason(code: str, event: Struct) -> Reason:
    """Code an event of the claim; for a failed launch with what the cloud said."""
    if isinstance(event, ev.LaunchFailed):
        return Reason(code, {"code": event.code or event.kind})
    return Reason(code)


def _signal_reason(entry: Entry) -> Reason:
    seen = entry.payload
    if isinstance(seen, InterruptionSeen):
        return Reason.of(ExplanationCode.INTERRUPTION_ANNOUNCED, kind=seen.kind)
    if isinstance(seen, ControllerDecided):
        return controller_reason(seen)
    return Reason.of(ExplanationCode.DELETION_ASKED, actor=BY_NOBODY_NAMED.get(seen.actor, seen.actor))


# ── the pods ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _drained_pods(
    histories: Histories, claim: ClaimHistory, drained: int, move: MoveHistory | None, force: Force | None
) -> tuple[DrainedPod, ...]:
    held = force.held if force is not None else {}
    planned = planned_places(histories, move.move) if move is not None else {}
    on_node = pods_to_move(histories, claim, drained)
    successor_of = Successors(histories).of(on_node)
    drained_pods = []
    for pod in on_node:
        new = histories.pods.get(successor_of.get(pod.uid, ""))
        how = "forced" if pod.forced else "evicted" if pod.evicted_from else "ended" if pod.left else "there"
        drained_pods.append(
            DrainedPod(
                pod=pod.key,
                how=how,
                planned=planned.get(pod.uid, ""),
                successor=new.key if new is not None else "",
                node=new.node if new is not None else "",
                held=held.get(pod.key) if pod.forced else None,
            )
        )
    return tuple(drained_pods)


def planned_places(histories: Histories, move: Move) -> dict[str, str]:
    """Map each pod (uid) to the node where the move puts it, or to the claim of a node that has not joined yet."""
    places = {uid: place.node for place in move.placements for uid in place.pods}
    for new in move.replacements:
        claim = histories.claims.get(new.name)
        places.update((uid, (claim.node if claim is not None else "") or new.name) for uid in new.pods)
    return places
