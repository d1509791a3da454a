"""How much of a device's capacity a request takes (S-201)."""

from __future__ import annotations

from collections.abc import Mapping

from kerf.engine.model.kubernetes.devices import Capacity, Device


def consumed_capacity(device: Device, asked: Mapping[str, int]) -> dict[str, int] | None:
    """By dimension; None if the device has not got what is asked, or its policy does not allow it."""
    if any(name not in device.capacity for name in asked):
        return None
    found: dict[str, int] = {}
    for name, given in device.capacity.items():
        amount = _amount(given, asked.get(name))
        if amount is None or amount > given.value:
            return None
        found[name] = amount
    return found


def _amount(given: Capacity, asked: int | None) -> int | None:
    """Rounded up to what may be taken; None if that is not allowed."""
    if asked is None:
        return given.value if given.default is None else given.default
    if given.values:
        return next((value for value in given.values if value >= asked), None)
    if given.range is None:
        return asked
    amount = max(asked, given.range.min)
    if given.range.step:
        amount += -(amount - given.range.min) % given.range.step
    return amount if given.range.max is None or amount <= given.range.max else None
