"""What must hold of every run, whatever goes wrong: checked from the record's entries and from the virtual cluster and
cloud, with nothing of what decides (engine/lifecycle, engine/disruption, engine/scheduling).

`Ledger` reads entries, one after the other, and says what is broken by one of them. `Witness` stands between the
driver and the ports, and looks at the cluster at the moment of each act.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from kerf.adapters.simulation.simulation import Simulation
from kerf.engine.model.pods import Pod
from kerf.engine.model.pools import NodePool
from kerf.engine.nodeclaim import events as ev
from kerf.engine.record.decisions import (
    Decision,
    DeletePod,
    EvictPod,
    Intent,
    LaunchInstance,
    Move,
    MoveResult,
    MovesResult,
    TerminateInstance,
)
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import EffectAnswered, InstanceSeen, ObjectGone
from tests.support.judge_budgets import allowed

VOLUNTARY = {"empty": "Empty", "underutilized": "Underutilized", "drifted": "Drifted"}
DISRUPTED = "karpenter.sh/disrupted"
STUCK = 60_000
"""A pod that is terminating for longer than this after its time is nobody's to wait for (L-202)."""


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
    node: str = ""
    instance: str = ""
    initialized: bool = False
    going: str = ""
    tainted: int = 0
    deadline: int | None = None
    draining: bool = False
    terminating: bool = False
    over: bool = False
    ended_by_cloud: bool = False


@dataclass
class Ledger:
    """The record as its events tell it."""

    lives: dict[str, Life] = field(default_factory=dict)
    pools: dict[str, NodePool] = field(default_factory=dict)
    moves: dict[str, Move] = field(default_factory=dict)
    started: dict[str, Move] = field(default_factory=dict)
    intents: dict[str, Intent] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)  # pods, by uid
    seen: Counter[str] = field(default_factory=Counter)
    last: int = 0

    def read(self, entries: Iterable[Entry]) -> Iterator[Broken]:
        for entry in entries:
            self.last = entry.position
            for name, what in self._entry(entry):
                yield Broken(name, what, entry.position, entry.at)

    def _entry(self, entry: Entry) -> Iterator[tuple[str, str]]:
        payload = entry.payload
        if isinstance(payload, NodePool):
            self.pools[payload.name] = payload
        elif isinstance(payload, ObjectGone) and payload.kind == "nodepool":
            self.pools.pop(payload.key, None)
        elif isinstance(payload, ObjectGone) and payload.kind == "pod":
            self.gone.add(payload.key)
        elif isinstance(payload, Decision):
            for index, intent in enumerate(payload.intents):
                self.intents[f"{entry.position}.{index}"] = intent
            if isinstance(payload.result, MovesResult):
                yield from self._proposed(payload.result, entry)
            elif isinstance(payload.result, MoveResult):
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
            if isinstance(event, ev.Adopted):
                life.node, life.instance, life.initialized = event.node, event.instance, bool(event.initialized)
                life.going, life.deadline, life.tainted = event.why, event.deadline, LONG_AGO if event.why else 0
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
            life.going, life.deadline = event.why, event.deadline
            life.tainted = life.tainted or entry.at
        elif isinstance(event, ev.Untainted):
            life.going, life.deadline, life.tainted = "", None, 0
        elif isinstance(event, ev.DrainStarted):
            life.draining = True
            life.deadline = life.deadline if event.deadline is None else event.deadline
            yield from self._drain(life)
        elif isinstance(
            event, ev.Terminated | ev.InstanceVanished | ev.LaunchFailed | ev.LaunchTimedOut | ev.Cancelled
        ):
            life.over = True
            self._end_moves()

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

    def _proposed(self, result: MovesResult, entry: Entry) -> Iterator[tuple[str, str]]:
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
            taken = set(known.claims) | {new.name for new in known.replacements if new.name}
            if other in self.moves:
                taken |= {place.claim for place in known.placements if place.claim and set(place.pods) - self.gone}
            for claim in sorted(taken & set(move.claims)):
                yield "one move a node", f"{claim} is to go by {ref}, and is part of {other}"

    def _stepped(self, result: MoveResult, entry: Entry) -> Iterator[tuple[str, str]]:
        self.seen[f"move {result.step}"] += 1
        move = self.moves.pop(result.move, None)
        if result.step != "started" or result.begun is None:
            if result.step == "abandoned":
                move = self.started.pop(result.move, None)
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

    def _budget(self, ref: str, move: Move, now: int) -> Iterator[tuple[str, str]]:
        """At this instant no more nodes of a NodePool are on their way out than the budget allows."""
        for name in sorted({self.lives[claim].pool for claim in move.claims}):
            pool = self.pools.get(name)
            if pool is None:
                yield "budget", f"{ref}: NodePool {name} is gone"
                continue
            counted = [x for x in self.lives.values() if x.pool == name and x.initialized and not x.over]
            counted = [x for x in counted if not x.terminating]
            going = sum(bool(x.going) or x.name in move.claims for x in counted)
            most = allowed(pool, VOLUNTARY[move.why], len(counted), now)
            if going > most:
                what = f"{going} of {len(counted)} nodes of {name} go, {most} may ({move.why}, {ref})"
                yield "budget", what


def _pods(move: Move) -> Iterator[str]:
    for placement in move.placements:
        yield from placement.pods
    for new in move.replacements:
        yield from new.pods


# ── acts ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class Witness:
    """Sees each act on the cluster and the cloud. `entries` gives what the record holds after a position, `known` the
    node that the controller knows a pod to be on (uid → name), `life` which process acts, and `record` whose."""

    def __init__(
        self,
        simulation: Simulation,
        entries: Callable[[int], Iterable[Entry]],
        known: Callable[[str], str],
        life: Callable[[], tuple[int, int]],
    ) -> None:
        self.simulation, self._entries, self._known, self._life = simulation, entries, known, life
        self.broken: list[Broken] = []
        self.ledger = Ledger()
        self.acts: Counter[str] = Counter()
        self.ledgers = [self.ledger]
        self._done: dict[tuple[int, str], int] = {}  # (record, "position.index") → the process that has done it
        self._record = 0
        for name in ("register", "initialize", "taint", "untaint", "evict", "delete_pod", "delete_node"):
            self._watch(simulation.writes, name)
        for name in ("launch", "terminate"):
            self._watch(simulation.cloud, name)

    def _watch(self, port: object, name: str) -> None:
        inner = getattr(port, name)

        def act(order: Any, *, intent: str, **more: Any) -> Any:
            self._before(name, order, intent)
            return inner(order, intent=intent, **more)

        setattr(port, name, act)

    def catch_up(self) -> None:
        """Reads what the record has got since the last look."""
        _, record = self._life()
        if record != self._record:
            self._record, self.ledger = record, Ledger()
            self.ledgers.append(self.ledger)
        self.broken += self.ledger.read(self._entries(self.ledger.last))

    def _before(self, name: str, order: Any, intent: str) -> None:
        self.catch_up()
        self.acts[name] += 1
        cause = self.ledger.intents.get(intent)
        given = cause.instance if name == "terminate" and isinstance(cause, TerminateInstance) else cause
        if cause is None or (given != order and not isinstance(order, LaunchInstance)):
            self._break("one cause an act", f"{name} {order} has no intent {intent} in the record")
            return
        process, record = self._life()
        if self._done.get((record, intent)) == process:
            self._break("one cause an act", f"{name} is done twice for {intent}")
        self._done[record, intent] = process
        if isinstance(cause, TerminateInstance):
            self._terminates(cause)
        elif isinstance(order, DeletePod):
            self._forces(order)
        elif isinstance(order, EvictPod):
            self._evicts(order)

    def _break(self, invariant: str, what: str) -> None:
        self.broken.append(Broken(invariant, what, self.ledger.last, self.simulation.clock.now))

    def _terminates(self, order: TerminateInstance) -> None:
        """No instance ends under a pod that was neither evicted nor has run out of time."""
        life, now = self.ledger.lives.get(order.claim), self.simulation.clock.now
        instance = self.simulation.cloud.instances.get(order.instance)
        if life is None or instance is None or instance.ended or not life.node:
            return
        for pod in self.simulation.cluster.api.pods_on(life.node):
            if self._holds(pod, life, now):
                what = f"{order.instance} ({life.name}, {life.going}) ends under {pod.namespace}/{pod.name}"
                self._break("no pod lost", what)

    def _holds(self, pod: Pod, life: Life, now: int) -> bool:
        shape = self.simulation.cluster.api.shape(pod)
        at_home = any(t.operator == "Exists" and t.key in ("", DISRUPTED) for t in shape.tolerations)
        own = pod.owner is not None and pod.owner.kind == "Node"
        if at_home or own or pod.phase in ("Succeeded", "Failed") or self._known(pod.uid) != life.node:
            return False
        return not (pod.deleting and now > pod.deleting + STUCK)

    def _forces(self, order: DeletePod) -> None:
        """No force earlier than a pod's own grace before the deadline, and that a grace period after the taint."""
        life, now = self.ledger.lives[order.claim], self.simulation.clock.now
        pod = self.simulation.cluster.api.pods.get(order.uid)
        if life.deadline is None:
            self._break("no force before the deadline", f"{order.namespace}/{order.name} of {life.name}: there is none")
            return
        own = self.simulation.cluster.api.shape(pod).grace if pod is not None else None
        if pod is not None and not pod.deleting and now < life.deadline - (30 if own is None else own) * 1000:
            self._break(
                "no force before the deadline", f"{order.namespace}/{order.name}: {life.deadline - now} ms early"
            )
        if life.going != "unhealthy" and life.grace is not None and life.deadline < life.tainted + life.grace - 1000:
            self._break("no force before the deadline", f"{life.name}: the deadline is before its grace period")

    def _evicts(self, order: EvictPod) -> None:
        life = self.ledger.lives.get(order.claim)
        pod = self.simulation.cluster.api.pods.get(order.uid)
        node = self.simulation.cluster.api.nodes.get(order.node)
        if life is None and node is not None and not node.deleting:
            self._break("one cause an act", f"{order.namespace}/{order.name} is evicted from {order.node}, which stays")
        if life is not None and not life.draining and life.going:
            self._break("one cause an act", f"{order.namespace}/{order.name} is evicted; {life.name} does not drain")
        if pod is not None and pod.do_not_disrupt == "true":
            self._break("do-not-disrupt", f"{order.namespace}/{order.name} is evicted")
