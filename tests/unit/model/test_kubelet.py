"""What the controller refuses in spec.kubelet of an EC2NodeClass."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.engine.model.crds.kubelet import (
    EXPRESSION,
    INVALID,
    UNSUPPORTED,
    check_v1beta1_kubelet,
    kubelet_problem,
    stated_kubelet,
)
from kerf.engine.model.crds.kubelet_configuration import MAPPED_KEYS
from kerf.engine.model.manifests.violations import Report

GOOD: list[dict[str, Any]] = [
    {},
    {"maxPods": 0, "podsPerCore": 10, "evictionMaxPodGracePeriod": 60, "clusterDNS": ["10.0.0.10", "10.0.0.11"]},
    {"kubeReserved": {"cpu": "80m", "memory": "1.5Gi", "ephemeral-storage": "1e9", "pid": "100"}},
    {"evictionHard": {"memory.available": "0%", "nodefs.available": "100%", "pid.available": "12.5%"}},
    {"evictionSoft": {"memory.available": "200Mi"}, "evictionSoftGracePeriod": {"memory.available": "1m30s"}},
    {"evictionMinimumReclaim": {"imagefs.available": "2Gi"}},
    {"imageGCHighThresholdPercent": 85, "imageGCLowThresholdPercent": 0, "cpuCFSQuota": False},
    {"imageGCHighThresholdPercent": 10},
    {"featureGates": {"NodeSwap": True}, "memoryThrottlingFactor": 0.8, "imageMinimumGCAge": "2m"},
    {"memorySwap": {"swapBehavior": "LimitedSwap"}, "podPidsLimit": -1, "resolvConf": ""},
    {"memoryReservationPolicy": "HardReservation"},
    {"authentication": {"webhook": {"enabled": True, "cacheTTL": "2m"}, "x509": {"clientCAFile": "/ca.crt"}}},
    {"authorization": {"mode": "Webhook", "webhook": {"cacheUnauthorizedTTL": "30s"}}},
    {"logging": {"flushFrequency": "5s", "verbosity": 2, "vmodule": [{"filePattern": "kubelet", "verbosity": 9}]}},
    {"logging": {"flushFrequency": 5000000000, "options": {"json": {"splitStream": True, "infoBufferSize": "64Ki"}}}},
    {"tracing": {"endpoint": "localhost:4317", "samplingRatePerMillion": 100}, "userNamespaces": {"idsPerPod": 65536}},
    {"reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi", "hugepages-2Mi": 0}}]},
    {"shutdownGracePeriodByPodPriority": [{"priority": 1000, "shutdownGracePeriodSeconds": 30}]},
    {"crashLoopBackOff": {"maxContainerRestartPeriod": None}, "memorySwap": {}},
    {"podsPerCore": None, "kubeReserved": {"cpu": None}, "evictionHard": None},
]
AUTHORIZED_TTL = {"authorization.webhook.cacheAuthorizedTTL": "KERF307"}
BAD: list[tuple[dict[str, Any], dict[str, str]]] = [
    # (a) unknown keys and wrong types
    ({"maxPod": 20}, {"maxPod": "KERF320"}),
    ({"podsPerCore": "x"}, {"podsPerCore": "KERF303"}),
    ({"podsPerCore": True}, {"podsPerCore": "KERF303"}),
    ({"evictionHard": {"memory.available": 100}}, {"evictionHard[memory.available]": "KERF303"}),
    ({"evictionHard": 3}, {"evictionHard": "KERF303"}),
    ({"kubeReserved": {"cpu": 2}}, {"kubeReserved[cpu]": "KERF303"}),
    ({"clusterDNS": "10.0.0.10"}, {"clusterDNS": "KERF303"}),
    ({"memoryThrottlingFactor": "most"}, {"memoryThrottlingFactor": "KERF303"}),
    ({"imageMinimumGCAge": "soon"}, {"imageMinimumGCAge": "KERF307"}),
    ({"maxPods": "vcpus * 8", "podsPerCore": "x"}, {"podsPerCore": "KERF303"}),
    ({"authentication": {"anonymus": {}}}, {"authentication.anonymus": "KERF320"}),
    ({"authentication": {"anonymous": {"enabled": "no"}}}, {"authentication.anonymous.enabled": "KERF303"}),
    (
        {"authorization": {"webhook": {"cacheAuthorizedTTL": "5"}}},
        {"authorization.webhook.cacheAuthorizedTTL": "KERF307"},
    ),
    ({"logging": {"verbosity": "2"}}, {"logging.verbosity": "KERF303"}),
    ({"logging": {"vmodule": [{"pattern": "x"}]}}, {"logging.vmodule[0].pattern": "KERF320"}),
    ({"memorySwap": {"swapBehaviour": "NoSwap"}}, {"memorySwap.swapBehaviour": "KERF320"}),
    ({"reservedMemory": [{"limits": {"memory": "much"}}]}, {"reservedMemory[0].limits[memory]": "KERF306"}),
    ({"crashLoopBackOff": "1m"}, {"crashLoopBackOff": "KERF303"}),
    # (b)
    ({"registerWithTaints": [{"key": "a", "effect": "NoSchedule"}]}, {"registerWithTaints": "KERF319"}),
    # (c)
    ({"evictionHard": {"memory": "5%"}}, {"evictionHard[memory]": "KERF305"}),
    ({"evictionMinimumReclaim": {"cpu": "1"}}, {"evictionMinimumReclaim[cpu]": "KERF305"}),
    # (d)
    ({"evictionHard": {"memory.available": "101%"}}, {"evictionHard[memory.available]": "KERF306"}),
    ({"evictionHard": {"memory.available": "-1%"}}, {"evictionHard[memory.available]": "KERF306"}),
    ({"evictionHard": {"memory.available": "nan%"}}, {"evictionHard[memory.available]": "KERF306"}),
    ({"evictionHard": {"memory.available": "-5Mi"}}, {"evictionHard[memory.available]": "KERF306"}),
    ({"evictionHard": {"memory.available": "much"}}, {"evictionHard[memory.available]": "KERF306"}),
    # (e)
    ({"evictionSoft": {"memory.available": "5%"}}, {"evictionSoft[memory.available]": "KERF317"}),
    ({"evictionSoftGracePeriod": {"pid.available": "1m"}}, {"evictionSoftGracePeriod[pid.available]": "KERF317"}),
    # (f)
    ({"kubeReserved": {"cpu": "-3"}}, {"kubeReserved[cpu]": "KERF306"}),
    ({"systemReserved": {"memory": "-x"}}, {"systemReserved[memory]": "KERF306"}),
    ({"systemReserved": {"nvidia.com/gpu": "1"}}, {"systemReserved[nvidia.com/gpu]": "KERF305"}),
    # (g)
    ({"imageGCHighThresholdPercent": 101}, {"imageGCHighThresholdPercent": "KERF309"}),
    (
        {"imageGCHighThresholdPercent": 50, "imageGCLowThresholdPercent": 50},
        {"imageGCHighThresholdPercent": "KERF317"},
    ),
    # (h)
    ({"podsPerCore": -1}, {"podsPerCore": "KERF309"}),
    ({"maxPods": -1, "evictionMaxPodGracePeriod": -1}, {"maxPods": "KERF309", "evictionMaxPodGracePeriod": "KERF309"}),
]


@pytest.mark.parametrize("kubelet", GOOD)
def test_a50_a_well_formed_kubelet_is_accepted(kubelet: dict[str, Any]) -> None:
    assert kubelet_problem(kubelet, "AL2023") is None


@pytest.mark.parametrize(("kubelet", "wrong"), BAD)
def test_a50_a_malformed_kubelet_is_refused_at_its_field(kubelet: dict[str, Any], wrong: dict[str, str]) -> None:
    problem = kubelet_problem(kubelet, "AL2023")
    assert problem is not None
    assert problem.reason == INVALID
    assert {violation.path: violation.code for violation in problem.violations} == {
        f"spec.kubelet.{path}": code for path, code in wrong.items()
    }


@pytest.mark.parametrize("period", ["-1m", "soon"])
def test_a50_a_grace_period_is_a_duration_that_is_not_negative(period: str) -> None:
    kubelet = {"evictionSoft": {"pid.available": "5%"}, "evictionSoftGracePeriod": {"pid.available": period}}
    problem = kubelet_problem(kubelet, "AL2023")
    assert problem is not None
    assert [(v.path, v.code) for v in problem.violations] == [
        ("spec.kubelet.evictionSoftGracePeriod[pid.available]", "KERF307")
    ]


def test_a50_all_violations_stand_in_one_message_and_a_wrong_type_alone() -> None:
    kubelet = {"podsPerCore": -1, "kubeReserved": {"cpu": "-3"}, "evictionHard": {"memory": "5%"}}
    problem = kubelet_problem(kubelet, "AL2023")
    assert problem is not None
    for place in ("podsPerCore: ", "kubeReserved[cpu]: ", "evictionHard[memory]: "):
        assert f"spec.kubelet.{place}" in problem.message
    mistyped = kubelet_problem({"evictionSoft": 3, "kubeReserved": {"cpu": "-3"}}, "AL2023")
    assert mistyped is not None
    assert mistyped.message == "spec.kubelet.evictionSoft: Expected an object, got 3"


@pytest.mark.parametrize("kubelet", [{"maxPods": "vcpus * 8"}, {"kubeReserved": {"cpu": "abc"}}])
def test_a52_an_expression_is_refused_by_a_reason_of_its_own(kubelet: dict[str, Any]) -> None:
    problem = kubelet_problem(kubelet, "AL2023")
    assert problem is not None
    assert (problem.reason, [violation.code for violation in problem.violations]) == (EXPRESSION, ["KERF522"])


@pytest.mark.parametrize(
    ("family", "kubelet", "refused"),
    [
        ("AL2", {"podPidsLimit": 100}, True),
        ("Windows2022", {"clusterDNS": ["10.0.0.10", "10.0.0.11"]}, True),
        ("Bottlerocket", {"podsPerCore": 4}, True),
        ("AL2", {"podsPerCore": 4}, False),
        ("Custom", {"podPidsLimit": 100}, False),
    ],
)
def test_a51_a_family_without_a_setting_refuses_its_key(family: str, kubelet: dict[str, Any], refused: bool) -> None:
    problem = kubelet_problem(kubelet, family)
    assert (problem is not None and problem.reason == UNSUPPORTED) is refused


def test_l126_a_kubelet_of_v1beta1_has_the_mapped_keys_and_their_rules() -> None:
    def codes(kubelet: object) -> dict[str, str]:
        report = Report()
        check_v1beta1_kubelet(kubelet, report, "kubelet")
        return {violation.path: violation.code for violation in report.violations}

    assert codes({"maxPods": 20, "kubeReserved": {"pid": "10"}}) == {}
    assert codes({"podPidsLimit": 5}) == {"kubelet.podPidsLimit": "KERF320"}
    assert codes({"maxPods": "vcpus"}) == {"kubelet.maxPods": "KERF303"}
    assert codes({"evictionSoft": {"pid.available": "5%"}}) == {"kubelet.evictionSoft[pid.available]": "KERF317"}
    assert codes([]) == {"kubelet": "KERF303"}
    assert len(MAPPED_KEYS) == 12


def test_a50_null_counts_as_absent() -> None:
    assert stated_kubelet({"podsPerCore": None, "kubeReserved": {"cpu": None, "pid": "5"}}) == {
        "kubeReserved": {"pid": "5"}
    }
