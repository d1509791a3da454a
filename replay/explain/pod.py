"""Explain why a pod is where it is, or why it waits: structs with coded reasons, without prose."""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.model.mistyped import mistyped, values_given
from kerf.engine.model.reasons import Reason
from kerf.engine.record.decisions import ProvisionResult, Unplaced
from kerf.engine.record.store import Store
from kerf.engine.scheduling.explain.crowding_daemonsets import CrowdingDaemonSets, crowding_behind
from kerf.engine.scheduling.explain.meant_pools import giving
from kerf.engine.scheduling.explain.refused_offerings import RefusedZones, refused_zones
from kerf.engine.state.state import State
from kerf.projections.figures.capacity import OFFERING_PARTS, about_offering
from kerf.projections.figures.measures import in_common
from kerf.projections.prose.nearest_reasons import nearest_first
from kerf.replay.explain.claim import Launch, launch_of
from kerf.replay.explain.counted_pods import CountedPods, counted_pods
from kerf.replay.explain.funnels import PlacementExplanation, decision_at, explain_placement, replan_if_known
from kerf.replay.explain.pools_not_asked import PoolNotAsked, pools_gone, pools_not_asked
from kerf.replay.history.displacement import Displacement, displacement_behind, displacement_of
from kerf.replay.history.histories import EXISTING, LATER, NEW_CLAIM, Histories
from kerf.replay.history.histories_until import histories_of
from kerf.replay.history.pod_histories import PodDecision, PodHistory
from kerf.replay.subject_names import unknown_subject
from kerf.replay.time_travel.moments import state_at

WAITING, BOUND, TERMINATING, ENDED, GONE, UNBOUND = "waiting", "bound", "terminating", "ended", "gone", "unbound"


class LostLaunches(Struct, frozen=True, kw_only=True):
    """Nodes that were planned for a pod and could not be launched.

    `reasons` are the cloud's codes, `refused` counts the offerings that it refused, and `shared` is what all these have
    in common: "zone", "capacity", "type".
    """

    nodes: int
    refused: int
    reasons: tuple[str, ...]
    shared: dict[str, str]


class PodExplanation(Struct, frozen=True, kw_only=True):
    """All that is known of one pod.

    `waited` is its time without a node, in ms. `looks` are all provisioning decisions about it. `look` is the decisive
    one, `how` explains it, and `look_again` is the latest position with the same result (0 for none). `launch` is the
    node that was launched for it. `reasons` are the recorded ones if it has no place, the nearest to one first;
    `refused` says of each what the cloud refused of what would do, if it waits for that, and `crowding` which
    DaemonSets leave it no type. `expected` is the planned node, if the pod was bound to another one. `came_for` is the
    pod that it replaced, from a node that had to go. `left` says why it was put off a node itself. `shortened`: the
    decisive decision is from before the record's base, and cannot be made again. `kept`: why it may not leave its going
    node yet. `lost` are nodes that were planned for it, and did not come. `not_asked` are the NodePools that would have
    been asked for it, and are left out now, and those that were deleted lately; `counted` says which pods its rules of
    topology count that leave it no place. `mistyped` are values that it asks for and that are nearly ones
    that NodePools give, as far as no near miss says so.
    """

    pod: str
    uid: str
    position: int
    at: int
    status: str
    node: str
    waited: int
    looks: tuple[PodDecision, ...]
    look: PodDecision | None
    look_again: int
    how: PlacementExplanation | None
    launch: Launch | None
    reasons: tuple[Reason, ...]
    expected: str = ""
    came_for: Displacement | None = None
    left: Displacement | None = None
    shortened: bool = False
    kept: tuple[Reason, ...] = ()
    lost: LostLaunches | None = None
    refused: tuple[RefusedZones | None, ...] = ()
    crowding: tuple[CrowdingDaemonSets | None, ...] = ()
    not_asked: tuple[PoolNotAsked, ...] = ()
    counted: tuple[CountedPods, ...] = ()
    mistyped: tuple[Reason, ...] = ()


def explain_pod(store: Store, name: str, position: int | None = None, now: int = 0) -> PodExplanation:
    """Explain the pod "namespace/name" as of a position (the end by default) at the time `now` (see `state_at`). Raises
    SubjectUnknown (KERF203)."""
    histories = histories_of(store, position)
    uids = histories.pods.uids_of(name)
    if not uids:
        raise unknown_subject(f"the record knows no pod {name!r}", name, histories.pods.names())
    return explain_known_pod(store, histories, state_at(store, position, now), histories.pods[uids[-1]])


def explain_known_pod(store: Store, histories: Histories, state: State, pod: PodHistory) -> PodExplanation:
    """Explain a pod of the histories, as of a state."""
    decision = decisive_decision(pod)
    replan = replan_if_known(store, decision.position, histories.pods.named) if decision is not None else None
    recorded = _recorded_reasons(store, decision, pod.uid) if decision is not None else ()
    reasons = _nearest_first(state, pod.uid, recorded)
    claim = histories.claims.get(decision.place) if decision is not None else None
    how = explain_placement(replan, pod.uid) if replan is not None else None
    return PodExplanation(
        pod=pod.key,
        uid=pod.uid,
        position=state.facts.position,
        at=state.facts.at,
        status=pod_status(pod, state),
        node=pod.node,
        waited=_waited(pod, state),
        looks=tuple(pod.decisions),
        look=decision,
        look_again=histories.repeated.get(decision.position, 0) if decision is not None else 0,
        how=how,
        launch=launch_of(claim) if claim is not None else None,
        reasons=reasons,
        refused=_refused(state, pod.uid, reasons),
        crowding=_crowding(state, pod.uid, reasons),
        shortened=decision is not None and replan is None,
        expected=_expected(pod, decision, histories),
        came_for=displacement_behind(histories, pod),
        left=displacement_of(histories, pod),
        kept=_kept(store, pod),
        lost=_lost(pod, histories),
        counted=_counted(state, pod.uid, reasons),
        not_asked=_not_asked(histories, state, pod.uid, reasons),
        mistyped=_mistyped(state, pod.uid, reasons, how),
    )


def decisive_decision(pod: PodHistory) -> PodDecision | None:
    """Return the decision that gave the pod its place, or else the latest about it."""
    decisions = [decision for decision in pod.decisions if not pod.bound or decision.at <= pod.bound]
    with_place = [decision for decision in decisions if decision.result in (NEW_CLAIM, EXISTING)]
    if pod.node and with_place:
        on_new_nodes = [decision for decision in with_place if decision.result == NEW_CLAIM]
        return on_new_nodes[-1] if on_new_nodes else with_place[-1]
    return decisions[-1] if decisions else None


def _nearest_first(state: State, uid: str, reasons: tuple[Reason, ...]) -> tuple[Reason, ...]:
    pod = state.facts.pods.get(uid)
    return tuple(nearest_first(reasons, giving(state, pod.shape) if pod is not None else None))


def _refused(state: State, uid: str, reasons: tuple[Reason, ...]) -> tuple[RefusedZones | None, ...]:
    if uid not in state.indexes.pending:
        return ()
    shape = state.facts.pods[uid].shape
    return tuple(refused_zones(state, state.facts.at, reason, shape) for reason in reasons)


def _crowding(state: State, uid: str, reasons: tuple[Reason, ...]) -> tuple[CrowdingDaemonSets | None, ...]:
    if uid not in state.indexes.pending:
        return ()
    return tuple(crowding_behind(state, reason, state.facts.pods[uid].shape) for reason in reasons)


def _counted(state: State, uid: str, reasons: tuple[Reason, ...]) -> tuple[CountedPods, ...]:
    if uid not in state.indexes.pending:
        return ()
    return counted_pods(reasons, state.indexes.blobs.shape(state.facts.pods[uid].shape))


def _mistyped(
    state: State, uid: str, reasons: tuple[Reason, ...], how: PlacementExplanation | None
) -> tuple[Reason, ...]:
    if not reasons or uid not in state.indexes.pending:
        return ()
    shape = state.indexes.blobs.shape(state.facts.pods[uid].shape)
    notes = mistyped(shape, (shape,), values_given(state.facts.pools.values()))
    told = {value for pool in (how.pools if how is not None else ()) for miss in pool.near for value in miss.meant}
    return tuple(note for note in notes if note.code == "mistyped-value" and note.params["near"] not in told)


def _not_asked(histories: Histories, state: State, uid: str, reasons: tuple[Reason, ...]) -> tuple[PoolNotAsked, ...]:
    if not reasons or uid not in state.indexes.pending:
        return ()
    return pools_not_asked(state, reasons) + pools_gone(histories, state)


def _kept(store: Store, pod: PodHistory) -> tuple[Reason, ...]:
    latest = pod.decisions[-1] if pod.decisions else None
    return _recorded_reasons(store, latest, pod.uid) if latest is not None and latest.result == LATER else ()


def _lost(pod: PodHistory, histories: Histories) -> LostLaunches | None:
    """Return what came of the nodes that were planned for a pod, as far as nothing did."""
    planned = dict.fromkeys(look.place for look in pod.decisions if look.result == NEW_CLAIM)
    claims = [claim for name in planned if (claim := histories.claims.get(name)) is not None]
    failed = [claim for claim in claims if claim.answers and not claim.instance]
    if not failed:
        return None
    answers = [answer for claim in failed for _, answer in claim.answers]
    errors = [error for answer in answers for error in answer.errors]
    return LostLaunches(
        nodes=len(failed),
        refused=len(errors),
        reasons=tuple(sorted({error.code for error in errors} or {answer.code or answer.kind for answer in answers})),
        shared=in_common(map(about_offering, errors), OFFERING_PARTS),
    )


def pod_status(pod: PodHistory, state: State) -> str:
    """Return what a pod does, in one of the words above."""
    pod_now = state.facts.pods.get(pod.uid)
    if pod_now is None:
        return GONE
    if pod_now.phase in ("Succeeded", "Failed"):
        return ENDED
    if pod_now.deleting:
        return TERMINATING
    if pod_now.node:
        return BOUND
    return WAITING if pod.uid in state.indexes.pending else UNBOUND


def _waited(pod: PodHistory, state: State) -> int:
    if not pod.waiting_since:
        return 0
    return (pod.bound or pod.left or state.facts.at) - pod.waiting_since


def _expected(pod: PodHistory, decision: PodDecision | None, histories: Histories) -> str:
    if decision is None or not pod.node or not decision.place:
        return ""
    claim = histories.claims.get(decision.place)
    place = claim.node if claim is not None else decision.place
    return place if place and place != pod.node else ""


def _recorded_reasons(store: Store, decision: PodDecision, uid: str) -> tuple[Reason, ...]:
    result = decision_at(store, decision.position).result
    assert isinstance(result, ProvisionResult)
    groups: tuple[Unplaced, ...] = (*result.unplaced, *result.ignored, *result.later)
    return next((group.reasons for group in groups if uid in group.pods), ())
