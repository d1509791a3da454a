"""Pods with required affinity to others of a node that goes, which a PodDisruptionBudget lets go only after them
(S-142, D-88)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kerf.engine.disruption.cluster import Cluster, ClusterNode
from kerf.engine.disruption.rebinding import Rebinding
from kerf.engine.disruption.simulation import SimulationOutcome, Simulator
from kerf.engine.model.disruption_reasons import DisruptionCode
from kerf.engine.model.instance_types import Catalogue, InstanceType, Offering
from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.kubernetes.pods import AffinityTerm, Pod, Selector
from kerf.engine.model.labels import CAPACITY_TYPE, HOSTNAME, ZONE
from kerf.projections.prose.reasons import sentence
from tests.support.scenarios.clusters import capacity, cluster, node, pending, pod

CPU = 8_000


def offered(**zones: float) -> Catalogue:
    """Large nodes in these zones, at these prices."""
    offerings = tuple(Offering(zone, "on-demand", price) for zone, price in zones.items())
    requirements = {CAPACITY_TYPE: ("on-demand",), ZONE: ("a", "b")}
    return Catalogue((InstanceType("large", capacity(CPU), requirements=requirements, offerings=offerings),))


def beside(app: str, key: str = ZONE, **changes: Any) -> dict[str, Any]:
    return {"affinity": (AffinityTerm(key, Selector({"app": app}), **changes),)}


def web(name: str, **changes: Any) -> Pod:
    """A pod of app web, which has to be in one zone with others of it."""
    return pod(name, **{"labels": {"app": "web"}, **beside("web"), **changes})


def budget(allowed: int, app: str = "web", **changes: Any) -> PodDisruptionBudget:
    return PodDisruptionBudget(f"u-{app}", "default", app, Selector({"app": app}), None, None, allowed, **changes)


ONE_BY_ONE = (budget(1),)


def asked(*nodes: ClusterNode, **changes: Any) -> Cluster:
    known = {"catalogue": offered(b=0.1), "pod_disruption_budgets": ONE_BY_ONE, "live": True, **changes}
    return cluster(*nodes, **known)


def without_n1(given: Cluster) -> SimulationOutcome:
    return Simulator(given, prepared=False).without(["n1"])


def zones(given: Cluster) -> set[str]:
    """The zones of the new nodes for the pods of n1."""
    outcome = without_n1(given)
    assert outcome.failure is None
    assert not Rebinding(given).unbound(["n1"], outcome.claims)
    found = {spec.values for claim in outcome.claims for spec in claim.requirements if spec.key == ZONE}
    return {zone for values in found for zone in values}


TWO = web("1"), web("2")


def test_d88_a_node_stays_whose_pods_would_wait_for_each_other_in_two_zones() -> None:
    """The first one could run only beside the second, which its budget kept until the first ran."""
    outcome = without_n1(asked(node("n1", "large", *TWO)))
    assert outcome.failure is not None
    assert outcome.failure.code == DisruptionCode.NO_PLACE_BESIDE
    assert sentence(outcome.failure) == (
        "2 of its pods must be beside others of its pods (pod affinity), which PodDisruptionBudget default/web lets go "
        "only after them, and with topology.kubernetes.io/zone=a there is no other place: default/1, default/2"
    )


def test_d88_they_go_to_a_node_of_their_zone_though_another_one_is_cheaper() -> None:
    assert zones(asked(node("n1", "large", *TWO), catalogue=offered(a=0.2, b=0.1))) == {"a"}
    there = node("n2", "large", labels={ZONE: "b"}), node("n3", "large")
    outcome = without_n1(asked(node("n1", "large", *TWO), *there))
    assert [placement.node for placement in outcome.placements] == ["n3"]


def test_d88_three_of_which_two_may_go_at_a_time_wait_for_the_third() -> None:
    three = (*TWO, web("3"))
    assert without_n1(asked(node("n1", "large", *three), pod_disruption_budgets=(budget(2),))).failure is not None
    assert zones(asked(node("n1", "large", *three), pod_disruption_budgets=(budget(3),))) == {"b"}


@pytest.mark.parametrize(
    ("pods", "changes"),
    [
        pytest.param(TWO, {"pod_disruption_budgets": ()}, id="no budget"),
        pytest.param(TWO, {"pod_disruption_budgets": (budget(1, "other"),)}, id="a budget of other pods"),
        pytest.param(TWO, {"pod_disruption_budgets": (budget(2),)}, id="both may go at once"),
        pytest.param(TWO, {"live": False}, id="as Karpenter"),
        pytest.param((web("1"),), {}, id="one pod"),
        pytest.param((web("1"), web("2", affinity=())), {"pod_disruption_budgets": (budget(2),)}, id="one seeks none"),
        pytest.param((web("1", **beside("web", weight=1)), web("2", **beside("web", weight=1))), {}, id="preferred"),
        pytest.param(
            (web("1"), web("2", ready=False)),
            {"pod_disruption_budgets": (budget(1, always_allow_unhealthy=True),)},
            id="an unhealthy one that may go in any case",
        ),
    ],
)
def test_d88_other_pods_go_to_the_cheaper_zone(pods: tuple[Pod, ...], changes: dict[str, Any]) -> None:
    assert zones(asked(node("n1", "large", *pods), **{"catalogue": offered(a=0.2, b=0.1), **changes})) >= {"b"}


def test_d88_pods_go_where_one_runs_that_stays() -> None:
    staying = node("n2", "large", web("3"), pod("fill", 7_000), labels={ZONE: "b"})
    assert zones(asked(node("n1", "large", *TWO), staying)) == {"b"}
    leaving = node("n2", "large", web("3", deleting=1), pod("fill", 7_000), labels={ZONE: "b"})
    assert without_n1(asked(node("n1", "large", *TWO), leaving)).failure is not None, "it attracts nobody any more"


def test_d88_on_one_host_there_is_no_other_place() -> None:
    one, other = (web(name, **beside("web", HOSTNAME)) for name in "12")
    outcome = without_n1(asked(node("n1", "large", one, other), node("n2", "large")))
    assert outcome.failure is not None
    assert outcome.failure.params["where"] == ["kubernetes.io/hostname=n1"]
    together = asked(node("n1", "large", one, other), node("n2", "large"), pod_disruption_budgets=())
    assert [placement.node for placement in without_n1(together).placements] == ["n2"]


def test_d88_a_pod_follows_one_that_seeks_none_and_goes_before_it() -> None:
    """One of two databases goes at once, and has its next node before the pod that seeks it."""
    seeking, databases = pod("1", labels={"app": "web"}, **beside("db")), [pod(n, labels={"app": "db"}) for n in "23"]
    given = asked(node("n1", "large", seeking, *databases), pod_disruption_budgets=(budget(1, "db"),))
    assert zones(given) == {"b"}
    same = replace(budget(1, "db"), selector=Selector({}))
    both = asked(node("n1", "large", seeking, databases[0]), pod_disruption_budgets=(same,))
    assert without_n1(both).failure is not None, "under one budget the pod that seeks may go first"


def test_d88_all_nodes_that_go_together_count() -> None:
    given = asked(node("n1", "large", TWO[0]), node("n2", "large", TWO[1]))
    assert Simulator(given, prepared=False).without(["n1", "n2"]).failure is not None
    apart = replace(given, pod_disruption_budgets=(budget(2),))
    assert Simulator(apart, prepared=False).without(["n1", "n2"]).failure is None


def test_d88_a_waiting_pod_is_held_to_no_node_that_stays() -> None:
    given = asked(node("n1", "large", *TWO), pending=(pending("w"),), catalogue=offered(a=0.2, b=0.1))
    outcome = without_n1(given)
    assert outcome.failure is None
    assert {uid for claim in outcome.claims for uid in claim.pods} == {"uid-1", "uid-2", "uid-w"}
