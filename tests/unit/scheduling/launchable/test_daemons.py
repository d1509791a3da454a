"""What DaemonSets take of new nodes (S-80, S-81, S-83, S-161)."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.engine.model import labels as lbl
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.kubernetes.pods import AffinityTerm, PodShape, Selector, Taint
from kerf.engine.scheduling.planner import plan
from tests.support.scenarios.problems import Workloads, instance_type, ladder, pool, preferred, problem, shape, term


def pods(daemon: PodShape, **of_pool: Any) -> int:
    """How many pods the node of the only pod is asked to hold."""
    work = Workloads().add("a", 1, shape(100, tolerations=of_pool.pop("tolerations", ())))
    (claim,) = plan(problem(work, ladder(4), pool(**of_pool), daemons=[daemon])).claims
    return claim.requests["pods"]


def test_s81_a_soft_taint_keeps_no_daemon_away() -> None:
    assert pods(shape(), taints=(Taint("slow", "PreferNoSchedule"),)) == 2


@pytest.mark.parametrize(
    "wish",
    [
        shape(preferred_terms=(preferred(1, (lbl.ZONE, "In", ("nowhere",))),)),
        shape(affinity=(AffinityTerm(lbl.HOSTNAME, Selector({"app": "nobody"})),)),
        shape(anti_affinity=(AffinityTerm(lbl.HOSTNAME, Selector()),)),
    ],
)
def test_s81_preferences_and_other_pods_do_not_matter(wish: PodShape) -> None:
    assert pods(wish) == 2


def test_s81_a_well_known_label_may_be_undefined_and_its_value_may_not_conflict() -> None:
    assert pods(shape(node_selector={lbl.WINDOWS_BUILD: "10.0"})) == 2
    assert pods(shape(node_selector={lbl.ARCH: "arm64"})) == 1
    assert pods(shape(required_terms=(term((lbl.ARCH, "In", ("arm64",))), term((lbl.ARCH, "In", ("amd64",)))))) == 2


def test_s80_daemons_with_resource_claims_are_left_out_while_these_are_ignored() -> None:
    daemon = shape(resource_claims=("gpu=mine",))
    assert pods(daemon) == 1
    work = Workloads().add("a", 1, shape(100))
    (claim,) = plan(problem(work, ladder(4), daemons=[daemon], ignore_dra_requests=False)).claims
    assert claim.requests["pods"] == 2


def test_s83_s161_types_go_by_the_daemons_that_run_on_them_and_the_least_is_asked_for() -> None:
    """One runs on both types, the other on the large one alone: with both the large type has too little room."""
    types = Catalogue((instance_type("small", 2), instance_type("large", 4)))
    both, second = shape(500), shape(1_000, node_selector={lbl.INSTANCE_TYPE: "large"})

    def planned(cpu: int) -> tuple[tuple[str, ...], int]:
        given = problem(Workloads().add("a", 1, shape(cpu)), types, daemons=[both, second])
        (claim,) = plan(given).claims
        return claim.instance_types, claim.requests["cpu"]

    assert planned(1_500) == (("small", "large"), 2_000)
    assert planned(2_500) == (("large",), 4_000)
    assert not plan(problem(Workloads().add("a", 1, shape(2_501)), types, daemons=[both, second])).claims
