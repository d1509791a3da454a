"""What the virtual scheduler remembers of pods that were refused never changes where a pod is bound, nor when."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kerf.adapters.simulation.build import START
from kerf.adapters.simulation.clock import Clock
from kerf.adapters.simulation.scheduler.refused_pods import RefusedPods
from kerf.adapters.simulation.simulation import Simulation
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.kubernetes.namespaces import Namespace
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import (
    AffinityTerm,
    HostPort,
    Pod,
    PodShape,
    Selector,
    SpreadConstraint,
    Taint,
    Toleration,
)
from kerf.engine.model.labels import HOSTNAME, ZONE
from kerf.engine.record.observations import Observation

CHANGES = 40
NODES = [f"n{number}" for number in range(5)]
NOT_READY = Taint("not-ready", "NoSchedule")


class _Forgetful(RefusedPods):
    """Remembers nobody, so that each pass asks all nodes."""

    def open_to(self, pod: Pod, *, alone: bool) -> list[str] | None:
        return None


@given(st.integers(0, 2**32))
def test_pods_are_bound_as_if_each_pass_asked_all_nodes(seed: int) -> None:
    assert _history(seed, remembers=True) == _history(seed, remembers=False)


def test_pods_wait_and_are_bound_later_in_these_histories() -> None:
    """So the property above is about something."""
    waited, late = 0, 0
    for seed in range(20):
        pods = [o.payload for o in _history(seed, remembers=True) if isinstance(o.payload, Pod)]
        unschedulable = {pod.uid for pod in pods if pod.unschedulable}
        waited += len(unschedulable)
        late += len({pod.uid for pod in pods if pod.node} & unschedulable)
    assert waited > 100
    assert late > 30


def _history(seed: int, *, remembers: bool) -> list[Observation]:
    """All that happens in a cluster in which nodes, pods, promises and labels come and go."""
    dice = random.Random(seed)
    world = Simulation(Catalogue(()), clock=Clock(START))
    if not remembers:
        world.cluster.scheduler._refused = _Forgetful(world.cluster.api.shapes)
    for namespace in ("default", "other"):
        world.cluster.apply(Namespace(namespace))
    shapes = [_shape(dice) for _ in range(dice.randint(1, 4))]
    seen = world.cluster.drain_observations()
    for number in range(CHANGES):
        _change(world, dice, shapes, number)
        if dice.random() < 0.7:
            world.clock.advance(world.clock.now + 300)
        seen += world.cluster.drain_observations()
    return seen


def _change(world: Simulation, dice: random.Random, shapes: list[PodShape], number: int) -> None:
    api = world.cluster.api
    name, pods = dice.choice(NODES), sorted(api.pods.values(), key=lambda pod: pod.uid)
    kind = dice.choice(["pod", "pod", "pod", "node", "node", "delete", "end", "nominate", "nominate", "label", "drop"])
    if kind == "pod":
        digest = api.keep_shape(dice.choice(shapes))
        namespace = dice.choice(["default", "default", "other"])
        world.cluster.apply(Pod(f"p{number}", namespace, f"p{number}", digest, created=world.clock.now))
    elif kind == "node":
        room = {"cpu": 1_000 * dice.randint(1, 3), "memory": 1 << 32, "pods": dice.choice([2, 110])}
        labels = {HOSTNAME: name, **dice.choice([{ZONE: "a"}, {ZONE: "a"}, {ZONE: "b"}, {ZONE: "c"}, {}])}
        taints = dice.choice([(), (), (NOT_READY,)])
        api.put(Node(name, uid=f"uid-{name}", labels=labels, taints=taints, allocatable=room, capacity=room))
    elif kind == "drop" and name in api.nodes and dice.random() < 0.4:
        api.remove(api.nodes[name])
    elif kind == "label":
        api.put(Namespace(dice.choice(["default", "other"]), labels=dice.choice([{}, {"team": "red"}])))
    elif not pods:
        return
    elif kind == "delete":
        api.delete_pod(dice.choice(pods), dice.choice([0, 1]))
    elif kind == "end":
        pod = dice.choice(pods)
        api.put(replace(pod, phase="Succeeded" if pod.node else pod.phase))
    elif kind == "nominate":
        world.cluster.nominate(dice.choice(pods), dice.choice([*NODES, ""]))


def _shape(dice: random.Random) -> PodShape:
    app = dice.choice("ab")
    selector = Selector({"app": dice.choice("ab")})
    spread = SpreadConstraint(
        dice.choice([ZONE, HOSTNAME]), 1, dice.choice(["DoNotSchedule", "ScheduleAnyway"]), selector
    )
    term = AffinityTerm(
        dice.choice([ZONE, HOSTNAME]), selector, namespace_selector=dice.choice([None, None, Selector({"team": "red"})])
    )
    return PodShape(
        requests={"cpu": dice.choice([200, 500, 900]), "memory": 1 << 20},
        labels={"app": app},
        priority=dice.choice([0, 0, 5]),
        tolerations=dice.choice([(), (), (Toleration("not-ready", "Exists"),)]),
        host_ports=dice.choice([(), (), (), (HostPort(80, "TCP", ""),)]),
        spread=dice.choice([(), (), (spread,)]),
        affinity=dice.choice([(), (), (), (term,)]),
        anti_affinity=dice.choice([(), (), (), (term,)]),
    )
