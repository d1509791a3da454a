"""The driver, with a runtime that does what a test says."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from msgspec import Struct

from kerf.adapters.simulation.build import START
from kerf.adapters.simulation.driver import Driver
from kerf.adapters.simulation.errors import EndlessLoopError
from kerf.adapters.simulation.faults import FaultInjector, FaultPlan, Kill, KillPoint
from kerf.adapters.simulation.simulation import Simulation
from kerf.engine.model.karpenter.nodeclaim_objects import NodeClaimObject
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.record.decisions import Intent, LaunchInstance, TaintNode, TerminateInstance
from kerf.engine.record.observations import (
    EffectAnswered,
    InstanceSeen,
    InterruptionSeen,
    LaunchAnswered,
    Observation,
    TaggedInstance,
)
from kerf.engine.state.indexes import Blobs
from kerf.engine.state.state import Facts, State
from kerf.replay.verify.verify import verify
from tests.support.simulation.run import Run, scale, workshop


class Script:
    """A runtime: at each of the given times it has an intent; it remembers what it was shown and when."""

    def __init__(self, intents: dict[int, Intent]) -> None:
        self.intents = dict(intents)
        self.shown: list[tuple[int, Struct]] = []
        self.watched: list[str] = []
        self.failing_until = 0
        self.left: list[tuple[str, Intent]] = []
        self.ready = True
        self.fresh = False
        self.turns: list[int] = []
        self.state = State(Facts(), Blobs(lambda digest: b""))

    def turn(self, observations: Sequence[Observation], now: int) -> list[tuple[str, Intent]]:
        self.turns.append(now)
        self.shown += [(now, observation.payload) for observation in observations]
        self.ready = now >= self.failing_until
        if not self.ready:
            return []
        due = [when for when in sorted(self.intents) if when <= now]
        return [(f"{when - START}.0", self.intents.pop(when)) for when in due]

    def next_due(self) -> int | None:
        return min(self.intents, default=None)

    def unanswered(self) -> list[tuple[str, Intent]]:
        return self.left

    def is_news(self, claim: NodeClaimObject) -> bool:
        return False

    def listed(self, instances: Sequence[TaggedInstance] | None) -> list[Observation]:
        return []

    def moved(self) -> dict[str, NodeClaim | None]:
        return {}

    def instances_in_question(self) -> list[str]:
        return []

    def watched_instances(self) -> list[str]:
        return self.watched

    def token(self, ref: str) -> str:
        return f"token-{ref}"

    def saw(self, kind: type[Struct]) -> list[tuple[int, Struct]]:
        return [(now - START, payload) for now, payload in self.shown if isinstance(payload, kind)]


Order = Callable[..., LaunchInstance]
MakeNode = Callable[..., Node]


def test_the_first_turn_lists_everything(world: Simulation, node: MakeNode) -> None:
    world.cluster.apply(node("n"))
    script = Script({})
    Driver(world, lambda now: script).run()
    assert [type(payload).__name__ for _, payload in script.shown] == [
        "NodeClassSeen", "CatalogueSeen", "Namespace", "Node",
    ]  # fmt: skip
    assert script.turns == [START]


def test_an_outcome_comes_back_after_its_latency(world: Simulation, order: Order, node: MakeNode) -> None:
    world.cluster.apply(node("n"))
    script = Script({START + 1_000: order(), START + 10_000: TaintNode("c", "n")})
    Driver(world, lambda now: script).run(START + 20_000)
    ((launched, answer),) = script.saw(LaunchAnswered)
    assert isinstance(answer, LaunchAnswered)
    assert 3_000 <= launched <= 4_000
    assert answer.launched == START + 1_000
    assert script.saw(EffectAnswered) == [(10_050, EffectAnswered("10000.0", True, "200"))]
    assert [now for now, payload in script.saw(Node)] == [0, 10_020]


def test_the_clock_stands_at_until_and_never_passes_it(world: Simulation, order: Order) -> None:
    script = Script({START + 1_000: order()})
    driver = Driver(world, lambda now: script)
    driver.run(START + 500)
    assert world.clock.now == START + 500
    assert script.saw(LaunchAnswered) == []
    driver.run(START + 5_000)
    assert len(script.saw(LaunchAnswered)) == 1


def test_instances_being_ended_are_described_every_five_seconds_and_told_when_they_change(
    world: Simulation, order: Order
) -> None:
    name = world.cloud.launch(order(), intent="0.0", token="t").instance
    script = Script({START + 20_000: TerminateInstance("pool-1", name)})
    script.watched = [name]
    driver = Driver(world, lambda now: script)
    driver.run(START + 60_000)
    seen = [(now, i.status) for now, i in script.saw(InstanceSeen) if isinstance(i, InstanceSeen)]
    assert seen == [(5_000, "pending"), (10_000, "running"), (25_000, "shutting-down"), (40_000, "gone")]


def test_a_node_that_is_lost_has_its_instance_looked_at(world: Simulation, order: Order) -> None:
    """So that kerf learns of an instance which vanished, without asking for all of them on a period."""
    script = Script({})
    driver = Driver(world, lambda now: script)
    name = world.cloud.launch(order(), intent="0.0", token="t").instance
    world.clock.at(START + 100_000, "test", lambda: world.cloud.vanish(name))
    driver.run(START + 300_000)
    assert script.saw(InstanceSeen) == [(140_020, InstanceSeen(name, "gone", "pool-1"))]


def test_while_the_store_fails_messages_stay_in_the_queue_and_are_shown_once(world: Simulation) -> None:
    script = Script({})
    script.failing_until = START + 10_000
    world.clock.at(START + 2_000, "test", lambda: world.queue.send("spot_interrupted", "i-1"))
    driver = Driver(world, lambda now: script)
    driver.run(START + 5_000)
    waiting = [world.queue.waiting]
    driver.run(START + 20_000)
    assert [*waiting, world.queue.waiting] == [True, False]
    assert [now for now, _ in script.saw(InterruptionSeen)] == [2_000]
    assert script.turns[-1] == START + 10_000


@pytest.mark.parametrize(
    ("point", "instances"), [(KillPoint.BEFORE_EFFECT, 0), (KillPoint.AFTER_EFFECT, 1), (KillPoint.BEFORE_RECORD, 1)]
)
def test_a_death_loses_the_outcome_and_a_new_runtime_reconciles(
    world: Simulation, order: Order, point: KillPoint, instances: int
) -> None:
    world.faults = FaultPlan(kills=(Kill(1, point),))
    first, second = Script({START + 1_000: order()}), Script({})
    second.left = [("1000.0", order())]
    office = [first, second]
    alive_at_office: list[int] = []

    def take(now: int) -> Script:
        alive_at_office.append(len(world.cloud.alive()))
        return office.pop(0)

    driver = Driver(world, take)
    driver.run(START + 60_000)
    assert driver.deaths == 1
    assert alive_at_office == [0, instances]
    assert first.saw(LaunchAnswered) == []
    ((_, answer),) = second.saw(LaunchAnswered)
    assert isinstance(answer, LaunchAnswered)
    assert answer.adopted is bool(instances)
    assert len(world.cloud.instances) == 1


def test_a_new_runtime_is_told_only_what_the_old_one_had_not_recorded(world: Simulation, node: MakeNode) -> None:
    world.cluster.apply(node("stays"))
    world.cluster.apply(node("goes"))
    world.faults = FaultPlan(kills=(Kill(1, KillPoint.BEFORE_EFFECT),))
    first, second = Script({START + 1_000: TaintNode("c", "stays")}), Script({})
    office = [first, second]
    world.clock.at(START + 2_000, "test", lambda: world.cluster.api.remove(node("goes")))
    Driver(world, lambda now: office.pop(0)).run(START + 60_000)
    assert [type(payload).__name__ for _, payload in second.shown] == ["ObjectGone"]


def test_a_loop_at_one_instant_is_an_error_that_names_what_kept_going(world: Simulation) -> None:
    script = Script({})
    script.next_due = lambda: START  # type: ignore[method-assign]
    with pytest.raises(EndlessLoopError, match=r"KERF801.*steps at one instant.*CatalogueSeen"):
        Driver(world, lambda now: script).run()


def test_a_loop_through_time_uses_up_the_step_budget(world: Simulation, node: MakeNode) -> None:
    world.cluster.apply(node("n"))

    class UnendingTurn(Script):
        def turn(self, observations: Sequence[Observation], now: int) -> list[tuple[str, Intent]]:
            super().turn(observations, now)
            return [(f"{len(self.turns)}.0", TaintNode("c", "n"))]

    script = UnendingTurn({})
    with pytest.raises(EndlessLoopError, match=r"KERF801.*101 steps; what kept going: (EffectAnswered|TaintNode)"):
        Driver(world, lambda now: script, steps=100).run()


def test_kerf103_a_rival_takes_office_and_the_writer_without_one_is_fenced() -> None:
    """Design, idea 4: the first learns of it over its next append, and does nothing more."""
    run = Run(workshop(scale("1m", 5)), faults=FaultPlan(rivals=(62_500,)))
    assert run.driver.fenced == 1
    assert [entry.epoch for entry in run.entries("record.office-taken")] == [1, 2]
    assert len({i.machine.claim for i in run.simulation.cloud.instances.values()}) == len(
        run.simulation.cloud.instances
    )
    assert {pod.phase for pod in run.simulation.cluster.api.pods.values()} == {"Running"}
    assert verify(run.store).exit_code == 0


def test_chance_ends_when_the_plan_says_and_is_counted(world: Simulation) -> None:
    chance = FaultInjector(FaultPlan(no_capacity=1.0, until=1_000), world.rng, world.clock)
    assert chance.strikes("no_capacity", 1)
    world.clock.advance(START + 1_000)
    assert not chance.strikes("no_capacity", 2)
    assert world.rng.struck == {"no_capacity": 1}
