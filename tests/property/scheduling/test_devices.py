"""Random pods with random ResourceClaims: no device is given away twice, and who can have devices gets them.

The judge (tests/support/judges/devices.py) shares nothing with the allocation; the simulated scheduler has to agree.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kerf.adapters.simulation.scheduler.device_allocator import DeviceAllocator
from kerf.engine.model.instance_types import Catalogue, InstanceType
from kerf.engine.model.kubernetes.devices import (
    ALL,
    AllocatedDevice,
    Allocation,
    AttributeBinding,
    Capacity,
    CounterUse,
    Device,
    DeviceConstraint,
    DeviceRequest,
    ResourceClaim,
    ResourceSlice,
)
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import Taint, Toleration
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem.problem import Problem
from tests.support.judges.devices import as_published, device_faults, on_node, on_type, wanted_by
from tests.support.scenarios.device_problems import (
    DRIVER,
    ask,
    claim,
    existing,
    gpu,
    published,
    question,
    template,
    types,
)
from tests.support.scenarios.shuffle import shuffled
from tests.support.strategies.examples import examples

MODELS = ("a", "b")
SELECTORS = [f'device.attributes["{DRIVER}"].model == "{name}"' for name in MODELS]
ROOT = "resource.kubernetes.io/pcieRoot"
CONSTRAINTS = ((), (DeviceConstraint(f"{DRIVER}/model"),), (DeviceConstraint(ROOT),))
MEMORY = f"{DRIVER}/memory"
TAINT = Taint("worn", "NoSchedule")
BUDGET = (CounterUse("slices", {"n": 3}),)
TYPES = 3


def seldom(draw: st.DrawFn, among: int = 5) -> bool:
    return draw(st.integers(1, among)) == among


@st.composite
def devices(draw: st.DrawFn) -> tuple[Device, ...]:
    found = []
    for number in range(draw(st.integers(0, 3))):
        made = gpu(f"g{number}", model=draw(st.sampled_from(MODELS)))
        if seldom(draw):
            made = replace(made, taints=(TAINT,))
        if seldom(draw):
            made = replace(made, shared=True, capacity={MEMORY: Capacity(10, draw(st.sampled_from([None, 3])))})
        if seldom(draw):
            made = replace(made, consumes=(CounterUse("slices", {"n": draw(st.integers(1, 2))}),))
        if seldom(draw):
            made = replace(made, attributes={**made.attributes, ROOT: "known"})
        found.append(made)
    return tuple(found)


@st.composite
def requests(draw: st.DrawFn, name: str) -> DeviceRequest:
    selectors = draw(st.lists(st.sampled_from(SELECTORS), max_size=1))
    return ask(
        draw(st.integers(1, 2)),
        *selectors,
        name=name,
        mode=draw(st.sampled_from(["ExactCount"] * 5 + [ALL])),
        tolerations=(Toleration("worn", "Exists"),) if seldom(draw, 3) else (),
        admin=seldom(draw, 8),
        capacity={MEMORY: draw(st.sampled_from([2, 6]))} if seldom(draw) else {},
    )


@st.composite
def claims(draw: st.DrawFn, name: str) -> ResourceClaim:
    asked = [draw(requests(request_name)) for request_name in ("r", "s")[: draw(st.integers(1, 2))]]
    if seldom(draw, 4):
        asked[0] = DeviceRequest("r", first_of=(draw(requests("x")), draw(requests("y"))))
    return claim(name, *asked, constraints=draw(st.sampled_from(CONSTRAINTS)))


@st.composite
def catalogues(draw: st.DrawFn) -> Catalogue:
    made = types(**{f"t{number}": template(*draw(devices()), counters=BUDGET) for number in range(TYPES)})
    return Catalogue(
        tuple(replace(instance_type, bindings=draw(bindings(instance_type))) for instance_type in made.types)
    )


@st.composite
def bindings(draw: st.DrawFn, kind: InstanceType) -> tuple[AttributeBinding, ...]:
    names = [device.name for part in kind.slices for device in part.devices]
    if len(names) < 2 or draw(st.booleans()):
        return ()
    groups = draw(st.lists(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True), max_size=2))
    return tuple(AttributeBinding(ROOT, tuple((DRIVER, "node", value) for value in group)) for group in groups)


@st.composite
def questions(draw: st.DrawFn) -> Problem:
    names = [f"c{number}" for number in range(draw(st.integers(1, 5)))]
    owners = {f"p{number}": [names[draw(st.integers(0, len(names) - 1))]] for number in range(draw(st.integers(1, 6)))}
    for wanted in owners.values():
        if seldom(draw, 4):
            wanted.append(names[-1])
    nodes = [existing(f"n{number}") for number in range(draw(st.integers(0, 2)))]
    slices = [published(node.name, *draw(devices()), node=node.name, counters=BUDGET) for node in nodes]
    given_claims = [draw(claims(name)) for name in names]
    for resource_slice in slices:
        if resource_slice.devices and seldom(draw, 3):
            consumed = {MEMORY: 5} if resource_slice.devices[0].shared else {}
            held = Allocation((AllocatedDevice(DRIVER, resource_slice.pool, resource_slice.devices[0].name, consumed),))
            given_claims.append(claim(f"held-{resource_slice.name}", allocation=held, pods=("running",)))
    pods = {name: tuple(dict.fromkeys(wanted)) for name, wanted in owners.items()}
    leaving = ["running"] if seldom(draw, 3) else []
    return question(given_claims, pods, draw(catalogues()), nodes=nodes, slices=slices, leaving=leaving)


@pytest.mark.slow
@given(questions())
@settings(max_examples=examples(150), deadline=None)
def test_s203_every_place_has_the_devices_of_its_pods(problem: Problem) -> None:
    assert device_faults(problem, plan(problem)) == []


@pytest.mark.slow
@given(questions())
@settings(max_examples=examples(100), deadline=None)
def test_s200_a_pod_that_alone_could_have_its_devices_gets_a_place(problem: Problem) -> None:
    alone = replace(problem, pods=problem.pods[:1])
    wanted = wanted_by(alone, [alone.pods[0].uid])
    (catalogue,) = alone.catalogues.values()
    could = any(on_type(alone, instance_type, wanted, {}) for instance_type in catalogue.types) or any(
        on_node(alone, node, wanted) for node in alone.nodes
    )
    assert bool(plan(alone).placed) is could


@given(questions())
@settings(max_examples=examples(100), deadline=None)
def test_the_simulated_scheduler_finds_what_a_plan_promises(problem: Problem) -> None:
    assert problem.devices is not None
    facts = problem.devices
    freed = [replace(asked_claim, allocation=None) if facts.leaving.issuperset(asked_claim.pods) else asked_claim
             for asked_claim in facts.claims.values()]  # fmt: skip
    planned = plan(problem)
    (catalogue,) = problem.catalogues.values()
    kinds = {instance_type.name: instance_type for instance_type in catalogue.types}
    for placement in planned.placements:
        allocator = DeviceAllocator(facts.slices.values(), facts.classes, freed)
        assert allocator.allocate(wanted_by(problem, placement.pods), Node(placement.node)) is not None
    for opened in planned.claims:
        for name in opened.instance_types:
            allocator = DeviceAllocator(driver(kinds[name]), facts.classes, freed)
            assert allocator.allocate(wanted_by(problem, opened.pods), Node("new")) is not None


def driver(kind: InstanceType) -> list[ResourceSlice]:
    """What a driver publishes on the node `new` of a type; of attributes that only a node has, some value."""
    values = {resource_slice.key: {name: value if isinstance(value, str) else str(sorted(value)) for name, value in
                         resource_slice.values.items() if isinstance(value, str | frozenset)}
              for resource_slice in as_published(kind.slices, kind.bindings)}  # fmt: skip
    return [
        replace(part, name="new-0", pool="new", node="new", owner="new", devices=tuple(
            replace(device, attributes={**values[part.driver, part.pool, device.name], **device.attributes})
            for device in part.devices
        ))
        for part in kind.slices
    ]  # fmt: skip


@given(questions(), st.integers(0, 5))
@settings(max_examples=examples(60), deadline=None)
def test_plans_about_devices_do_not_depend_on_order(problem: Problem, seed: int) -> None:
    assert plan(shuffled(problem, random.Random(seed))) == plan(problem)
