"""Which nodes may be disrupted, what that costs, and in which order they are looked at (D-10…D-15, D-28…D-42, D-59,
D-67; worked cases W-10…W-23)."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.engine.disruption import eligibility
from kerf.engine.disruption.cluster import Cluster, ClusterNode
from kerf.engine.disruption.eligibility import Candidate, find_candidates, judge_node
from kerf.engine.lifecycle.eviction_cost import eviction_cost, remaining_lifetime, scale_down_cost
from kerf.engine.model import labels as lbl
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.kubernetes.pods import Owner, Pod, Selector, Toleration
from kerf.engine.model.reasons import Reason
from tests.support.scenarios.clusters import DAEMON, NOW, SHAPES, cluster, node, pod, pool, price

MIRROR = Owner("v1/Node", "n1")
STATEFUL = Owner("apps/v1/StatefulSet", "db")
MINUTE = 60_000


def code(given: ClusterNode, *, eventual: bool = False, **changes: Any) -> str:
    """The code of the reason that excludes a node, "" for a candidate."""
    found = judge_node(given, cluster(given, **changes), eventual=eventual)
    return found.code if isinstance(found, Reason) else ""


def own(given: ClusterNode, filter_: eligibility.Filter, **changes: Any) -> str:
    found = find_candidates(cluster(given, **changes), filter_).excluded.get(given.name)
    return "" if found is None else found.code


def candidate(given: ClusterNode, **changes: Any) -> Candidate:
    found = judge_node(given, cluster(given, **changes))
    assert isinstance(found, Candidate)
    return found


def budget(allowed: int = 0, name: str = "web", **changes: Any) -> PodDisruptionBudget:
    known: dict[str, Any] = {"selector": Selector({"app": "web"}), "disruptions_allowed": allowed, **changes}
    return PodDisruptionBudget(name, known.pop("namespace", "default"), name, **known)


def web(**changes: Any) -> Pod:
    return pod("web", labels={"app": "web"}, **changes)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ""),
        ({"queued": True}, "being-disrupted"),
        ({"managed": False}, "not-managed"),
        ({"has_node": False}, "no-node"),
        ({"initialized": False}, "not-initialized"),
        ({"marked": True}, "going"),
        ({"nominated": True}, "nominated"),
        ({"labels": {lbl.NODEPOOL: ""}}, "no-nodepool-label"),
        ({"pool": "other"}, "no-nodepool"),
    ],
)
def test_d30_w21_the_first_check_that_fails_excludes(changes: dict[str, Any], expected: str) -> None:
    assert code(node("n1", "small", **changes)) == expected


def test_l283_the_checks_come_in_this_order() -> None:
    """One fault after the other is taken away, and the next one shows."""
    faults: dict[str, Any] = {
        "managed": False, "has_node": False, "initialized": False, "marked": True, "nominated": True,
        "annotations": {lbl.DO_NOT_DISRUPT: "true"}, "labels": {lbl.NODEPOOL: ""},
    }  # fmt: skip
    found = []
    while faults:
        found.append(code(node("n1", "small", **faults)))
        del faults[next(iter(faults))]
    assert found == [
        "not-managed", "no-node", "not-initialized", "going", "nominated", "do-not-disrupt", "no-nodepool-label",
    ]  # fmt: skip


def test_d29_a_pool_without_instance_types_has_no_candidates() -> None:
    assert code(node("n1", "small"), catalogue=Catalogue(())) == "no-instance-types"


@pytest.mark.parametrize(("value", "expected"), [("true", "do-not-disrupt"), ("false", ""), ("5m", "")])
def test_w10_only_true_protects_a_node(value: str, expected: str) -> None:
    assert code(node("n1", "small", annotations={lbl.DO_NOT_DISRUPT: value})) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"owner": DAEMON}, "pod-do-not-disrupt"),
        ({"owner": MIRROR}, "pod-do-not-disrupt"),
        ({"phase": "Succeeded"}, ""),
        ({"deleting": NOW}, ""),
    ],
)
def test_w11_active_pods_that_are_protected_block(changes: dict[str, Any], expected: str) -> None:
    assert code(node("n1", "small", pod("p", do_not_disrupt="true", **changes))) == expected


@pytest.mark.parametrize(
    ("value", "started", "blocks"),
    [
        ("3m", NOW - 2 * MINUTE, True),
        ("3m", NOW - 3 * MINUTE, False),
        ("3m", 0, True),
        ("not-a-duration", NOW, False),
        ("-5m", NOW, False),
        ("0s", NOW, False),
        ("false", NOW, False),
    ],
)
def test_d12_w12_w13_a_duration_protects_a_pod_from_its_start(value: str, started: int, blocks: bool) -> None:
    found = code(node("n1", "small", pod("p", do_not_disrupt=value, started=started)))
    assert found == ("pod-do-not-disrupt" if blocks else "")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "pod-budget-exhausted"),
        ({"owner": DAEMON}, "pod-budget-exhausted"),
        ({"owner": MIRROR}, ""),
        ({"phase": "Failed"}, ""),
        ({"tolerations": (Toleration(operator="Exists"),)}, ""),
    ],
)
def test_d13_w14_an_exhausted_budget_blocks_what_would_be_evicted(changes: dict[str, Any], expected: str) -> None:
    assert code(node("n1", "small", web(**changes)), pod_disruption_budgets=(budget(),)) == expected


def test_w14_w15_w16_the_budgets_that_match_decide() -> None:
    given = node("n1", "small", web())
    assert code(given, pod_disruption_budgets=(budget(namespace="other"),)) == ""
    assert code(given, pod_disruption_budgets=(budget(1),)) == ""
    assert code(given, pod_disruption_budgets=(budget(1), budget(1, "second"))) == "several-pod-budgets"
    unready = node("n1", "small", web(ready=False))
    assert code(unready, pod_disruption_budgets=(budget(),)) == "pod-budget-exhausted"
    assert code(unready, pod_disruption_budgets=(budget(always_allow_unhealthy=True),)) == ""
    assert code(given, pod_disruption_budgets=(budget(always_allow_unhealthy=True),)) == "pod-budget-exhausted"


def test_d31_w17_a_grace_period_waives_pods_for_the_eventual_class_only() -> None:
    held = node("n1", "small", pod("p", do_not_disrupt="true"), grace_period=0)
    assert code(held, eventual=True) == ""
    assert code(held) == "pod-do-not-disrupt"
    assert code(node("n1", "small", *held.pods), eventual=True) == "pod-do-not-disrupt"
    protected = node("n1", "small", annotations={lbl.DO_NOT_DISRUPT: "true"}, grace_period=0)
    assert code(protected, eventual=True) == "do-not-disrupt"


@pytest.mark.parametrize(
    ("budgets", "moves"),
    [
        ((budget(0),), True),
        ((budget(0, max_unavailable="0"),), False),
        ((budget(0, max_unavailable="0%"),), False),
        ((budget(0, min_available="100%"),), False),
        ((budget(0, min_available="1"),), True),
        ((budget(1), budget(1, "second")), False),
    ],
)
def test_d15_d88_a_pod_that_may_never_be_evicted_does_not_move(
    budgets: tuple[PodDisruptionBudget, ...], moves: bool
) -> None:
    assert cluster(node("n1", "small", web()), pod_disruption_budgets=budgets).eviction_rules.moves(web()) is moves


def test_d88_a_daemon_a_mirror_and_a_finished_pod_do_not_move() -> None:
    rules = cluster().eviction_rules
    moving = [pod("a"), pod("b", owner=STATEFUL, deleting=NOW)]
    staying = [pod("c", owner=DAEMON), pod("d", owner=MIRROR), pod("e", phase="Succeeded"), pod("f", deleting=NOW)]
    assert [moved.name for moved in (*moving, *staying) if rules.moves(moved)] == ["a", "b"]


@pytest.mark.parametrize(
    ("deletion_cost", "priority", "expected"),
    [(0, 0, 1.0), (134_217_728, 0, 2.0), (-134_217_728, 0, 0.0), (2_147_483_647, 0, 10.0), (-2_147_483_647, 0, -10.0),
     (0, 1_000_000_000, 10.0), (0, 33_554_432, 2.0)],
)  # fmt: skip
def test_d36_d37_what_an_eviction_costs(deletion_cost: int, priority: int, expected: float) -> None:
    assert eviction_cost(deletion_cost, priority) == expected


def test_d37_a_little_priority_costs_a_little_more() -> None:
    assert 1.0 < eviction_cost(0, 1) < 1.0001


def test_d38_d39_l271_only_costs_above_zero_count() -> None:
    """One, and that of each pod but daemons."""
    found = candidate(node("n1", "large", pod("a"), pod("b", deletion_cost=-200_000_000), pod("c", owner=DAEMON)))
    assert (found.cost, found.price) == (2.0, price("large"))
    assert found.ratio == price("large") / 2


def test_d41_d42_the_scale_down_cost_shrinks_with_the_lifetime_left() -> None:
    assert [remaining_lifetime(0, length, 25) for length in (None, 100, 20)] == [1.0, 0.75, 0.0]
    pods = [pod("a"), pod("b", deletion_cost=-134_217_728), pod("c", owner=DAEMON)]
    assert scale_down_cost(pods, SHAPES, 0.5) == 1.0


@pytest.mark.parametrize(
    ("given", "empty"),
    [
        (pod("p", owner=DAEMON), True),
        (pod("p", deleting=NOW), True),
        (pod("p", owner=STATEFUL, deleting=NOW), False),
        (pod("p", deletion_cost=-2_147_483_647), True),
        (pod("p"), False),
    ],
)
def test_d35_w22_w23_what_counts_as_empty(given: Pod, empty: bool) -> None:
    assert candidate(node("n1", "small", given)).empty is empty


def test_d32_d34_what_is_not_known_costs_nothing_and_does_not_exclude() -> None:
    assert candidate(node("n1", "unheard-of")).price == 0
    assert candidate(node("n1", "small", labels={lbl.ZONE: "z"})).price == 0
    assert own(node("n1", "unheard-of"), eligibility.emptiness) == ""


@pytest.mark.parametrize(
    ("pool_changes", "node_changes", "pods", "expected"),
    [
        ({}, {}, (), ""),
        ({"replicas": 1}, {}, (), "static-nodepool"),
        ({"consolidate_after": None}, {}, (), "consolidate-after-never"),
        ({}, {"buffers": 1}, (), "holds-buffers"),
        ({}, {}, (pod("p"),), "has-pods"),
        ({"consolidation_policy": "WhenEmpty"}, {}, (), ""),
        ({}, {"consolidatable": False}, (), "not-consolidatable"),
    ],
)
def test_d59_what_emptiness_takes(
    pool_changes: dict[str, Any], node_changes: dict[str, Any], pods: tuple[Pod, ...], expected: str
) -> None:
    given = node("n1", "small", *pods, **node_changes)
    assert own(given, eligibility.emptiness, pools=(pool(**pool_changes),)) == expected


@pytest.mark.parametrize(
    ("pool_changes", "given", "expected"),
    [
        ({}, node("n1", "small", pod("p")), ""),
        ({"replicas": 1}, node("n1", "small", pod("p")), "static-nodepool"),
        ({}, node("n1", "unheard-of", pod("p")), "unknown-instance-type"),
        ({}, node("n1", "small", pod("p"), labels={lbl.CAPACITY_TYPE: ""}), "missing-label"),
        ({}, node("n1", "small", pod("p"), labels={lbl.ZONE: ""}), "missing-label"),
        ({"consolidate_after": None}, node("n1", "small", pod("p")), "consolidate-after-never"),
        ({}, node("n1", "small"), "empty"),
        ({"consolidation_policy": "WhenEmpty"}, node("n1", "small", pod("p")), "policy-when-empty"),
        ({}, node("n1", "small", pod("p"), consolidatable=False), "not-consolidatable"),
    ],
)
def test_d67_w19_w20_what_consolidation_takes(pool_changes: dict[str, Any], given: ClusterNode, expected: str) -> None:
    assert own(given, eligibility.consolidation, pools=(pool(**pool_changes),)) == expected


def test_d62_drift_takes_drifted_nodes_of_dynamic_pools() -> None:
    assert own(node("n1", "small"), eligibility.drift) == "not-drifted"
    assert own(node("n1", "small", drifted_since=1), eligibility.drift) == ""
    assert own(node("n1", "small", drifted_since=1), eligibility.drift, pools=(pool(replicas=1),)) == "static-nodepool"


def test_d40_candidates_stand_by_savings_ratio_then_name() -> None:
    given: Cluster = cluster(
        node("c", "small", pod("p1")), node("a", "small", pod("p2")), node("b", "large", pod("p3"), pod("p4"))
    )
    assert [chosen.name for chosen in find_candidates(given, eligibility.consolidation).chosen] == ["b", "a", "c"]


@pytest.mark.parametrize("changes", [{}, {"queued": True}, {"pool": "other"}])
def test_d30_d35_without_its_weight_a_node_is_judged_alike(changes: dict[str, Any]) -> None:
    for live in (True, False):
        for pods in ((), (web(),)):
            given = node("n1", "large", *pods, **changes)
            around = cluster(given, live=live)
            weighed, light = judge_node(given, around), judge_node(given, around, weighed=False)
            assert type(weighed) is type(light)
            if isinstance(weighed, Candidate) and isinstance(light, Candidate):
                assert (light.empty, light.pods) == (weighed.empty, weighed.pods)
                assert light.cost == (0.0 if live else weighed.cost)
            else:
                assert light == weighed
