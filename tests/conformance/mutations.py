"""Scenarios made of the reference's by random changes, and what is wrong with their plans: validity by the judge, which
shares no code with the planner, at effort 0 and at the default one.

`python -m tests.conformance.mutations --seeds 1000 --first 0` tries so many and prints what it finds.
"""

from __future__ import annotations

import argparse
import copy
import random
import sys
from collections.abc import Callable, Sequence
from typing import Any

from kerf.engine.scheduling.optimizer.best_plan import best_plan
from kerf.replay.scenarios.plan_scenarios import EFFORT, problem_of, read_catalogues, read_scenarios
from tests.conformance.large_set import LARGE_SET
from tests.support.judges.plans import faults

MOST_PODS = 120
TOLERANCE = 1e-9
ZONE, HOSTNAME, CAPACITY_TYPE = "topology.kubernetes.io/zone", "kubernetes.io/hostname", "karpenter.sh/capacity-type"
Scenario = dict[str, Any]


def mutated(scenarios: Sequence[Scenario], seed: int) -> Scenario:
    """One scenario with up to five changes; the same for the same seed."""
    rng = random.Random(seed)
    made: Scenario = copy.deepcopy(rng.choice(scenarios))
    made["name"] = f"{made['name']}~{seed}"
    for _ in range(rng.randint(1, 5)):
        rng.choice(CHANGES)(made, scenarios, rng)
    made["pods"] = made["pods"][:MOST_PODS]
    return made


def _fewer_pods(made: Scenario, _: Sequence[Scenario], rng: random.Random) -> None:
    made["pods"] = [pod for pod in made["pods"] if rng.random() < 0.7]


def _more_replicas(made: Scenario, _: Sequence[Scenario], rng: random.Random) -> None:
    for number, pod in enumerate(rng.sample(made["pods"], min(len(made["pods"]), 8))):
        more = copy.deepcopy(pod)
        more["metadata"]["name"] += f"-more{number}-{rng.randint(0, 9999)}"
        more["metadata"].pop("uid", None)
        made["pods"].append(more)


def _pods_of_another(made: Scenario, scenarios: Sequence[Scenario], rng: random.Random) -> None:
    same = [scenario for scenario in scenarios if scenario["instanceTypes"] == made["instanceTypes"]] or list(scenarios)
    for pod in copy.deepcopy(rng.choice(same)["pods"]):
        if not pod["spec"].get("volumes") and not pod["spec"].get("nodeName"):
            pod["metadata"]["name"] = f"o{rng.randint(0, 10**6)}-{pod['metadata']['name']}"
            pod["metadata"].pop("uid", None)
            made["pods"].append(pod)


def _other_sizes(made: Scenario, _: Sequence[Scenario], rng: random.Random) -> None:
    factor = rng.choice([1, 3, 7])
    for pod in made["pods"]:
        for container in pod["spec"].get("containers", []):
            requests = (container.get("resources") or {}).get("requests") or {}
            if "cpu" in requests and rng.random() < 0.3:
                requests["cpu"] = f"{rng.choice([50, 130, 333, 1100]) * factor}m"


def _constraints(made: Scenario) -> list[dict[str, Any]]:
    return [constraint for pod in made["pods"] for constraint in pod["spec"].get("topologySpreadConstraints") or []]


def _other_spreads(made: Scenario, _: Sequence[Scenario], rng: random.Random) -> None:
    for constraint in _constraints(made):
        if rng.random() < 0.4:
            constraint["maxSkew"] = rng.randint(1, 3)
        if rng.random() < 0.2:
            constraint["topologyKey"] = rng.choice([ZONE, HOSTNAME, CAPACITY_TYPE])
        if rng.random() < 0.2:
            constraint["whenUnsatisfiable"] = rng.choice(["DoNotSchedule", "ScheduleAnyway"])
        if rng.random() < 0.2:
            constraint["nodeTaintsPolicy"] = rng.choice(["Honor", "Ignore"])
        if rng.random() < 0.2:
            constraint["nodeAffinityPolicy"] = rng.choice(["Honor", "Ignore"])
        if constraint["whenUnsatisfiable"] != "DoNotSchedule":
            constraint.pop("minDomains", None)
        elif rng.random() < 0.2:
            constraint["minDomains"] = rng.randint(1, 4)


def _spread_more(made: Scenario, _: Sequence[Scenario], rng: random.Random) -> None:
    for pod in made["pods"]:
        labels = pod["metadata"].get("labels")
        if labels and rng.random() < 0.3:
            pod["spec"].setdefault("topologySpreadConstraints", []).append(
                {
                    "maxSkew": 1,
                    "topologyKey": rng.choice([ZONE, HOSTNAME, CAPACITY_TYPE]),
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": {"matchLabels": dict(labels)},
                }
            )


def _bind_more(made: Scenario, _: Sequence[Scenario], rng: random.Random) -> None:
    """Affinity, or anti-affinity, of one workload to another."""
    apps = sorted({(pod["metadata"].get("labels") or {}).get("app", "") for pod in made["pods"]} - {""})
    if not apps:
        return
    who, whom = rng.choice(apps), rng.choice(apps)
    kind = rng.choice(["podAffinity", "podAntiAffinity"])
    term = {"topologyKey": rng.choice([ZONE, HOSTNAME, HOSTNAME]), "labelSelector": {"matchLabels": {"app": whom}}}
    for pod in made["pods"]:
        if (pod["metadata"].get("labels") or {}).get("app") == who:
            affinity = pod["spec"].setdefault("affinity", {}).setdefault(kind, {})
            affinity.setdefault("requiredDuringSchedulingIgnoredDuringExecution", []).append(copy.deepcopy(term))


def _other_pools(made: Scenario, _: Sequence[Scenario], rng: random.Random) -> None:
    pools = made["nodePools"]
    if len(pools) > 1 and rng.random() < 0.3:
        pools.pop(rng.randrange(len(pools)))
    for pool in pools:
        spec = pool["spec"]
        template = spec.setdefault("template", {}).setdefault("spec", {})
        dynamic = "replicas" not in spec  # a static one has neither weight nor such limits
        if rng.random() < 0.3 and dynamic:
            spec["weight"] = rng.randint(1, 50)
        if rng.random() < 0.3 and dynamic:
            spec["limits"] = {"cpu": str(rng.choice([8, 20, 64, 200]))}
        if rng.random() < 0.2:
            template["taints"] = [{"key": "extra", "effect": rng.choice(["NoSchedule", "PreferNoSchedule"])}]
        if rng.random() < 0.2:
            capacity = {"key": CAPACITY_TYPE, "operator": "In", "values": [rng.choice(["spot", "on-demand"])]}
            kept = [
                requirement for requirement in template.get("requirements", []) if requirement["key"] != CAPACITY_TYPE
            ]
            template["requirements"] = [*kept, capacity]


def _further_pool(made: Scenario, scenarios: Sequence[Scenario], rng: random.Random) -> None:
    same = [scenario for scenario in scenarios if scenario["instanceTypes"] == made["instanceTypes"]]
    if same:
        pool = copy.deepcopy(rng.choice(rng.choice(same)["nodePools"]))
        pool["metadata"]["name"] = f"further-{rng.randint(0, 10**6)}"
        made["nodePools"].append(pool)


def _fewer_types(made: Scenario, _: Sequence[Scenario], rng: random.Random) -> None:
    source = made["instanceTypes"]
    if len(source.get("names", [])) > 2 and not source.get("reservations"):
        source["names"] = [name for name in source["names"] if rng.random() < 0.6] or source["names"][:1]


def _no_capacity(made: Scenario, _: Sequence[Scenario], rng: random.Random) -> None:
    patch = {"capacityTypes": [rng.choice(["spot", "on-demand"])], "set": {"available": False}}
    zones = made["instanceTypes"].get("zones")
    if zones and rng.random() < 0.7:
        patch["zones"] = [rng.choice(zones)]
    made["instanceTypes"].setdefault("patches", []).append(patch)


def _other_nodes(made: Scenario, _: Sequence[Scenario], rng: random.Random) -> None:
    nodes = made.get("nodes") or []
    if nodes and rng.random() < 0.5:
        nodes.pop(rng.randrange(len(nodes)))
    for node in nodes:
        if rng.random() < 0.3:
            node["markedForDeletion"] = not node.get("markedForDeletion")


def _other_options(made: Scenario, _: Sequence[Scenario], rng: random.Random) -> None:
    options = made.setdefault("options", {})
    options["preferencePolicy"] = rng.choice(["Respect", "Ignore"])
    options["minValuesPolicy"] = rng.choice(["Strict", "BestEffort"])


CHANGES: tuple[Callable[[Scenario, Sequence[Scenario], random.Random], None], ...] = (
    _fewer_pods,
    _more_replicas,
    _pods_of_another,
    _other_sizes,
    _other_spreads,
    _spread_more,
    _bind_more,
    _bind_more,
    _other_pools,
    _further_pool,
    _fewer_types,
    _no_capacity,
    _other_nodes,
    _other_options,
)


def wrong(scenario: Scenario, catalogues: Any) -> list[str]:
    """What is wrong with the plans of a scenario."""
    problem = problem_of(scenario, catalogues)
    first, best = best_plan(problem, 0), best_plan(problem, EFFORT)
    found = [f"first: {fault}" for fault in faults(problem, first)]
    found += [f"best: {fault}" for fault in faults(problem, best)]
    if not first.placed <= best.placed:
        found.append("effort leaves more pods over")
    if best.lower_bound > sum(claim.price for claim in best.claims) + TOLERANCE:
        found.append("cheaper than the bound")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    catalogues = read_catalogues(LARGE_SET / "catalogues.json")
    scenarios = list(read_scenarios(LARGE_SET / "scenarios.jsonl"))
    bad = 0
    for seed in range(given.first, given.first + given.seeds):
        scenario = mutated(scenarios, seed)
        found = wrong(scenario, catalogues)
        bad += bool(found)
        if found:
            print(scenario["name"], *found[:4], sep="\n  ", flush=True)
    print(f"{given.seeds} scenarios, {bad} with faults")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
