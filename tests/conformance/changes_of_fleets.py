"""Random changes of the nodes of a cluster scenario, of its NodePools, and of what these may launch."""

from __future__ import annotations

import copy
from typing import Any

from tests.conformance.changes_of_pods import HOSTNAME, Dice, Scenario, annotate, at, label, pods_of, some
from tests.support.judges.candidates import CAPACITY_TYPE, DO_NOT_DISRUPT, NODEPOOL, TYPE, ZONE

MOST_NODES, MOST_PODS = 14, 150


def fewer_nodes(made: Scenario, dice: Dice) -> None:
    made["nodes"] = some(made["nodes"], dice, 0.7) or made["nodes"][:1]


def more_nodes(made: Scenario, dice: Dice, most: int = MOST_NODES) -> None:
    """Copies of some, with or without their pods."""
    room = most - len(made["nodes"])
    for entry in copy.deepcopy(some(made["nodes"], dice, 0.5)[: max(0, room)]):
        suffix = f"-copy{dice.randint(0, 10**6)}"
        for part in ("node", "nodeClaim"):
            if entry.get(part):
                entry[part]["metadata"]["name"] += suffix
                entry[part]["metadata"].pop("uid", None)
                (entry[part].get("spec") or {}).update({"providerID": f"aws:///{suffix}"} if part == "node" else {})
                (entry[part].get("status") or {}).update(
                    {"providerID": f"aws:///{suffix}"} if part == "nodeClaim" else {}
                )
        if entry.get("node"):
            entry["node"]["metadata"]["labels"][HOSTNAME] = entry["node"]["metadata"]["name"]
            if entry.get("nodeClaim"):
                entry["nodeClaim"].setdefault("status", {})["nodeName"] = entry["node"]["metadata"]["name"]
        keep = dice.choice([0.0, 0.4, 1.0])
        entry["pods"] = [pod for pod in entry.get("pods") or [] if dice.random() < keep]
        for pod in entry["pods"]:
            pod["metadata"]["name"] += suffix
            pod["metadata"].pop("uid", None)
        if len(pods_of(made)) + len(entry["pods"]) <= MOST_PODS:
            made["nodes"].append(entry)


def other_capacity_types(made: Scenario, dice: Dice) -> None:
    for entry in some(made["nodes"], dice):
        label(entry, CAPACITY_TYPE, dice.choice(["spot", "on-demand"]))


def protected_nodes(made: Scenario, dice: Dice) -> None:
    for entry in some(made["nodes"], dice, 0.2):
        if entry.get("node"):
            annotate(entry["node"], DO_NOT_DISRUPT, dice.choice(["true", "true", "5m", "false"]))


def nodes_on_their_way(made: Scenario, dice: Dice) -> None:
    for entry in some(made["nodes"], dice, 0.2):
        what = dice.choice(
            ["marked", "nominated", "unready", "uninitialized", "deleting", "terminating", "no claim", "no label"]
        )
        node, claim = entry.get("node"), entry.get("nodeClaim")
        if what == "marked":
            entry["markedForDeletion"] = True
        elif what == "nominated":
            entry["nominated"] = True
        elif what == "unready" and node:
            node["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
        elif what == "uninitialized" and node:
            node["metadata"]["labels"].pop("karpenter.sh/initialized", None)
        elif what == "deleting" and claim:
            claim["metadata"] |= {"deletionTimestamp": at(made, -30), "finalizers": ["karpenter.sh/termination"]}
        elif what == "terminating" and claim:
            done = {"type": "InstanceTerminating", "status": "True", "lastTransitionTime": at(made, -30)}
            claim["status"].setdefault("conditions", []).append(done)
        elif what == "no claim" and node and claim:
            entry.pop("nodeClaim")
        elif what == "no label":
            for part in (node, claim):
                if part:
                    part["metadata"]["labels"].pop(dice.choice([ZONE, CAPACITY_TYPE, TYPE]), None)


def quiet_times(made: Scenario, dice: Dice) -> None:
    for entry in some(made["nodes"], dice):
        claim = entry.get("nodeClaim")
        if not claim:
            continue
        if dice.random() < 0.5:
            claim["status"]["lastPodEventTime"] = at(made, -dice.choice([1, 20, 200, 4000]))
        else:
            conditions = claim["status"].get("conditions") or []
            claim["status"]["conditions"] = [
                condition for condition in conditions if condition["type"] != "Consolidatable"
            ]


def drifted_nodes(made: Scenario, dice: Dice) -> None:
    for entry in some(made["nodes"], dice):
        if entry.get("nodeClaim"):
            drifted = {
                "type": "Drifted",
                "status": "True",
                "reason": "NodePoolDrifted",
                "lastTransitionTime": at(made, -90),
            }
            entry["nodeClaim"]["status"].setdefault("conditions", []).append(drifted)
            if dice.random() < 0.5:
                entry["nodeClaim"]["spec"]["terminationGracePeriod"] = "5m"


# ── NodePools and what they may launch ─────────────────────────────────────────────────────────────────────────────


def policies(made: Scenario, dice: Dice) -> None:
    for pool in made["nodePools"]:
        disruption = pool["spec"].setdefault("disruption", {})
        if dice.random() < 0.6:
            disruption["consolidationPolicy"] = dice.choice(
                ["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced", "Balanced"]
            )
        if dice.random() < 0.4:
            disruption["consolidateAfter"] = dice.choice(["0s", "30s", "5m", "1h", "Never"])


def unequal_nodes(made: Scenario, dice: Dice) -> None:
    """Under Balanced, where pods of some nodes are dear to evict."""
    for pool in made["nodePools"]:
        pool["spec"].setdefault("disruption", {})["consolidationPolicy"] = "Balanced"
    for node in some(made["nodes"], dice, 0.4):
        for pod in node.get("pods") or []:
            pod["spec"]["priority"] = dice.choice([10_000_000, 100_000_000, 300_000_000])


def budgets(made: Scenario, dice: Dice) -> None:
    reasons = ["Empty", "Underutilized", "Drifted"]
    windows = ["0 2 * * *", "@daily", "*/45 * * * *", "0 9-17 * * 1-5", "30 11 * * *", "0 12 * * *"]
    for pool in made["nodePools"]:
        found = []
        for _ in range(dice.randint(0, 3)):
            budget: Any = {"nodes": dice.choice(["0", "1", "2", "3", "10%", "34%", "50%", "100%"])}
            if dice.random() < 0.4:
                budget["reasons"] = dice.sample(reasons, dice.randint(1, 2))
            if dice.random() < 0.3:
                budget |= {"schedule": dice.choice(windows), "duration": dice.choice(["10m", "1h", "10h"])}
            found.append(budget)
        pool["spec"].setdefault("disruption", {})["budgets"] = found


def other_pools(made: Scenario, dice: Dice) -> None:
    """Limits, weights, taints, requirements; a NodePool that is static, gone, or not ready."""
    for pool in made["nodePools"]:
        spec = pool["spec"]
        template = spec["template"]["spec"]
        what = dice.choice(["limits", "taints", "capacity", "types", "static", "unready", "values", ""])
        if what == "limits":
            spec["limits"] = {dice.choice(["cpu", "nodes"]): str(dice.choice([1, 4, 8, 20, 64]))}
        elif what == "taints":
            template["taints"] = [{"key": "dedicated", "effect": dice.choice(["NoSchedule", "PreferNoSchedule"])}]
        elif what == "capacity":
            wanted: Any = {"key": CAPACITY_TYPE, "operator": "In", "values": [dice.choice(["spot", "on-demand"])]}
            template["requirements"] = [
                requirement for requirement in template["requirements"] if requirement["key"] != CAPACITY_TYPE
            ] + [wanted]
        elif what == "types" and made["instanceTypes"].get("names"):
            names = made["instanceTypes"]["names"]
            wanted = {"key": TYPE, "operator": "In", "values": dice.sample(names, dice.randint(1, len(names)))}
            template["requirements"] = [
                requirement for requirement in template["requirements"] if requirement["key"] != TYPE
            ] + [wanted]
        elif what == "static":
            spec["replicas"] = dice.randint(0, 5)
            for field in ("weight", "limits"):
                spec.pop(field, None)
        elif what == "unready":
            pool["status"] = {
                "conditions": [{"type": "Ready", "status": "False", "reason": "x", "lastTransitionTime": made["now"]}]
            }
        elif what == "values":
            wanted = {"key": TYPE, "operator": "Exists", "values": [], "minValues": dice.choice([2, 5, 9])}
            template["requirements"] = [
                requirement for requirement in template["requirements"] if requirement["key"] != TYPE
            ] + [wanted]


def further_pool(made: Scenario, dice: Dice) -> None:
    pool = copy.deepcopy(dice.choice(made["nodePools"]))
    pool["metadata"] = {"name": f"further-{dice.randint(0, 10**6)}"}
    if "replicas" not in pool["spec"]:
        pool["spec"]["weight"] = dice.randint(1, 50)
    made["nodePools"].append(pool)
    for entry in some(made["nodes"], dice, 0.4):
        label(entry, NODEPOOL, pool["metadata"]["name"])


def pool_gone(made: Scenario, dice: Dice) -> None:
    if len(made["nodePools"]) > 1:
        made["nodePools"].pop(dice.randrange(len(made["nodePools"])))


def capacity(made: Scenario, dice: Dice) -> None:
    source = made["instanceTypes"]
    patch: Any = {"set": dice.choice([{"available": False}, {"priceFactor": dice.choice([0.4, 0.9, 1.3, 3.0])}])}
    if dice.random() < 0.6:
        patch["capacityTypes"] = [dice.choice(["spot", "on-demand"])]
    if dice.random() < 0.5 and source.get("zones"):
        patch["zones"] = [dice.choice(source["zones"])]
    if dice.random() < 0.5 and source.get("names"):
        patch["types"] = dice.sample(source["names"], dice.randint(1, len(source["names"])))
    source.setdefault("patches", []).append(patch)


def fewer_types(made: Scenario, dice: Dice) -> None:
    source = made["instanceTypes"]
    reserved = {offering["type"] for offering in source.get("reservations") or []}
    if len(source.get("names") or []) > 2:
        source["names"] = [name for name in source["names"] if name in reserved or dice.random() < 0.6] or source[
            "names"
        ][:1]


def reservation(made: Scenario, dice: Dice) -> None:
    source = made["instanceTypes"]
    if source.get("names") and source.get("zones"):
        source.setdefault("reservations", []).append(
            {
                "type": dice.choice(source["names"]), "zone": dice.choice(source["zones"]), "price": 0.001,
                "id": f"cr-more-{len(source['reservations'])}", "capacity": dice.randint(0, 2), "available": True,
            }
        )  # fmt: skip


def gates(made: Scenario, dice: Dice) -> None:
    options = made.setdefault("options", {})
    options.setdefault("featureGates", {})["SpotToSpotConsolidation"] = dice.random() < 0.7
    options["minValuesPolicy"] = dice.choice(["Strict", "BestEffort"])
