"""What must hold of every run, whatever goes wrong: checked from the record's entries, with nothing of what decides
(engine/lifecycle, engine/disruption, engine/scheduling). `Ledger` reads entries, one after the other, and says what is
broken by one of them; `witness` looks at the cluster and the cloud besides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.record import claim_events as ev
from kerf.engine.record.decisions import (
    Decision,
    Intent,
    Move,
    MoveStepResult,
    ProposedMovesResult,
    TerminateInstance,
)
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import EffectAnswered, InstanceSeen, ObjectGone
from tests.support.invariants.clocks import ClockRules
from tests.support.invariants.grounds import Picture
from tests.support.invariants.launches import Launches
from tests.support.judges.budgets import allowed

VOLUNTARY = {"empty": "Empty", "underutilized": "Underutilized", "drifted": "Drifted"}
LONG_AGO = 1
"""When a claim that was adopted on its way out was tainted: its record is lost."""


@dataclass(frozen=True)
class Broken:
    """An invariant that does not hold: its name, what happened, and where (a position of the record, 0 for none)."""

    invariant: str
    what: str
    position: int = 0
    at: int = 0


@dataclass
class Life:
    """A NodeClaim by its events."""

    name: str
    pool: str
    grace: int | None = None
    asked: int = 0
    meant: tuple[str, ...] = ()
    """The pods (uids) that it was requested for, and when."""
    node: str = ""
    instance: str = ""
    initialized: bool = False
    going: str = ""
    repaired: bool = False
    """It was unhealthy at some time: repair has no grace period, and a later reason does not give it one."""
    tainted: int = 0
    deadline: int | None = None
    said: int | None = None
    """The deadline as an entry said it last, by the time of the record."""
    draining: bool = False
    terminating: bool = False
    over: bool = False
    ended_by_cloud: bool = False


@dataclass
class Ledger:
    """The record as its events tell it. With a `picture` it also knows on what grounds nodes go by choice."""

    lives: dict[str, Life] = field(default_factory=dict)
    pools: dict[str, NodePool] = field(default_factory=dict)
    moves: dict[str, Move] = field(default_factory=dict)
    started: dict[str, Move] = field(default_factory=dict)
    intents: dict[str, Intent] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)  # pods, by uid
    seen: Counter[str] = field(default_factory=Counter)
    last: int = 0
    launches: Launches = field(default_factory=Launches)
    picture: Picture | None = None
    clocks: ClockRules = field(default_factory=ClockRules)
    true: Callable[[int], int] = int  # the true time of an entry that is read, by the time that it has

    def read(self, entries: Iterable[Entry]) -> Iterator[Broken]:
        for entry in entries:
            self.last = entry.position
            for name, what in self._entry(entry):
                yield Broken(name, what, entry.position, entry.at)

    def _entry(self, entry: Entry) -> Iterator[tuple[str, str]]:
        payload = entry.payload
        if self.picture is not None:
            self.picture.see(payload)
        yield from self.launches.see(payload)
        yield from self.clocks.see(entry, self.true(entry.at))
        if isinstance(payload, NodePool):
            self.pools[payload.name] = payload
        elif isinstance(payload, ObjectGone) and payload.kind == "nodepool":
            self.pools.pop(payload.key, None)
        elif isinstance(payload, ObjectGone) and payload.kind == "pod":
            self.gone.add(payload.key)
        elif isinstance(payload, Decision):
            for index, intent in enumerate(payload.intents):
                self.intents[f"{entry.position}.{index}"] = intent
            if isinstance(payload.result, ProposedMovesResult):
                yield from self._proposed(payload.result, entry)
            elif isinstance(payload.result, MoveStepResult):
                yield from self._stepped(payload.result, entry)
        elif isinstance(payload, EffectAnswered) and payload.ok:
            asked = self.intents.get(payload.intent)
            if isinstance(asked, TerminateInstance) and asked.claim in self.lives:
                self.lives[asked.claim].terminating = True
        elif isinstance(payload, InstanceSeen) and payload.status in ("terminated", "gone"):
            for life in self.lives.values():
                life.terminating |= life.instance == payload.instance
        elif entry.stream.startswith("nodeclaim/"):
            yield from self._claim(payload, entry)

    # ── claims ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _claim(self, event: Any, entry: Entry) -> Iterator[tuple[str, str]]:
        self.seen[entry.type] += 1
        name = event.claim
        if isinstance(event, ev.Requested | ev.Adopted):
            if name in self.lives:
                yield "one life", f"{name} begins a second time"
            life = self.lives[name] = Life(name, event.node_pool, event.termination_grace_period)
            if isinstance(event, ev.Requested):
                life.asked, life.meant = entry.at, event.pods
            if isinstance(event, ev.Adopted):
                life.node, life.instance, life.initialized = event.node, event.instance, bool(event.initialized)
                life.going = event.why
                self._set_deadline(life, event.deadline, entry)
                life.tainted = LONG_AGO if event.why else 0
            return
        life = self.lives[name]
        if life.over:
            yield "one life", f"{name} is over, and yet: {entry.type}"
        if isinstance(event, ev.Launched):
            life.instance = event.instance
        elif isinstance(event, ev.Registered):
            life.node = event.node
        elif isinstance(event, ev.Initialized):
            life.initialized = True
        elif isinstance(event, ev.Tainted | ev.ReasonRaised):
            self.seen[f"why {event.why}"] += 1
            life.going = event.why
            self._set_deadline(life, event.deadline, entry)
            life.repaired = life.repaired or event.why == "unhealthy"
            life.tainted = life.tainted or self.true(entry.at)
            yield from self._condemned(life)
        elif isinstance(event, ev.Untainted):
            life.going, life.deadline, life.said, life.tainted, life.repaired = "", None, None, 0, False
        elif isinstance(event, ev.DrainStarted):
            life.draining = True
            if event.deadline is not None:
                self._set_deadline(life, event.deadline, entry)
            yield from self._drain(life)
        elif isinstance(
            event, ev.Terminated | ev.InstanceVanished | ev.LaunchFailed | ev.LaunchTimedOut | ev.Cancelled
        ):
            life.over = True
            self._end_moves()

    def _set_deadline(self, life: Life, deadline: int | None, entry: Entry) -> None:
        """The deadline by the true time: it is as far from the entry that says it. One that a later reason repeats was
        counted from the time of the first."""
        if deadline is None or deadline != life.said:
            life.deadline = deadline if deadline is None else self.true(entry.at) + deadline - entry.at
        life.said = deadline

    def _condemned(self, life: Life) -> Iterator[tuple[str, str]]:
        """Whoever goes by choice goes by a move that has started; only a grace period makes a deadline then."""
        by_choice = VOLUNTARY.get(life.going)
        if by_choice and not any(life.name in move.claims for move in self.started.values()):
            yield "moves", f"{life.name} is {life.going}, and no move of it has started"
        if (by_choice or life.going == "expired") and life.grace is None and life.deadline is not None:
            yield "no force before the deadline", f"{life.name} ({life.going}) has a deadline, and no grace period"

    def _drain(self, life: Life) -> Iterator[tuple[str, str]]:
        """Replacement first: whoever goes by choice goes when all that replaces it is in service."""
        for ref, move in self.started.items():
            if life.name in move.claims and VOLUNTARY.get(life.going) and life.going == move.why:
                for new in move.replacements:
                    there = self.lives.get(new.name)
                    if there is None or not there.initialized or there.over:
                        yield "replacement first", f"{life.name} drains before {new.name} is in service (move {ref})"
        self._end_moves()

    def _end_moves(self) -> None:
        done = [
            ref
            for ref, move in self.started.items()
            if all(self.lives[n].draining or self.lives[n].over or not self.lives[n].going for n in move.claims)
        ]
        for ref in done:
            del self.started[ref]

    # ── moves ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _proposed(self, result: ProposedMovesResult, entry: Entry) -> Iterator[tuple[str, str]]:
        placed = Counter(uid for move in result.proposed for uid in _pods(move))
        for uid, times in placed.items():
            if times > 1:
                yield "one place a pod", f"{uid} has {times} places in one pass"
        for index, move in enumerate(result.proposed):
            yield from self._alone(move, f"{entry.position}.{index}")
            self.moves[f"{entry.position}.{index}"] = move
            self.seen[f"proposed {move.why}"] += 1

    def _alone(self, move: Move, ref: str) -> Iterator[tuple[str, str]]:
        """No node hosts two moves: none is to go twice, and none goes that another proposal builds on. (Once a move has
        started, its pods may have gone elsewhere: whoever takes its nodes looks where they go now.)"""
        for other, known in {**self.moves, **self.started}.items():
            if all(self.lives[claim].over for claim in known.claims):
                continue  # nobody is left to move
            taken = set(known.claims) | {new.name for new in known.replacements if new.name}
            if other in self.moves:
                taken |= {place.claim for place in known.placements if place.claim and set(place.pods) - self.gone}
            for claim in sorted(taken & set(move.claims)):
                yield "one move a node", f"{claim} is to go by {ref}, and is part of {other}"

    def _stepped(self, result: MoveStepResult, entry: Entry) -> Iterator[tuple[str, str]]:
        self.seen[f"move {result.step}"] += 1
        move = self.moves.pop(result.move, None)
        if result.step != "started" or result.begun is None:
            if result.step == "abandoned":
                move = self.started.pop(result.move, None)
                self._break_promises(move)
            if move is None:
                yield "moves", f"{result.move} is {result.step}, and nobody knows it"
            return
        if move is None:
            yield "moves", f"{result.move} starts, and was never proposed"
        begun = self.started[result.move] = result.begun
        for claim in begun.claims:
            if self.lives[claim].going:
                yield (
                    "one move a node",
                    f"{claim} starts to go by {result.move} and is going: {self.lives[claim].going}",
                )
        for place in begun.placements:
            target = self.lives.get(place.claim)
            if target is not None and (target.going or target.over):
                yield "somewhere to go", f"{result.move} puts pods onto {place.claim}, which is going"
        yield from self._budget(result.move, begun, entry.at)
        if self.picture is not None:
            yield from self._grounds(self.picture, result.move, begun, entry)

    def _break_promises(self, move: Move | None) -> None:
        if self.picture is not None and move is not None:
            for uid in _pods(move):
                self.picture.promised.pop(uid, None)

    def _grounds(self, picture: Picture, ref: str, move: Move, entry: Entry) -> Iterator[tuple[str, str]]:
        """Nothing forbids it to go (D-30, D-54), and its pods have a place. Static NodePools replace nodes by
        the like, whatever runs there (D-167)."""
        now = entry.at
        lives = [self.lives[claim] for claim in move.claims]
        for life in lives:
            pool = self.pools.get(life.pool)
            if pool is not None:
                waived = move.why == "drifted" and life.grace is not None
                for what in picture.forbidden(life.node, pool, move.why, now, waived=waived):
                    yield "nothing forbids it", f"{ref} takes {life.name} ({move.why}): {what}"
        bound = [live.node for live in lives if live.pool in self.pools and self.pools[live.pool].replicas is None]
        proposed = int(ref.partition(".")[0])
        for what in picture.homeless(bound, move, now, proposed=proposed, started=entry.position):
            yield "somewhere to go", f"{ref} ({move.why}): {what}"

    def _budget(self, ref: str, move: Move, now: int) -> Iterator[tuple[str, str]]:
        """At this instant no more nodes of a NodePool are on their way out than the budget allows, but for those that
        never came to be used."""
        for name in sorted({self.lives[claim].pool for claim in move.claims}):
            pool = self.pools.get(name)
            if pool is None:
                yield "budget", f"{ref}: NodePool {name} is gone"
                continue
            counted = [x for x in self.lives.values() if x.pool == name and x.initialized and not x.over]
            counted = [x for x in counted if not x.terminating]
            most = allowed(pool, VOLUNTARY[move.why], len(counted), now)
            used = [x for x in counted if not self._ready(x) or not self._unused(x)]
            going = sum(bool(x.going) or x.name in move.claims or not self._ready(x) for x in used)
            if most > 0 and all(x.name not in move.claims for x in used):
                continue
            if going > most:
                what = f"{going} of {len(counted)} nodes of {name} go, {most} may ({move.why}, {ref})"
                yield "budget", what

    def _unused(self, life: Life) -> bool:
        """Pods that it was launched for run where they did before, and none is here."""
        return self.picture is not None and self.picture.unused(life.node, life.meant, life.asked)

    def _ready(self, life: Life) -> bool:
        """Those that are not consume the budgets as well (D-50)."""
        node = self.picture.nodes.get(life.node) if self.picture is not None else None
        return self.picture is None or (node is not None and node.ready)


def _pods(move: Move) -> Iterator[str]:
    for placement in move.placements:
        yield from placement.pods
    for new in move.replacements:
        yield from new.pods
