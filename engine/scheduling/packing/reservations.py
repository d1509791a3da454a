"""Reserved capacity: how many more launches of each reservation this pass may plan (S-112…S-116)."""

from __future__ import annotations

from collections.abc import Iterable

from kerf.engine.model.labels import RESERVED
from kerf.engine.scheduling.launchable.templates import NarrowedTemplate, Template


class Reservations:
    """What is left of each reservation. A claim holds one unit of each reservation that it may use, and gives back
    those that it can no longer use. `epoch`: counts changes."""

    def __init__(self, templates: Iterable[Template]) -> None:
        self.left: dict[str, int] = {}
        self.epoch = 0
        for template in templates:
            for slot in template.slots:
                for amount in slot.capacities.values():
                    present = self.left.get(slot.reservation_id, amount)
                    self.left[slot.reservation_id] = min(present, amount)  # S-112: shared ones are tracked once

    def usable(self, template: Template, narrowed: NarrowedTemplate, types: int) -> frozenset[str]:
        """The reservations of usable, available offerings of these types (S-113)."""
        if not narrowed.reservable:
            return frozenset()
        return frozenset(
            template.slots[number].reservation_id
            for number in narrowed.slots
            if template.slots[number].capacity_type == RESERVED and template.available[number] & types
        )

    def reservable(self, usable: frozenset[str], held: frozenset[str]) -> frozenset[str]:
        return frozenset(
            reservation for reservation in usable if reservation in held or self.left.get(reservation, 0) > 0
        )

    def move(self, held: frozenset[str], needed: frozenset[str]) -> None:
        """Hold the new reservations, and release those that are no longer needed (S-115)."""
        for reservation in needed - held:
            self.left[reservation] -= 1
        for reservation in held - needed:
            self.left[reservation] += 1
        self.epoch += held != needed
