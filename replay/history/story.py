"""The story of one pod, node or claim: what happened to it, what brought that about, and what came of it, in order."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import groupby

from msgspec import Struct

from kerf.engine.record.store import Store
from kerf.projections.timeline.event import Event
from kerf.projections.timeline.timeline import Timeline
from kerf.replay.history.histories import ClaimLinks, Links, PodLinks, links_of
from kerf.replay.history.replacement_chain import ChainLink, chain_of
from kerf.replay.subject_names import unknown, with_kind
from kerf.replay.time_travel.record_beginning import opening

_LAUNCHING = frozenset(
    [
        "claim-requested", "launch-refused", "offering-refused", "launch-adopted", "claim-launched",
        "claim-launch-failed", "claim-launch-timed-out", "claim-registered", "claim-initialized",
    ]
)  # fmt: skip
_LEAVING = frozenset(
    [
        "claim-condemned", "claim-tainted", "claim-reason-raised", "claim-drain-started", "claim-instance-vanished",
        "deletion-asked", "interruption-announced",
    ]
)  # fmt: skip

_ENDS = frozenset(["claim-drained", "claim-terminated", "claim-untainted"])
_MOVES = ("move-started", "move-abandoned")

_TOLD_OF = ("nodeclaim", "node", "pod", "instance")
_EVICTED = ("claim-pod-evicted", "claim-pod-forced")
_ENDING = ("pod-terminating", "pod-ended", "pod-gone")


class Story(Struct, frozen=True):
    """`subject` as in `Event`; `others` are the subjects that belong to it (a claim's node and instance, a pod's
    claims). An event's `cause` names the event of this story, or of the record, that brought it about. `chain`: the
    nodes that one replaced another, where the story is that of a node."""

    subject: str
    others: tuple[str, ...]
    events: tuple[Event, ...]
    chain: tuple[ChainLink, ...] = ()


class _Wanted(Struct, frozen=True):
    """`subjects` are told in full; of `helpers` only the codes given, each up to a position; `plans` are positions of
    decisions; `causes` are pods that are told as far as they brought the plan about, until its position. `chain` are
    the nodes of a chain of replacements, whose moves are told."""

    subjects: frozenset[str]
    helpers: dict[str, dict[str, int]]
    plans: frozenset[int]
    causes: dict[str, int]
    chain: tuple[ChainLink, ...] = ()

    def __contains__(self, event: Event) -> bool:
        if event.subject in self.subjects or self.subjects.intersection(event.related):
            return event.code != "plan-made" or event.position in self.plans
        if event.code in _MOVES and any(f"nodeclaim/{link.claim}" in event.related for link in self.chain):
            return True
        if event.subject in self.helpers:
            return event.position < self.helpers[event.subject].get(event.code, 0)
        if event.subject in self.causes:
            return event.code == "pod-waiting" and event.position < self.causes[event.subject]
        return event.position in self.plans


def story(store: Store, name: str, until: int | None = None) -> Story:
    """The story of a pod ("namespace/name"), a NodeClaim, a Node or an instance, up to a position.

    Raises SubjectUnknown (KERF203).
    """
    links = links_of(store, until)
    subject = subject_of(links, name)
    wanted = _wanted(links, subject)
    events = tuple(_causes_first(_chosen(store, wanted, until)))
    others = sorted((wanted.subjects | wanted.helpers.keys()) - {subject})
    return Story(subject, tuple(others), events, wanted.chain if len(wanted.chain) > 1 else ())


def subject_of(links: Links, name: str) -> str:
    """What a name stands for: claims before nodes before pods before instances; a kind in front decides ("node/n1")."""
    given = with_kind(name)
    kind, _, rest = given.partition("/")
    if kind in _TOLD_OF and rest and name not in links.uids:
        found = given if _known(links, kind, rest) else ""
    else:
        found = next((f"{kind}/{name}" for kind in _TOLD_OF if _known(links, kind, name)), "")
    if not found:
        known = (*links.claims, *links.nodes, *links.uids, *(each.instance for each in links.claims.values()))
        raise unknown(
            f"the record knows no pod, node, NodeClaim or instance called {name!r}",
            name,
            filter(None, known),
            otherwise='Pods are written "namespace/name"; ',
        )
    return found


def _known(links: Links, kind: str, name: str) -> bool:
    if kind == "instance":
        return any(claim.instance == name for claim in links.claims.values())
    known: dict[str, object] = {"nodeclaim": links.claims, "node": links.nodes, "pod": links.uids}
    return name in known[kind]  # type: ignore[operator]


def _chosen(store: Store, wanted: _Wanted, until: int | None) -> Iterator[Event]:
    """The events that belong to the story, and those of the same turn that brought them about; no repetitions."""
    timeline, turn, held = begun(store), 0, dict[int, list[Event]]()
    for entry in store.scan(0, until):
        if entry.turn != turn:
            turn, held = entry.turn, {}
        events = [event for event in timeline.apply(entry) if event.params.get("times", 1) == 1]
        mine = [event for event in events if event in wanted]
        for event in mine[:1]:
            yield from held.pop(event.cause, [])
        yield from mine
        if events and not mine:
            held[entry.position] = events


def begun(store: Store) -> Timeline:
    """A timeline that knows what the record begins with, and has told nothing yet."""
    timeline = Timeline()
    for entry in opening(store):
        timeline.apply(entry)
    timeline.started = 0
    return timeline


def _causes_first(events: Iterator[Event]) -> Iterator[Event]:
    """In one turn the watch may show that a pod is gone before the answer to its eviction is in: that comes first."""
    for _, turn in groupby(events, key=lambda event: event.turn):
        told = list(turn)
        evicted = {f"pod/{event.params['pod']}" for event in told if event.code in _EVICTED}
        yield from sorted(told, key=lambda event: event.code in _ENDING and event.subject in evicted)


def _wanted(links: Links, subject: str) -> _Wanted:
    kind, _, name = subject.partition("/")
    if kind == "pod":
        return _pod_story(links, [links.pods[uid] for uid in links.uids[name]])
    claims = [c for c in links.claims.values() if subject in _names(c)]
    if not claims:
        return _Wanted(frozenset([subject]), {}, frozenset(), {})
    subjects = frozenset(each for claim in claims for each in _names(claim))
    causes = {f"pod/{links.pod(uid)}": claim.decision for claim in claims for uid in claim.pods}
    chain = chain_of(links, [claim.name for claim in claims])
    helpers: dict[str, dict[str, int]] = {}
    for link in chain:
        for each in _names(links.claims[link.claim]):
            if each not in subjects:
                helpers[each] = dict.fromkeys(_LAUNCHING | _LEAVING | _ENDS, sys.maxsize)
    return _Wanted(subjects, helpers, frozenset(claim.decision for claim in claims if claim.decision), causes, chain)


def _names(claim: ClaimLinks) -> list[str]:
    parts = (("nodeclaim", claim.name), ("node", claim.node), ("instance", claim.instance))
    return [f"{kind}/{name}" for kind, name in parts if name]


def _pod_story(links: Links, pods: list[PodLinks]) -> _Wanted:
    helpers: dict[str, dict[str, int]] = {}
    for pod in pods:
        for claim in (links.claims[look.place] for look in pod.looks if look.place in links.claims):
            for each in _names(claim):
                helpers.setdefault(each, {}).update(dict.fromkeys(_LAUNCHING, sys.maxsize))
        for claim_name in links.claims_of_node.get(pod.node, []):
            for each in _names(links.claims[claim_name]):
                helpers.setdefault(each, {}).update(dict.fromkeys(_LEAVING, pod.gone or sys.maxsize))
    plans = frozenset(look.position for pod in pods for look in pod.looks)
    return _Wanted(frozenset(f"pod/{pod.key}" for pod in pods), helpers, plans, {})
