"""Disruption reasons are declared once; budgets, metrics, Events and strength follow from the declaration."""

from __future__ import annotations

import msgspec
import pytest

from kerf.engine.model.disruption_reasons import (
    BUDGET_REASONS,
    DisruptionReason,
    DriftReason,
    budget_reason,
    is_deletion,
    karpenter_spelling,
    metric_label,
    strength,
)
from kerf.engine.model.reasons import Reason


def test_reasons_are_ordered_by_strength() -> None:
    by_strength = sorted(DisruptionReason, key=strength)
    assert by_strength == list(DisruptionReason)
    assert (by_strength[0], by_strength[-1]) == (DisruptionReason.UNKNOWN, DisruptionReason.INTERRUPTED)


def test_budgets_know_karpenters_three_reasons() -> None:
    assert {reason.karpenter for reason in BUDGET_REASONS} == {"Underutilized", "Empty", "Drifted"}
    assert budget_reason("empty") is DisruptionReason.EMPTY
    assert budget_reason("expired") is budget_reason("moon-phase") is DisruptionReason.UNDERUTILIZED


@pytest.mark.parametrize(
    ("reason", "karpenter", "metric"),
    [
        (DisruptionReason.EMPTY, "Empty", "empty"),
        (DisruptionReason.REGISTRATION_TIMEOUT, "RegistrationTimeout", "registration_timeout"),
    ],
)
def test_spellings_follow_from_the_code(reason: DisruptionReason, karpenter: str, metric: str) -> None:
    assert (reason.karpenter, reason.metric) == (karpenter, metric)


def test_a411_ec2_adds_only_its_own_kinds_of_drift() -> None:
    """Interruptions count by the kind of their message (A-362), and are one reason."""
    core = {"NodePoolDrifted", "RequirementsDrifted", "InstanceTypeNotFound"}
    assert {reason.condition for reason in DriftReason} - core == {
        "NodeClassDrift", "AMIDrift", "SecurityGroupDrift", "SubnetDrift", "CapacityReservationDrift",
        "PlacementGroupDrift",
    }  # fmt: skip
    assert {reason.karpenter for reason in DisruptionReason} == {
        "Unknown", "Underutilized", "Empty", "Drifted", "Overprovisioned", "Expired", "RegistrationTimeout",
        "LaunchTimeout", "Deleted", "Unhealthy", "Interrupted",
    }  # fmt: skip


def test_deletions_are_no_disruptions() -> None:
    """Nodes above `spec.replicas` are deleted without a disruption metric or Event (D-165)."""
    assert [reason for reason in DisruptionReason if is_deletion(reason)] == ["overprovisioned", "deleted"]


def test_a_reason_that_this_engine_does_not_know_is_shown() -> None:
    assert (strength("moon-phase"), strength("")) == (-1, -1)
    assert (karpenter_spelling("moon-phase"), metric_label("moon-phase")) == ("MoonPhase", "moon_phase")
    assert not is_deletion("moon-phase")


def test_a_reason_keeps_its_code_as_text() -> None:
    reason = Reason.of(DisruptionReason.DELETED, detail="anna")
    assert type(reason.code) is str
    assert msgspec.json.encode(reason) == b'{"code":"deleted","params":{"detail":"anna"}}'
    assert msgspec.json.decode(b'{"code":"moon-phase"}', type=Reason) == Reason("moon-phase")
