"""Device selectors: the part of CEL that kerf reads (S-200)."""

from __future__ import annotations

import pytest

from kerf.engine.model.cel.errors import CelError
from kerf.engine.model.kubernetes.devices import Capacity, Device, Version
from kerf.engine.scheduling.devices.cel_selectors import matches

A = 'device.attributes["x.io"]'
DEVICE = Device(
    "g0",
    {"x.io/model": "A100", "x.io/ok": True, "x.io/n": 4, "x.io/v": Version("12.4.0-rc.1"), "y.io/zone": "it's"},
    {"x.io/memory": Capacity(40 * 2**30 * 1000)},
    shared=True,
)


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        ('device.driver == "x.io"', True),
        ("device.driver != 'x.io'", False),
        (f'{A}.model == "A100" && {A}.ok', True),
        (f'{A}["model"] in ["H100", "A100"]', True),
        (f'"model" in {A} && !("none" in {A})', True),
        (f"has({A}.model) && !has({A}.none)", True),
        ('has(device.attributes["none.io"].x)', False),
        ('device.attributes["y.io"].zone == "it\\\'s"', True),
        (f"{A}.n >= 4 && {A}.n < 0x5 && -{A}.n == 1 - 5", True),
        (f"{A}.n + 2 * 3 == 10 && 7 / 2 == 3 && -7 % 2 == -1", True),
        (f"{A}.n > 5 ? false : {A}.ok", True),
        ('device.capacity["x.io"].memory.compareTo(quantity("40Gi")) == 0', True),
        ('device.capacity["x.io"].memory.isGreaterThan(quantity("39.5Gi"))', True),
        ('device.capacity["x.io"].memory.isLessThan(quantity("40G"))', False),
        (f'{A}.v.isLessThan(semver("12.4.0")) && {A}.v.major() == 12', True),
        (f'{A}.v.compareTo(semver("12.4.0-rc.1")) == 0', True),
        (f'{A}.v.isGreaterThan(semver("12.4.0-beta"))', True),
        (f'{A}.model.startsWith("A") && {A}.model.endsWith("00") && {A}.model.lowerAscii().contains("a1")', True),
        (f"size({A}.model) == 4 && {A}.model.size() == 4 && [1, 2].size() == 2", True),
        (f"cel.bind(a, {A}, a.n == 4 && a.ok)", True),
        ("device.allowMultipleAllocations", True),
        ('1 == "1"', False),
        ("-9223372036854775808 < -9223372036854775807 && false < true", True),
        # an operand without a value does not matter where the other one decides
        (f'device.driver == "z" && {A}.none', False),
        (f"{A}.none || {A}.ok", True),
        ('true || 0.5.startsWith("a") || .5.size() == 1 || 1e3.none', True),
    ],
)
def test_s200_what_an_expression_says(expression: str, holds: bool) -> None:
    assert matches(expression, "x.io", DEVICE) is holds


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (f"{A}.none", "no such key: none"),
        (f"{A}.none && {A}.ok", "no such key"),
        (f"{A}.n", "neither true nor false"),
        ("", "ends too early"),
        ("(true", "')' is missing"),
        ("true true", "not expected here"),
        ("true && #", "cannot be read"),
        ("1.5.2 > 1", "cannot be read"),
        ("[1].exists(x, x > 0)", "x is not defined"),
        ("9223372036854775808 > 0", "more than 64 bits"),
        ("-(-9223372036854775808) > 0", "too large"),
        (f'{A}.model.matches("A.*")', "kerf knows no matches"),
        (f"{A}.model < 3", "no order"),
        ('quantity("many").compareTo(quantity("1")) == 0', "not a quantity"),
        ('semver("1.2") == semver("1.2.0")', "no semantic version"),
        ("1 / 0 == 1", "division by zero"),
        ("9223372036854775807 + 1 > 0", "too large"),
        ("(" * 100 + "true" + ")" * 100, "nested too deeply"),
        ("1" + " + 1" * 1000 + " > 0", "nested too deeply"),
        ("x" * 20_000, "too long"),
    ],
)
def test_what_has_no_value_is_refused_with_a_code(expression: str, message: str) -> None:
    with pytest.raises(CelError, match="KERF353") as raised:
        matches(expression, "x.io", DEVICE)
    assert message in raised.value.message


def test_many_operands_of_one_operator_are_no_nesting() -> None:
    assert matches(" && ".join(["true"] * 1000), "x.io", DEVICE)
    assert not matches(" || ".join(["false"] * 1000), "x.io", DEVICE)
