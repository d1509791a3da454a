"""Random pods with random ResourceClaims: no device is given away twice, and who can have devices gets them.

The judge here shares nothing with the allocation: it tries every way to hand out the devices of one place.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kerf.engine.model.devices import ALL, Device, DeviceConstraint, DeviceRequest, ResourceClaim
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem import Problem
from tests.support.shuffle import shuffled
from tests.unit.scheduling.devices.cases import DRIVER, ask, claim, existing, gpu, published, question, template, types

MODELS = ("a", "b")
SELECTORS = {f'device.attributes["{DRIVER}"].model == "{name}"': name for name in MODELS}
MODEL = DeviceConstraint(f"{DRIVER}/model")
TYPES = 3
devices = st.lists(st.sampled_from(MODELS), max_size=3).map(
    lambda models: tuple(gpu(f"g{number}", model=model) for number, model in enumerate(models))
)


@st.composite
def requests(draw: st.DrawFn, name: str) -> DeviceRequest:
    selectors = draw(st.lists(st.sampled_from(sorted(SELECTORS)), max_size=1))
    return ask(draw(st.integers(1, 2)), *selectors, name=name, mode=draw(st.sampled_from(["ExactCount"] * 5 + [ALL])))


@st.composite
def claims(draw: st.DrawFn, name: str) -> ResourceClaim:
    asked = [draw(requests(each)) for each in ("r", "s")[: draw(st.integers(1, 2))]]
    if draw(st.integers(0, 3)) == 0:
        either = (draw(requests("x")), draw(requests("y")))
        asked[0] = DeviceRequest("r", first_of=either)
    return claim(name, *asked, constraints=(MODEL,) if draw(st.booleans()) else ())


@st.composite
def questions(draw: st.DrawFn) -> Problem:
    names = [f"c{number}" for number in range(draw(st.integers(1, 5)))]
    owners = {f"p{number}": [names[draw(st.integers(0, len(names) - 1))]] for number in range(draw(st.integers(1, 6)))}
    for wanted in owners.values():
        if draw(st.integers(0, 3)) == 0:
            wanted.append(names[-1])
    offered = types(**{f"t{number}": template(*draw(devices)) for number in range(TYPES)})
    nodes = [existing(f"n{number}") for number in range(draw(st.integers(0, 2)))]
    slices = [published(each.name, *draw(devices), node=each.name) for each in nodes]
    pods = {name: tuple(dict.fromkeys(wanted)) for name, wanted in owners.items()}
    given_claims = [draw(claims(name)) for name in names]
    return question(given_claims, pods, offered, nodes=nodes, slices=slices)


# ── the judge ──────────────────────────────────────


def can_have(wanted: Sequence[ResourceClaim], there: Sequence[Device]) -> bool:
    """Whether these claims can all be met with these devices, none of them given away twice."""
    return _claims(list(wanted), frozenset(range(len(there))), there)


def _claims(wanted: list[ResourceClaim], free: frozenset[int], there: Sequence[Device]) -> bool:
    return not wanted or _requests(wanted, 0, free, frozenset(), there)


def _requests(
    wanted: list[ResourceClaim], number: int, free: frozenset[int], mine: frozenset[int], there: Sequence[Device]
) -> bool:
    first = wanted[0]
    if first.constraints and len({there[each].attributes[f"{DRIVER}/model"] for each in mine}) > 1:
        return False
    if number == len(first.requests):
        return _claims(wanted[1:], free, there)
    request = first.requests[number]
    for each in request.first_of or (request,):
        models = {SELECTORS[selector] for selector in each.selectors} or set(MODELS)
        fits = [n for n, device in enumerate(there) if device.attributes[f"{DRIVER}/model"] in models]
        count = len(fits) if each.mode == ALL else each.count
        for chosen in combinations(fits, count) if count else ():
            left = frozenset(chosen)
            if left <= free and _requests(wanted, number + 1, free - left, mine | left, there):
                return True
    return False


def wanted_by(problem: Problem, uids: Sequence[str]) -> list[ResourceClaim]:
    """Each claim once, however many pods share it."""
    assert problem.devices is not None
    keys = {key for pod in problem.pods if pod.uid in uids for key in pod.device_claims}
    return [problem.devices.claims[key] for key in sorted(keys)]


def of_type(problem: Problem, name: str) -> tuple[Device, ...]:
    (catalogue,) = problem.catalogues.values()
    (found,) = [each for each in catalogue.types if each.name == name]
    return tuple(device for part in found.slices for device in part.devices)


def faults(problem: Problem, planned: Plan) -> list[str]:
    assert problem.devices is not None
    found = []
    for number, each in enumerate(planned.claims):
        wanted = wanted_by(problem, each.pods)
        found += [
            f"claim {number} as {name}" for name in each.instance_types if not can_have(wanted, of_type(problem, name))
        ]
    for placement in planned.placements:
        there = problem.devices.slices[placement.node].devices
        if not can_have(wanted_by(problem, placement.pods), there):
            found.append(f"node {placement.node}")
    places = [*(each.pods for each in planned.claims), *(each.pods for each in planned.placements)]
    seen = Counter(each.key for uids in places for each in wanted_by(problem, uids))
    return found + [f"{key} at {count} places" for key, count in seen.items() if count > 1]


@given(questions())
@settings(max_examples=150, deadline=None)
def test_s203_every_place_has_the_devices_of_its_pods(problem: Problem) -> None:
    assert faults(problem, plan(problem)) == []


@given(questions())
@settings(max_examples=100, deadline=None)
def test_s200_a_pod_that_alone_could_have_its_devices_on_a_new_node_gets_a_place(problem: Problem) -> None:
    alone = replace(problem, pods=problem.pods[:1])
    (pod,) = alone.pods
    wanted = wanted_by(alone, [pod.uid])
    assert alone.devices is not None
    could = any(can_have(wanted, of_type(alone, f"t{number}")) for number in range(TYPES)) or any(
        can_have(wanted, each.devices) for each in alone.devices.slices.values()
    )
    assert bool(plan(alone).placed) is could


@given(questions(), st.integers(0, 5))
@settings(max_examples=60, deadline=None)
def test_plans_about_devices_do_not_depend_on_order(problem: Problem, seed: int) -> None:
    assert plan(shuffled(problem, random.Random(seed))) == plan(problem)
