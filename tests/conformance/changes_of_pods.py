"""Random changes of the pods of a cluster scenario, and of what guards them."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from tests.support.judges.candidates import CAPACITY_TYPE, DO_NOT_DISRUPT, NODEPOOL, TYPE, ZONE

HOSTNAME = "kubernetes.io/hostname"
Scenario = dict[str, Any]
Dice = random.Random


def pods_of(made: Scenario) -> list[Any]:
    return [pod for node in made["nodes"] for pod in node.get("pods") or []]


def some(found: Sequence[Any], dice: Dice, share: float = 0.3) -> list[Any]:
    return [change for change in found if dice.random() < share]


def workloads(made: Scenario) -> list[Any]:
    return [pod for pod in pods_of(made) if not owned(pod, "DaemonSet") and not owned(pod, "Node")]


def owned(pod: Any, kind: str) -> bool:
    return any(owner_reference["kind"] == kind for owner_reference in pod["metadata"].get("ownerReferences") or [])


def apps_of(made: Scenario) -> list[dict[str, str]]:
    found = {tuple(sorted((pod["metadata"].get("labels") or {}).items())) for pod in workloads(made)}
    return [dict(change) for change in sorted(found) if change]


def at(made: Scenario, seconds: float) -> str:
    moment = datetime.fromisoformat(made["now"].replace("Z", "+00:00")) + timedelta(seconds=seconds)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def annotate(document: Any, key: str, value: str) -> None:
    document["metadata"].setdefault("annotations", {})[key] = value


def label(entry: Any, key: str, value: str) -> None:
    for part in ("node", "nodeClaim"):
        if entry.get(part):
            entry[part]["metadata"].setdefault("labels", {})[key] = value


# ── changes ────────────────────────────────────────────────────────────────────────────────────────────────────────


def fewer_pods(made: Scenario, dice: Dice) -> None:
    for node in made["nodes"]:
        node["pods"] = [pod for pod in node.get("pods") or [] if dice.random() < 0.7]


def other_sizes(made: Scenario, dice: Dice) -> None:
    for pod in some(workloads(made), dice):
        requests = pod["spec"]["containers"][0].setdefault("resources", {}).setdefault("requests", {})
        requests["cpu"] = f"{dice.choice([10, 50, 130, 333, 900])}m"
        if dice.random() < 0.5:
            requests["memory"] = f"{dice.choice([16, 200, 900, 2500])}Mi"


def pods_change_places(made: Scenario, dice: Dice) -> None:
    nodes = made["nodes"]
    for node in nodes:
        for pod in some(node.get("pods") or [], dice):
            if pod in workloads(made):
                node["pods"].remove(pod)
                dice.choice(nodes).setdefault("pods", []).append(pod)


def protected_pods(made: Scenario, dice: Dice) -> None:
    for pod in some(pods_of(made), dice, 0.15):
        annotate(pod, DO_NOT_DISRUPT, dice.choice(["true", "true", "5m", "30m", "3h", "false", "-5m", "soon"]))


def pod_costs(made: Scenario, dice: Dice) -> None:
    for pod in some(workloads(made), dice):
        cost = dice.choice(["-2147483647", "-134217728", "100", "134217728", "abc"])
        annotate(pod, "controller.kubernetes.io/pod-deletion-cost", cost)
    for pod in some(workloads(made), dice, 0.15):
        pod["spec"]["priority"] = dice.choice([-1000, 1, 1000, 1_000_000, 1_000_000_000])


def pods_on_their_way(made: Scenario, dice: Dice) -> None:
    for pod in some(pods_of(made), dice, 0.15):
        if dice.random() < 0.5:
            pod["metadata"]["deletionTimestamp"] = at(made, dice.choice([-120, 20]))
        else:
            pod.setdefault("status", {})["phase"] = dice.choice(["Succeeded", "Failed"])
    for pod in some(workloads(made), dice, 0.15):
        stateful = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "db", "controller": True}
        pod["metadata"]["ownerReferences"] = [stateful]


def unready_pods(made: Scenario, dice: Dice) -> None:
    for pod in some(workloads(made), dice, 0.2):
        conditions = [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "False"}]
        pod["status"] = {"phase": "Running", "startTime": at(made, -60), "conditions": conditions}


def pending_pods(made: Scenario, dice: Dice) -> None:
    for number, pod in enumerate(
        copy.deepcopy(dice.sample(workloads(made), min(len(workloads(made)), dice.randint(1, 4))))
    ):
        pod["metadata"]["name"] += f"-waiting{number}-{dice.randint(0, 10**6)}"
        pod["metadata"].pop("uid", None)
        pod["metadata"].pop("deletionTimestamp", None)
        pod["spec"].pop("nodeName", None)
        pod.pop("status", None)
        made.setdefault("pods", []).append(pod)


def tolerations(made: Scenario, dice: Dice) -> None:
    given = [
        {"operator": "Exists"},
        {"key": "karpenter.sh/disrupted", "operator": "Exists"},
        {"key": "dedicated", "operator": "Exists"},
    ]
    for pod in some(workloads(made), dice, 0.2):
        pod["spec"].setdefault("tolerations", []).append(dice.choice(given))


def selectors(made: Scenario, dice: Dice) -> None:
    """What a pod asks for its node has."""
    for node in made["nodes"]:
        labels = ((node.get("node") or node["nodeClaim"])["metadata"].get("labels")) or {}
        for pod in some(node.get("pods") or [], dice, 0.2):
            key = dice.choice([ZONE, CAPACITY_TYPE, NODEPOOL, TYPE, "kubernetes.io/arch"])
            if key in labels and pod in workloads(made):
                pod["spec"].setdefault("nodeSelector", {})[key] = labels[key]


def spreads(made: Scenario, dice: Dice) -> None:
    for labels in some(apps_of(made), dice, 0.5):
        constraint = {
            "maxSkew": dice.randint(1, 2), "topologyKey": dice.choice([ZONE, HOSTNAME, CAPACITY_TYPE]),
            "whenUnsatisfiable": dice.choice(["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"]),
            "labelSelector": {"matchLabels": labels},
        }  # fmt: skip
        for pod in workloads(made):
            if pod["metadata"].get("labels") == labels:
                pod["spec"].setdefault("topologySpreadConstraints", []).append(constraint)


def affinities(made: Scenario, dice: Dice) -> None:
    apps = apps_of(made)
    if not apps:
        return
    who, whom = dice.choice(apps), dice.choice(apps)
    kind = dice.choice(["podAffinity", "podAntiAffinity", "podAntiAffinity"])
    term = {"topologyKey": dice.choice([ZONE, HOSTNAME, HOSTNAME]), "labelSelector": {"matchLabels": whom}}
    for pod in workloads(made):
        if pod["metadata"].get("labels") == who:
            affinity = pod["spec"].setdefault("affinity", {}).setdefault(kind, {})
            affinity.setdefault("requiredDuringSchedulingIgnoredDuringExecution", []).append(copy.deepcopy(term))


def host_ports(made: Scenario, dice: Dice) -> None:
    for pod in some(workloads(made), dice, 0.2):
        pod["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": dice.choice([8080, 9090])}]


def pod_budgets(made: Scenario, dice: Dice) -> None:
    for number, labels in enumerate(some(apps_of(made), dice, 0.5)):
        rule: dict[str, Any] = dice.choice(
            [
                {"maxUnavailable": 1},
                {"maxUnavailable": 0},
                {"maxUnavailable": "0%"},
                {"minAvailable": "100%"},
                {"minAvailable": 1},
            ]
        )
        spec: dict[str, Any] = {"selector": {"matchLabels": labels}, **rule}
        if dice.random() < 0.3:
            spec["unhealthyPodEvictionPolicy"] = "AlwaysAllow"
        named = {"name": f"more-{number}", "namespace": dice.choice(["default", "default", "default", "other"])}
        absolute = rule in ({"maxUnavailable": 0}, {"maxUnavailable": "0%"}, {"minAvailable": "100%"})
        status = {"disruptionsAllowed": 0 if absolute else dice.choice([0, 1, 1, 5])}
        for _ in range(dice.choice([1, 1, 1, 2])):
            made.setdefault("pdbs", []).append(
                {"metadata": {**named, "name": f"{named['name']}-{len(made['pdbs'])}"}, "spec": spec, "status": status}
            )
