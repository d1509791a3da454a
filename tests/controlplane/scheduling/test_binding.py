"""benchmarks/binding.py on three plans: one that is carried out whole, one that is too tight, one with volumes."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from msgspec.structs import replace

from benchmarks.binding import Told, carried_out, measure_scenario, summary
from benchmarks.real_scheduler.cluster import Cluster, plane_in
from benchmarks.real_scheduler.objects import ORDERS, node_name, obstacle, stage
from kerf.engine.model.settings import Settings
from kerf.engine.scheduling.optimizer.best_plan import best_plan
from kerf.replay.scenarios.catalogues import Catalogues
from kerf.replay.scenarios.plan_scenarios import EFFORT, problem_of
from tests.support.controlplane.plane import CONDITION, assets
from tests.support.controlplane.volumes import mounts
from tests.support.repository import ROOT

pytestmark = pytest.mark.slow
WORKSHOP = ROOT / "docs" / "examples" / "plan" / "workshop.json"
ASKED = Namespace(effort=EFFORT, repeat=1, order=ORDERS[0], planned_only=False, services=False, nominate=False)
CONTAINERS = [{"name": "x", "image": "x", "resources": {"requests": {"cpu": "50m"}}}]
DAEMON = {"metadata": {"name": "agent"}, "spec": {"template": {"spec": {"containers": CONTAINERS}}}}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    binaries = assets()
    if binaries is None:
        pytest.skip(CONDITION)
    plane = plane_in(binaries, tmp_path_factory.mktemp("binding"))
    try:
        plane.start_scheduling()
        with closing(Cluster(plane, still=2.0)) as made:
            yield made
    finally:
        plane.stop()


@pytest.fixture
def scenario() -> dict[str, Any]:
    """Five pods that one node takes."""
    read: dict[str, Any] = json.loads(WORKSHOP.read_text())
    return read


def test_a_plan_is_carried_out_whole_and_the_model_knows(cluster: Cluster, scenario: dict[str, Any]) -> None:
    """S-208: every habit has all pods on the nodes on which they came to be, and a node's DaemonSet pods leave room."""
    scenario["daemonSets"] = [DAEMON]
    problem = problem_of(scenario, Catalogues({}))
    found = measure_scenario(cluster, scenario, problem, ASKED)
    agreement = [found["pods"]] * len(found["left_by_habit"])
    assert found["runs"] == [{"left": {}, "agreement": agreement, "price": 0.096}]
    assert summary([found])["whole"] == 1


def test_pods_are_told_their_nodes_as_these_come(cluster: Cluster, scenario: dict[str, Any]) -> None:
    """S-40: closed nodes come, and are opened one after another once their pods have been told them."""
    problem = problem_of(scenario, Catalogues({}), Settings(nominations=True))
    plan = best_plan(problem, EFFORT)
    staged, told = stage(scenario, problem, plan, "file", nominate=True), Told(scenario, problem, plan, EFFORT)
    seats, left = carried_out(cluster, staged, problem, plan, told)
    assert left == {}
    assert seats == {uid: node_name(number) for number, claim in enumerate(plan.claims) for uid in claim.pods}


def test_a_plan_that_is_too_tight_leaves_pods_over(cluster: Cluster, scenario: dict[str, Any]) -> None:
    """Its nodes are taken for those of the smallest type."""
    problem = problem_of(scenario, Catalogues({}))
    plan = best_plan(problem, EFFORT)
    (catalogue,) = problem.catalogues.values()
    smallest = min(catalogue.types, key=lambda instance_type: instance_type.allocatable()["cpu"]).name
    tight = replace(plan, claims=tuple(replace(claim, instance_types=(smallest,)) for claim in plan.claims))
    seats, left = carried_out(cluster, stage(scenario, problem, tight, "file"), problem, tight)
    assert left, "the smallest type takes them all"
    assert seats.keys() | left.keys() == plan.placed
    assert all("Insufficient" in word for word in left.values())
    again, none = carried_out(cluster, stage(scenario, problem, plan, "file"), problem, plan)
    assert not none, "what was there before is there still"
    assert again.keys() == plan.placed


def test_volumes_are_provisioned_where_the_scheduler_chose_a_node(cluster: Cluster, scenario: dict[str, Any]) -> None:
    """S-150 to S-161: an unbound claim of a class that waits for its first pod."""
    scenario["storageClasses"] = [
        {"metadata": {"name": "late"}, "provisioner": "x.example.com", "volumeBindingMode": "WaitForFirstConsumer"}
    ]
    resources = {"requests": {"storage": "1Gi"}}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": resources, "storageClassName": "late"}
    scenario["pvcs"] = [{"metadata": {"name": "data"}, "spec": spec}]
    scenario["pods"][0]["spec"].update(mounts("data"))
    problem = problem_of(scenario, Catalogues({}))
    found = measure_scenario(cluster, scenario, problem, ASKED)
    assert found["runs"][0]["left"] == {}


def test_what_cannot_be_put_on_a_cluster_is_told(cluster: Cluster, scenario: dict[str, Any]) -> None:
    scenario["pods"][0]["spec"]["tolerations"] = [{"key": "x", "operator": "Gt", "value": "no number"}]
    found = measure_scenario(cluster, scenario, problem_of(scenario, Catalogues({})), ASKED)
    assert "no number" in found["obstacle"]
    assert summary([found])["obstacles"].keys() == {scenario["name"]}
    scenario["resourceSlices"] = [{}]
    assert obstacle(scenario, problem_of({**scenario, "resourceSlices": []}, Catalogues({})))
