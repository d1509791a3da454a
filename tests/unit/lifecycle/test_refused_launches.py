"""S-57, L-152, L-153: a launch refused for a reason that no plan can avoid is not planned again at once, for ever."""

from __future__ import annotations

import pytest

from kerf.engine.record.decisions import LaunchInstance
from kerf.engine.record.observations import LaunchAnswered, LaunchError, Observation
from tests.support.lives import asked

ELSEWHERE = (LaunchError("UnauthorizedOperation", "", "m5.large", "us-west-2a", "on-demand"),)


@pytest.mark.parametrize("kind", ["nodeclass-not-ready", "insufficient-capacity"])
@pytest.mark.parametrize("errors", [(), ELSEWHERE])
def test_the_same_plan_is_tried_again_after_ten_seconds(kind: str, errors: tuple[LaunchError, ...]) -> None:
    world = asked()
    for _ in range(3):
        ((ref, order),) = world.launches()
        world.see(Observation(LaunchAnswered(ref, order.claim, kind=kind, errors=errors)))
        assert world.after(9_999) == []
        assert [type(intent) for intent in world.after(1)] == [LaunchInstance]


def test_a_new_pod_does_not_wait_for_that() -> None:
    world = asked()
    ((ref, order),) = world.launches()
    world.see(Observation(LaunchAnswered(ref, order.claim, kind="nodeclass-not-ready")))
    world.pending("f")
    assert [type(intent) for intent in world.after(1_000)] == [LaunchInstance]
