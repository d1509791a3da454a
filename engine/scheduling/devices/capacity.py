"""How much of a device's capacity a request takes (S-201)."""

from __future__ import annotations

from collections.abc import Mapping

from kerf.engine.model.kubernetes.devices import Capacity, Device


def consumed_capacity(device: Device, asked: Mapping[str, int]) -> dict[str, int] | None:
    """The amount for each dimension; None if the device has too little, or its policy does not allow the amount."""
    if any(name not in device.capacity for name in asked):
        return None
    consumed: dict[str, int] = {}
    for name, capacity in device.capacity.items():
        amount = _amount(capacity, asked.get(name))
        if amount is None or amount > capacity.value:
            return None
        consumed[name] = amount
    return consumed


def _amount(capacity: Capacity, asked: int | None) -> int | None:
    """The amount, rounded up to one that the policy allows; None if there is none."""
    if asked is None:
        return capacity.value if capacity.default is None else capacity.default
    if capacity.values:
        return next((value for value in capacity.values if value >= asked), None)
    if capacity.range is None:
        return asked
    amount = max(asked, capacity.range.min)
    if capacity.range.step:
        amount += -(amount - capacity.range.min) % capacity.range.step
    return amount if capacity.range.max is None or amount <= capacity.range.max else None
