"""What the decisions of one turn come to: nodes that are launched, nodes that go, pods that get a place or none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import fsum

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.disruption.moves.budget_headroom import BudgetHeadroom
from kerf.engine.disruption.moves.starting_order import starting_rank
from kerf.engine.model.kubernetes.pods import is_reschedulable
from kerf.engine.model.reasons import Reason
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.state_table import GOING
from kerf.engine.record.decisions import (
    Decision,
    DisruptResult,
    Move,
    MoveStepResult,
    PlannedClaim,
    ProposedMovesResult,
    ProvisionResult,
    StaticResult,
    Unplaced,
    Verdict,
)
from kerf.engine.record.entries import Entry
from kerf.engine.scheduling.explain.crowding_daemonsets import CrowdingDaemonSets, crowding_behind
from kerf.engine.state.state import State
from kerf.projections.prose.explanation_codes import ExplanationCode
from kerf.projections.prose.nearest_reasons import nearest_first
from kerf.replay.what_if.next_decision import Course


class NewNode(Struct, frozen=True, kw_only=True):
    """A node that is launched. `instance_type` is the first choice, at `price` USD per hour; `pods` are put on it.
    `replaces` are the nodes that go once it is in service."""

    name: str
    node_pool: str
    instance_type: str
    capacity_types: tuple[str, ...]
    price: float
    pods: tuple[str, ...]
    replaces: tuple[str, ...] = ()


class LeavingNode(Struct, frozen=True, kw_only=True):
    """A node that goes, and why. `evicted` are the pods that need another place."""

    name: str
    node: str
    node_pool: str
    instance_type: str
    price: float
    why: Reason
    evicted: tuple[str, ...]


class Waiting(Struct, frozen=True):
    """Pods that get no place, with the reasons, the nearest to a place first, and for each of these the DaemonSets that
    leave the first pod no type."""

    pods: tuple[str, ...]
    reasons: tuple[Reason, ...]
    crowding: tuple[CrowdingDaemonSets | None, ...] = ()


class Outcome(Struct, frozen=True, kw_only=True):
    """What was decided at `at` (ms since the epoch), by these deciders. If there are none, nothing was up to then.

    `position` is where the record holds just this decision; 0 if it does not. `places` maps each pod that gets a place
    to its node. `stays` says why nodes stay, as far as this decision says it anew. `price` is what all nodes cost then,
    in USD per hour, once nodes that are launched are there and those that go are gone; `evictions` counts pods.
    `beyond_budget` counts the nodes of `leaving` that go in a later round, when the disruption budgets have room.
    """

    at: int
    position: int
    deciders: tuple[str, ...]
    launched: tuple[NewNode, ...]
    leaving: tuple[LeavingNode, ...]
    places: dict[str, str]
    waiting: tuple[Waiting, ...]
    stays: dict[str, Reason]
    price: float
    evictions: int
    beyond_budget: int = 0


def outcome_of(course: Course, recorded: Mapping[int, Decision], prices: Mapping[str, float]) -> Outcome:
    """Return what the next decision comes to. `recorded` are the record's decisions by position; `prices` are USD per
    hour of nodes whose price the change is about."""
    state = course.after
    steps = (entry.payload.result for entry in course.decisions)
    found = _Found(state, frozenset(result.move for result in steps if isinstance(result, MoveStepResult)))
    for entry in course.decisions:
        found.add(entry)
    leaving = tuple(found.leaving[name] for name in sorted(found.leaving))
    made = [entry for entry in course.decisions if recorded.get(entry.position) == entry.payload]
    return Outcome(
        at=course.at,
        position=made[0].position if made else 0,
        deciders=tuple(dict.fromkeys(entry.payload.decider for entry in course.decisions)),
        launched=tuple(found.launched),
        leaving=leaving,
        places=dict(sorted(found.places.items())),
        waiting=tuple(found.waiting),
        stays=dict(sorted((course.stays | found.stays).items())),
        price=_price(state, found, prices),
        evictions=sum(len(node.evicted) for node in leaving),
        beyond_budget=_beyond_budget(found.proposed, state),
    )


def _beyond_budget(moves: Iterable[Move], state: State) -> int:
    """How many nodes of these moves the budgets do not let go at once. More are proposed than may start (D-51)."""
    headroom, beyond = BudgetHeadroom(state), 0
    for move in sorted(moves, key=starting_rank):
        if headroom.allows(move):
            headroom.take(move)
        else:
            beyond += len(move.claims)
    return beyond


def running_price(state: State, prices: Mapping[str, float]) -> float:
    """Return what the nodes that are to stay cost, in USD per hour."""
    return fsum(_price_of(claim, prices) for claim in _staying(state))


def going_claims(state: State) -> tuple[str, ...]:
    """Return the launched claims that go already, by name."""
    return tuple(sorted(c.name for c in state.facts.claims.values() if c.state in GOING and c.launched))


def waiting_pods(state: State) -> frozenset[str]:
    """Return the pods (namespace/name) that wait for a node, and for which none is planned."""
    facts = state.facts
    return frozenset(facts.pods[uid].key for uid in state.indexes.pending if not facts.targets.get(uid))


def changed_prices(before: State, after: State) -> dict[str, float]:
    """Return the price of each claim's offering that is another in the catalogue of `after`."""
    changed = {}
    for name, claim in after.facts.claims.items():
        new = _offered_price(claim, after)
        if new is not None and new != _offered_price(claim, before):
            changed[name] = new
    return changed


def _offered_price(claim: NodeClaim, state: State) -> float | None:
    digest = state.facts.catalogues.get(claim.node_class.key, "")
    kind = state.indexes.blobs.instance_type(digest, claim.instance_type) if digest and claim.instance_type else None
    offerings = kind.offerings if kind is not None else ()
    return next((o.price for o in offerings if (o.zone, o.capacity_type) == (claim.zone, claim.capacity_type)), None)


def _staying(state: State) -> Iterator[NodeClaim]:
    return (claim for _, claim in sorted(state.facts.claims.items()) if claim.state not in GOING)


def _price_of(claim: NodeClaim, prices: Mapping[str, float]) -> float:
    return prices.get(claim.name, claim.price)


def _price(state: State, found: _Found, prices: Mapping[str, float]) -> float:
    """The price once all is carried out. What is only proposed is not in the state yet."""
    staying = [_price_of(claim, prices) for claim in _staying(state) if claim.name not in found.leaving]
    return fsum([*staying, *(new.price for new in found.launched if new.name not in state.facts.claims)])


class _Found:
    """Collects what decisions say. Pods are named by namespace/name."""

    def __init__(self, state: State, stepped: frozenset[str] = frozenset()) -> None:
        """`stepped` are the moves that start in the same turn: their proposals are told by that."""
        self._state, self._stepped = state, stepped
        self.launched: list[NewNode] = []
        self.leaving: dict[str, LeavingNode] = {}
        self.proposed: list[Move] = []
        self.places: dict[str, str] = {}
        self.waiting: list[Waiting] = []
        self.stays: dict[str, Reason] = {}

    def add(self, entry: Entry) -> None:
        result = entry.payload.result
        if isinstance(result, ProvisionResult):
            self._provisioned(result)
        elif isinstance(result, ProposedMovesResult):
            for index, move in enumerate(result.proposed):
                if f"{entry.position}.{index}" not in self._stepped:
                    self.proposed.append(move)
                    self._moves(move, f"new-{index + 1}-")
            self._verdicts(result.verdicts)
        elif isinstance(result, MoveStepResult) and result.begun is not None:
            self._moves(result.begun, "")
        elif isinstance(result, DisruptResult):
            self._verdicts(result.verdicts)
        elif isinstance(result, StaticResult):
            self._launches(result.claims)
            for name in result.removed:
                self._leaves(name, result.reason)

    def _provisioned(self, result: ProvisionResult) -> None:
        self._launches(result.claims)
        for placement in result.placements:
            self.places |= dict.fromkeys(self._keys(placement.pods), placement.node)
        for group in (*result.unplaced, *result.ignored):
            self.waiting.append(self._without_place(group))
        if result.truncated:
            self.waiting.append(Waiting(self._keys(result.truncated), (Reason.of(ExplanationCode.NOT_REACHED),)))

    def _without_place(self, group: Unplaced) -> Waiting:
        reasons = tuple(nearest_first(group.reasons))
        pod = self._state.facts.pods.get(group.pods[0])
        crowding = tuple(crowding_behind(self._state, reason, pod.shape) for reason in reasons if pod is not None)
        return Waiting(self._keys(group.pods), reasons, crowding if any(crowding) else ())

    def _launches(self, claims: Iterable[PlannedClaim], replaces: tuple[str, ...] = ()) -> None:
        for claim in claims:
            pods = self._keys(claim.pods)
            self.places |= dict.fromkeys(pods, claim.name)
            self.launched.append(
                NewNode(
                    name=claim.name,
                    node_pool=claim.node_pool,
                    instance_type=claim.instance_types[0] if claim.instance_types else "",
                    capacity_types=claim.capacity_types,
                    price=claim.price,
                    pods=pods,
                    replaces=replaces,
                )
            )

    def _moves(self, move: Move, prefix: str) -> None:
        named = [
            claim if claim.name else _named(claim, f"{prefix}{number}")
            for number, claim in enumerate(move.replacements, start=1)
        ]
        self._launches(named, move.claims)
        for placement in move.placements:
            self.places |= dict.fromkeys(self._keys(placement.pods), placement.node)
        for name in move.claims:
            self._leaves(name, Reason(move.why))

    def _verdicts(self, verdicts: Iterable[Verdict]) -> None:
        for verdict in verdicts:
            if verdict.action == "remove":
                self._leaves(verdict.claim, verdict.reason)
            elif verdict.action == "keep":
                self.stays[verdict.claim] = verdict.reason

    def _leaves(self, name: str, why: Reason) -> None:
        claim = self._state.facts.claims.get(name)
        if claim is None:
            return
        facts, indexes = self._state.facts, self._state.indexes
        pods = [facts.pods[uid] for uid in indexes.pods_by_node.get(claim.node, {})] if claim.node else []
        self.leaving[name] = LeavingNode(
            name=name,
            node=claim.node,
            node_pool=claim.node_pool,
            instance_type=claim.instance_type,
            price=claim.price,
            why=why,
            evicted=tuple(sorted(pod.key for pod in pods if is_reschedulable(pod))),
        )

    def _keys(self, uids: Iterable[str]) -> tuple[str, ...]:
        pods = self._state.facts.pods
        return tuple(sorted(pods[uid].key if uid in pods else uid for uid in uids))


def _named(claim: PlannedClaim, suffix: str) -> PlannedClaim:
    return replace(claim, name=f"{claim.node_pool}-{suffix}")
