"""Taints (S-38), host ports (S-97, E-60) and amounts (S-75)."""

from __future__ import annotations

import pytest

from kerf.engine.model.kubernetes.pods import HostPort, Taint, Toleration
from kerf.engine.scheduling.matching.host_ports import port_conflicts
from kerf.engine.scheduling.matching.resources import added, fits, lacking, total
from kerf.engine.scheduling.matching.taints import (
    TOLERATES_PREFER_NO_SCHEDULE,
    taint_text,
    tolerates,
    tolerates_all,
    untolerated,
)

GPU = Taint("dedicated", "NoSchedule", "gpu")


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (Toleration("dedicated", "Equal", "gpu", "NoSchedule"), True),
        (Toleration("dedicated", "", "gpu"), True),
        (Toleration("dedicated", "Equal", "cpu"), False),
        (Toleration("dedicated", "Exists"), True),
        (Toleration("", "Exists"), True),
        (Toleration("other", "Exists"), False),
        (Toleration("dedicated", "Exists", "", "NoExecute"), False),
        (Toleration("dedicated", "Unheard", "gpu"), False),
    ],
)
def test_s38_equal_and_exists(toleration: Toleration, expected: bool) -> None:
    assert tolerates(GPU, toleration) is expected


@pytest.mark.parametrize(
    ("operator", "value", "expected"),
    [("Lt", "600", True), ("Lt", "500", False), ("Gt", "400", True), ("Gt", "500", False), ("Gt", "x", False)],
)
def test_s38_numeric_tolerations(operator: str, value: str, expected: bool) -> None:
    assert tolerates(Taint("sla", "NoSchedule", "500"), Toleration("sla", operator, value)) is expected


@pytest.mark.parametrize("text", ["+500", "0500", "-0", "", "5e2"])
def test_s38_only_canonical_integers_are_compared(text: str) -> None:
    assert not tolerates(Taint("sla", "NoSchedule", text), Toleration("sla", "Lt", "600"))
    assert not tolerates(Taint("sla", "NoSchedule", "400"), Toleration("sla", "Lt", text))
    assert tolerates(Taint("sla", "NoSchedule", "-5"), Toleration("sla", "Lt", "0"))


def test_s38_every_effect_counts_and_the_untolerated_are_named() -> None:
    soft = Taint("slow", "PreferNoSchedule")
    assert untolerated((GPU, soft), (Toleration("dedicated", "Exists"),)) == (soft,)
    assert tolerates_all((soft,), (TOLERATES_PREFER_NO_SCHEDULE,))
    assert not tolerates_all((GPU,), (TOLERATES_PREFER_NO_SCHEDULE,))
    assert [taint_text(taint) for taint in (GPU, soft)] == ["dedicated=gpu:NoSchedule", "slow:PreferNoSchedule"]


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (HostPort(80), HostPort(80), True),
        (HostPort(80), HostPort(80, "UDP"), False),
        (HostPort(80), HostPort(81), False),
        (HostPort(80, ip="10.0.0.1"), HostPort(80, ip="10.0.0.2"), False),
        (HostPort(80, ip="10.0.0.1"), HostPort(80), True),
        (HostPort(80, ip="::"), HostPort(80, ip="10.0.0.2"), True),
    ],
)
def test_s97_host_ports(a: HostPort, b: HostPort, expected: bool) -> None:
    assert bool(port_conflicts([a], [b])) is expected
    assert bool(port_conflicts([b], [a])) is expected


def test_s75_fits() -> None:
    assert fits({"cpu": 5, "unknown": 0}, {"cpu": 5})
    assert not fits({"cpu": 5}, {"cpu": 4})
    assert not fits({"pods": 1}, {"cpu": 4})
    assert not fits({"cpu": 1}, {"cpu": 4, "memory": -1})
    assert lacking({"cpu": 5, "gpu": 1}, {"cpu": 4, "memory": -1}) == ("cpu", "gpu", "memory")


def test_sums() -> None:
    assert added({"cpu": 1}, {"cpu": 2, "pods": 1}, 3) == {"cpu": 7, "pods": 3}
    assert total([{"cpu": 1}, {}, {"cpu": 2}]) == {"cpu": 3}
