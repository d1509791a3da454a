"""Expressions in spec.kubelet, with the gate NodeClassCEL."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.adapters.aws.catalogue.facts import tables
from kerf.adapters.aws.catalogue.instance_types import (
    capacity,
    first_problem,
    kube_reserved,
    kubelet_on,
    overhead,
    settled,
)  # fmt: skip
from kerf.adapters.aws.nodeclass.resolved import node_settings
from kerf.engine.model.crds.kubelet import kubelet_problem
from kerf.engine.model.karpenter.ec2nodeclasses import EC2NodeClass, EC2NodeClassSpec

MI = 1 << 20
M5 = tables().types["m5.large"]  # 2 vCPUs, 8 GiB, 3 x 10 addresses


def sized(**kubelet: Any) -> Any:
    spec = EC2NodeClassSpec(ami_family="AL2023", kubelet=kubelet)
    return node_settings(EC2NodeClass("default", spec), expressions=True)


def test_a428_a_reservation_by_pods_is_the_same_for_scheduler_and_user_data() -> None:
    """11 * 29 + 255 = 574 MiB, rounded up to a multiple of 16."""
    settings = sized(kubeReserved={"memory": "11 * max_pods + 255", "cpu": "100m"})
    assert kube_reserved(M5, settled(settings, M5))["memory"] == 576 * MI
    assert kubelet_on(M5, settings)["kubeReserved"] == {"cpu": "100m", "memory": "576Mi"}


@pytest.mark.parametrize(
    ("expression", "pods"),
    [
        ("vcpus * 8", 16),
        ("max(vcpus * 8, 20)", 20),
        ("min(max_pods, 25)", 25),
        ("default_enis * (ips_per_eni - 1) + 2", 29),
        ('instance_type == "m5.large" ? 7 : 9', 7),
        ("double(memory_mib) / 1000.0", 8),
        ("max(2, 2.9)", 2),
        ("memory_mib > 4096.5 ? 40 : 10", 40),
    ],
)
def test_a52_max_pods_by_an_expression(expression: str, pods: int) -> None:
    settings = settled(sized(maxPods=expression), M5)
    assert capacity(M5, settings)["pods"] == pods


def test_a52_inside_reservations_max_pods_is_the_resolved_count() -> None:
    settings = settled(sized(maxPods="vcpus * 5", systemReserved={"cpu": "max_pods * 7"}), M5)
    assert settings.system_reserved == {"cpu": 70}
    assert settled(sized(podsPerCore=3, systemReserved={"pid": "max_pods"}), M5).system_reserved == {"pid": 6}


@pytest.mark.parametrize(
    ("resource", "expression", "text"),
    [("cpu", "61", "70m"), ("memory", "1.5 * 10.0", "16Mi"), ("ephemeral-storage", "vcpus", "2Gi"), ("pid", "9", "9")],
)
def test_a52_each_resource_has_its_unit_and_step(resource: str, expression: str, text: str) -> None:
    value = f"{expression} + {'0.0' if '.' in expression else '0'}"
    assert kubelet_on(M5, sized(kubeReserved={resource: value}))["kubeReserved"] == {resource: text}


@pytest.mark.parametrize("expression", ["0 - vcpus", "1 / (vcpus - 2)", "1.0 / 0.0", "instance_type", "vcpus + 1.5"])
def test_a52_a_reservation_without_a_value_is_dropped_and_told(expression: str) -> None:
    settings = sized(kubeReserved={"cpu": expression, "memory": "1Gi"})
    plain = sized(kubeReserved={"memory": "1Gi"})
    assert overhead(M5, settled(settings, M5)) == overhead(M5, plain)
    assert first_problem(settings, [M5]).startswith("on m5.large: ")


@pytest.mark.parametrize("expression", ["0 - 1", "2147483647 + 1", "1 / 0", "vcpus > 1", "pods"])
def test_a129_a_max_pods_without_a_value_is_told(expression: str) -> None:
    assert first_problem(sized(maxPods=expression), [M5]).startswith("on m5.large: ")
    assert not first_problem(sized(maxPods="vcpus"), [M5])


def test_a129_a429_without_the_gate_refused_and_with_it_what_cannot_be_read() -> None:
    off = kubelet_problem({"maxPods": "vcpus * 8"}, "AL2023")
    assert off is not None
    assert off.reason == "KubeletExpressionsDisabled"
    assert kubelet_problem({"maxPods": "vcpus * 8"}, "AL2023", expressions=True) is None
    bad = kubelet_problem({"maxPods": "vcpus *", "kubeReserved": {"cpu": "a b"}}, "AL2023", expressions=True)
    assert bad is not None
    assert bad.reason == "KubeletExpressionInvalid"
    assert [violation.path for violation in bad.violations] == ["spec.kubelet.maxPods", "spec.kubelet.kubeReserved.cpu"]
