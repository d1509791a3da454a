"""How long the memory that nodes were seen to have is kept (A-90, A-170)."""

from __future__ import annotations

import pytest

from kerf.adapters.aws.catalogue.node_memory import KEPT, JoinedNode, NodeMemory
from kerf.engine.model.instance_types import InstanceType
from kerf.engine.model.karpenter.ec2nodeclasses import ResolvedAMI

DAY = 24 * 3_600_000
IMAGES = (ResolvedAMI("ami-1"),)
TYPES = {"m5.large": InstanceType("m5.large", {}, {}, {}, ())}


def learned(memory: NodeMemory, size: int, now: int) -> None:
    memory.learn([JoinedNode("m5.large", "ami-1", size)], TYPES, IMAGES, now)


@pytest.mark.parametrize(
    ("again", "kept"),
    [
        pytest.param(None, False, id="nobody shows it any more"),
        pytest.param(1_000, True, id="an equal one refreshes it"),
        pytest.param(1_001, False, id="a larger one does not"),
    ],
)
def test_a90_memory_is_kept_for_sixty_days_from_when_it_was_last_shown(again: int | None, kept: bool) -> None:
    memory = NodeMemory()
    learned(memory, 1_000, 0)
    if again is not None:
        learned(memory, again, 30 * DAY)
    assert KEPT == 60 * DAY
    assert memory.of(IMAGES, 60 * DAY - 1) == {"m5.large": 1_000}
    assert memory.of(IMAGES, 60 * DAY) == ({"m5.large": 1_000} if kept else {})


def test_a90_another_image_forgets_what_nodes_of_the_one_before_showed() -> None:
    memory = NodeMemory()
    learned(memory, 1_000, 0)
    assert memory.of((ResolvedAMI("ami-2"),), 1) == {}
