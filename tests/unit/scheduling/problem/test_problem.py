"""What a problem looks up by name."""

from __future__ import annotations

from msgspec.structs import replace

from tests.support.scenarios.problems import Workloads, ladder, pool, problem, shape


def test_a_changed_problem_looks_up_its_own_pods_and_nodepools() -> None:
    work = Workloads().add("small", 2, shape(500)).add("large", 1, shape(2_000))
    asked = problem(work, ladder(4), pool("first"), pool("second"))
    assert set(asked.pod_of) == {"small-0", "small-1", "large-0"}
    assert sorted(len(pods) for pods in asked.pods_of_kind.values()) == [1, 2]
    assert set(asked.pool_of) == {"first", "second"}
    pods = tuple(pod for pod in asked.pods if pod.name != "small-1")
    changed = replace(asked, pods=pods, pools=(asked.pool_of["second"],))
    assert list(changed.pod_of.values()) == list(pods)
    assert [alike for kind in changed.pods_of_kind.values() for alike in kind] == list(pods)
    assert set(changed.pool_of) == {"second"}
