"""S-149 to S-151: constraints that the cluster gives to pods without any."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.engine.model import labels as lbl
from kerf.engine.model.kubernetes.pods import Expression, Owner, Pod, PodShape, Selector, SpreadConstraint
from kerf.engine.model.kubernetes.services import Service
from kerf.engine.model.kubernetes.workloads import Workload
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem.default_spread import SelectorSources, with_default_spread
from kerf.engine.scheduling.problem.scheduler_config import SchedulerConfigError, default_constraints
from tests.support.judges.plans import faults
from tests.support.scenarios.problems import Workloads, ladder, problem, shape

ZONAL = (SpreadConstraint(lbl.ZONE),)
SHAPE = shape(labels={"app": "a", "tier": "web"})
REPLICASET, JOB, CONTROLLER = "apps/v1/ReplicaSet", "batch/v1/Job", "v1/ReplicationController"


def kin(*workloads: Workload, services: tuple[Service, ...] = ()) -> SelectorSources:
    return SelectorSources(services, {workload.key: workload for workload in workloads})


def replica_set(name: str, selector: Selector | None, kind: str = REPLICASET) -> Workload:
    return Workload(kind, "default", name, "", selector=selector)


def planned(given: PodShape, owner: Owner | None, kinship: SelectorSources, count: int = 4) -> Plan:
    """The plan for so many pods of one owner, with one zonal default; valid by the judge, who sees the constraint."""
    work = Workloads()
    digest = work.shape(given)
    pods = [Pod(f"p-{i}", "default", f"p-{i}", digest, owner=owner) for i in range(count)]
    found, made = with_default_spread(pods, work.shapes, ZONAL, kinship)
    work.shapes.update(made)
    for pod in found:
        work.add(pod.name, 1, work.shapes[pod.shape])
    question = problem(work, ladder(16))
    answer = plan(question)
    assert faults(question, answer) == []
    return answer


def pods_by_claim(answer: Plan) -> list[int]:
    return sorted((len(claim.pods) for claim in answer.claims), reverse=True)


def test_s150_e110_four_pods_of_a_replica_set_go_to_three_zones() -> None:
    owner = Owner(REPLICASET, "a-1")
    answer = planned(SHAPE, owner, kin(replica_set("a-1", Selector({"app": "a"}))))
    assert pods_by_claim(answer) == [2, 1, 1]


def test_s151_an_owner_that_does_not_control_a_pod_says_nothing_of_its_kin() -> None:
    kinship = kin(replica_set("a", Selector({"app": "a"}), "apps/v1/StatefulSet"))
    assert pods_by_claim(planned(SHAPE, Owner("apps/v1/StatefulSet", "a"), kinship)) == [2, 1, 1]
    assert pods_by_claim(planned(SHAPE, Owner("apps/v1/StatefulSet", "a", controller=False), kinship)) == [4]


def test_s150_the_judge_sees_what_a_plan_without_the_constraint_gets_wrong() -> None:
    work, spread = Workloads().add("p", 4, SHAPE), Workloads()
    spread.add("p", 4, replace(SHAPE, spread=(replace(ZONAL[0], selector=Selector({"app": "a"})),)))
    careless = plan(problem(work, ladder(16)))
    assert faults(problem(work, ladder(16)), careless) == []
    assert faults(problem(spread, ladder(16)), careless) != []


def test_s151_e110_bare_pods_get_no_constraint() -> None:
    assert pods_by_claim(planned(SHAPE, None, kin(replica_set("a-1", Selector({"app": "a"}))))) == [4]


def test_s151_e110_pods_of_a_job_get_that_of_the_service_that_selects_them() -> None:
    services = (Service("default", "web", {"tier": "web"}), Service("other", "no", {"app": "a"}))
    assert pods_by_claim(planned(SHAPE, Owner(JOB, "j"), kin(services=services))) == [2, 1, 1]
    assert pods_by_claim(planned(SHAPE, Owner(JOB, "j"), kin(services=services[1:]))) == [4]


def test_s150_e110_pods_with_constraints_of_their_own_keep_these() -> None:
    own = replace(SHAPE, spread=(SpreadConstraint(lbl.HOSTNAME, 4, selector=Selector({"app": "a"})),))
    answer = planned(own, Owner(REPLICASET, "a-1"), kin(replica_set("a-1", Selector({"app": "a"}))))
    assert pods_by_claim(answer) == [4]


def test_s151_e111_two_replica_sets_of_one_deployment_spread_independently() -> None:
    """Three pods of the old revision are in z1; the new one's three go to three zones all the same."""
    old, new = ({"app": "a", "pod-template-hash": digest} for digest in ("old", "new"))
    owners = kin(replica_set("a-old", Selector(old)), replica_set("a-new", Selector(new)))
    selector = owners.selector("default", new, Owner(REPLICASET, "a-new"))
    assert selector is not None
    assert {expression.key: expression.values for expression in selector.expressions} == {
        "app": ("a",),
        "pod-template-hash": ("new",),
    }
    zones = Counter(
        value for claim in planned(shape(labels=new), Owner(REPLICASET, "a-new"), owners, 3).claims
        for spec in claim.requirements if spec.key == lbl.ZONE for value in spec.values
    )  # fmt: skip
    assert set(zones.values()) == {1}
    assert len(zones) == 3


def test_s151_services_merge_by_name_and_a_controller_has_the_last_word() -> None:
    services = (
        Service("default", "b", {"tier": "web"}),
        Service("default", "a", {"app": "a"}),
        Service("default", "empty"),
        Service("default", "others", {"app": "b"}),
    )
    labels = {"app": "a", "tier": "web"}
    assert kin(services=services).selector("default", labels, None) == Selector({"app": "a", "tier": "web"})
    controller = replica_set("c", Selector({"app": "c"}), CONTROLLER)
    found = kin(controller, services=services).selector("default", labels, Owner(CONTROLLER, "c"))
    assert found == Selector({"app": "c", "tier": "web"})
    stateful = replica_set("s", Selector({"app": "a"}, (Expression("x", "Exists"),)), "apps/v1/StatefulSet")
    found = kin(stateful, services=services[:1]).selector("default", labels, Owner("apps/v1/StatefulSet", "s"))
    assert found == Selector({"tier": "web"}, (Expression("app", "In", ("a",)), Expression("x", "Exists")))


def test_s151_who_cannot_be_looked_up_contributes_nothing() -> None:
    assert kin().selector("default", {"app": "a"}, Owner(REPLICASET, "gone")) is None
    assert kin(replica_set("x", None)).selector("default", {"app": "a"}, Owner(REPLICASET, "x")) is None


# ── the flag ──────────────────────────────────────


def config(*constraints: dict[str, Any]) -> dict[str, Any]:
    return {"podTopologySpread": {"defaultConstraints": list(constraints)}}


GOOD = {"maxSkew": 1, "topologyKey": lbl.ZONE, "whenUnsatisfiable": "ScheduleAnyway"}


def test_s149_a_scheduler_config() -> None:
    assert default_constraints(config(GOOD)) == (SpreadConstraint(lbl.ZONE, 1, "ScheduleAnyway"),)
    assert default_constraints(None) == default_constraints({}) == ()
    both = default_constraints(config(GOOD, {**GOOD, "whenUnsatisfiable": "DoNotSchedule"}))
    assert len(both) == 2


@pytest.mark.parametrize(
    ("document", "where"),
    [
        (config({**GOOD, "maxSkew": 0}), "[0].maxSkew"),
        (config({**GOOD, "topologyKey": ""}), "[0].topologyKey"),
        (config({**GOOD, "topologyKey": "a b"}), "[0].topologyKey"),
        (config({**GOOD, "whenUnsatisfiable": "Never"}), "[0].whenUnsatisfiable"),
        (config({**GOOD, "labelSelector": {}}), "labelSelector"),
        (config({**GOOD, "matchLabelKeys": []}), "matchLabelKeys"),
        (config(GOOD, GOOD), "[1]"),
        ({"podTopologySpreads": {}}, "podTopologySpreads"),
        ([], "scheduler-config"),
    ],
)
def test_s149_what_is_refused_at_start(document: Any, where: str) -> None:
    with pytest.raises(SchedulerConfigError) as refused:
        default_constraints(document)
    assert where in str(refused.value)
    assert refused.value.code == "KERF338"
