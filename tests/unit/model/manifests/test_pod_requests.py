"""S-30: a pod's effective requests."""

from typing import Any

from tests.support.manifests.small import POD, changed, pod


def container(requests: dict[str, Any] | None = None, *, name: str = "app", **more: Any) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": requests or {}}} | more


def requests_of(spec: dict[str, Any], status: dict[str, Any] | None = None) -> dict[str, int]:
    return pod(POD | {"spec": spec, "status": status or {}})[1].requests


def sidecar(requests: dict[str, Any], name: str = "side") -> dict[str, Any]:
    return container(requests, name=name, restartPolicy="Always")


def test_containers_add_up() -> None:
    spec = {"containers": [container({"cpu": "250m", "memory": "1Gi"}), container({"cpu": "1"}, name="b")]}
    assert requests_of(spec) == {"cpu": 1250, "memory": 2**30}


def test_limits_stand_in_for_requests_that_are_not_given() -> None:
    """A limit is a request where none is given, also in init containers (docs/plan.md, section 1.1)."""
    limited = {"name": "app", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "4", "memory": "2Gi"}}}
    assert requests_of({"containers": [limited]}) == {"cpu": 1000, "memory": 2**31}
    assert requests_of({"containers": [container()], "initContainers": [limited]}) == {"cpu": 1000, "memory": 2**31}


def test_the_largest_init_container_counts_when_it_exceeds_the_containers() -> None:
    init = [container({"cpu": "3"}, name="i"), container({"memory": "2Gi"}, name="j")]
    spec = {"containers": [container({"cpu": "1", "memory": "1Gi"})], "initContainers": init}
    assert requests_of(spec) == {"cpu": 3000, "memory": 2**31}


def test_sidecars_run_beside_containers_and_beside_later_init_containers() -> None:
    """cpu: containers 1 + sidecar 2 = 3; the init container after the sidecar needs 4 + 2 = 6."""
    init = [sidecar({"cpu": "2"}), container({"cpu": "4"}, name="i")]
    assert requests_of({"containers": [container({"cpu": "1"})], "initContainers": init}) == {"cpu": 6000}
    assert requests_of({"containers": [container({"cpu": "1"})], "initContainers": init[::-1]}) == {"cpu": 4000}


def test_overhead_is_added_at_the_end() -> None:
    spec = {"containers": [container({"cpu": "1"})], "overhead": {"cpu": "250m", "memory": "120Mi"}}
    assert requests_of(spec) == {"cpu": 1250, "memory": 120 * 2**20}


def test_pod_level_requests_replace_the_sum_of_cpu_memory_and_hugepages_only() -> None:
    spec = {
        "containers": [container({"cpu": "1", "nvidia.com/gpu": 1})],
        "resources": {"requests": {"cpu": "2", "hugepages-2Mi": "4Mi", "nvidia.com/gpu": 9}},
        "overhead": {"cpu": "100m"},
    }
    assert requests_of(spec) == {"cpu": 2100, "nvidia.com/gpu": 1, "hugepages-2Mi": 2**22}


def test_a_pod_level_limit_counts_only_for_what_no_container_asks_for() -> None:
    spec = {"containers": [container({"cpu": "1"})], "resources": {"limits": {"cpu": "8", "memory": "1Gi"}}}
    assert requests_of(spec) == {"cpu": 1000, "memory": 2**30}


def test_a_resized_container_counts_the_most_of_spec_status_and_allocation() -> None:
    status = {
        "containerStatuses": [
            {
                "name": "app",
                "resources": {"requests": {"cpu": "3"}},
                "allocatedResources": {"cpu": "2", "memory": "1Gi"},
            }
        ]
    }
    assert requests_of({"containers": [container({"cpu": "1"})]}, status) == {"cpu": 3000, "memory": 2**30}


def test_a_status_without_resources_does_not_count() -> None:
    status = {"containerStatuses": [{"name": "app", "allocatedResources": {"cpu": "9"}}]}
    assert requests_of({"containers": [container({"cpu": "1"})]}, status) == {"cpu": 1000}


def test_an_infeasible_resize_leaves_the_spec_out() -> None:
    status = {
        "conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}],
        "containerStatuses": [{"name": "app", "resources": {"requests": {"cpu": "2"}}}],
    }
    assert requests_of({"containers": [container({"cpu": "64"})]}, status) == {"cpu": 2000}


def test_the_status_of_a_sidecar_counts_but_not_of_an_ordinary_init_container() -> None:
    init = [sidecar({"cpu": "1"}), container({"cpu": "1"}, name="i")]
    statuses = [{"name": n, "resources": {"requests": {"cpu": "5"}}} for n in ("side", "i")]
    spec = {"containers": [container({"cpu": "1"})], "initContainers": init}
    assert requests_of(spec, {"initContainerStatuses": statuses}) == {"cpu": 6000}


def test_a_pod_of_a_known_shape_is_not_mixed_up_with_one_whose_status_differs() -> None:
    spec = {"containers": [container({"cpu": "1"})]}
    first = pod(changed(POD, "spec", spec))[1]
    status = {"containerStatuses": [{"name": "app", "resources": {"requests": {"cpu": "7"}}}]}
    assert (first.requests, requests_of(spec, status), requests_of(spec)) == (
        {"cpu": 1000},
        {"cpu": 7000},
        {"cpu": 1000},
    )
