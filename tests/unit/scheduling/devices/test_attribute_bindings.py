"""Attributes of devices that only a node has, and which devices will share them (S-200)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.kubernetes.devices import (
    AttributeBinding,
    Device,
    DeviceConstraint,
)
from tests.support.scenarios.device_problems import (
    DRIVER,
    ask,
    claim,
    placed,
    solved,
    template,
    types,
)

ROOT = "resource.kubernetes.io/pcieRoot"
SAME_ROOT = (DeviceConstraint(ROOT),)


def bound(*groups: str, known: str = "") -> Catalogue:
    """A type of four GPUs: groups of their numbers will have one root each. `known`: those that have one already."""
    devices = tuple(Device(f"g{n}", {ROOT: "here"} if str(n) in known else {}) for n in range(4))
    bindings = tuple(AttributeBinding(ROOT, tuple((DRIVER, "node", f"g{n}") for n in group)) for group in groups)
    (found,) = types(x=template(*devices)).types
    return Catalogue((replace(found, bindings=bindings),))


@pytest.mark.parametrize(
    ("count", "offered", "fits"),
    [
        (2, bound(), False),  # nobody knows
        (2, bound("01", "23"), True),
        (3, bound("01", "23"), False),
        (3, bound("01", "12"), True),  # transitive
        (4, bound("01", "23", "12"), True),
        (2, bound("0"), False),  # alone
        (1, bound("01"), True),
        (2, bound("02", known="01"), True),  # by their values
        (3, bound("23", known="01"), False),  # the two ways do not mix
        (3, bound("123", known="01"), False),  # nor for a device that both tell of
    ],
)
def test_s200_attribute_bindings(count: int, offered: Catalogue, fits: bool) -> None:
    planned = solved([claim("c", ask(count), constraints=SAME_ROOT)], {"a": ["c"]}, offered)
    assert placed(planned) == ({"a": "x#0"} if fits else {})


def test_s200_types_with_other_bindings_are_other_types() -> None:
    (one,), (other,) = bound("01", "23").types, bound("01").types
    catalogue = Catalogue((one, replace(other, name="y")))
    claims = [claim(name, ask(2), constraints=SAME_ROOT) for name in "cd"]
    planned = solved(claims, {"a": ["c"], "b": ["d"]}, catalogue)
    assert placed(planned) == {"a": "x#0", "b": "x#0"}
