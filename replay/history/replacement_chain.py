"""Follow a chain of replacements: which node replaced which, and where the pods went."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from kerf.engine.record import claim_events as ev
from kerf.projections.figures.lives import failure_of
from kerf.replay.history.histories import ClaimHistory, Histories, MoveHistory
from kerf.replay.history.successor_pods import Successors, pods_to_move

MAX_CHAIN_NODES = 40
"""At most this many nodes are in one chain."""

_GOING_EVENTS = (ev.Tainted, ev.ReasonRaised, ev.InstanceVanished)
_FAILURES = (ev.LaunchFailed, ev.LaunchTimedOut, ev.Cancelled)


class ChainLink(Struct, frozen=True, kw_only=True):
    """One node of the chain.

    `why` says why it had to go, or why nothing came of its launch, at the time `at` (ms since the epoch); "" and 0 for
    a node that is still there. `move` is the move that it went in, which saves `savings` USD per hour. `launched` are
    the claims that replaced it. `pods_to` are the nodes where pods came for its own.
    """

    claim: str
    node: str = ""
    instance_type: str = ""
    price: float = 0.0
    why: str = ""
    at: int = 0
    move: str = ""
    savings: float = 0.0
    launched: tuple[str, ...] = ()
    pods_to: tuple[str, ...] = ()


def replacement_chain(histories: Histories, start: Iterable[str]) -> tuple[ChainLink, ...]:
    """Return these claims with those that they replaced and those that replaced them, in the order of their first
    events."""
    links_by_claim, successors = dict[str, ChainLink](), Successors(histories)
    to_visit: deque[tuple[str, frozenset[str] | None]] = deque(
        (name, None) for name in _replaced_before(histories, start)
    )
    while to_visit and len(links_by_claim) < MAX_CHAIN_NODES:
        name, followed = to_visit.popleft()
        claim = histories.claims.get(name)
        if claim is None or name in links_by_claim or not claim.events:
            continue
        link, next_pods = _link(histories, successors, claim, followed)
        if followed is not None and not next_pods:
            continue  # the pods that are followed are still there: it is no part of the chain yet
        links_by_claim[name] = link
        to_visit += [(new, None) for new in link.launched]
        to_visit += [(target, pods) for target, pods in sorted(next_pods.items()) if target not in link.launched]
    return tuple(
        sorted(links_by_claim.values(), key=lambda each: (histories.claims[each.claim].events[0].position, each.claim))
    )


def _replaced_before(histories: Histories, start: Iterable[str]) -> list[str]:
    """Return the claims and all that they replaced, directly or not."""
    seen: dict[str, None] = {}
    queue = deque(start)
    while queue and len(seen) < MAX_CHAIN_NODES:
        name = queue.popleft()
        if name in seen:
            continue
        seen[name] = None
        claim = histories.claims.get(name)
        if claim is not None and claim.replaces:
            queue += histories.moves[claim.replaces].move.claims
    return list(seen)


def started_move(histories: Histories, claim: ClaimHistory) -> MoveHistory | None:
    """Return the latest move of the claim that started and was not abandoned."""
    for ref in reversed(claim.moves):
        move = histories.moves[ref]
        if move.started() is not None and not any(step.step == "abandoned" for step in move.steps):
            return move
    return None


def _why(event: Any) -> str:
    if isinstance(event, _FAILURES):
        return f"launch failed: {failure_of(event)}"
    return str(getattr(event, "why", "instance-vanished"))


def _link(
    histories: Histories, replaced: Successors, claim: ClaimHistory, followed: frozenset[str] | None
) -> tuple[ChainLink, dict[str, frozenset[str]]]:
    """Return the link, and for each claim that took pods from here the pods (uids) that came there. If pods are
    followed, only those count, and no others are read."""
    move = started_move(histories, claim)
    drained = next((e for e in claim.events if isinstance(e.payload, ev.DrainStarted)), None)
    moved_pods = pods_to_move(histories, claim, drained.position, followed) if drained is not None else []
    successor_of = replaced.of(moved_pods)
    successors = [histories.pods[successor_of[pod.uid]] for pod in moved_pods if pod.uid in successor_of]
    targets: dict[str, set[str]] = {}
    for pod in successors:
        for name in histories.claims_of_node.get(pod.node, [])[-1:]:
            targets.setdefault(name, set()).add(pod.uid)
    going = next((e for e in reversed(claim.events) if isinstance(e.payload, (*_GOING_EVENTS, *_FAILURES))), None)
    stays = going is not None and any(
        isinstance(e.payload, ev.Untainted) and e.position > going.position for e in claim.events
    )
    launched = next((e.payload for e in claim.events if isinstance(e.payload, ev.Launched)), None)
    link = ChainLink(
        claim=claim.name,
        node=claim.node,
        instance_type=launched.instance_type if launched is not None else "",
        price=launched.price if launched is not None else 0.0,
        why=_why(going.payload) if going is not None and not stays else "",
        at=going.at if going is not None and not stays else 0,
        move=move.ref if move is not None else "",
        savings=move.move.savings if move is not None else 0.0,
        launched=tuple(new.name for new in move.move.replacements) if move is not None else (),
        pods_to=tuple(sorted({pod.node for pod in successors if pod.node})),
    )
    return link, {name: frozenset(uids) for name, uids in targets.items()}
