"""NodePools: their fields and defaults (L-9…L-29), and what admission refuses."""

from typing import Any

import pytest

from kerf.engine.model.karpenter.nodepool_hash import hashed
from kerf.engine.model.karpenter.nodepools import Budget, NodeClassRef, NodePool, RequirementSpec
from kerf.engine.model.kubernetes.pods import Taint
from kerf.engine.model.manifests.violations import ManifestError
from tests.support.manifests.small import NODE_POOL, changed, decode, node_pool, refusals

HOUR = 3_600_000
TEMPLATE = "spec.template.spec"


def requirement(**fields: Any) -> dict[str, Any]:
    return changed(NODE_POOL, f"{TEMPLATE}.requirements", [{"key": "team", "operator": "In", "values": ["a"]} | fields])


def test_defaults() -> None:
    """What is left out has its default (L-15, L-17…L-21, L-26)."""
    expected = NodePool(
        name="default",
        node_class=NodeClassRef("karpenter.k8s.aws", "EC2NodeClass", "default"),
        uid="u-1",
        requirements=(RequirementSpec("kubernetes.io/os", "In", ("linux",)),),
        expire_after=720 * HOUR,
        termination_grace_period=None,
        consolidation_policy="WhenEmptyOrUnderutilized",
        consolidate_after=0,
        budgets=(Budget("10%"),),
        limits=None,
        weight=0,
        replicas=None,
        ready=True,
    )
    assert node_pool(NODE_POOL) == hashed(expected)


def test_everything_given() -> None:
    document = NODE_POOL | {
        "metadata": {"name": "p", "deletionTimestamp": "2026-01-15T11:00:00Z"},
        "spec": {
            "template": {
                "metadata": {"labels": {"team": "a"}, "annotations": {"example.com/x": "y"}},
                "spec": NODE_POOL["spec"]["template"]["spec"]
                | {
                    "taints": [{"key": "k", "effect": "NoSchedule", "value": "v"}],
                    "startupTaints": [{"key": "s", "effect": "NoExecute"}],
                    "expireAfter": "Never",
                    "terminationGracePeriod": "0s",
                },
            },
            "limits": {"cpu": 1000, "memory": "1000Gi", "nodes": "5"},
            "weight": 10,
            "disruption": {
                "consolidationPolicy": "Balanced",
                "consolidateAfter": "Never",
                "budgets": [
                    {"nodes": "5", "schedule": "0 2 * * *", "duration": "1h30m", "reasons": ["Drifted"]},
                    {"schedule": "@daily", "duration": "8h0s"},
                ],
            },
        },
        "status": {"conditions": [{"type": "Ready", "status": "False"}]},
    }
    pool = node_pool(document)
    assert (pool.labels, pool.annotations) == ({"team": "a"}, {"example.com/x": "y"})
    assert (pool.taints, pool.startup_taints) == ((Taint("k", "NoSchedule", "v"),), (Taint("s", "NoExecute"),))
    assert (pool.expire_after, pool.termination_grace_period, pool.consolidate_after) == (None, 0, None)
    assert (pool.consolidation_policy, pool.weight, pool.ready) == ("Balanced", 10, False)
    assert pool.limits == {"cpu": 1_000_000, "memory": 1000 * 2**30, "nodes": 5}
    assert pool.deleting == 1768474800000
    assert pool.budgets == (
        Budget("5", "0 2 * * *", 3 * HOUR // 2, ("Drifted",)),
        Budget("10%", "@daily", 8 * HOUR),
    )


def test_no_budgets_is_no_cap_and_a_budget_without_reasons_matches_nothing() -> None:
    """An empty list of budgets caps nothing; a budget with an empty list of reasons matches nothing (L-20, D-48)."""
    assert node_pool(changed(NODE_POOL, "spec.disruption.budgets", [])).budgets == ()
    empty = [{"nodes": "0", "reasons": []}, {"nodes": "3"}]
    assert node_pool(changed(NODE_POOL, "spec.disruption.budgets", empty)).budgets == (Budget("3"),)


def test_requirements_may_be_empty_but_not_missing() -> None:
    """Requirements may be empty but not missing (L-13)."""
    assert node_pool(changed(NODE_POOL, f"{TEMPLATE}.requirements", [])).requirements == ()
    missing = changed(NODE_POOL, f"{TEMPLATE}.requirements", ...)
    assert refusals(missing) == {f"{TEMPLATE}.requirements": "KERF304"}


@pytest.mark.parametrize(
    ("fields", "where", "code"),
    [
        ({"values": []}, "values", "KERF310"),
        ({"values": None}, "values", "KERF310"),
        ({"operator": "Gt", "values": ["many"]}, "values[0]", "KERF310"),
        ({"operator": "Gt", "values": ["-1"]}, "values[0]", "KERF310"),
        ({"operator": "Lt", "values": ["1.5"]}, "values[0]", "KERF310"),
        ({"operator": "Gte", "values": ["9223372036854775808"]}, "values[0]", "KERF310"),
        ({"operator": "Lte", "values": ["1", "2"]}, "values", "KERF310"),
        ({"operator": "Gt", "values": []}, "values", "KERF310"),
        ({"operator": "in"}, "operator", "KERF305"),
        ({"values": [4, 8]}, "values[1]", "KERF303"),
        ({"minValues": 2}, "minValues", "KERF313"),
        ({"minValues": 0}, "minValues", "KERF309"),
        ({"minValues": 51}, "minValues", "KERF309"),
        ({"key": ""}, "key", "KERF304"),
        ({"key": "not a key"}, "key", "KERF312"),
        ({"key": "karpenter.sh/nodepool"}, "key", "KERF311"),
        ({"key": "kubernetes.io/hostname"}, "key", "KERF311"),
        ({"key": "karpenter.sh/other"}, "key", "KERF311"),
        ({"key": "foo.karpenter.sh/x"}, "key", "KERF311"),
        ({"key": "notkarpenter.sh/x"}, "key", "KERF311"),
        ({"key": "karpenter.sh"}, "key", "KERF311"),
        ({"key": "karpenter.k8s.aws/instance-pods"}, "key", "KERF311"),
        ({"key": "karpenter.kwok.sh/instance-pods"}, "key", "KERF311"),
    ],
)
def test_refused_requirements(fields: dict[str, Any], where: str, code: str) -> None:
    """A requirement with a bad key, operator or value is refused (L-30…L-33, A-69)."""
    assert refusals(requirement(**fields))[f"{TEMPLATE}.requirements[0].{where}"] == code


@pytest.mark.parametrize(
    "fields",
    [
        {"operator": "NotIn", "values": []},
        {"operator": "NotIn"},
        {"operator": "Exists", "values": []},
        {"operator": "Gt", "values": ["0"]},
        {"operator": "Lte", "values": ["9223372036854775807"]},
        {"values": ["a", "b"], "minValues": 2},
        {"operator": "Exists", "values": [], "minValues": 50},
        {"key": "karpenter.sh/capacity-type", "values": ["spot"]},
        {"key": "karpenter.k8s.aws/instance-cpu", "values": ["4"]},
        {"key": "karpenter.kwok.sh/instance-family", "values": ["c"]},
        {"key": "kubernetes.io/anything"},
        {"key": "node.k8s.io/anything"},
        {"values": ["bad value!"]},
    ],
)
def test_accepted_requirements(fields: dict[str, Any]) -> None:
    """L-30, L-32, L-33; illegal values pass admission and make the pool not ready (L-34, L-509)."""
    assert refusals(requirement(**fields)) == {}


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("metadata.name", ..., {"metadata.name": "KERF304"}),
        ("spec", ..., {"spec": "KERF304"}),
        (f"{TEMPLATE}.nodeClassRef", ..., {f"{TEMPLATE}.nodeClassRef": "KERF304"}),
        (
            f"{TEMPLATE}.nodeClassRef",
            {"name": "d"},
            {f"{TEMPLATE}.nodeClassRef.group": "KERF304", f"{TEMPLATE}.nodeClassRef.kind": "KERF304"},
        ),
        (f"{TEMPLATE}.nodeClassRef.group", "karpenter.k8s.aws/v1", {f"{TEMPLATE}.nodeClassRef.group": "KERF312"}),
        (f"{TEMPLATE}.nodeClassRef", "default", {f"{TEMPLATE}.nodeClassRef": "KERF303"}),
        (f"{TEMPLATE}.expireAfter", "30d", {f"{TEMPLATE}.expireAfter": "KERF307"}),
        (f"{TEMPLATE}.terminationGracePeriod", "Never", {f"{TEMPLATE}.terminationGracePeriod": "KERF307"}),
        (f"{TEMPLATE}.taints", [{"key": "k", "effect": ""}], {f"{TEMPLATE}.taints[0].effect": "KERF305"}),
        (
            f"{TEMPLATE}.taints",
            [{"key": "k!", "value": "?", "effect": "NoExecute"}],
            {f"{TEMPLATE}.taints[0].key": "KERF312", f"{TEMPLATE}.taints[0].value": "KERF312"},
        ),
        (f"{TEMPLATE}.kubelet", {"maxPods": 20}, {f"{TEMPLATE}.kubelet": "KERF319"}),
        (
            "spec.template.metadata.labels",
            {"karpenter.sh/nodepool": "x"},
            {"spec.template.metadata.labels[karpenter.sh/nodepool]": "KERF311"},
        ),
        (
            "spec.template.metadata.labels",
            {"notkarpenter.sh/a": "x"},
            {"spec.template.metadata.labels[notkarpenter.sh/a]": "KERF311"},
        ),
        (
            "spec.template.metadata.labels",
            {"a": "not a value", "!": "b"},
            {"spec.template.metadata.labels[a]": "KERF312", "spec.template.metadata.labels[!]": "KERF312"},
        ),
        (
            "spec.template.metadata.labels",
            {str(n): "" for n in range(101)},
            {"spec.template.metadata.labels": "KERF309"},
        ),
        ("spec.limits", {"cpu": "lots"}, {"spec.limits[cpu]": "KERF306"}),
        ("spec.weight", 101, {"spec.weight": "KERF309"}),
        ("spec.weight", 0, {"spec.weight": "KERF309"}),
        ("spec.weight", "10", {"spec.weight": "KERF303"}),
        ("spec.replicas", -1, {"spec.replicas": "KERF309"}),
        ("spec.disruption.consolidateAfter", "soon", {"spec.disruption.consolidateAfter": "KERF307"}),
        ("spec.disruption.consolidationPolicy", "Sometimes", {"spec.disruption.consolidationPolicy": "KERF305"}),
        ("spec.disruption.expireAfter", "720h", {"spec.disruption.expireAfter": "KERF319"}),
        ("spec.disruption.budgets", [{"nodes": 5}], {"spec.disruption.budgets[0].nodes": "KERF303"}),
        ("spec.disruption.budgets", [{"nodes": "101%"}], {"spec.disruption.budgets[0].nodes": "KERF314"}),
        ("spec.disruption.budgets", [{"nodes": "-1"}], {"spec.disruption.budgets[0].nodes": "KERF314"}),
        ("spec.disruption.budgets", [{"schedule": "@daily"}], {"spec.disruption.budgets[0].duration": "KERF314"}),
        ("spec.disruption.budgets", [{"duration": "1h"}], {"spec.disruption.budgets[0].schedule": "KERF314"}),
        (
            "spec.disruption.budgets",
            [{"schedule": "0 2 * *", "duration": "1h"}],
            {"spec.disruption.budgets[0].schedule": "KERF314"},
        ),
        (
            "spec.disruption.budgets",
            [{"schedule": "@daily", "duration": "90s"}],
            {"spec.disruption.budgets[0].duration": "KERF307"},
        ),
        ("spec.disruption.budgets", [{"reasons": ["Expired"]}], {"spec.disruption.budgets[0].reasons[0]": "KERF305"}),
        ("spec.disruption.budgets", [{}] * 51, {"spec.disruption.budgets": "KERF309"}),
    ],
)
def test_refusals(path: str, value: Any, expected: dict[str, str]) -> None:
    """L-9…L-29, each by its path and code, and nothing else."""
    assert refusals(changed(NODE_POOL, path, value)) == expected


def test_a_static_pool_has_no_weight_and_limits_only_nodes() -> None:
    """A static pool has no weight and limits only nodes (L-29)."""
    static = changed(NODE_POOL, "spec.replicas", 2)
    assert node_pool(changed(static, "spec.limits", {"nodes": 3})).replicas == 2
    bad = changed(changed(static, "spec.weight", 5), "spec.limits", {"nodes": 3, "memory": "1Gi", "cpu": 1})
    assert refusals(bad) == {"spec.weight": "KERF315", "spec.limits[cpu]": "KERF315", "spec.limits[memory]": "KERF315"}


def test_a_taint_may_stand_only_once_among_taints_and_startup_taints() -> None:
    """L-37: equal by key and effect, whatever the value (L-102)."""
    spec = NODE_POOL["spec"]["template"]["spec"] | {
        "taints": [{"key": "k", "effect": "NoSchedule", "value": "a"}, {"key": "k", "effect": "NoExecute"}],
        "startupTaints": [{"key": "k", "effect": "NoSchedule", "value": "b"}],
    }
    assert refusals(changed(NODE_POOL, TEMPLATE, spec)) == {f"{TEMPLATE}.startupTaints[0]": "KERF312"}


def test_the_reason_tells_of_a_policy_of_v1beta1() -> None:
    document = changed(NODE_POOL, "spec.disruption.consolidationPolicy", "WhenUnderutilized")
    with pytest.raises(ManifestError, match="v1beta1's name of WhenEmptyOrUnderutilized"):
        decode(document)
