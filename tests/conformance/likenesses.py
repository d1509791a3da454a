"""Scenarios as the reference's own might be: whole workloads are changed, not single pods of them as in `mutations`.

Replicas of a workload stay alike: what changes is how many there are, how much they ask for, when they were made, which
instance types there are, and, within a family, which workloads come together.
"""

from __future__ import annotations

import copy
import random
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Scenario = dict[str, Any]
Catalogues = Mapping[str, Sequence[Mapping[str, Any]]]
MOST_PODS = 200
MOST_REPLICAS = 40


def alike(scenarios: Sequence[Scenario], catalogues: Catalogues, seed: int) -> Scenario:
    """One scenario with up to three changes; the same for the same seed. `catalogues`: name to instance types, as in
    catalogues.json."""
    rng = random.Random(seed)
    made: Scenario = copy.deepcopy(rng.choice(scenarios))
    made["name"] = f"{made['name']}~~{seed}"
    family = [scenario for scenario in scenarios if scenario["family"] == made["family"]]
    for change in rng.sample(CHANGES, rng.randint(1, 3)):
        change(made, family, catalogues, rng)
    for pod in made["pods"]:
        pod["metadata"]["uid"] = str(uuid.UUID(int=rng.getrandbits(128)))
    made["pods"] = made["pods"][:MOST_PODS]
    return made


def _workloads(scenario: Scenario) -> dict[str, list[dict[str, Any]]]:
    """Pods that may be made more of, by their workload: <workload>-<index>."""
    found: dict[str, list[dict[str, Any]]] = {}
    for pod in scenario["pods"]:
        if not pod["spec"].get("volumes") and not pod["spec"].get("nodeName") and not pod.get("status"):
            found.setdefault(pod["metadata"]["name"].rpartition("-")[0], []).append(pod)
    return found


def _other_counts(made: Scenario, _: Sequence[Scenario], __: Catalogues, rng: random.Random) -> None:
    for name, pods in _workloads(made).items():
        if rng.random() < 0.6:
            wanted = min(MOST_REPLICAS, rng.randint(1, 2 * len(pods) + 1))
            gone = {id(pod) for pod in pods[wanted:]}
            made["pods"] = [pod for pod in made["pods"] if id(pod) not in gone]
            taken = {pod["metadata"]["name"] for pod in made["pods"]}
            for number in range(len(pods), wanted):
                more = copy.deepcopy(rng.choice(pods))
                more["metadata"]["name"] = f"{name}-{number}"
                if more["metadata"]["name"] not in taken:
                    made["pods"].append(more)


def _other_sizes(made: Scenario, family: Sequence[Scenario], _: Catalogues, rng: random.Random) -> None:
    sizes = [
        requests
        for scenario in family
        for pods in _workloads(scenario).values()
        for requests in [_requests(pods[0])]
        if requests and set(requests) <= {"cpu", "memory"}
    ]
    for pods in _workloads(made).values():
        if sizes and rng.random() < 0.5 and set(_requests(pods[0])) <= {"cpu", "memory"}:
            chosen = rng.choice(sizes)
            for pod in pods:
                _requests(pod).update(chosen)


def _requests(pod: Mapping[str, Any]) -> dict[str, Any]:
    containers = pod["spec"].get("containers") or [{}]
    found: dict[str, Any] = (containers[0].get("resources") or {}).get("requests") or {}
    return found


def _further_workloads(made: Scenario, family: Sequence[Scenario], _: Catalogues, rng: random.Random) -> None:
    """Of another scenario of the family: added, or in place of the own ones; not those of an app that is there already,
    which would then have two kinds of pods."""
    same = [
        other for other in family if other["instanceTypes"].get("catalogue") == made["instanceTypes"].get("catalogue")
    ]
    others = copy.deepcopy(_workloads(rng.choice(same)))
    if rng.random() < 0.5:
        own = {id(pod) for pods in _workloads(made).values() for pod in pods}
        made["pods"] = [pod for pod in made["pods"] if id(pod) not in own]
    there = [*made["pods"], *(pod for node in made.get("nodes") or [] for pod in node.get("pods") or [])]
    names = {pod["metadata"]["name"] for pod in there}
    values = {_app(pod) for pod in there}
    for pods in others.values():
        if not any(pod["metadata"]["name"] in names or _app(pod) in values for pod in pods):
            made["pods"] += pods


def _app(pod: Mapping[str, Any]) -> str | None:
    return (pod["metadata"].get("labels") or {}).get("app")


def _other_types(made: Scenario, _: Sequence[Scenario], catalogues: Catalogues, rng: random.Random) -> None:
    """As many others of the catalogue, but for those that are named elsewhere in the scenario."""
    given = made["instanceTypes"]
    names = given.get("names") or []
    if not names or given.get("reservations") or given.get("patches"):
        return
    text = str({key: value for key, value in made.items() if key != "instanceTypes"})
    named = [name for name in names if f"'{name}'" in text]
    known = [catalogue["name"] for catalogue in catalogues[given["catalogue"]] if catalogue["name"] not in named]
    chosen = set(named + rng.sample(known, min(len(known), len(names) - len(named))))
    given["names"] = [catalogue["name"] for catalogue in catalogues[given["catalogue"]] if catalogue["name"] in chosen]


def _other_ages(made: Scenario, _: Sequence[Scenario], __: Catalogues, rng: random.Random) -> None:
    for pods in _workloads(made).values():
        for pod in pods:
            pod["metadata"]["creationTimestamp"] = f"2026-01-15T11:59:{rng.choice([0, 15, 28, 29, 30]):02d}Z"


CHANGES: tuple[Callable[[Scenario, Sequence[Scenario], Catalogues, random.Random], None], ...] = (
    _other_counts,
    _other_counts,
    _other_sizes,
    _further_workloads,
    _other_types,
    _other_ages,
)
