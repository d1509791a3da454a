"""Jobs and bare pods that say how long they run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from kerf.adapters.simulation.documents.apply import apply_document
from kerf.adapters.simulation.simulation import Simulation
from kerf.adapters.simulation.timeline import timeline as t
from kerf.adapters.simulation.timeline.perform import perform_action
from kerf.engine.model.kubernetes.nodes import Node

MakeNode = Callable[..., Node]
MINUTE = 60_000


def settle(world: Simulation, time: int = 10_000) -> None:
    world.clock.advance(world.clock.now + time)


def pod_spec() -> dict[str, Any]:
    containers = [{"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "100m"}}}]
    return {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": containers}


def job(runs_for: str | None = "5m", **spec: Any) -> dict[str, Any]:
    annotations = {} if runs_for is None else {"kerf.dev/runs-for": runs_for}
    template = {"metadata": {"annotations": annotations}, "spec": pod_spec()}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "report", "namespace": "default"},
        "spec": {**spec, "template": template},
    }


def phases(world: Simulation) -> Counter[str]:
    return Counter(pod.phase for pod in world.cluster.api.pods.values())


@pytest.fixture
def on_node(world: Simulation, node: MakeNode) -> Simulation:
    world.cluster.apply(node("n"))
    return world


def test_a_job_runs_so_many_pods_at_a_time_until_as_many_as_it_wants_have_ended(on_node: Simulation) -> None:
    apply_document(on_node, job(completions=5, parallelism=2))
    settle(on_node)
    assert phases(on_node) == {"Running": 2}

    settle(on_node, 6 * MINUTE)
    assert phases(on_node) == {"Succeeded": 2, "Running": 2}

    settle(on_node, 12 * MINUTE)
    assert phases(on_node) == {"Succeeded": 5}


@pytest.mark.parametrize(
    ("spec", "pods"), [({}, 1), ({"parallelism": 3}, 3), ({"completions": 3}, 1), ({"suspend": True}, 0)]
)
def test_a_job_has_the_defaults_of_the_api(on_node: Simulation, spec: dict[str, Any], pods: int) -> None:
    apply_document(on_node, job(**spec))
    settle(on_node)
    assert phases(on_node).total() == pods


def test_a_pod_of_a_job_that_is_evicted_comes_again_and_starts_anew(on_node: Simulation) -> None:
    apply_document(on_node, job())
    settle(on_node, 4 * MINUTE)
    (first,) = on_node.cluster.api.pods.values()
    on_node.cluster.api.delete_pod(first)

    settle(on_node, 4 * MINUTE)
    assert phases(on_node) == {"Running": 1}
    assert first.uid not in on_node.cluster.api.pods
    settle(on_node, 2 * MINUTE)
    assert phases(on_node) == {"Succeeded": 1}


def test_a_pod_of_a_job_has_the_labels_by_which_its_spreads_select(on_node: Simulation) -> None:
    apply_document(on_node, job())
    settle(on_node)
    (pod,) = on_node.cluster.api.pods.values()
    assert on_node.cluster.api.shapes[pod.shape].labels["batch.kubernetes.io/job-name"] == "report"
    assert pod.owner is not None
    assert (pod.owner.kind, pod.owner.name) == ("batch/v1/Job", "report")


def test_a_deleted_job_takes_its_pods_along_and_makes_no_more(on_node: Simulation) -> None:
    apply_document(on_node, job(completions=4))
    settle(on_node, 6 * MINUTE)
    assert phases(on_node) == {"Succeeded": 1, "Running": 1}

    perform_action(on_node, t.Delete(at="0s", kind="Job", name="report"))
    settle(on_node, 10 * MINUTE)
    assert not phases(on_node)


def test_a_job_that_is_applied_again_goes_on(on_node: Simulation) -> None:
    apply_document(on_node, job(completions=2))
    settle(on_node, 4 * MINUTE)
    apply_document(on_node, job(completions=2))
    settle(on_node, 2 * MINUTE)
    assert phases(on_node) == {"Succeeded": 1, "Running": 1}


def test_a_bare_pod_ends_when_it_has_run_for_as_long_as_it_says(on_node: Simulation) -> None:
    metadata = {"name": "once", "namespace": "default", "annotations": {"kerf.dev/runs-for": "3m"}}
    apply_document(on_node, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec()})
    settle(on_node, 2 * MINUTE)
    assert phases(on_node) == {"Running": 1}
    settle(on_node, 2 * MINUTE)
    assert phases(on_node) == {"Succeeded": 1}


def test_a_job_that_does_not_say_how_long_it_runs_is_not_simulated_and_noted(on_node: Simulation) -> None:
    apply_document(on_node, job(runs_for=None))
    settle(on_node)
    assert not phases(on_node)
    assert [item for item, _ in on_node.notes] == ["Job default/report"]


def test_a_length_that_cannot_be_read_is_refused_and_says_where(on_node: Simulation) -> None:
    ((_, error),) = apply_document(on_node, job(runs_for="5 minutes"))
    assert error.code == "KERF307"
    assert error.where == "spec.template.metadata.annotations[kerf.dev/runs-for]"
