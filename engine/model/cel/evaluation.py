"""The value of a parsed expression.

As in CEL, an operand of `&&` or `||` may have no value where the other operand decides.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import TypeGuard

from msgspec import Struct

from kerf.engine.errors import InputError
from kerf.engine.model.cel.errors import CelError
from kerf.engine.model.cel.syntax import (
    Call,
    CelNode,
    Constant,
    Item,
    ListLiteral,
    Member,
    Name,
    Operation,
)
from kerf.engine.model.kubernetes.devices import Version
from kerf.engine.model.quantities import parse_quantity

_SEMVER = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?")


class Quantity(Struct, frozen=True):
    """A quantity, in thousandths of a unit."""

    amount: int


class SemVer(Struct, frozen=True):
    """A semantic version. `order` sorts as versions do."""

    numbers: tuple[int, int, int]
    order: tuple[object, ...]


class AttributeGroup(Struct, frozen=True):
    """A map of the attributes or capacities of one domain; or (`domains`) of all domains, where a missing domain is
    empty."""

    values: Mapping[str, object]
    domains: bool = False


Value = object
Scope = Mapping[str, Value]


class Function(Struct, frozen=True):
    """A function that a scope adds to those that all expressions have: it takes so many arguments."""

    call: Callable[..., Value]
    arguments: int


def evaluate(tree: CelNode, scope: Scope) -> Value:
    """The value of a parsed expression where its names have these values. Raises CelError if it has none."""
    return _value(tree, scope)


# ── values ──────────────────────────────────────


def _value(node: CelNode, scope: Scope) -> Value:
    match node:
        case Constant(value):
            return value
        case Name(name):
            if name not in scope:
                raise CelError(f"{name} is not defined")
            return scope[name]
        case ListLiteral(items):
            return tuple(_value(item, scope) for item in items)
        case Member(of, name):
            return _of_group(_value(of, scope), name)
        case Item(of, key):
            return _of_group(_value(of, scope), _text(_value(key, scope)))
        case Call():
            return _call(node, scope)
        case Operation(operator, operands):
            return _operation(operator, operands, scope)


def _of_group(group: Value, key: str) -> Value:
    if not isinstance(group, AttributeGroup):
        raise CelError(f"only maps have a {key}")
    if group.domains:
        found = group.values.get(key, {})
        return AttributeGroup(found if isinstance(found, dict) else {})
    if key not in group.values:
        raise CelError(f"no such key: {key}")
    value = group.values[key]
    return _semver(value.version) if isinstance(value, Version) else value


def _call(node: Call, scope: Scope) -> Value:
    arguments: list[Value]
    match node:
        case Call("has", None, (Member(of, name),)):
            group = _value(of, scope)
            if not isinstance(group, AttributeGroup):
                raise CelError("has() is about maps")
            return name in group.values
        case Call("bind", Name("cel"), (Name(name), given, body)):
            return _value(body, {**scope, name: _value(given, scope)})
        case Call(name, None, _):
            own = scope.get(name)
            function, signature = (own.call, own.arguments) if isinstance(own, Function) else (_FUNCTIONS.get(name), 1)
            arguments = [_value(argument, scope) for argument in node.arguments]
        case _:
            assert node.of is not None
            arguments = [_value(argument, scope) for argument in (node.of, *node.arguments)]
            function, signature = _METHODS.get((type(arguments[0]), node.name), (None, 0))
    if function is None or len(arguments) != signature:
        raise CelError(f"kerf knows no {node.name} like this", hint="Say it with ==, <, in, startsWith, compareTo")
    return function(*arguments)


def _operation(operator: str, operands: tuple[CelNode, ...], scope: Scope) -> Value:
    if operator in ("&&", "||"):
        return _logical(operator == "||", operands, scope)
    if operator == "?":
        return _value(operands[1] if _bool(_value(operands[0], scope)) else operands[2], scope)
    values = [_value(operand, scope) for operand in operands]
    if operator == "!":
        return not _bool(values[0])
    if len(values) == 1:
        return -values[0] if isinstance(values[0], float) else _of_64_bits(-_int(values[0]))
    left, right = values
    if operator in ("==", "!="):
        return _equal(left, right) == (operator == "==")
    if operator == "in":
        if isinstance(right, AttributeGroup):
            return _text(left) in right.values
        if not isinstance(right, tuple):
            raise CelError("in asks for a list or a map")
        return any(_equal(left, item) for item in right)
    if operator in _ORDER:
        return _ORDER[operator](_compared(left, right))
    if operator == "+" and isinstance(left, str):
        return left + _text(right)
    if isinstance(left, float) and isinstance(right, float):
        return _of_doubles(operator, left, right)
    return _arithmetic(operator, _int(left), _int(right))


def _logical(decides: bool, operands: tuple[CelNode, ...], scope: Scope) -> bool:
    """The value of the operand that decides, on whichever side it is; else an error of either side."""
    failed: CelError | None = None
    for operand in operands:
        try:
            if _bool(_value(operand, scope)) == decides:
                return decides
        except CelError as error:
            failed = failed or error
    if failed is not None:
        raise failed
    return not decides


def _arithmetic(operator: str, left: int, right: int) -> int:
    if operator in ("/", "%") and right == 0:
        raise CelError("division by zero")
    quotient = abs(left) // abs(right) if operator in ("/", "%") else 0
    quotient = -quotient if (left < 0) != (right < 0) else quotient
    result = {
        "+": left + right,
        "-": left - right,
        "*": left * right,
        "/": quotient,
        "%": left - quotient * right,
    }[operator]
    return _of_64_bits(result)


def _of_64_bits(number: int) -> int:
    if not -(1 << 63) <= number < 1 << 63:
        raise CelError("a number is too large")
    return number


def _of_doubles(operator: str, left: float, right: float) -> float:
    """Both operands are doubles: CEL mixes them with integers in comparisons alone. Division by zero is infinite."""
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/" if right:
            return left / right
        case "/":
            return (
                math.nan if left == 0 or math.isnan(left) else math.copysign(math.inf, left) * math.copysign(1, right)
            )
        case _:
            raise CelError(f"{operator} is not about doubles")


def _number(value: Value) -> TypeGuard[int | float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _equal(left: Value, right: Value) -> bool:
    """Whether two values are equal. Values of different types never are, but for numbers."""
    return left == right and (type(left) is type(right) or (_number(left) and _number(right)))


def _compared(left: Value, right: Value) -> int:
    if _number(left) and _number(right):
        return (left > right) - (left < right)
    if type(left) is not type(right):
        raise CelError("values of two types have no order")
    if isinstance(left, str) and isinstance(right, str):
        return (left > right) - (left < right)
    if isinstance(left, bool) and isinstance(right, bool):
        return left - right
    raise CelError("values of this type have no order; use compareTo")


_ORDER: dict[str, Callable[[int], bool]] = {
    "<": lambda found: found < 0,
    "<=": lambda found: found <= 0,
    ">": lambda found: found > 0,
    ">=": lambda found: found >= 0,
}


def _bool(value: Value) -> bool:
    if not isinstance(value, bool):
        raise CelError("a bool is expected here")
    return value


def _int(value: Value) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise CelError("an integer is expected here")
    return value


def _text(value: Value) -> str:
    if not isinstance(value, str):
        raise CelError("a string is expected here")
    return value


# ── functions ──────────────────────────────────────


def _quantity(text: Value) -> Quantity:
    try:
        return Quantity(parse_quantity(_text(text), "cpu"))
    except InputError as error:
        raise CelError(error.message) from error


def _semver(text: Value) -> SemVer:
    match = _SEMVER.fullmatch(_text(text))
    if match is None:
        raise CelError(f"{text!r} is no semantic version")
    numbers = (int(match[1]), int(match[2]), int(match[3]))
    before = tuple(
        (0, int(identifier), "") if identifier.isdigit() else (1, 0, identifier)
        for identifier in (match[4].split(".") if match[4] else ())
    )
    return SemVer(numbers, (numbers, not before, before))


def _sort_key(value: Value) -> tuple[object, ...]:
    if isinstance(value, Quantity):
        return (value.amount,)
    if isinstance(value, SemVer):
        return value.order
    raise CelError("a quantity or a version is expected here")


def _compare_to(left: Value, right: Value) -> int:
    if type(left) is not type(right):
        raise CelError("values of two types have no order")
    a, b = _sort_key(left), _sort_key(right)
    return (a > b) - (a < b)


def _ascii(text: Value, change: Callable[[str], str]) -> str:
    return "".join(change(letter) if letter.isascii() else letter for letter in _text(text))


def _string(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else _text(value)


def _double(value: Value) -> float:
    if not _number(value):
        raise CelError("double() is about numbers")
    return float(value)


def _whole(value: Value) -> int:
    if not _number(value) or not math.isfinite(value) or not -(1 << 63) <= value < 1 << 63:
        raise CelError("int() is about numbers of 64 bits")
    return int(value)


def _size(value: Value) -> int:
    if not isinstance(value, (str, tuple)):
        raise CelError("size() is about strings and lists")
    return len(value)


_FUNCTIONS: dict[str, Callable[..., Value]] = {
    "quantity": _quantity, "semver": _semver, "string": _string, "size": _size, "double": _double, "int": _whole,
}  # fmt: skip

_METHODS: dict[tuple[type, str], tuple[Callable[..., Value], int]] = {
    (str, "startsWith"): (lambda text, part: text.startswith(_text(part)), 2),
    (str, "endsWith"): (lambda text, part: text.endswith(_text(part)), 2),
    (str, "contains"): (lambda text, part: _text(part) in text, 2),
    (str, "lowerAscii"): (lambda text: _ascii(text, str.lower), 1),
    (str, "upperAscii"): (lambda text: _ascii(text, str.upper), 1),
    (str, "size"): (_size, 1),
    (tuple, "size"): (_size, 1),
    (SemVer, "major"): (lambda version: version.numbers[0], 1),
    (SemVer, "minor"): (lambda version: version.numbers[1], 1),
    (SemVer, "patch"): (lambda version: version.numbers[2], 1),
    **{(kind, "compareTo"): (_compare_to, 2) for kind in (Quantity, SemVer)},
    **{(kind, "isLessThan"): (lambda a, b: _compare_to(a, b) < 0, 2) for kind in (Quantity, SemVer)},
    **{(kind, "isGreaterThan"): (lambda a, b: _compare_to(a, b) > 0, 2) for kind in (Quantity, SemVer)},
}
"""By type of the value and name: the function, and how many arguments it takes with the value."""
