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


@pytest.mark.parametrize("expression", ["0 - vcpus", "1 / (vcpus - 2)", "1.0 / 0.0"])
def test_a52_a_reservation_without_a_value_is_dropped_and_told(expression: str) -> None:
    settings = sized(kubeReserved={"cpu": expression, "memory": "1Gi"})
    plain = sized(kubeReserved={"memory": "1Gi"})
    assert overhead(M5, settled(settings, M5)) == overhead(M5, plain)
    assert first_problem(settings, [M5]).startswith("on m5.large: ")


@pytest.mark.parametrize("expression", ["0 - 1", "2147483647 + 1", "1 / 0"])
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


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("min(110,", "it ends too early"),
        ("pods", "pods is not defined"),
        ("undefined_var + 1", "undefined_var is not defined"),
        ("vcpus > 4 ? 110 : vcpu * 20", "vcpu is not defined"),
        ("vcpus * 0.5", "there is no * of an int and a double"),
        ("vcpus > 4 ? 110 : 58.5", "there is no ? of a bool and an int and a double"),
        ("vcpus ? 1 : 2", "there is no ? of an int and an int and an int"),
        ("max(vcpus, 8, 16)", "there is no max of an int and an int and an int"),
        ("instance_type.matches('m5.*') ? 1 : 2", "there is no matches of a string and a string"),
        ("instance_type > 5 ? 1 : 2", "there is no > of a string and an int"),
        ("vcpus > 1 && 'm5' ? 1 : 2", "there is no && of a bool and a string"),
        ("vcpus.size", "there are no maps here"),
        ("vcpus > 1", "vcpus > 1 is a bool, and no number"),
        ("instance_type", "instance_type is a string, and no number"),
        ("5.5 % 2.0", "there is no % of a double and a double"),
    ],
)
def test_a129_what_cel_does_not_compile_is_no_matter_of_instance_types(expression: str, told: str) -> None:
    """Also in a branch that no type takes. The reference says so by a reason of its own."""
    for kubelet in ({"maxPods": expression}, {"systemReserved": {"memory": expression}}):
        problem = kubelet_problem(kubelet, "AL2023", expressions=True)
        assert problem is not None
        assert (problem.reason, problem.violations[0].message) == ("KubeletExpressionInvalid", told)


@pytest.mark.parametrize(
    "expression",
    [
        "-vcpus + 200", "double(vcpus) * 7.5", "int(7.9)", "max(vcpus, 1.5)", "min(vcpus, 110) % 7",
        "instance_type in ['m5.large', 'm5.xlarge'] || !instance_type.startsWith('m') ? 29 : 110",
        "memory_mib >= 4096.5 && vcpus != 4 ? 58.5 : double(max_pods)",
        "size('a' + instance_type) + instance_type.upperAscii().size() + size([1])", "'4' == string(vcpus) ? 1 : 2",
    ],
)  # fmt: skip
def test_a52_a129_what_cel_compiles_has_a_value(expression: str) -> None:
    assert kubelet_problem({"maxPods": expression}, "AL2023", expressions=True) is None
    assert not first_problem(sized(maxPods=expression), [M5])
