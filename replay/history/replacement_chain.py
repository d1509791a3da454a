"""A chain of replacements: what a node was launched to replace, by what it was replaced, where its pods went, and how
it went on from there, as far as moves (or an end without a choice) carried them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from msgspec import Struct

from kerf.engine.record import claim_events as ev
from kerf.replay.history.histories import ClaimLinks, Links, MoveLinks
from kerf.replay.history.successor_pods import successors, to_leave

LONGEST = 40
"""So many nodes are in one chain at most."""

_LEFT = (ev.Tainted, ev.ReasonRaised, ev.InstanceVanished)


class ChainLink(Struct, frozen=True, kw_only=True):
    """One node of the chain. `why` it had to go, at `at` (ms since the epoch); "" and 0 for one that is there. `move`
    is the one that it went in, with what that saves in USD per hour; `launched` are the claims that replaced it, and
    `pods_to` the nodes on which pods came for its own."""

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


def chain_of(links: Links, start: Iterable[str]) -> tuple[ChainLink, ...]:
    """Of claims: those they replaced, themselves, and those that came after; in the order of their beginnings."""
    after = successors(links)
    found: dict[str, ChainLink] = {}
    queue: deque[tuple[str, frozenset[str] | None]] = deque((name, None) for name in _origins(links, start))
    while queue and len(found) < LONGEST:
        name, followed = queue.popleft()
        claim = links.claims.get(name)
        if claim is None or name in found or not claim.events:
            continue
        link, next_pods = _link(links, claim, after, followed)
        if followed is not None and not next_pods:
            continue  # the pods that are followed are still there: it is no part of the chain yet
        found[name] = link
        queue += [(new, None) for new in link.launched]
        queue += [(target, pods) for target, pods in sorted(next_pods.items()) if target not in link.launched]
    return tuple(sorted(found.values(), key=lambda each: (links.claims[each.claim].events[0].position, each.claim)))


def _origins(links: Links, start: Iterable[str]) -> list[str]:
    """The claims, and those that they replaced, and so on; the first ones first."""
    seen: dict[str, None] = {}
    queue = deque(start)
    while queue and len(seen) < LONGEST:
        name = queue.popleft()
        if name in seen:
            continue
        seen[name] = None
        claim = links.claims.get(name)
        if claim is not None and claim.replaces:
            queue += links.moves[claim.replaces].move.claims
    return list(seen)


def started_move(links: Links, claim: ClaimLinks) -> MoveLinks | None:
    """The latest move of the claim that was carried out and not given up."""
    for ref in reversed(claim.moves):
        move = links.moves[ref]
        if move.started() is not None and not any(step.step == "abandoned" for step in move.steps):
            return move
    return None


def _link(
    links: Links, claim: ClaimLinks, after: dict[str, str], followed: frozenset[str] | None
) -> tuple[ChainLink, dict[str, frozenset[str]]]:
    """The link, and claim → the pods that came there for those that left here (of the followed ones, if any are)."""
    move = started_move(links, claim)
    drained = next((e for e in claim.events if isinstance(e.payload, ev.DrainStarted)), None)
    left = to_leave(links, claim, drained.position) if drained is not None else []
    came = [
        links.pods[after[pod.uid]] for pod in left if pod.uid in after and (followed is None or pod.uid in followed)
    ]
    targets: dict[str, set[str]] = {}
    for pod in came:
        for name in links.claims_of_node.get(pod.node, [])[-1:]:
            targets.setdefault(name, set()).add(pod.uid)
    going = next((e for e in reversed(claim.events) if isinstance(e.payload, _LEFT)), None)
    stays = going is not None and any(
        isinstance(e.payload, ev.Untainted) and e.position > going.position for e in claim.events
    )
    launched = next((e.payload for e in claim.events if isinstance(e.payload, ev.Launched)), None)
    link = ChainLink(
        claim=claim.name,
        node=claim.node,
        instance_type=launched.instance_type if launched is not None else "",
        price=launched.price if launched is not None else 0.0,
        why=getattr(going.payload, "why", "instance-vanished") if going is not None and not stays else "",
        at=going.at if going is not None and not stays else 0,
        move=move.ref if move is not None else "",
        savings=move.move.savings if move is not None else 0.0,
        launched=tuple(new.name for new in move.move.replacements) if move is not None else (),
        pods_to=tuple(sorted({pod.node for pod in came if pod.node})),
    )
    return link, {name: frozenset(uids) for name, uids in targets.items()}
