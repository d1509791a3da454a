"""Explain why a NodeClaim or Node was launched, why as this instance type, and why it was removed or is still there."""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.disruption import disruption_pass, why_nodes_stay
from kerf.engine.disruption.forced.finding import Finding
from kerf.engine.disruption.forced.forced_disruption import registration_timeout, strongest_finding
from kerf.engine.lifecycle.drain.draining import drain
from kerf.engine.lifecycle.launch_to_initialized import advance
from kerf.engine.lifecycle.reasons import LifecycleCode
from kerf.engine.lifecycle.step import soonest
from kerf.engine.model.disruption_reasons import DisruptionCode
from kerf.engine.model.karpenter.requirements import Requirements
from kerf.engine.model.kubernetes.pods import is_reschedulable
from kerf.engine.model.reasons import Reason
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.state_table import GOING, INITIALIZED, LAUNCHED, REGISTERED
from kerf.engine.record.claim_events import (
    Adopted,
    InstanceVanished,
    Launched,
    Terminated,
)
from kerf.engine.record.decisions import Offer
from kerf.engine.record.observations import ControllerDecided, LaunchAnswered, LaunchError
from kerf.engine.record.store import Store
from kerf.engine.scheduling.explain.overlaid_prices import OverlaidPrice, OverlaidPrices
from kerf.engine.scheduling.explain.refused_offerings import replaced_again_at
from kerf.engine.state.state import State
from kerf.projections.cluster_status.draining_pods import DrainingPod, draining_pods
from kerf.projections.prose.explanation_codes import ExplanationCode
from kerf.replay.errors import SubjectUnknown
from kerf.replay.explain.forced_pods import force_of
from kerf.replay.explain.funnels import PlacementExplanation, explain_new_node, replan_if_known
from kerf.replay.explain.last_pod_change import PodChange, last_pod_change
from kerf.replay.explain.method_verdicts import MethodVerdict, method_verdicts
from kerf.replay.history.histories import ClaimHistory, Histories, RecordedVerdict
from kerf.replay.history.histories_until import histories_of
from kerf.replay.history.removal import Removal, removal_of
from kerf.replay.subject_names import unknown_subject
from kerf.replay.time_travel.moments import state_at
from kerf.replay.time_travel.record_beginning import BASE_TURN

MAX_SHOWN = 5
PROVISION_DECIDER = "provision"
"""The decider that plans for waiting pods. Replacements come from moves instead."""


class Launch(Struct, frozen=True, kw_only=True):
    """What kerf asked of the cloud and what it got.

    `offers` counts the offerings that were asked for; `cheapest` are the first of them. `refused` had no capacity.
    `price` is that of the instance, USD per hour. `cheaper` are offerings below that price that the cloud did not give.
    """

    claim: str
    capacity_type: str
    offers: int
    cheapest: tuple[Offer, ...]
    attempts: int
    refused: tuple[LaunchError, ...]
    instance: str
    instance_type: str
    zone: str
    price: float
    took: int
    cheaper: tuple[Offer, ...]
    error: str


class LifeStep(Struct, frozen=True):
    """One event of the claim. `took` is the time since the step before, in ms."""

    position: int
    at: int
    type: str
    took: int
    detail: str = ""


class Staying(Struct, frozen=True, kw_only=True):
    """Why the claim is still there, as of the position.

    `due` is when that may change by itself (0 for never), and `again` when something cheaper that the cloud refused may
    replace the node again (0 if nothing was refused). `pods` counts the pods on its node that need a place;
    `held_by` names the first of them.
    """

    method: str
    reason: Reason
    due: int
    pods: int
    held_by: tuple[str, ...]
    again: int = 0


class ClaimExplanation(Struct, frozen=True, kw_only=True):
    """All that is known of one claim.

    `state` is "terminated" once it is over. `decider` made the `decision` to launch it; `launched_for` are the pods of
    its plan, `replaces` the claims that it was to replace. `removed` says in short why it had to go, `removed_at` at
    which position (0 for not), and `removal` how. `staying` and `methods` say why it stays; they are empty if it goes.
    `leaving` are the pods that its drain waits for; they are deleted by force at `forced_at` (0 for never). `cost` is
    in USD so far, `overlaid` the NodeOverlay that its price is from, if it is from one. `disturbed` are the pods for
    which consolidateAfter has not passed yet. `shortened`: its launch was decided before the record's base, and cannot
    be decided again. `unknown`: what an imported record lacks (codes of `Missing`); without prices `cost` says nothing.
    """

    claim: str
    node: str
    node_pool: str
    position: int
    at: int
    state: str
    decision: int
    decider: str
    launched_for: tuple[str, ...]
    replaces: tuple[str, ...]
    adopted: bool
    how: PlacementExplanation | None
    launch: Launch | None
    steps: tuple[LifeStep, ...]
    verdicts: tuple[RecordedVerdict, ...]
    removed: str
    removed_at: int
    removal: Removal | None
    staying: Staying | None
    methods: tuple[MethodVerdict, ...]
    waiting: Reason | None
    leaving: tuple[DrainingPod, ...]
    forced_at: int
    cost: float
    overlaid: OverlaidPrice | None = None
    disturbed: PodChange | None = None
    shortened: bool = False
    unknown: tuple[str, ...] = ()


def explain_node(
    store: Store,
    name: str,
    position: int | None = None,
    now: int = 0,
    known: Histories | None = None,
    at_hand: State | None = None,
) -> ClaimExplanation:
    """Explain the latest claim that had this Node. A NodeClaim's name does as well, since not every claim gets a Node.
    Raises SubjectUnknown (KERF203)."""
    histories = known or histories_of(store, position)
    claims = histories.claims_of_node.get(name)
    if not claims:
        if name in histories.claims and histories.claims[name].events:
            return explain_claim(store, name, position, now, histories, at_hand)
        if name in histories.nodes and histories.imported is not None:
            raise SubjectUnknown(
                "which NodeClaim the node had was not imported", where=f"node {name}", hint=_known_of(name, histories)
            )
        if name in histories.nodes:
            hint = (
                "kerf neither launched nor adopted it, and removes it only if somebody deletes it: it is room for pods"
            )
            raise SubjectUnknown("the node belongs to no NodeClaim", where=f"node {name}", hint=hint)
        raise unknown_subject(f"the record knows no node {name!r}", name, histories.nodes, where=f"node {name}")
    return explain_claim(store, claims[-1], position, now, histories, at_hand)


def _known_of(node: str, histories: Histories) -> str:
    """What an imported record tells of a node whose NodeClaim it does not know."""
    entry = histories.decided_nodes.get(node)
    tells = f"kerf story RECORD node/{node} tells what is known of it"
    if entry is None:
        return tells
    decided: ControllerDecided = entry.payload
    return f"{decided.controller} takes it away, as {decided.why} (position {entry.position}); {tells}"


def explain_claim(
    store: Store,
    name: str,
    position: int | None = None,
    now: int = 0,
    known: Histories | None = None,
    at_hand: State | None = None,
) -> ClaimExplanation:
    """Explain a claim as of a position (the end by default) at the time `now` (see `state_at`). `known` are the
    histories up to there, and `at_hand` the state there at that time, if somebody has them. Raises SubjectUnknown
    (KERF203)."""
    histories = known or histories_of(store, position)
    history = histories.claims.get(name)
    if history is None or not history.events:
        known_names = (claim.name for claim in histories.claims.values() if claim.events)
        raise unknown_subject(f"the record knows no NodeClaim {name!r}", name, known_names)
    state = at_hand or state_at(store, position, now)
    claim = state.facts.claims.get(name)
    planned = histories.decisions.get(history.decision) == PROVISION_DECIDER
    plan = replan_if_known(store, history.decision, histories.pods.named) if planned else None
    removal = removal_of(store, histories, history, force_of(store, histories, history))
    imported = state.facts.imported
    decided = not state.facts.tells_history
    stays = claim is not None and removal is None and decided
    methods = method_verdicts(claim, state, history.verdicts) if stays and claim is not None else ()
    return ClaimExplanation(
        claim=name,
        node=history.node,
        node_pool=history.node_pool,
        position=state.facts.position,
        at=state.facts.at,
        state=claim.state if claim is not None else "terminated",
        decision=history.decision,
        decider=histories.decisions.get(history.decision, ""),
        launched_for=histories.pod_names(history.pods),
        replaces=histories.moves[history.replaces].move.claims if history.replaces else (),
        adopted=isinstance(history.events[0].payload, Adopted) and history.events[0].turn != BASE_TURN,
        shortened=(planned and plan is None) or history.events[0].turn == BASE_TURN,
        how=explain_new_node(plan, name) if plan is not None else None,
        launch=launch_of(history),
        steps=_steps(history),
        verdicts=tuple(history.verdicts),
        removed=_short_reason(removal) if removal is not None else "",
        removed_at=removal.position if removal is not None else 0,
        removal=removal,
        staying=_staying(claim, state, history, methods) if stays and claim is not None else None,
        methods=methods,
        waiting=_waiting(claim, state) if claim is not None and decided else None,
        leaving=draining_pods(claim, state) if claim is not None and decided else (),
        forced_at=(claim.deadline or 0) if claim is not None else 0,
        cost=_cost(history, claim, state),
        disturbed=last_pod_change(claim, methods, histories) if claim is not None else None,
        overlaid=OverlaidPrices(state).of(claim) if claim is not None else None,
        unknown=imported.lacks if imported is not None else (),
    )


def launch_of(history: ClaimHistory) -> Launch | None:
    """Return what the cloud was asked for, or None for a claim that was adopted or whose plan is not in the record."""
    if not history.orders:
        return None
    order = history.orders[0][1]
    answer = history.answers[-1][1] if history.answers else None
    launched = next((e.payload for e in history.events if isinstance(e.payload, Launched)), None)
    price = launched.price if launched is not None else 0.0
    launched_as = (launched.instance_type, launched.zone) if launched is not None else ("", "")
    return Launch(
        claim=history.name,
        capacity_type=order.capacity_type,
        offers=len(order.offers),
        cheapest=order.offers[:MAX_SHOWN],
        attempts=len(history.orders),
        refused=tuple(error for _, answered in history.answers for error in answered.errors),
        instance=history.instance,
        instance_type=launched_as[0],
        zone=launched_as[1],
        price=price,
        took=launched.took if launched is not None else 0,
        cheaper=tuple(o for o in order.offers if o.price < price)[:MAX_SHOWN] if launched is not None else (),
        error="" if answer is None or answer.instance else _error(answer),
    )


def _error(answer: LaunchAnswered) -> str:
    if answer.kind == "not-found":
        return "an instance was looked for by its tag, and there is none"
    return answer.message or answer.code or answer.kind


def _steps(history: ClaimHistory) -> tuple[LifeStep, ...]:
    steps: list[LifeStep] = []
    for entry in history.events:
        took = entry.at - steps[-1].at if steps else 0
        steps.append(
            LifeStep(entry.position, entry.at, entry.type.removeprefix("claim."), took, _detail(entry.payload))
        )
    return tuple(steps)


def _detail(event: Struct) -> str:
    parts = (getattr(event, name, "") for name in ("why", "detail", "pod", "kind", "code", "message", "status"))
    without = [f"without {requirement}" for requirement in Requirements.of_specs(getattr(event, "unmet", ()))]
    return ", ".join([*(str(part) for part in parts if part), *without])


def _short_reason(removal: Removal) -> str:
    detail = removal.reason.params.get("detail", "")
    return f"{removal.why} ({detail})" if detail else removal.why


_MORE_PRECISE: dict[str, tuple[str, ...]] = {
    DisruptionCode.BUDGET: (DisruptionCode.BAD_BUDGET, DisruptionCode.BUDGET),
    DisruptionCode.MOVE_PROPOSED: (ExplanationCode.WAITS_FOR_BUDGET, DisruptionCode.MOVE_PROPOSED),
    DisruptionCode.NOT_LOOKED_AT: (ExplanationCode.WAITS_FOR_BUDGET, DisruptionCode.MOVE_PROPOSED),
}
"""Code of the latest pass → codes of the methods, which say more precisely why the node stays now."""


def _staying(claim: NodeClaim, state: State, history: ClaimHistory, methods: tuple[MethodVerdict, ...]) -> Staying:
    """Say what excludes the claim from all moves now, or else what the latest disruption pass decided about it."""
    finding = strongest_finding(claim, state, state.facts.at)
    if not finding.remove and claim.state == INITIALIZED:
        recorded = next(
            (verdict.verdict.reason for verdict in reversed(history.verdicts) if verdict.verdict.action == "keep"), None
        )
        clocks = Reason.of(ExplanationCode.CLOCKS_DISAGREE) if state.facts.clocks_differ else None
        reason = why_nodes_stay.why_it_stays(claim, state, state.facts.at) or clocks or recorded
        reason = reason or Reason.of(DisruptionCode.NOT_LOOKED_AT)
        reason = next(
            (method.reason for method in methods if method.reason.code in _MORE_PRECISE.get(reason.code, ())), reason
        )
        finding = Finding(why_nodes_stay.METHOD, reason, due=soonest(finding.due, disruption_pass.due_at(state)))
    elif not finding.remove and claim.state == LAUNCHED:
        finding = registration_timeout(claim, state, state.facts.at)
    elif not finding.remove and claim.state == REGISTERED:
        finding = Finding(finding.method, Reason.of(DisruptionCode.NOT_INITIALIZED), due=finding.due)
    uids = state.indexes.pods_by_node.get(claim.node, {})
    holding = sorted(pod.key for uid in uids if is_reschedulable(pod := state.facts.pods[uid]))
    return Staying(
        method=finding.method,
        reason=finding.reason,
        due=finding.due,
        pods=len(holding),
        held_by=tuple(holding[:MAX_SHOWN]),
        again=replaced_again_at(state, state.facts.at, claim)
        if finding.reason.code == DisruptionCode.NOTHING_CHEAPER
        else 0,
    )


def _waiting(claim: NodeClaim, state: State) -> Reason | None:
    """Say what the lifecycle decider waits for while the claim is not in service."""
    reason = (drain if claim.state in GOING else advance)(claim, state, state.facts.at).reason
    return None if reason.code == LifecycleCode.IN_SERVICE else reason


def _cost(history: ClaimHistory, claim: NodeClaim | None, state: State) -> float:
    ended = next((e.payload for e in history.events if isinstance(e.payload, Terminated | InstanceVanished)), None)
    if ended is not None:
        return ended.cost
    if claim is None or not claim.launched:
        return 0.0
    return round(claim.price * (state.facts.at - claim.launched) / 3_600_000, 6)
