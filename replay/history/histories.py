"""Fold a record into the history of each pod, claim and move: their decisions, nodes, answers and verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct, field

from kerf.engine.model.karpenter.capacity_buffers import CapacityBuffer, virtual_key
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.kinds.watched import POD_DISRUPTION_BUDGET
from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.model.reasons import Reason
from kerf.engine.record.claim_events import (
    CLAIM_EVENTS,
    Adopted,
    InstanceVanished,
    Launched,
    PodEvicted,
    PodForced,
    Registered,
    Requested,
    Tainted,
)
from kerf.engine.record.decisions import (
    Decision,
    DisruptResult,
    LaunchInstance,
    Move,
    MoveStepResult,
    ProposedMovesResult,
    ProvisionResult,
    StaticResult,
    Verdict,
)
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import (
    FAILED,
    ControllerDecided,
    Imported,
    InterruptionSeen,
    LaunchAnswered,
    NodeClaimDeletionSeen,
    NodeClassSeen,
    ObjectGone,
    RecordStarted,
)
from kerf.engine.state.moves import STARTED
from kerf.replay.history.budget_history import BudgetHistory
from kerf.replay.history.pod_histories import PodDecision, PodHistories
from kerf.replay.record_names.named_entries import NamedEntries

NEW_CLAIM, EXISTING, NO_PLACE, IGNORED, NOT_REACHED = "new-claim", "existing-node", "no-place", "ignored", "not-reached"
LATER = "later"
_GOING_EVENTS = (Tainted, InstanceVanished)


class RecordedVerdict(Struct, frozen=True):
    position: int
    at: int
    verdict: Verdict


class MoveStep(Struct, frozen=True):
    """What became of a move that was proposed: started, withdrawn or abandoned."""

    position: int
    at: int
    step: str
    reason: Reason


class MoveHistory(Struct):
    """A move, known as "position.index" of its proposal. `move` is as proposed, and once it has started as carried
    out."""

    ref: str
    position: int
    at: int
    move: Move
    steps: list[MoveStep] = field(default_factory=list)

    def started(self) -> MoveStep | None:
        return next((step for step in self.steps if step.step == STARTED), None)


class ClaimHistory(Struct):
    """One claim. `events` are its claim events; `decision` is the position of its plan (0 for an adopted claim).

    `signals` are observations that may end it. `moves` are the moves that it was a candidate of (`MoveHistory.ref`).
    `replaces` is the move that launched it. `first` and `last` are the positions that it was told at.
    """

    name: str
    node_pool: str = ""
    decision: int = 0
    pods: tuple[str, ...] = ()
    node: str = ""
    instance: str = ""
    events: list[Entry] = field(default_factory=list)
    orders: list[tuple[int, LaunchInstance]] = field(default_factory=list)
    answers: list[tuple[int, LaunchAnswered]] = field(default_factory=list)
    verdicts: list[RecordedVerdict] = field(default_factory=list)
    signals: list[Entry] = field(default_factory=list)
    moves: list[str] = field(default_factory=list)
    replaces: str = ""
    first: int = 0
    last: int = 0

    def happened(self, event: Any) -> None:
        """Take over what a claim event says of the claim."""
        if isinstance(event, Requested):
            self.node_pool, self.decision, self.pods = event.node_pool, event.decision, event.pods
        elif isinstance(event, Launched | Adopted):
            self.instance = event.instance
            self.node_pool = self.node_pool or getattr(event, "node_pool", "")
        if isinstance(event, Registered | Adopted) and event.node:
            self.node = event.node

    def subjects(self) -> list[str]:
        """Return the names of its machine, with their kinds: its own, its node's and its instance's."""
        kinds = (("nodeclaim", self.name), ("node", self.node), ("instance", self.instance))
        return [f"{kind}/{name}" for kind, name in kinds if name]


class Changes(Struct):
    """When what `Histories` has but once was said, in order, each with its position: what was said up to an earlier one
    is found again. `moves` are what moves were like, `replacing` the moves that launched claims."""

    nodes: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    repeats: list[tuple[int, int]] = field(default_factory=list)
    moves: dict[str, list[tuple[int, Move]]] = field(default_factory=dict)
    replacing: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    resized: list[tuple[int, str, Reason]] = field(default_factory=list)
    imported: list[tuple[int, Imported | None]] = field(default_factory=list)
    buffers: list[tuple[int, CapacityBuffer]] = field(default_factory=list)


class Histories:
    """The histories of all pods, claims and moves. Fold entries with `apply`.

    `claims_of_node` maps nodes to the claims that have had them, in their order. Where `named` finds entries of pods,
    no others need to be folded. `whole` are those of the whole record, if these were cut out of them.
    """

    def __init__(self, named: NamedEntries | None = None, whole: Histories | None = None) -> None:
        self.pods, self.whole = PodHistories(named), whole
        self.claims: dict[str, ClaimHistory] = {}
        self.claims_of_node: dict[str, list[str]] = {}
        self.nodes: dict[str, int] = {}  # every node ever seen → the position where it was seen first
        self.decided_nodes: dict[str, Entry] = {}  # node → another controller's latest decision to take it away
        self.repeated: dict[int, int] = {}  # decision → the latest one that came to the same result
        self.decisions: dict[int, str] = {}  # position → decider
        self.moves: dict[str, MoveHistory] = {}
        self.resized: dict[str, tuple[int, Reason]] = {}  # claim → the decision that found it one too many, and why
        self.node_pools: dict[str, int] = {}  # every NodePool ever seen → the position where it was seen first
        self.node_classes: dict[str, int] = {}  # the same of every NodeClass
        self.ended_pools: dict[str, list[Entry]] = {}  # NodePool → the entries that say that it is gone
        self.imported: Imported | None = None  # what the record was made of, if kerf did not write it itself
        self.buffers: dict[str, CapacityBuffer] = {}
        self.budgets: dict[str, BudgetHistory] = {}  # PodDisruptionBudgets, by namespace/name
        self.changes = Changes()
        self._budget_of: dict[str, str] = {}  # uid → its name
        self._instances: dict[str, str] = {}  # instance → its claim
        self._had_to_go: dict[str, Entry] | None = None  # until there is another event of a claim

    def apply(self, entry: Entry) -> None:
        handler = _HANDLERS.get(type(entry.payload))
        if handler is not None:
            handler(self, entry.payload, entry)
        elif entry.type == "node.seen":
            self.nodes.setdefault(entry.payload.name, entry.position)
        elif isinstance(entry.payload, NodePool):
            self.node_pools.setdefault(entry.payload.name, entry.position)
        elif isinstance(entry.payload, NodeClassSeen):
            self.node_classes.setdefault(entry.payload.name, entry.position)
        elif isinstance(entry.payload, CapacityBuffer):
            self.buffers[entry.payload.uid] = entry.payload
            self.changes.buffers.append((entry.position, entry.payload))
        elif isinstance(entry.payload, PodDisruptionBudget):
            self._budget(entry.payload, entry)

    def _budget(self, budget: PodDisruptionBudget, entry: Entry) -> None:
        key = self._budget_of[budget.uid] = budget.key
        self.budgets.setdefault(key, BudgetHistory(key, entry.position)).seen(budget, entry)

    def pod_name(self, uid: str) -> str:
        """Return a pod's namespace/name, also for a pod that only stands for a buffer's room; its uid if it was never
        seen."""
        pod = self.pods.get(uid)
        return pod.key if pod is not None else virtual_key(uid, self.buffers) or uid

    def pod_names(self, uids: Iterable[str]) -> tuple[str, ...]:
        """As `pod_name`, of several pods."""
        named = tuple(uids)
        self.pods.load(named)
        return tuple(self.pod_name(uid) for uid in named)

    def nodes_that_had_to_go(self) -> dict[str, Entry]:
        """Map each node whose claim had to go to the entry that says so."""
        if self._had_to_go is None:
            since = self._had_to_go = {}
            for claim in self.claims.values():
                had_to = next((entry for entry in claim.events if isinstance(entry.payload, _GOING_EVENTS)), None)
                known = since.get(claim.node)
                if claim.node and had_to is not None and (known is None or known.position < had_to.position):
                    since[claim.node] = had_to
        return self._had_to_go

    def _pod(self, pod: Pod, entry: Entry) -> None:
        self.pods.seen(pod, entry)

    def pool_gone(self, name: str, until: int) -> Entry | None:
        """Return the latest end of a NodePool up to a position."""
        return next((entry for entry in reversed(self.ended_pools.get(name, [])) if entry.position <= until), None)

    def _gone(self, gone: ObjectGone, entry: Entry) -> None:
        if gone.kind == "nodepool":
            self.ended_pools.setdefault(gone.key, []).append(entry)
        elif gone.kind == "pod":
            self.pods.gone(gone.key, entry)
        elif gone.kind == POD_DISRUPTION_BUDGET.name and gone.key in self._budget_of:
            self.budgets[self._budget_of[gone.key]].gone(entry)

    def _decision(self, decision: Decision, entry: Entry) -> None:
        self.decisions[entry.position] = decision.decider
        for intent in decision.intents:
            if isinstance(intent, LaunchInstance):
                self._claim(intent.claim, entry).orders.append((entry.position, intent))
        result = decision.result
        if isinstance(result, DisruptResult | ProposedMovesResult | MoveStepResult):
            for verdict in result.verdicts:
                self._claim(verdict.claim, entry).verdicts.append(RecordedVerdict(entry.position, entry.at, verdict))
        if isinstance(result, ProposedMovesResult):
            for index, move in enumerate(result.proposed):
                self._move_proposed(MoveHistory(f"{entry.position}.{index}", entry.position, entry.at, move), entry)
        elif isinstance(result, MoveStepResult):
            self._move_stepped(result, entry)
        elif isinstance(result, StaticResult):
            self.resized.update((name, (entry.position, result.reason)) for name in result.removed)
            self.changes.resized += ((entry.position, name, result.reason) for name in result.removed)
        elif isinstance(result, ProvisionResult):
            self._provisioned(result, entry)

    def _move_proposed(self, move: MoveHistory, entry: Entry) -> None:
        self.moves[move.ref] = move
        self.changes.moves[move.ref] = [(entry.position, move.move)]
        for claim in move.move.claims:
            self._claim(claim, entry).moves.append(move.ref)

    def _move_stepped(self, result: MoveStepResult, entry: Entry) -> None:
        move = self.moves.get(result.move)
        if move is None:  # the record begins after it was proposed
            return
        move.steps.append(MoveStep(entry.position, entry.at, result.step, result.reason))
        if result.begun is not None:
            move.move = result.begun
            self.changes.moves[move.ref].append((entry.position, result.begun))
            for new in result.begun.replacements:
                self._claim(new.name, entry).replaces = move.ref
                self.changes.replacing.setdefault(new.name, []).append((entry.position, move.ref))

    def _provisioned(self, result: ProvisionResult, entry: Entry) -> None:
        if result.repeats:
            self.repeated[result.repeats] = entry.position
            self.changes.repeats.append((entry.position, result.repeats))
            return
        for claim in result.claims:
            self._note_decision(claim.pods, entry, NEW_CLAIM, claim.name)
        for placement in result.placements:
            self._note_decision(placement.pods, entry, EXISTING, placement.claim or placement.node)
        for group in result.unplaced:
            self._note_decision(group.pods, entry, NO_PLACE)
        for group in result.ignored:
            self._note_decision(group.pods, entry, IGNORED)
        for group in result.later:
            self._note_decision(group.pods, entry, LATER)
        self._note_decision(result.truncated, entry, NOT_REACHED)

    def _note_decision(self, uids: tuple[str, ...], entry: Entry, result: str, place: str = "") -> None:
        self.pods.decided(uids, PodDecision(entry.position, entry.at, result, place))

    def _claim(self, name: str, entry: Entry) -> ClaimHistory:
        claim = self.claims.get(name)
        if claim is None:
            claim = self.claims[name] = ClaimHistory(name, first=entry.position)
        claim.last = entry.position
        return claim

    def _answer(self, answer: LaunchAnswered, entry: Entry) -> None:
        self._claim(answer.claim, entry).answers.append((entry.position, answer))

    def _event(self, event: Any, entry: Entry) -> None:
        claim, self._had_to_go = self._claim(event.claim, entry), None
        claim.events.append(entry)
        claim.happened(event)
        if isinstance(event, Launched | Adopted):
            self._instances[event.instance] = event.claim
        if isinstance(event, Registered | Adopted) and event.node:
            self.claims_of_node.setdefault(event.node, []).append(event.claim)
            self.changes.nodes.setdefault(event.node, []).append((entry.position, event.claim))
        if isinstance(event, PodEvicted | PodForced):
            self.pods.evicted(event, entry)

    def _interrupted(self, message: InterruptionSeen, entry: Entry) -> None:
        claim = self._instances.get(message.instance)
        if claim is not None:
            self._claim(claim, entry).signals.append(entry)

    def _deletion(self, asked: NodeClaimDeletionSeen, entry: Entry) -> None:
        if asked.claim in self.claims:
            self._claim(asked.claim, entry).signals.append(entry)

    def _started(self, started: RecordStarted, entry: Entry) -> None:
        self.imported = started.imported
        self.changes.imported.append((entry.position, started.imported))

    def _controller_decided(self, decided: ControllerDecided, entry: Entry) -> None:
        for name in decided.claims:
            self._claim(name, entry).signals.append(entry)
        for node in decided.nodes:
            if decided.action == FAILED:
                self.decided_nodes.pop(node, None)
            else:
                self.decided_nodes[node] = entry


_HANDLERS: dict[type[Struct], Callable[[Histories, Any, Entry], None]] = {
    Pod: Histories._pod,
    ObjectGone: Histories._gone,
    RecordStarted: Histories._started,
    Decision: Histories._decision,
    LaunchAnswered: Histories._answer,
    InterruptionSeen: Histories._interrupted,
    ControllerDecided: Histories._controller_decided,
    NodeClaimDeletionSeen: Histories._deletion,
    **dict.fromkeys(CLAIM_EVENTS, Histories._event),
}
