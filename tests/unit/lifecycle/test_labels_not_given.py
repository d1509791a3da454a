"""Labels that launches do not give: counted in the state, told, and no longer launched for (D-125, S-103)."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.model import labels as lbl
from kerf.engine.model.karpenter.nodepools import NodePool, RequirementSpec
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.record.claim_events import Initialized, Launched
from kerf.engine.record.observations import NodeClassSeen, Observation
from kerf.projections.kubernetes_events.decision_events import DecisionEvents
from kerf.projections.kubernetes_events.event import KubernetesEvent
from tests.support.lives import UNREGISTERED
from tests.support.world import NODE_CLASS, Mi, World, pool

PARTITION = "karpenter.k8s.aws/placement-group-partition"
WANTED = RequirementSpec(PARTITION, "In", ("1",))


def asking() -> NodePool:
    return replace(pool(), requirements=(*pool().requirements, WANTED))


class Partitions(World):
    """A world whose pods ask for a partition of a placement group. Each launch is answered, with nothing of the kind.
    Every Event is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.prepare()
        self.launched = 0
        self.told: list[KubernetesEvent] = []

    def ask(self, *names: str) -> None:
        self.pending(*names, memory=100 * Mi, node_selector={PARTITION: "1"})

    def answer(self, milliseconds: int = 1_000) -> None:
        """The time passes, and all launches that are asked for then are answered."""
        self.after(milliseconds)
        for ref, order in self.launches():
            self.launched += 1
            seen = len(self.store.entries)
            self.answer_launch(ref, order, f"i-{self.launched}")
            events = DecisionEvents(self.runtime.state)
            self.told += [event for entry in self.store.entries[seen:] for event in events.apply(entry)]

    def ready(self, number: int, **labels: str) -> None:
        """The node of this launch is ready, and has these labels besides its claim's."""
        provider = f"aws:///us-west-2a/i-{number}"
        (claim,) = (
            node_claim for node_claim in self.runtime.state.facts.claims.values() if node_claim.provider_id == provider
        )
        node = Node(f"n{number}", provider_id=provider, created=self.now, ready=True, taints=(UNREGISTERED,),
                    allocatable={"cpu": 1930, "memory": 6903 * Mi, "pods": 29})  # fmt: skip
        mine = {**claim.labels, **labels}
        for stage in ({}, {lbl.REGISTERED: "true"}, {lbl.REGISTERED: "true", lbl.INITIALIZED: "true"}):
            self.see(Observation(replace(node, labels={**mine, **stage}, taints=() if stage else node.taints)))
            self.answer_all()

    @property
    def withheld(self) -> tuple[RequirementSpec, ...]:
        return self.runtime.state.facts.health["default"].withheld


def launched_in_vain(*, times: int = 3) -> Partitions:
    world = Partitions()
    for number in range(times):
        world.ask(f"pod-{number}")
        world.answer()
    return world


def test_s103_a_launch_says_which_requirements_it_does_not_meet() -> None:
    world = launched_in_vain(times=1)
    (launched,) = [entry.payload for entry in world.store.entries if isinstance(entry.payload, Launched)]
    assert launched.unmet == (WANTED,)
    assert world.withheld == ()
    assert world.told == []


def test_s103_after_three_in_a_row_no_more_are_made_for_it() -> None:
    world = launched_in_vain()
    assert (world.launched, world.withheld) == (3, (WANTED,))
    world.ask("later")
    for _ in range(20):
        world.answer(5_000)
    assert world.launched == 3
    world.pending("other", memory=100 * Mi)
    world.answer()
    assert world.launched == 3, "there is room on the nodes that came"


def test_s103_an_event_of_the_nodepool_names_the_label() -> None:
    (told,) = launched_in_vain().told
    assert (told.about.kind, told.about.name, told.type, told.reason) == (
        "NodePool", "default", "Warning", "LabelNotGiven",
    )  # fmt: skip
    assert f"{PARTITION} In [1]" in told.message


def test_s103_the_event_is_told_again_for_as_long_as_nothing_is_launched() -> None:
    world = launched_in_vain()
    lasting = DecisionEvents(world.runtime.state).lasting(world.now)
    assert [event.message for event in lasting if event.reason == "LabelNotGiven"] == [world.told[0].message]


def test_s103_pods_that_ask_for_another_value_are_tried() -> None:
    world = launched_in_vain()
    world.pending("two", memory=100 * Mi, node_selector={PARTITION: "2"})
    world.answer()
    assert world.launched == 4


def test_s103_a_label_that_somebody_else_puts_on_the_node_counts_as_given() -> None:
    """A cloud controller manager, for example. What the nodes that came before lacked counts no more."""
    world = launched_in_vain()
    world.ready(3, **{PARTITION: "1"})
    (ready,) = [entry.payload for entry in world.store.entries if isinstance(entry.payload, Initialized)]
    assert ready.unmet == ()
    assert world.withheld == ()


def test_d125_what_the_nodepool_asks_for_has_to_stand_on_the_claim() -> None:
    """By the claim's labels it drifts, whatever its Node has."""
    world = Partitions()
    world.see(Observation(asking()))
    world.pending("a", memory=100 * Mi)
    world.answer()
    world.ready(1, **{PARTITION: "1"})
    (ready,) = [entry.payload for entry in world.store.entries if isinstance(entry.payload, Initialized)]
    assert ready.unmet == (WANTED,)
    health = world.runtime.state.facts.health["default"]
    assert [launch.launches for launch in health.in_vain] == [1], "one launch counts once"


def test_d125_a_change_of_nodepool_or_nodeclass_begins_anew() -> None:
    for changed in (
        replace(pool(), weight=5),
        NodeClassSeen(NODE_CLASS.group, NODE_CLASS.kind, NODE_CLASS.name, ready=True, generation=2),
    ):
        world = launched_in_vain()
        world.after(1_000)
        world.see(Observation(changed))
        assert world.withheld == ()


def test_d125_a_claim_of_before_the_change_does_not_count() -> None:
    world = launched_in_vain(times=2)
    world.ask("in-flight")
    world.after(1_000)
    ((ref, order),) = world.launches()
    world.after(1_000)
    world.see(Observation(replace(pool(), weight=5)))
    world.answer_launch(ref, order, "i-9")
    assert world.runtime.state.facts.health["default"].in_vain == ()


def test_s103_a_launch_counts_once() -> None:
    world = launched_in_vain(times=1)
    world.ready(1)
    health = world.runtime.state.facts.health["default"]
    assert [launch.launches for launch in health.in_vain] == [1]
