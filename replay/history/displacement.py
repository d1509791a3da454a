"""Say how a pod is part of the disruption of a node: which pod it replaced, and why it had to leave itself."""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.record import claim_events as ev
from kerf.replay.history.histories import Histories
from kerf.replay.history.pod_histories import PodHistory
from kerf.replay.history.removal import planned_places
from kerf.replay.history.replacement_chain import started_move
from kerf.replay.history.successor_pods import Successors


class Displacement(Struct, frozen=True, kw_only=True):
    """A pod that left its node, seen from itself or from the pod that replaced it. `pod` is the other one.

    `why` is the reason why the node's claim had to go. `move` is the move that it went in ("" for none, as for an
    interrupted node), and `planned` the place that the move meant for the pod. `how` it left: evicted, forced, or ended
    with its node.
    """

    pod: str
    claim: str
    node: str
    why: str
    how: str
    move: str = ""
    planned: str = ""


def displacement_behind(histories: Histories, pod: PodHistory) -> Displacement | None:
    """Return the pod that this one replaced, or None if it replaced nobody."""
    old_uid = Successors(histories).replaced_by(pod)
    return _displacement(histories, histories.pods[old_uid], histories.pods[old_uid]) if old_uid else None


def displacement_of(histories: Histories, pod: PodHistory) -> Displacement | None:
    """Say why the pod was evicted and which pod replaced it ("" for none). Return None if it was not evicted."""
    if not pod.evicted_from:
        return None
    return _displacement(histories, pod, histories.pods.get(Successors(histories).of([pod]).get(pod.uid, "")))


def _displacement(histories: Histories, old: PodHistory, named: PodHistory | None) -> Displacement:
    claim_of_node = next((name for name, claim in histories.claims.items() if claim.node == old.node), "")
    claim = histories.claims[old.evicted_from or claim_of_node]
    latest = next((e for e in reversed(claim.events) if isinstance(e.payload, ev.Tainted | ev.ReasonRaised)), None)
    why = latest.payload.why if latest is not None else ""
    move = started_move(histories, claim)
    decisive = move is not None and move.move.why == why
    return Displacement(
        pod=named.key if named is not None else "",
        claim=claim.name,
        node=claim.node,
        why=why,
        how="forced" if old.forced else "evicted" if old.evicted_from else "ended",
        move=move.ref if move is not None and decisive else "",
        planned=planned_places(histories, move.move).get(old.uid, "") if move is not None and decisive else "",
    )
