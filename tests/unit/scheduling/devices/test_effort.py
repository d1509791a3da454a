"""What effort does with devices: nothing, so far."""

from __future__ import annotations

from kerf.engine.scheduling.improvement.best import best_plan
from kerf.engine.scheduling.planner import plan
from tests.unit.scheduling.devices.cases import claim, gpu, question, template, types


def test_no_effort_is_spent_on_plans_about_devices() -> None:
    """It looks at room alone, and would make nodes of types that have no devices."""
    given = question([claim("c")], {"a": ["c"], "plain": []}, types(bare=(), one=template(gpu("g0"))))
    assert best_plan(given, 100) == plan(given)
