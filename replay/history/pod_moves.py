"""A pod's part in the moving of others: in whose place it came, and why it had to leave itself."""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.record import claim_events as ev
from kerf.replay.history.histories import Links, PodLinks
from kerf.replay.history.removal import planned_places
from kerf.replay.history.replacement_chain import started_move
from kerf.replay.history.successor_pods import successors


class PodPlace(Struct, frozen=True, kw_only=True):
    """Another pod and a node on its way out: `why` that node's claim had to go, in which `move` ("" for none, as an
    interrupted node's), and where the move meant the pod to be (`planned`). `how` it left: evicted, forced, or
    ended with its node."""

    pod: str
    claim: str
    node: str
    why: str
    how: str
    move: str = ""
    planned: str = ""


def came_for(links: Links, pod: PodLinks) -> PodPlace | None:
    """The pod that this one came in the place of; None if it was nobody's."""
    old = next((uid for uid, new in successors(links).items() if new == pod.uid), "")
    return _place(links, links.pods[old], links.pods[old]) if old else None


def left_for(links: Links, pod: PodLinks) -> PodPlace | None:
    """Why the pod was put out, and which pod came in its place ("" for none); None if it was not."""
    if not pod.evicted_from:
        return None
    return _place(links, pod, links.pods.get(successors(links).get(pod.uid, "")))


def _place(links: Links, old: PodLinks, named: PodLinks | None) -> PodPlace:
    ended_with = next((name for name, claim in links.claims.items() if claim.node == old.node), "")
    claim = links.claims[old.evicted_from or ended_with]
    latest = next((e for e in reversed(claim.events) if isinstance(e.payload, ev.Tainted | ev.ReasonRaised)), None)
    why = latest.payload.why if latest is not None else ""
    move = started_move(links, claim)
    mine = move is not None and move.move.why == why
    return PodPlace(
        pod=named.key if named is not None else "",
        claim=claim.name,
        node=claim.node,
        why=why,
        how="forced" if old.forced else "evicted" if old.evicted_from else "ended",
        move=move.ref if move is not None and mine else "",
        planned=planned_places(links, move.move).get(old.uid, "") if move is not None and mine else "",
    )
