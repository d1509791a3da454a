"""Laws of attention: looking at a claim about which nothing changed gives nothing new before it is due, and once looked
at it is no longer due. Else results would depend on which claims happen to be looked at, or a due time never passed."""

from __future__ import annotations

import random

import msgspec
import pytest

from kerf.engine.model.kubernetes.pods import Taint
from kerf.engine.record.observations import ObjectGone, Observation
from kerf.engine.runtime.react import next_due, react
from kerf.engine.runtime.turn_draft import TurnDraft
from kerf.engine.state import snapshot
from kerf.engine.state.state import State
from tests.support.random_life import ACTIONS, Player
from tests.support.slow import slow
from tests.support.world import pool

CORDONED = Taint("node.kubernetes.io/unschedulable", "NoSchedule")
OFTEN = ("pod", "wait", *("answer",) * 8, "bind", "bind", "bind")
STEPS = (*(action for action in ACTIONS if action != "restart"), *OFTEN, "cordon", "end", "pool", "remove", "describe")


class Restive(Player):
    """Also changes Nodes, pods, instances and the NodePool under the claims."""

    def _cordon(self, number: int) -> None:
        nodes = self.world.runtime.state.facts.nodes
        if nodes:
            node = nodes[sorted(nodes)[number % len(nodes)]]
            self.world.see(Observation(msgspec.structs.replace(node, taints=(*node.taints, CORDONED))))

    def _end(self, number: int) -> None:
        bound = sorted(n for n, p in self.world.pods.items() if p.node)
        if bound:
            name = bound[number % len(bound)]
            ending = msgspec.structs.replace(self.world.pods[name], deleting=self.world.now + number * 200)
            self.world.pods[name] = ending
            self.world.see(Observation(ending))

    def _pool(self, number: int) -> None:
        consolidate, grace = (None, 0, 30_000)[number % 3], (None, 120_000)[number % 2]
        changed = pool(expire_after=3_600_000, consolidate_after=consolidate, termination_grace_period=grace)
        self.world.see(Observation(changed))

    def _remove(self, number: int) -> None:
        if self.nodes:
            name = sorted(self.nodes)[number % len(self.nodes)]
            del self.nodes[name]
            self.world.see(Observation(ObjectGone("node", name)))

    def _describe(self, number: int) -> None:
        instances = sorted(c.instance for c in self.world.runtime.state.facts.claims.values() if c.instance)
        if instances:
            status = ("terminated", "gone", "shutting-down")[number % 3]
            self.world.instance(instances[number % len(instances)], status)


def looked_at_all(state: State, now: int) -> TurnDraft:
    """What follows at `now` when every claim is looked at, on a copy of the state."""
    draft = TurnDraft(snapshot.decode(snapshot.encode(state)[0], state.indexes.blobs), now)
    react(draft)
    return draft


@pytest.mark.parametrize("seed", [*range(15), *slow(*range(15, 60))])
def test_looking_at_every_claim_gives_nothing_new_before_one_is_due(seed: int) -> None:
    dice = random.Random(seed)
    player = Restive()
    for _ in range(120):
        player.play(dice.choice(STEPS), dice.randrange(1000))
        state = player.world.runtime.state
        assert looked_at_all(state, player.world.now).entries == []
        due = next_due(state)
        if due:
            assert looked_at_all(state, due - 1).entries == []
            assert next_due(looked_at_all(state, due).state) not in range(1, due + 1)
