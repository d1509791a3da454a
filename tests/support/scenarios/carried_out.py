"""A scenario after the commands of `kerf disrupt` were carried out, so that it can be asked again."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

from kerf.engine.model.instance_types import InstanceType, Offering
from tests.support.judges.candidates import CAPACITY_TYPE, NODEPOOL, TYPE, ZONE, Document
from tests.support.judges.commands import Court, offers, waiting
from tests.support.judges.labels import of_offer

IN_SERVICE = ("Launched", "Registered", "Initialized", "Consolidatable")


def carried_out(court: Court, commands: Sequence[Document], turn: int) -> Document:
    """The nodes that go are gone, their pods on the nodes that were named, and each replacement has become the cheapest
    offering of its first type. Pods that were given no place wait for one. `turn` tells its new nodes from others."""
    gone = {name for command in commands for name in command["candidates"]}
    made = copy.deepcopy(court.scenario)
    entries = dict(zip(court.rules.nodes, made["nodes"], strict=True))
    pods = {pod["metadata"]["name"]: pod for pod in _all_pods(made)}
    moving = {pod.name for name in gone for pod in court.rules.nodes[name].pods if court.rules.moves(pod)}
    places = _places(commands, moving)
    arrivals = [(f"new-{turn}-{number}", new) for number, new in enumerate(_replacements(commands))]
    settled = places.keys() | {name for _, new in arrivals for name in new["pods"]}
    for entry in made["nodes"]:
        entry["pods"] = [pod for pod in entry.get("pods") or [] if pod["metadata"]["name"] not in settled]
    homeless = [waiting(pods[name]) for name in sorted(moving - settled)]
    made["pods"] = [pod for pod in made.get("pods") or [] if pod["metadata"]["name"] not in settled] + homeless
    for name, target in places.items():
        entries[target]["pods"].append(_running(pods[name]))
    made["nodes"] = [entry for name, entry in entries.items() if name not in gone]
    for name, new in arrivals:
        made["nodes"].append(_arrived(name, new, [_running(pods[pod]) for pod in new["pods"]], court))
    return made


def _all_pods(scenario: Document) -> Iterator[Document]:
    yield from scenario.get("pods") or []
    for entry in scenario["nodes"]:
        yield from entry.get("pods") or []


def _places(commands: Sequence[Document], moving: set[str]) -> dict[str, str]:
    """Where each pod that moves goes, by name."""
    there = (place for command in commands for place in command.get("podsToExistingNodes", []))
    return {pod: place["name"] for place in there for pod in place["pods"] if pod in moving}


def _replacements(commands: Sequence[Document]) -> list[Document]:
    return [new for command in commands for new in command.get("replacements", [])]


def _running(pod: Document) -> Document:
    metadata = {key: value for key, value in pod["metadata"].items() if key != "deletionTimestamp"}
    spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
    return {**{key: value for key, value in pod.items() if key != "status"}, "metadata": metadata, "spec": spec}


def _arrived(name: str, new: Document, pods: list[Document], court: Court) -> Document:
    types = {instance_type.name: instance_type for instance_type in court.rules.catalogues[new["nodePool"]].types}
    given = types[new["instanceTypes"][0]]
    offer = min(offers(given, new), key=lambda offering: (offering.price, offering.zone, offering.capacity_type))
    labels = _labels(new, given, offer, court)
    amounts = {key: f"{value}m" if key == "cpu" else str(value) for key, value in given.allocatable().items()}
    capacity = {key: f"{value}m" if key == "cpu" else str(value) for key, value in given.capacity.items()}
    since = court.scenario["now"]
    taints = [
        {"key": taint.key, "effect": taint.effect, "value": taint.value}
        for taint in court.rules.pools[new["nodePool"]].taints
    ]
    status: dict[str, Any] = {"capacity": capacity, "allocatable": amounts}
    registered = {"karpenter.sh/registered": "true", "karpenter.sh/initialized": "true", "kubernetes.io/hostname": name}
    provider = f"aws:///{offer.zone}/i-{name}"
    conditions = [{"type": condition, "status": "True", "lastTransitionTime": since} for condition in IN_SERVICE]
    node = {
        "metadata": {"name": name, "creationTimestamp": since, "labels": {**labels, **registered}},
        "spec": {"providerID": provider, "taints": taints},
        "status": {**status, "conditions": [{"type": "Ready", "status": "True"}]},
    }
    claim = {
        "metadata": {"name": f"claim-{name}", "creationTimestamp": since, "labels": labels},
        "spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            "requirements": [],
        },
        "status": {**status, "providerID": provider, "nodeName": name, "conditions": conditions},
    }
    return {"node": node, "nodeClaim": claim, "pods": pods}


def _labels(new: Document, given: InstanceType, offer: Offering, court: Court) -> dict[str, str]:
    own = {key: values[0] for key, values in given.requirements.items() if len(values) == 1}
    asked = {
        key: requirement["values"][0]
        for key, requirement in new["requirements"].items()
        if requirement["operator"] == "In" and len(requirement["values"]) == 1
    }
    fixed = {NODEPOOL: new["nodePool"], TYPE: given.name, ZONE: offer.zone, CAPACITY_TYPE: offer.capacity_type}
    return {**own, **asked, **court.rules.pools[new["nodePool"]].labels, **of_offer(offer), **fixed}
