"""Spreads over zones in the whole of a simulated cluster that has no node yet (S-126, S-138, S-140)."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from kerf.engine.model.labels import ALIASES, HOSTNAME, ZONE
from kerf.engine.model.settings import Settings
from kerf.engine.record.decisions import ProvisionResult
from tests.support.simulation.manifests import of_cpu
from tests.support.simulation.run import ZONES, Run, documents
from tests.support.slow import slow


def spread_and_apart(seed: int, *, hard: bool, nominations: bool) -> Run:
    """Pods that are spread over zones, beside some that keep apart by host."""
    dice = random.Random(seed)
    constraint = {
        "topologyKey": ZONE,
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "spread"}},
    }
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "apart"}}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    cpus = (250, 500, 1000, 1500)
    manifests = [
        *documents("workshop/nodepool.yaml", "workshop/ec2nodeclass.yaml"),
        of_cpu("spread", dice.randint(3, 9), dice.choice(cpus), topologySpreadConstraints=[constraint]),
        of_cpu("apart", dice.randint(1, 5), dice.choice(cpus), affinity=affinity),
    ]
    return Run(manifests, settings=Settings(nominations=nominations), until=60_000)


@pytest.mark.parametrize("nominations", [False, True])
@pytest.mark.parametrize("hard", [True, False])
@pytest.mark.parametrize("seed", [17, 27, *slow(*range(10))])
def test_s36_s126_s140_the_first_nodes_of_a_cluster_spread_its_pods(seed: int, hard: bool, nominations: bool) -> None:
    run = spread_and_apart(seed, hard=hard, nominations=nominations)
    results = (entry.payload.result for entry in run.entries("decision.made"))
    planned = next(result for result in results if isinstance(result, ProvisionResult) and result.claims)
    pods = {pod.uid: pod for pod in run.simulation.cluster.api.pods.values()}
    zones: Counter[str] = Counter()
    for claim in planned.claims:
        named = [value for requirement in claim.requirements if requirement.key == ZONE for value in requirement.values]
        zones[" ".join(named)] += sum(pods[uid].name.startswith("spread") for uid in claim.pods)
    counts = [zones[zone] for zone in ZONES]
    assert sum(counts) == sum(pod.name.startswith("spread") for pod in pods.values())
    assert max(counts) - min(counts) <= 1


def test_s5_e1_pods_that_ask_by_the_old_names_of_labels_are_bound() -> None:
    """Their nodes were launched, and lacked the labels: the pods waited for good."""
    asked = {"beta.kubernetes.io/arch": "amd64", "failure-domain.beta.kubernetes.io/zone": ZONES[1]}
    spread = {
        "topologyKey": next(old for old, stable in ALIASES.items() if stable == ZONE),
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "spread"}},
    }
    manifests = [
        *documents("workshop/nodepool.yaml", "workshop/ec2nodeclass.yaml"),
        of_cpu("chosen", 2, 500, nodeSelector=asked),
        of_cpu("spread", 3, 500, topologySpreadConstraints=[spread]),
    ]
    run = Run(manifests, until=120_000)
    assert not run.runtime.state.indexes.pending
