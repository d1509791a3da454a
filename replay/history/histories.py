"""What hangs together in a record: pods with plans, claims with nodes, instances, answers and verdicts. A fold."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

from msgspec import Struct, field

from kerf.engine.model.karpenter.capacity_buffers import CapacityBuffer, virtual_key
from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.model.reasons import Reason
from kerf.engine.record.claim_events import (
    CLAIM_EVENTS,
    Adopted,
    Launched,
    PodEvicted,
    PodForced,
    Registered,
    Requested,
)
from kerf.engine.record.decisions import (
    Decision,
    DisruptResult,
    LaunchInstance,
    Move,
    MoveResult,
    MovesResult,
    ProvisionResult,
    StaticResult,
    Verdict,
)
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import InterruptionSeen, LaunchAnswered, NodeClaimDeletionSeen, ObjectGone
from kerf.engine.record.store import Store
from kerf.engine.state.moves import STARTED
from kerf.replay.time_travel.record_beginning import opening

NEW_CLAIM, EXISTING, NO_PLACE, IGNORED, NOT_REACHED = "new-claim", "existing-node", "no-place", "ignored", "not-reached"


class Look(Struct, frozen=True):
    """A provisioning decision that says something about a pod. `place` is a claim or, for an unmanaged one, a node."""

    position: int
    at: int
    result: str
    place: str = ""


class Judged(Struct, frozen=True):
    position: int
    at: int
    verdict: Verdict


class MoveStep(Struct, frozen=True):
    """What became of a move that was proposed: started, withdrawn or abandoned."""

    position: int
    at: int
    step: str
    reason: Reason


class MoveLinks(Struct):
    """A move, known as "position.index" of its proposal; `move` is as it was carried out, once it has started."""

    ref: str
    position: int
    at: int
    move: Move
    steps: list[MoveStep] = field(default_factory=list)

    def started(self) -> MoveStep | None:
        return next((each for each in self.steps if each.step == STARTED), None)


class PodLinks(Struct):
    """`waiting_since` is when it was first seen to wait, `bound` when it got its node, `left` when it began to end, or
    was seen no more; 0 for not. `owner` is its controller, "" for none; `evicted_from` the claim whose drain put it
    out, `forced` if by a deletion."""

    uid: str
    key: str
    first: int
    seen: int
    waiting_since: int = 0
    bound: int = 0
    node: str = ""
    phase: str = ""
    gone: int = 0  # the position where it went
    left: int = 0
    owner: str = ""
    evicted_from: str = ""
    forced: bool = False
    looks: list[Look] = field(default_factory=list)


class ClaimLinks(Struct):
    """`events` is its own stream; `decision` the position of its plan, 0 for an adopted one. `signals` are entries from
    outside that may end it; `moves` those that it was to go in (`MoveLinks.ref`), `replaces` the one that it was
    launched for."""

    name: str
    node_pool: str = ""
    decision: int = 0
    pods: tuple[str, ...] = ()
    node: str = ""
    instance: str = ""
    events: list[Entry] = field(default_factory=list)
    orders: list[tuple[int, LaunchInstance]] = field(default_factory=list)
    answers: list[tuple[int, LaunchAnswered]] = field(default_factory=list)
    verdicts: list[Judged] = field(default_factory=list)
    signals: list[Entry] = field(default_factory=list)
    moves: list[str] = field(default_factory=list)
    replaces: str = ""


class Links:
    """`uids` maps namespace/name to the pods that have had that name, in their order; `claims_of_node` likewise."""

    def __init__(self) -> None:
        self.pods: dict[str, PodLinks] = {}
        self.uids: dict[str, list[str]] = {}
        self.claims: dict[str, ClaimLinks] = {}
        self.claims_of_node: dict[str, list[str]] = {}
        self.nodes: dict[str, int] = {}  # every node ever seen → the position where it was seen first
        self.repeated: dict[int, int] = {}  # decision → the latest one that came to the same result
        self.decisions: dict[int, str] = {}  # position → decider
        self.moves: dict[str, MoveLinks] = {}
        self.resized: dict[str, tuple[int, Reason]] = {}  # claim → the decision that found it one too many, and why
        self.ended_pools: dict[str, list[Entry]] = {}  # NodePool → the entries that say that it is gone
        self._instances: dict[str, str] = {}  # instance → its claim
        self._buffers: dict[str, CapacityBuffer] = {}

    def apply(self, entry: Entry) -> None:
        handler = _HANDLERS.get(type(entry.payload))
        if handler is not None:
            handler(self, entry.payload, entry)
        elif entry.type == "node.seen":
            self.nodes.setdefault(entry.payload.name, entry.position)
        elif isinstance(entry.payload, CapacityBuffer):
            self._buffers[entry.payload.uid] = entry.payload

    def pod(self, uid: str) -> str:
        """A pod's namespace/name, also of one that only stands for a buffer's room; its uid if it was never seen."""
        found = self.pods.get(uid)
        return found.key if found is not None else virtual_key(uid, self._buffers) or uid

    def _pod(self, pod: Pod, entry: Entry) -> None:
        links = self.pods.get(pod.uid)
        if links is None:
            links = self.pods[pod.uid] = PodLinks(pod.uid, pod.key, entry.position, entry.at)
            self.uids.setdefault(pod.key, []).append(pod.uid)
        if pod.unschedulable and not pod.node and not links.waiting_since:
            links.waiting_since = entry.at
        if pod.node and not links.node:
            links.node, links.bound = pod.node, entry.at
        if pod.deleting and not links.left:
            links.left = entry.at
        if pod.owner is not None:
            links.owner = f"{pod.namespace}/{pod.owner.kind}/{pod.owner.name}"
        links.phase = pod.phase

    def pool_gone(self, name: str, until: int) -> Entry | None:
        """The latest end of a NodePool up to a position."""
        return next((entry for entry in reversed(self.ended_pools.get(name, [])) if entry.position <= until), None)

    def _gone(self, gone: ObjectGone, entry: Entry) -> None:
        if gone.kind == "nodepool":
            self.ended_pools.setdefault(gone.key, []).append(entry)
        links = self.pods.get(gone.key) if gone.kind == "pod" else None
        if links is not None:
            links.gone = entry.position
            links.left = links.left or entry.at

    def _decision(self, decision: Decision, entry: Entry) -> None:
        self.decisions[entry.position] = decision.decider
        for intent in decision.intents:
            if isinstance(intent, LaunchInstance):
                self._of(intent.claim).orders.append((entry.position, intent))
        result = decision.result
        if isinstance(result, DisruptResult | MovesResult | MoveResult):
            for verdict in result.verdicts:
                self._of(verdict.claim).verdicts.append(Judged(entry.position, entry.at, verdict))
        if isinstance(result, MovesResult):
            for index, move in enumerate(result.proposed):
                self._proposed(MoveLinks(f"{entry.position}.{index}", entry.position, entry.at, move))
        elif isinstance(result, MoveResult):
            self._stepped(result, entry)
        elif isinstance(result, StaticResult):
            self.resized.update((name, (entry.position, result.reason)) for name in result.removed)
        elif isinstance(result, ProvisionResult):
            self._plan(result, entry)

    def _proposed(self, found: MoveLinks) -> None:
        self.moves[found.ref] = found
        for claim in found.move.claims:
            self._of(claim).moves.append(found.ref)

    def _stepped(self, result: MoveResult, entry: Entry) -> None:
        found = self.moves.get(result.move)
        if found is None:  # the record begins after it was proposed
            return
        found.steps.append(MoveStep(entry.position, entry.at, result.step, result.reason))
        if result.begun is not None:
            found.move = result.begun
            for new in result.begun.replacements:
                self._of(new.name).replaces = found.ref

    def _plan(self, result: ProvisionResult, entry: Entry) -> None:
        if result.repeats:
            self.repeated[result.repeats] = entry.position
            return
        for claim in result.claims:
            self._looked(claim.pods, entry, NEW_CLAIM, claim.name)
        for placement in result.placements:
            self._looked(placement.pods, entry, EXISTING, placement.claim or placement.node)
        for group in result.unplaced:
            self._looked(group.pods, entry, NO_PLACE)
        for group in result.ignored:
            self._looked(group.pods, entry, IGNORED)
        self._looked(result.truncated, entry, NOT_REACHED)

    def _looked(self, uids: tuple[str, ...], entry: Entry, result: str, place: str = "") -> None:
        for uid in uids:
            found = self.pods.get(uid)
            if found is not None:
                found.looks.append(Look(entry.position, entry.at, result, place))

    def _of(self, claim: str) -> ClaimLinks:
        found = self.claims.get(claim)
        if found is None:
            found = self.claims[claim] = ClaimLinks(claim)
        return found

    def _answer(self, answer: LaunchAnswered, entry: Entry) -> None:
        self._of(answer.claim).answers.append((entry.position, answer))

    def _event(self, event: Any, entry: Entry) -> None:
        links = self._of(event.claim)
        links.events.append(entry)
        if isinstance(event, Requested):
            links.node_pool, links.decision, links.pods = event.node_pool, event.decision, event.pods
        elif isinstance(event, Launched | Adopted):
            links.instance = event.instance
            self._instances[event.instance] = event.claim
            links.node_pool = links.node_pool or getattr(event, "node_pool", "")
        if isinstance(event, Registered | Adopted) and event.node:
            links.node = event.node
            self.claims_of_node.setdefault(event.node, []).append(event.claim)
        if isinstance(event, PodEvicted | PodForced) and event.uid in self.pods:
            pod = self.pods[event.uid]
            pod.evicted_from, pod.forced = event.claim, isinstance(event, PodForced)
            pod.left = pod.left or entry.at

    def _interrupted(self, message: InterruptionSeen, entry: Entry) -> None:
        claim = self._instances.get(message.instance)
        if claim is not None:
            self._of(claim).signals.append(entry)

    def _deletion(self, asked: NodeClaimDeletionSeen, entry: Entry) -> None:
        if asked.claim in self.claims:
            self._of(asked.claim).signals.append(entry)


def links_of(store: Store, until: int | None = None) -> Links:
    """The links of all entries up to `until`."""
    links = Links()
    for entry in chain(opening(store), store.scan(0, until)):
        links.apply(entry)
    return links


_HANDLERS: dict[type[Struct], Callable[[Links, Any, Entry], None]] = {
    Pod: Links._pod,
    ObjectGone: Links._gone,
    Decision: Links._decision,
    LaunchAnswered: Links._answer,
    InterruptionSeen: Links._interrupted,
    NodeClaimDeletionSeen: Links._deletion,
    **dict.fromkeys(CLAIM_EVENTS, Links._event),
}
