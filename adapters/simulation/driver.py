"""Run turns in virtual time.

One step: collect what has been observed, make a turn, carry out the intents that it returns, and move the clock to the
next moment at which anything happens. Each outcome comes back as an observation some time later. Nothing is polled on a
period, so a quiet week costs nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from typing import Protocol

from kerf.adapters.simulation.clock import most_frequent
from kerf.adapters.simulation.errors import EndlessLoopError, SimulationError
from kerf.adapters.simulation.faults import KillPoint
from kerf.adapters.simulation.simulation import Simulation
from kerf.engine.model.karpenter.nodeclaim_objects import NodeClaimObject
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.record.decisions import Intent, LaunchInstance, TerminateInstance
from kerf.engine.record.errors import EpochRefused
from kerf.engine.record.observations import InstanceSeen, InstancesListed, Observation, TaggedInstance
from kerf.engine.runtime import carry_out
from kerf.engine.runtime.pod_nominations import PodNominations
from kerf.engine.runtime.proposed_taints import ProposedTaints
from kerf.engine.runtime.runtime import as_asked
from kerf.engine.state.state import State

DESCRIBE_EVERY = 5_000  # while instances are being ended (D-157)
LIST_AFTER = 10_000  # from taking office: by then the first turn has seen what there is
LIST_EVERY = 120_000  # while a listing shows something
STORE_RETRY = 1_000  # while the runtime cannot append
MAX_STEPS = 1_000_000
MAX_STEPS_PER_INSTANT = 1_000


class Runtime(Protocol):
    """What the driver needs of `kerf.engine.runtime.runtime.Runtime`."""

    @property
    def state(self) -> State: ...
    @property
    def ready(self) -> bool: ...
    @property
    def fresh(self) -> bool: ...
    def is_news(self, claim: NodeClaimObject) -> bool: ...
    def listed(self, instances: Sequence[TaggedInstance] | None) -> list[Observation]: ...
    def moved(self) -> Mapping[str, NodeClaim | None]: ...
    def turn(self, observations: Sequence[Observation], now: int) -> list[tuple[str, Intent]]: ...
    def next_due(self) -> int | None: ...
    def unanswered(self) -> list[tuple[str, Intent]]: ...
    def watched_instances(self) -> list[str]: ...
    def instances_in_question(self) -> list[str]: ...
    def token(self, ref: str) -> str: ...


class Listener(Protocol):
    """Is called after each turn, so that a command can show a story while it happens."""

    def __call__(
        self, now: int, observations: Sequence[Observation], intents: Sequence[tuple[str, Intent]]
    ) -> None: ...


class Driver:
    """Runs a simulation. `office` makes a runtime at a given time: at the start, after each death in the fault plan,
    and for each rival controller in it."""

    def __init__(
        self,
        simulation: Simulation,
        office: Callable[[int], Runtime],
        *,
        listener: Listener | None = None,
        steps: int = MAX_STEPS,
    ) -> None:
        self.simulation = simulation
        self.turns = 0
        self.deaths = 0
        self.offices = 0
        self.fenced = 0  # writers that lost their office and were refused (KERF103)
        self._office = office
        self._listener = listener
        self._clock = simulation.clock
        self._runtime: Runtime | None = None
        self._nominating = PodNominations(_no_node_name)
        self._tainting = ProposedTaints()
        self._host = simulation.host
        self._office_at = self._clock.now
        self._outcomes: list[tuple[int, int, Observation, bool]] = []
        self._sent = 0
        self._durable = 0  # intents made durable so far
        self._described: dict[str, str] = {}  # instance → status last reported
        self._describe_at: int | None = None
        self._list_at: int | None = None
        self._polled = False  # whether messages are handed out that are not recorded yet
        self._complete = True  # whether everything handed out is recorded
        self._budget = steps
        self._steps = 0
        self._instant = 0
        self._kept_going: Counter[str] = Counter()
        self._rivals = sorted(simulation.start + after for after in simulation.faults.rivals)

    @property
    def runtime(self) -> Runtime | None:
        """The runtime in office, None while there is none."""
        return self._runtime

    def run(self, until: int | None = None) -> None:
        """Run to `until` (then it is `until`), or until nothing is left that could ever happen.

        Raises `EndlessLoopError` (KERF801) when the step budget is used up.
        """
        while True:
            self._clock.advance(self._clock.now)
            self._step()
            following = self._next()
            if following is None or (until is not None and following > until):
                break
            self._spend(following)
            self._clock.advance(following)
        if until is not None:
            self._clock.advance(until)

    def end_record(self) -> None:
        """Record that the time is now, so that costs and states of the record reach as far as the simulation. The entry
        is a listing of the cloud's instances that differs in nothing from what is known; nothing follows from it."""
        runtime = self._runtime
        if runtime is None or not runtime.ready or self._host.wakes_at is not None:
            return
        if runtime.state.facts.at < self._host.now:
            missing = (claim.instance for _, claim in sorted(runtime.state.facts.claims.items()) if claim.unlisted)
            self._turn(runtime, [Observation(InstancesListed(tuple(missing)))], self._clock.now)

    # ── one step ────────────────────────────────────────────────────────────────────────────────────────────

    def _step(self) -> None:
        now = self._clock.now
        if self._rivals and self._rivals[0] <= now:
            self._rivals.pop(0)
            self._lose_office(now)
        if self._host.wakes_at is not None:
            return
        if self._runtime is None:
            if now < self._office_at:
                return
            batch = self._take_office()
        else:
            batch = self._collect()
        runtime = self._runtime
        if runtime is None:
            return
        batch = self._clocks(runtime) + batch
        due = runtime.next_due()
        if batch or not runtime.ready or (due is not None and due <= self._host.now):
            self._turn(runtime, batch, now)

    def _clocks(self, runtime: Runtime) -> list[Observation]:
        self._host.look()
        news = self._host.news(doubted=runtime.state.facts.clocks_differ)
        return [Observation(payload) for payload in news]

    def _take_office(self) -> list[Observation]:
        """Begin as a new process does: list everything, and look after effects of an earlier one that have no
        outcome."""
        first = not self.deaths
        after = self._clock.now - self.simulation.start
        began = self._host.begin(self.simulation.faults.wrong_by(self.offices, after))
        self.offices += 1
        self._runtime = self._office(began)
        self._host.go_on_from(self._runtime.state.facts.at)
        self._nominating = PodNominations(_no_node_name)
        self._tainting = ProposedTaints()
        self._described.clear()
        anew = (self._runtime.fresh and not first) or not self._complete
        self.simulation.cluster.show_claims(self._runtime.moved())
        if anew:
            self.simulation.cloud.reconnect()
        batch = self.simulation.drain_observations()
        batch += self.simulation.watch.relist(everything=first or anew)
        objects = self.simulation.cluster.claims
        batch += [Observation(claim) for _, claim in sorted(objects.items()) if self._runtime.is_news(claim)]
        self._list_at = self._clock.now + LIST_AFTER
        for ref, intent in self._runtime.unanswered():
            self._carry_out(ref, intent, carry_out.reconcile)
        return batch

    def _collect(self) -> list[Observation]:
        outcomes = self._arrived()
        if outcomes is None:
            return []
        if self.simulation.cloud.demoted:
            self.simulation.cloud.demoted, self._list_at = False, self._clock.now + LIST_AFTER
            self._describe_at = self._describe_at or self._clock.now + DESCRIBE_EVERY
        batch = self.simulation.drain_observations() + outcomes + self.simulation.watch.collect()
        if not self._polled:
            messages = self.simulation.queue.poll()
            self._polled = bool(messages)
            batch += messages
        return batch + self._described_now(batch) + self._listed_now()

    def _arrived(self) -> list[Observation] | None:
        """Return the outcomes that are due, or None if the driver dies over one of them."""
        arrived = []
        while self._outcomes and self._outcomes[0][0] <= self._clock.now:
            _, _, observation, deadly = heappop(self._outcomes)
            if deadly:
                self._die()
                return None
            arrived.append(observation)
        return arrived

    def _turn(self, runtime: Runtime, batch: list[Observation], now: int) -> None:
        self.turns += 1
        self._kept_going.update(type(observation.payload).__name__ for observation in batch)
        intents = runtime.turn(batch, self._host.now)
        self._kept_going.update(type(intent).__name__ for _, intent in intents)
        self._complete = runtime.ready
        if runtime.ready:
            self.simulation.cluster.show_claims(runtime.moved())
            self._nominate(runtime)
            self._taint_proposed(runtime)
        if runtime.ready and self._polled:
            self.simulation.queue.acknowledge()
            self._polled = False
        if self._listener is not None:
            self._listener(now, batch, intents)
        for ref, intent in intents:
            if not self._act(ref, intent):
                return
        watched = runtime.watched_instances()
        if watched and self._describe_at is None:
            self._describe_at = now + DESCRIBE_EVERY

    def _nominate(self, runtime: Runtime) -> None:
        """Nominate pods before the turn's effects: as in a cluster, a Node is not registered before its pods are told
        of it."""
        if self.simulation.settings.nominations:
            for pod, node in self._nominating.due(runtime.state):
                self.simulation.cluster.nominate(pod, node)

    def _taint_proposed(self, runtime: Runtime) -> None:
        for node, on in self._tainting.due(runtime.state):
            if not self.simulation.cluster.taint_proposed(node, on=on):
                self._tainting.failed(node, on=on)

    # ── effects ─────────────────────────────────────────────────────────────────────────────────────────────

    def _act(self, ref: str, intent: Intent) -> bool:
        """Carry out a new intent. Return False if the driver dies over it."""
        self._durable += 1
        kill = self.simulation.faults.kill_at(self._durable)
        if kill is not KillPoint.BEFORE_EFFECT:
            self._carry_out(ref, intent, carry_out.perform, deadly=kill is KillPoint.BEFORE_RECORD)
        if kill in (KillPoint.BEFORE_EFFECT, KillPoint.AFTER_EFFECT):
            self._die()
            return False
        return True

    def _carry_out(self, ref: str, intent: Intent, how: Callable[..., Observation], *, deadly: bool = False) -> None:
        runtime = self._runtime
        if runtime is None:
            return
        outcome = how(
            ref,
            intent,
            token=runtime.token(ref),
            cluster=self.simulation.writes,
            cloud=self.simulation.cloud,
        )
        self._sent += 1
        heappush(self._outcomes, (self._clock.now + self._latency(ref, intent), self._sent, outcome, deadly))

    def _latency(self, ref: str, intent: Intent) -> int:
        timing = self.simulation.timing
        if isinstance(intent, LaunchInstance):
            recorded = next(self.simulation.launch_answers, None)
            if recorded is not None:
                return recorded
            return timing.launch + self.simulation.rng.between(0, timing.launch // 2, "launch", ref)
        return timing.terminate if isinstance(intent, TerminateInstance) else timing.write

    def _die(self) -> None:
        """End the process with all that it had in memory: answers on their way, and the turn to come."""
        self.deaths += 1
        self._runtime = None
        self._outcomes.clear()
        self._describe_at = self._list_at = None
        self._polled = False
        self._office_at = self._clock.now + self.simulation.faults.restart

    def _lose_office(self, now: int) -> None:
        """Let another process take office. The old one does not know it yet and makes one more turn: all its appends
        must be refused, and it must not act."""
        old = self._runtime
        if old is None or not self._complete:
            return
        its_time = self._host.now
        late = [observation for _, _, observation, _ in sorted(self._outcomes, key=lambda each: each[:2])]
        self._die()
        batch = self._take_office()
        try:
            acts = old.turn(batch + late, its_time)
        except EpochRefused:
            self.fenced += 1
            acts = []
        if acts:
            raise SimulationError(f"a writer out of office acts: {acts[0]}", where=f"time {now}")
        if self._runtime is not None:
            self._turn(self._runtime, batch, now)

    # ── instances ───────────────────────────────────────────────────────────────────────────────────────────

    def _described_now(self, batch: Iterable[Observation]) -> list[Observation]:
        """Look up instances that are being ended or may have lost their reservation, every five seconds, and the
        instance of a node that has stopped being ready."""
        suspects = [_instance(o.payload) for o in batch if isinstance(o.payload, Node) and _node_is_lost(o.payload)]
        runtime, in_question = self._runtime, list[str]()
        if runtime is not None and self._describe_at is not None and self._describe_at <= self._clock.now:
            in_question = runtime.instances_in_question()
            watched = runtime.watched_instances() + in_question
            suspects += watched
            self._describe_at = self._clock.now + DESCRIBE_EVERY if watched else None
        seen = self.simulation.cloud.describe(sorted(set(suspects))) if suspects else []
        answers = (as_asked(instance, in_question) for instance in seen)
        return [Observation(instance) for instance in answers if self._is_news(instance)]

    def _listed_now(self) -> list[Observation]:
        """Compare the cloud's instances with the record: soon after taking office, and again while they differ."""
        if self._runtime is None or self._list_at is None or self._clock.now < self._list_at:
            return []
        found = self._runtime.listed(self.simulation.cloud.listing())
        self._list_at = self._clock.now + LIST_EVERY if found else None
        return found

    def _is_news(self, instance: InstanceSeen) -> bool:
        if self._described.get(instance.instance) == instance.status and not instance.capacity_type:
            return False
        self._described[instance.instance] = instance.status
        return True

    # ── time ────────────────────────────────────────────────────────────────────────────────────────────────

    def _next(self) -> int | None:
        """Return the next moment at which anything happens."""
        now = self._clock.now
        times = [self._clock.next_due(), self._rivals[0] if self._rivals else None]
        if self._host.wakes_at is not None:
            times.append(self._host.wakes_at)
        elif self._runtime is None:
            times.append(self._office_at)
        else:
            times += [self.simulation.watch.next_due(), self._describe_at, self._list_at]
            due = self._runtime.next_due() if self._runtime.ready else None
            times += [self._host.when(due) if due is not None else None, self._host.next_look()]
            times.append(self._outcomes[0][0] if self._outcomes else None)
            times.append(now if self.simulation.queue.waiting and not self._polled else None)
            times.append(None if self._runtime.ready else now + STORE_RETRY)
        return max(now, min(known)) if (known := [time for time in times if time is not None]) else None

    def _spend(self, following: int) -> None:
        self._steps += 1
        self._instant = self._instant + 1 if following == self._clock.now else 0
        if self._instant <= MAX_STEPS_PER_INSTANT and self._steps <= self._budget:
            return
        where = f"{self._steps} steps" if self._steps > self._budget else f"{self._instant} steps at one instant"
        raise EndlessLoopError(
            f"the simulation does not come to rest after {where}; what kept going: {most_frequent(self._kept_going)}",
            where=f"time {self._clock.now}",
            hint="Look at the record's last entries; if this is no loop, allow more steps",
        )


def _no_node_name(claim: NodeClaim) -> str:
    """Say that a claim's node name is not known before it joins, as with EC2."""
    return ""


def _node_is_lost(node: Node) -> bool:
    """Whether the node was ready once and is not now, or somebody deletes it."""
    return bool(node.provider_id) and ((not node.ready and node.ready_since > 0) or node.deleting > 0)


def _instance(node: Node) -> str:
    return node.provider_id.rpartition("/")[2]
