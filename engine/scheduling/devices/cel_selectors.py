"""Whether a device selector selects a device. Selectors are CEL over `device.driver`, `device.attributes`,
`device.capacity` and `device.allowMultipleAllocations`, as Kubernetes defines it."""

from __future__ import annotations

from functools import lru_cache

from kerf.engine.model.cel.errors import CelError
from kerf.engine.model.cel.evaluation import AttributeGroup, Quantity, Scope, Value, evaluate
from kerf.engine.model.cel.syntax import CelNode, parse
from kerf.engine.model.kubernetes.devices import Device


def matches(expression: str, driver: str, device: Device) -> bool:
    """Whether the expression is true for a device. Raises CelError if it cannot be read, has no value for this
    device, or its value is not a bool."""
    return holds(_parsed(expression), {"device": AttributeGroup(_fields(driver, device))})


def holds(tree: CelNode, scope: Scope) -> bool:
    """Whether a parsed expression is true where its names have these values. Raises CelError as `matches` does."""
    result = evaluate(tree, scope)
    if not isinstance(result, bool):
        raise CelError("the selector is neither true nor false")
    return result


@lru_cache(maxsize=1024)
def _parsed(expression: str) -> CelNode:
    return parse(expression)


def _fields(driver: str, device: Device) -> dict[str, Value]:
    attributes: dict[str, dict[str, Value]] = {driver: {}}
    capacity: dict[str, dict[str, Value]] = {driver: {}}
    for full, value in device.attributes.items():
        domain, _, name = full.rpartition("/")
        attributes.setdefault(domain, {})[name] = value
    for full, given in device.capacity.items():
        domain, _, name = full.rpartition("/")
        capacity.setdefault(domain, {})[name] = Quantity(given.value)
    return {
        "driver": driver,
        "attributes": AttributeGroup(attributes, domains=True),
        "capacity": AttributeGroup(capacity, domains=True),
        "allowMultipleAllocations": device.shared,
    }
