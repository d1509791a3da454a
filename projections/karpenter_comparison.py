"""Compare what kerf decided in observe mode with what Karpenter did, from the record alone.

A *batch* is the pods that one plan was the first to put on new nodes. Karpenter's nodes for a batch are those that its
pods came to run on and that were made since the first of these pods was seen waiting. Each node counts in one batch
only. Pods that found room on other nodes are counted apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum

from msgspec import Struct

from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.record import claim_events as ev
from kerf.engine.record.decisions import (
    Decision,
    DisruptResult,
    Move,
    MoveStepResult,
    ProposedMovesResult,
    ProvisionResult,
    Result,
    Verdict,
)
from kerf.engine.record.entries import Entry

UNREMOVED_AFTER = ("move-proposed", "held-back")
"""Verdicts on nodes that kerf wants to remove and only waits to."""


class AutoscalerAnswer(Struct, frozen=True):
    """What one autoscaler did for a batch: new nodes, and their price in USD per hour.

    `took` is the time from the first pod's waiting to kerf's decision, or to the launch of Karpenter's first node, in
    ms. It is None where there is none.
    """

    nodes: int
    price: float
    took: int | None = None


class Batch(Struct, frozen=True):
    """The pods of one plan, and what each autoscaler did for them.

    `at` is when the first pod was seen waiting (ms since the epoch), `decision` the position of the plan. `bound`
    counts pods that run; `elsewhere` counts those of them on older nodes. `bound_in` is the time until the last was
    bound, in ms, None while some wait.
    """

    decision: int
    at: int
    pods: int
    kerf: AutoscalerAnswer
    karpenter: AutoscalerAnswer
    bound: int = 0
    elsewhere: int = 0
    bound_in: int | None = None


class Removal(Struct, frozen=True):
    """A node that Karpenter removed.

    `kerf` is "remove" or "keep", or "" where kerf had no verdict. `reason` is kerf's code, `since` when kerf came to
    that verdict (ms since the epoch).
    """

    claim: str
    at: int
    karpenter: str
    kerf: str = ""
    reason: str = ""
    since: int = 0

    @property
    def agreed(self) -> bool:
        return self.kerf == "remove"


class UnremovedNode(Struct, frozen=True):
    """A node that kerf would have removed for `reason`, and that Karpenter still has."""

    claim: str
    reason: str
    since: int
    price: float


class Comparison(Struct, frozen=True):
    """The whole comparison. `until` is the time of the last entry. `wanted` are nodes that kerf would have removed."""

    until: int
    batches: tuple[Batch, ...] = ()
    removals: tuple[Removal, ...] = ()
    wanted: tuple[UnremovedNode, ...] = ()


class _Claim(Struct):
    price: float
    at: int
    node: str = ""


class _Planned(Struct):
    decision: int
    at: int
    decided: int
    pods: tuple[str, ...]
    nodes: int
    price: float


class _LatestVerdict(Struct, frozen=True):
    action: str
    reason: str
    at: int


class ComparisonFold:
    """Folds the comparison. Give it entries with `apply`, then ask for the `report`."""

    def __init__(self) -> None:
        self._until = 0
        self._waiting: dict[str, int] = {}  # pod → when it was first seen waiting
        self._bound: dict[str, tuple[str, int]] = {}  # pod → node, when
        self._claims: dict[str, _Claim] = {}  # also those that are over
        self._claim_of: dict[str, str] = {}  # node → claim
        self._there: dict[str, None] = {}  # claims that are not over
        self._planned: list[_Planned] = []
        self._batched: set[str] = set()
        self._proposed: dict[str, Move] = {}
        self._opinions: dict[str, _LatestVerdict] = {}
        self._removals: list[Removal] = []

    def apply(self, entry: Entry) -> None:
        payload, self._until = entry.payload, entry.at
        match payload:
            case Pod():
                self._pod(payload, entry.at)
            case Decision():
                self._decided(payload.result, entry)
            case ev.Adopted():
                self._claims[payload.claim] = _Claim(payload.price, entry.at)
                self._there[payload.claim] = None
                self._runs(payload.claim, payload.node)
            case ev.Registered():
                self._runs(payload.claim, payload.node)
            case ev.Tainted():
                self._removed(payload.claim, payload.why, entry.at)
            case ev.Untainted():
                self._removals = [removal for removal in self._removals if removal.claim != payload.claim]
            case ev.Terminated() | ev.InstanceVanished():
                if isinstance(payload, ev.InstanceVanished):
                    self._removed(payload.claim, "vanished", entry.at)
                self._there.pop(payload.claim, None)
            case _:
                return

    def _decided(self, result: Result, entry: Entry) -> None:
        match result:
            case ProvisionResult():
                self._plan(result, entry)
            case DisruptResult():
                self._judged(result.verdicts, entry.at)
            case ProposedMovesResult():
                self._judged(result.verdicts, entry.at)
                for index, move in enumerate(result.proposed):
                    self._proposed[f"{entry.position}.{index}"] = move
                    self._want(move, entry.at)
            case MoveStepResult():
                self._stepped(result, entry.at)
            case _:
                return

    def report(self) -> Comparison:
        counted: set[str] = set()
        batches = tuple(self._batch(planned, counted) for planned in self._planned)
        gone = {removal.claim for removal in self._removals}
        unremoved = tuple(
            UnremovedNode(name, opinion.reason, opinion.at, self._claims[name].price)
            for name, opinion in sorted(self._opinions.items())
            if opinion.action == "remove" and name in self._there and name not in gone
        )
        return Comparison(self._until, batches, tuple(self._removals), unremoved)

    # ── pods and plans ──────────────────────────────────────────────────────────────────────────────────────

    def _pod(self, pod: Pod, at: int) -> None:
        if pod.node:
            self._bound.setdefault(pod.uid, (pod.node, at))
        elif pod.unschedulable:
            self._waiting.setdefault(pod.uid, at)

    def _runs(self, claim: str, node: str) -> None:
        if node:
            self._claim_of[node] = claim
            if claim in self._claims:
                self._claims[claim].node = node

    def _plan(self, result: ProvisionResult, entry: Entry) -> None:
        fresh = [claim for claim in result.claims if not self._batched.issuperset(claim.pods)]
        pods = tuple(uid for claim in fresh for uid in claim.pods if uid not in self._batched)
        if not pods:
            return
        self._batched.update(pods)
        at = min((self._waiting[uid] for uid in pods if uid in self._waiting), default=entry.at)
        price = fsum(claim.price for claim in fresh)
        self._planned.append(_Planned(entry.position, at, entry.at, pods, len(fresh), price))

    def _batch(self, planned: _Planned, counted: set[str]) -> Batch:
        bound = [self._bound[uid] for uid in planned.pods if uid in self._bound]
        claims = [self._claim_of.get(node, "") for node, _ in bound]
        karpenter_claims = sorted({name for name in claims if name and self._claims[name].at >= planned.at} - counted)
        counted.update(karpenter_claims)
        times = [self._claims[name].at - planned.at for name in karpenter_claims]
        karpenter = AutoscalerAnswer(
            len(karpenter_claims), _usd(self._claims[name].price for name in karpenter_claims), min(times, default=None)
        )
        elsewhere = sum(not name or self._claims[name].at < planned.at for name in claims)
        last = max((at for _, at in bound), default=planned.at) - planned.at
        return Batch(
            decision=planned.decision,
            at=planned.at,
            pods=len(planned.pods),
            kerf=AutoscalerAnswer(planned.nodes, _usd([planned.price]), planned.decided - planned.at),
            karpenter=karpenter,
            bound=len(bound),
            elsewhere=elsewhere,
            bound_in=last if len(bound) == len(planned.pods) else None,
        )

    # ── removals ────────────────────────────────────────────────────────────────────────────────────────────

    def _judged(self, verdicts: Iterable[Verdict], at: int) -> None:
        for verdict in verdicts:
            if verdict.action in ("keep", "remove") and verdict.reason.code not in UNREMOVED_AFTER:
                reason = verdict.method if verdict.action == "remove" else verdict.reason.code
                self._opine(verdict.claim, _LatestVerdict(verdict.action, reason, at))

    def _want(self, move: Move, at: int) -> None:
        for claim in move.claims:
            self._opine(claim, _LatestVerdict("remove", move.why, at))

    def _opine(self, claim: str, opinion: _LatestVerdict) -> None:
        """Note kerf's verdict. One that only repeats the last keeps its time."""
        before = self._opinions.get(claim)
        if before is None or (before.action, before.reason) != (opinion.action, opinion.reason):
            self._opinions[claim] = opinion

    def _stepped(self, result: MoveStepResult, at: int) -> None:
        if result.begun is not None:
            self._want(result.begun, at)
        else:
            for claim in self._proposed[result.move].claims:
                if claim in self._there:
                    self._opinions[claim] = _LatestVerdict("keep", result.reason.code, at)

    def _removed(self, claim: str, reason: str, at: int) -> None:
        if any(removal.claim == claim for removal in self._removals):
            return
        opinion = self._opinions.get(claim)
        if opinion is None:
            self._removals.append(Removal(claim, at, reason))
        else:
            self._removals.append(Removal(claim, at, reason, opinion.action, opinion.reason, opinion.at))


def _usd(prices: Iterable[float]) -> float:
    return round(fsum(prices), 6)
