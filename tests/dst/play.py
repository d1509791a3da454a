"""Plays a scenario and looks whether the invariants hold."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kerf.adapters.simulation.build import START
from kerf.adapters.simulation.cluster.kubelet import FOREIGN
from kerf.adapters.simulation.cluster.node_changes import UNSCHEDULABLE, without_taints
from kerf.adapters.simulation.simulation import Simulation
from kerf.engine.errors import KerfError
from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.record.decisions import Decision, EvictPod, Intent
from kerf.engine.record.entries import Entry
from kerf.engine.record.errors import StoreError, StoreLocked
from kerf.engine.record.observations import InputRefused, Observation
from kerf.engine.runtime.runtime import Runtime
from kerf.engine.state import snapshot
from kerf.engine.state.evolve import evolve
from kerf.engine.state.indexes import Blobs
from kerf.engine.state.load import load
from kerf.replay.verify.verify import verify
from tests.dst.beginning import ODD, STATIC, keeps_its_nodes
from tests.dst.coverage import counted
from tests.dst.scenario import CALM, END, MINUTE, STORM, Scenario
from tests.support.invariants.ledger import Broken
from tests.support.invariants.refusals import refusals_taken_ill
from tests.support.invariants.witness import CLOCKS_OFF, Witness
from tests.support.memory import MemoryStore
from tests.support.records import with_every_claim_due
from tests.support.simulation.run import Run

HEAL = 11 * MINUTE
"""After the storm, users mend what only they can mend."""
LOOKED_AT_AGAIN = 3_000
"""Records of so many entries at most are decided once more with every claim due."""
STILL = 90 * MINUTE
"""The last part of the calm, in which nothing happens any more."""


@dataclass
class Outcome:
    """`exercised`: how often each fault struck and each feature was seen."""

    scenario: Scenario
    broken: list[Broken] = field(default_factory=list)
    exercised: Counter[str] = field(default_factory=Counter)
    run: Run | None = None
    store: MemoryStore | None = None


class Play(Run):
    """A run with a witness, which is left when the run ends in an error, too."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.witness: Witness | None = None
        self.late: list[Broken] = []
        super().__init__(
            [*scenario.documents, scenario.timeline],
            until=STORM + CALM + END,
            seed=scenario.seed,
            faults=scenario.faults,
            settings=scenario.settings,
            forgets=scenario.forgets,
            reservations=scenario.reservations,
            slices=scenario.slices,
        )

    def prepare(self, simulation: Simulation) -> None:
        self.witness = Witness(simulation, self._entries, self._known, self._life, self._shape)
        clock = simulation.clock
        for begin, end in self.scenario.outages:
            clock.at(START + begin, "store fails", lambda: self._fail(StoreLocked("locked")))
            clock.at(START + end, "store is back", lambda: self._fail(None))
        if self.scenario.forgets:
            at = random.Random(self.scenario.seed).randrange(5 * MINUTE, STORM)
            clock.at(START + at, "a NodeClaim is lost with the record", lambda: self._lose_claim(simulation))
        clock.at(START + STORM + HEAL, "users mend", lambda: _heal(simulation, _full(self.scenario)))
        clock.at(START + STORM + CALM - 1, "calm is over", lambda: self._look(simulation))

    def _office(self, now: int) -> Runtime:
        """A process that cannot open the record does not begin."""
        self._fail(None)
        if self.scenario.ahead and self.driver.offices == 2:
            Runtime(
                self.store, holder="old", settings=self.settings, record="", engine="old", now=now + self.scenario.ahead
            )
        return super()._office(now)

    def after_turn(self, now: int, observations: Sequence[Observation], intents: Sequence[tuple[str, Intent]]) -> None:
        assert self.witness is not None
        self.witness.catch_up()

    def _fail(self, error: StoreError | None) -> None:
        self.memory.fail_with = error

    def _lose_claim(self, simulation: Simulation) -> None:
        """The process dies with its record, and somebody takes a NodeClaim away, finalizer and all, and deletes its
        Node (W-80, L-238, L-239)."""
        cluster = simulation.cluster
        there = [(name, claim.node) for name, claim in cluster.claims.items() if claim.node in cluster.api.nodes]
        if there and self.driver.runtime is not None:
            name, node = there[0]
            self.driver._die()
            del cluster.claims[name]
            cluster.ask_node_deletion(node, "kubectl")

    def _entries(self, after: int) -> Iterator[Entry]:
        return self.store.scan(after)

    def _life(self) -> tuple[int, int]:
        return self.driver.deaths, len(self.records)

    def _known(self, uid: str) -> str:
        pod = self.runtime.state.facts.pods.get(uid)
        return pod.node if pod is not None else ""

    def _shape(self, digest: str) -> PodShape:
        return self.runtime.state.indexes.blobs.shape(digest)

    def _look(self, simulation: Simulation) -> None:
        self.late += _at_rest(self.scenario, simulation)
        now, claims = simulation.clock.now, self.runtime.state.facts.claims
        host = simulation.host
        if self.runtime.state.facts.clocks_differ or abs(host.now - now) > CLOCKS_OFF:
            what = f"the time is {host.now - now} ms off, and the clocks are right"
            self.late.append(Broken("clocks that agree are believed", what, 0, now))
        alive = (instance.machine for instance in simulation.cloud.alive())
        leaked = [instance.instance for instance in alive if instance.claim not in claims]
        self.late += [Broken("no instance leaked", f"{name} runs, and no claim has it", 0, now) for name in leaked]


def play(scenario: Scenario) -> Outcome:
    outcome = Outcome(scenario)
    run = Play.__new__(Play)
    try:
        run.__init__(scenario)  # type: ignore[misc]
    except (KerfError, AssertionError, KeyError, RuntimeError, ValueError, AttributeError) as error:
        at = run.simulation.clock.now
        position = run.store.last_position()
        outcome.broken.append(Broken("no crash", f"{type(error).__name__}: {error}", position, at))
    outcome.run, outcome.store = run, run.memory
    witness = run.witness
    assert witness is not None
    witness.catch_up()
    outcome.broken += witness.broken
    if not any(broken.invariant == "no crash" for broken in outcome.broken):
        outcome.broken += run.late
        outcome.broken += _still(run)
        outcome.broken += _over(scenario, run)
        outcome.broken += _sound(scenario, run)
    outcome.broken += _launched_once(run)
    outcome.exercised = _exercised(scenario, run, witness)
    return outcome


def _heal(simulation: Simulation, full: set[str]) -> None:
    """Kubelets that fell silent for good are started again, nodes that will never be ready are deleted, cordons taken
    off; and somebody else's taints from nodes of NodePools that may be `full` of them."""
    cluster = simulation.cluster
    for name in list(cluster.api.nodes):
        node, machine = cluster.api.nodes[name], cluster.kubelets.machine_of(name)
        if UNSCHEDULABLE in node.taints:
            cluster.cordon(name, on=False)
        for condition in node.conditions:
            cluster.lifecycle.report(name, condition.type, "True", None)
        if not cluster.kubelets.answers(name):
            cluster.lifecycle.recover(name)
        elif machine is not None and not node.ready and simulation.clock.now - node.created > 5 * MINUTE:
            cluster.ask_claim_deletion(machine.claim, "kubectl")
        if machine is not None and machine.node_pool in full and FOREIGN in cluster.api.nodes[name].taints:
            cluster.api.put(without_taints(cluster.api.nodes[name], FOREIGN.same))


def _full(scenario: Scenario) -> set[str]:
    """NodePools that have a limit and keep nodes on which nothing runs: these may use up all that there may be."""
    pools = [document for document in scenario.documents if document.get("kind") == "NodePool"]
    limited = {pool["metadata"]["name"] for pool in pools if "limits" in pool["spec"]}
    return _kept(scenario) & limited


# ── the end of the calm ────────────────────────────────────────────────────────────────────────────────────────────


def _at_rest(scenario: Scenario, simulation: Simulation) -> list[Broken]:
    """Every pod that can run does, and no node is between two states but those whose pods nobody may evict."""
    api, now = simulation.cluster.api, simulation.clock.now
    broken = []
    for workload in list(simulation.cluster.workloads._workloads.values()):
        if workload.name in ("giant", ODD):
            continue
        pods = [pod for pod in api.pods_of(workload.uid) if not pod.deleting]
        running = sum(pod.phase == "Running" and pod.ready for pod in pods)
        if running != workload.replicas:
            waiting = sorted(pod.name for pod in pods if not pod.ready)
            what = f"{running} of {workload.replicas} pods of {workload.name} run; not {', '.join(waiting[:3])}"
            broken.append(Broken("no pod lost", what, 0, now))
    broken += [
        Broken("no node lost", f"{name} is not ready", 0, now) for name, node in api.nodes.items() if not node.ready
    ]
    return broken


def _still(run: Run) -> list[Broken]:
    """In the last part of the calm nothing happens, and in all of it no more is launched than a fleet or two."""
    start, end = START + STORM + HEAL, START + STORM + CALM
    calm = [entry for entry in run.store.scan() if start <= entry.at < end]
    acting = [entry for entry in calm if _acts(entry)]
    late = [entry for entry in acting if entry.at >= end - STILL]
    broken = []
    if late:
        kinds = Counter(entry.type for entry in late)
        what = ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items()))
        broken.append(Broken("the run ends still", what, late[0].position, late[0].at))
    nodes = len([i for i in run.simulation.cloud.instances.values() if i.launched < end and not 0 < i.ended < start])
    launched = [entry for entry in calm if entry.type == "claim.launched"]
    if len(launched) > 20 + nodes:
        what = f"{len(launched)} launches in the calm, of {nodes} nodes that there were"
        broken.append(Broken("no oscillation", what, launched[-1].position, launched[-1].at))
    return broken + [Broken(name, what, calm[-1].position, calm[-1].at) for name, what in refusals_taken_ill(calm)]


def _acts(entry: Entry) -> bool:
    """An eviction that a budget never allows is asked for again and again, for good (D-142)."""
    if isinstance(entry.payload, Decision):
        return any(not isinstance(intent, EvictPod) for intent in entry.payload.intents)
    return entry.stream.startswith("nodeclaim/")


# ── the end of all ─────────────────────────────────────────────────────────────────────────────────────────────────


def _over(scenario: Scenario, run: Run) -> list[Broken]:
    """Without work nothing is left: no instance, no Node, no claim, no intent; but what may not go."""
    now, facts = run.simulation.clock.now, run.runtime.state.facts
    kept = _kept(scenario)
    alive = [i.machine for i in run.simulation.cloud.alive() if i.machine.node_pool not in kept]
    left: dict[str, list[str]] = {
        "instances": [f"{machine.instance} ({machine.claim})" for machine in alive],
        "claims": [claim.name for claim in facts.claims.values() if claim.node_pool not in kept],
        "intents": [f"{ref} {type(asked.intent).__name__}" for ref, asked in facts.intents.items()],
        "orphans": list(facts.orphans),
        "found": list(facts.found),
        "moves": list(facts.moves),
    }
    claims = {claim.provider_id for claim in facts.claims.values()}
    left["nodes"] = [n.name for n in run.simulation.cluster.api.nodes.values() if n.provider_id not in claims]
    return [
        Broken("nothing is left over", f"{kind}: {', '.join(names[:4])}", run.store.last_position(), now)
        for kind, names in left.items()
        if names
    ]


def _kept(scenario: Scenario) -> set[str]:
    """NodePools whose empty nodes stay."""
    pools = [d for d in scenario.documents if d.get("kind") == "NodePool" and d["metadata"]["name"] != "bad"]
    return {d["metadata"]["name"] for d in pools if keeps_its_nodes(d) and d["metadata"]["name"] != STATIC}


def _launched_once(run: Run) -> list[Broken]:
    launched = Counter(instance.machine.claim for instance in run.simulation.cloud.instances.values())
    return [Broken("launched once", f"{claim}: {n} instances") for claim, n in launched.items() if n > 1]


def _sound(scenario: Scenario, run: Run) -> list[Broken]:
    """Each record is decided again to the byte; a fold goes on from any snapshot as from zero."""
    broken = []
    for store in run.records or [run.memory]:
        report = verify(store)
        if report.exit_code:
            first = report.divergences[0] if report.divergences else None
            where = first.position if first is not None else 0
            broken.append(
                Broken("the record verifies", f"exit code {report.exit_code}: {first or report.fault}", where)
            )
    store, last = run.memory, run.memory.last_position()
    if last <= LOOKED_AT_AGAIN:
        broken += looks_change_nothing(store)
    dice = random.Random(scenario.seed)
    for cut in sorted(dice.sample(range(last), min(last, 2))):
        data, _ = snapshot.encode(load(store, cut))
        state = snapshot.decode(data, Blobs(store.blob))
        for entry in store.scan(cut):
            evolve(state, entry)
        if snapshot.digest(state) != snapshot.digest(load(store)):
            broken.append(Broken("the fold goes on from a snapshot", f"cut at {cut}", cut))
    return broken


def looks_change_nothing(store: MemoryStore) -> list[Broken]:
    """Each turn is the same where every claim is due: what was looked at in vain before is not in the record."""
    for turn, decided, _ in with_every_claim_due(store):
        if decided != turn:
            return [Broken("looks change nothing", f"turn of {turn[0].position}", turn[0].position, turn[0].at)]
    return []


# ── what was exercised ─────────────────────────────────────────────────────────────────────────────────────────────


def _exercised(scenario: Scenario, run: Run, witness: Witness) -> Counter[str]:
    found: Counter[str] = Counter()
    found.update({f"fault: {name.replace('_', ' ')}": n for name, n in run.simulation.rng.struck.items()})
    found["fault: process killed"] = run.driver.deaths - run.driver.fenced if not scenario.forgets else 0
    found["fault: process killed, record lost"] = run.driver.deaths if scenario.forgets else 0
    found["fault: store cannot be written"] = len(scenario.outages)
    found["fault: writer fenced (KERF103)"] = run.driver.fenced
    found.update({f"act: {name}": n for name, n in witness.acts.items()})
    for ledger in witness.ledgers:
        found.update({f"record: {name}": n for name, n in ledger.seen.items()})
    found.update({f"timeline: {name}": n for name, n in Counter(a["action"] for a in scenario.actions).items()})
    found.update({f"scenario: {name}": n for name, n in scenario.traits.items()})
    for document in scenario.documents:
        found[f"scenario: {document.get('kind')}"] += 1
    for store in run.records or [run.memory]:
        found.update(counted(store.scan()))
    refused = (e.payload for e in run.store.scan() if isinstance(e.payload, InputRefused))
    found.update(Counter(f"refused: {refusal.source} {refusal.code}" for refusal in refused))
    return found
