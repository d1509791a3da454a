"""The bound that spares simulations."""

from __future__ import annotations

import random

from kerf.engine.disruption.consolidation.replacement_bound import _Largest


def test_a_room_is_added_unless_one_that_was_there_has_as_much_of_both_resources() -> None:
    dice = random.Random(7)
    for _ in range(300):
        largest = _Largest()
        before: list[tuple[int, int]] = []
        for _ in range(30):
            room = dice.randrange(8), dice.randrange(8)
            covered = any(room[0] <= cpu and room[1] <= memory for cpu, memory in before)
            assert largest.add(room) is not covered, (room, before)
            before.append(room)
