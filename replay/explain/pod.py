"""Why a pod is where it is, or waits: structs with coded reasons, without prose."""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.model.reasons import Reason
from kerf.engine.record.decisions import ProvisionResult, Unplaced
from kerf.engine.record.store import Store
from kerf.engine.state.load import load
from kerf.engine.state.state import State
from kerf.replay.explain.claim import Launch, launch_of
from kerf.replay.explain.funnels import Placed, decision_at, placed, replan_if_known
from kerf.replay.history.histories import EXISTING, NEW_CLAIM, Links, Look, PodLinks, links_of
from kerf.replay.history.pod_moves import PodPlace, came_for, left_for
from kerf.replay.subject_names import unknown

WAITING, BOUND, TERMINATING, ENDED, GONE, UNBOUND = "waiting", "bound", "terminating", "ended", "gone", "unbound"


class PodExplanation(Struct, frozen=True, kw_only=True):
    """`waited` is the time without a node in ms. `looks` are all decisions about it; `look` is the one that counts and
    `look_again` the position of the latest that came to the same result (0 for none). `how` explains it; `launch` is
    the node that was started for it; `reasons` are those of the record when it has no place. `expected` is the node
    that the plan meant, when it was bound to another. `came_for` is the pod in whose place it came, off a node that had
    to go; `left`: it had to leave one itself. `shortened`: the decision that counts is from before the record's base,
    and cannot be made again."""

    pod: str
    uid: str
    position: int
    at: int
    status: str
    node: str
    waited: int
    looks: tuple[Look, ...]
    look: Look | None
    look_again: int
    how: Placed | None
    launch: Launch | None
    reasons: tuple[Reason, ...]
    expected: str = ""
    came_for: PodPlace | None = None
    left: PodPlace | None = None
    shortened: bool = False


def explain_pod(store: Store, name: str, position: int | None = None) -> PodExplanation:
    """Why the pod "namespace/name" is where it is, or has no node, as of a position (the end by default).

    Raises SubjectUnknown (KERF203).
    """
    links, state = links_of(store, position), load(store, position)
    uids = links.uids.get(name)
    if not uids:
        raise unknown(f"the record knows no pod {name!r}", name, links.uids, otherwise='Write "namespace/name"; ')
    pod = links.pods[uids[-1]]
    look = _that_counts(pod)
    found = replan_if_known(store, look.position) if look is not None else None
    claim = links.claims.get(look.place) if look is not None else None
    return PodExplanation(
        pod=name,
        uid=pod.uid,
        position=state.facts.position,
        at=state.facts.at,
        status=_status(pod, state),
        node=pod.node,
        waited=_waited(pod, state),
        looks=tuple(pod.looks),
        look=look,
        look_again=links.repeated.get(look.position, 0) if look is not None else 0,
        how=placed(found, pod.uid) if found is not None else None,
        launch=launch_of(claim) if claim is not None else None,
        reasons=_recorded_reasons(store, look, pod.uid) if look is not None else (),
        shortened=look is not None and found is None,
        expected=_expected(pod, look, links),
        came_for=came_for(links, pod),
        left=left_for(links, pod),
    )


def _that_counts(pod: PodLinks) -> Look | None:
    """The decision that gave the pod its place, else the latest about it."""
    looks = [look for look in pod.looks if not pod.bound or look.at <= pod.bound]
    with_place = [look for look in looks if look.result in (NEW_CLAIM, EXISTING)]
    if pod.node and with_place:
        new = [look for look in with_place if look.result == NEW_CLAIM]
        return new[-1] if new else with_place[-1]
    return looks[-1] if looks else None


def _status(pod: PodLinks, state: State) -> str:
    now = state.facts.pods.get(pod.uid)
    if now is None:
        return GONE
    if now.phase in ("Succeeded", "Failed"):
        return ENDED
    if now.deleting:
        return TERMINATING
    if now.node:
        return BOUND
    return WAITING if pod.uid in state.ix.pending else UNBOUND


def _waited(pod: PodLinks, state: State) -> int:
    if not pod.waiting_since:
        return 0
    return (pod.bound or state.facts.at) - pod.waiting_since


def _expected(pod: PodLinks, look: Look | None, links: Links) -> str:
    if look is None or not pod.node or not look.place:
        return ""
    claim = links.claims.get(look.place)
    place = claim.node if claim is not None else look.place
    return place if place and place != pod.node else ""


def _recorded_reasons(store: Store, look: Look, uid: str) -> tuple[Reason, ...]:
    result = decision_at(store, look.position).result
    assert isinstance(result, ProvisionResult)
    groups: tuple[Unplaced, ...] = (*result.unplaced, *result.ignored)
    return next((group.reasons for group in groups if uid in group.pods), ())
