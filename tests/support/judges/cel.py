"""Values of CEL expressions by cel-python, which shares no code with kerf's own evaluation.

It has less than the language does, so some of it is given to it here: values of two types are compared (its own `==`
and `<` raise for them), results keep their types, and there are `max` and `min` of Karpenter's kubelet expressions
(A-52) and Kubernetes' functions for quantities, versions and ASCII letters. Conversions take no more than kerf's do:
`int` and `double` no texts, `string` no doubles. What it says otherwise than the language stands in
tests/property/model/test_cel.py.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import celpy
from celpy import celtypes
from celpy.celparser import CELParseError
from celpy.evaluation import CELEvalError, base_functions

NOTHING = object()
"""The value of an expression that has none."""
_UNITS = {"": Decimal(1), "m": Decimal("0.001"), "k": Decimal(1000), "Mi": Decimal(1 << 20), "Gi": Decimal(1 << 30)}
_NUMBERS = (celtypes.IntType, celtypes.DoubleType)
_ENVIRONMENT = celpy.Environment()


class Amount(Decimal):
    """A quantity."""


class Semantic(tuple[int, ...]):
    """A version without a pre-release."""

    __slots__ = ()


class Domains(celtypes.MapType):
    """Attributes or capacities by domain: one that is missing is empty."""

    def __getitem__(self, domain: Any) -> Any:
        return super().__getitem__(domain) if domain in self else celtypes.MapType()


def value(expression: str, scope: Mapping[str, Any]) -> Any:
    """Of an expression whose names have these values, as cel-python's types; NOTHING if it has none."""
    try:
        program = _ENVIRONMENT.program(_ENVIRONMENT.compile(expression), functions=_FUNCTIONS)
        return program.evaluate(dict(scope))
    except (CELEvalError, CELParseError):
        return NOTHING


def typed(given: object) -> Any:
    """A plain value as cel-python's type."""
    match given:
        case bool():
            return celtypes.BoolType(given)
        case int():
            return celtypes.IntType(given)
        case str():
            return celtypes.StringType(given)
        case Mapping() if not isinstance(given, celtypes.MapType):
            return celtypes.MapType({typed(key): typed(held) for key, held in given.items()})
        case _:
            return given


def number(given: object) -> bool:
    return isinstance(given, _NUMBERS)


def truth(given: object) -> object:
    """True or False of a bool; NOTHING of anything else."""
    return bool(given) if isinstance(given, celtypes.BoolType) else NOTHING


def version(text: str) -> Semantic:
    return Semantic(int(part) for part in text.split("."))


def amount(thousandths: int) -> Amount:
    return Amount(Decimal(thousandths) / 1000)


def _compares(sign: str) -> Callable[[Any, Any], Any]:
    """For numbers of any type, and values of one type. Values of two types are never equal, and have no order."""
    plain = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}

    def compare(left: Any, right: Any) -> Any:
        if sign in ("==", "!="):
            alike = (number(left) and number(right)) or type(left) is type(right)
            return celtypes.BoolType((alike and _plain(left) == _plain(right)) == (sign == "=="))
        if number(left) and number(right):
            return celtypes.BoolType(plain[sign](_plain(left), _plain(right)))
        if type(left) is not type(right):
            return CELEvalError("values of two types have no order")
        return base_functions[f"_{sign}_"](left, right)

    return compare


def _plain(given: Any) -> Any:
    """As Python compares it, exactly."""
    if isinstance(given, celtypes.DoubleType):
        return float(given)
    return int(given) if isinstance(given, celtypes.IntType) else given


def _counts(sign: str) -> Callable[[Any, Any], Any]:
    """Its own sums of doubles and of texts are Python's types, which its other functions do not know."""

    def count(left: Any, right: Any) -> Any:
        if type(left) is not type(right) or isinstance(left, celtypes.BoolType):
            return CELEvalError("these two have no sum")
        found: Any = base_functions[f"_{sign}_"](left, right)
        if type(found) is float:
            return celtypes.DoubleType(found)
        return celtypes.StringType(found) if type(found) is str else found

    return count


def _converts(name: str, *kinds: type) -> Callable[[Any], Any]:
    def convert(given: Any) -> Any:
        return base_functions[name](given) if isinstance(given, kinds) else CELEvalError(f"no {name}")

    return convert


def _string(given: Any) -> Any:
    """Its own writes True and False."""
    if isinstance(given, celtypes.BoolType):
        return celtypes.StringType("true" if given else "false")
    return _converts("string", celtypes.IntType, celtypes.StringType)(given)


def _among(item: object, container: object) -> Any:
    if isinstance(container, celtypes.MapType):  # Kubernetes lets no other key through its check of types
        return celtypes.BoolType(item in container) if isinstance(item, str) else CELEvalError("no such key")
    if not isinstance(container, list):
        return CELEvalError("in asks for a list or a map")
    return celtypes.BoolType(any(_compares("==")(item, each) for each in container))


def _decides(sign: str) -> Callable[[Any, Any], Any]:
    """Its own takes what is no bool for a value."""

    def decide(*sides: Any) -> Any:
        return base_functions[f"_{sign}_"](
            *(
                side if isinstance(side, celtypes.BoolType) else CELEvalError("a bool is expected here")
                for side in sides
            )
        )

    return decide


def _chosen(choose: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    def call(a: Any, b: Any) -> Any:
        return choose(a, b, key=_plain) if number(a) and number(b) else CELEvalError("two numbers")

    return call


def _quantity(text: Any) -> Any:
    digits = str(text).rstrip("mkMGi")
    return Amount(Decimal(digits) * _UNITS[str(text)[len(digits) :]])


def _against(a: Any, b: Any) -> Any:
    if type(a) is not type(b) or not isinstance(a, (Amount, Semantic)):
        return CELEvalError("a quantity or a version is expected here")
    return celtypes.IntType((a > b) - (a < b))


def _is(sign: int) -> Callable[[Any, Any], Any]:
    def call(a: Any, b: Any) -> Any:
        found = _against(a, b)
        return celtypes.BoolType(found == sign) if isinstance(found, celtypes.IntType) else found

    return call


def _letters(change: Callable[[str], str]) -> Callable[[Any], Any]:
    def call(text: Any) -> Any:
        if not isinstance(text, str):
            return CELEvalError("a string is expected here")
        return celtypes.StringType("".join(change(letter) if letter < "\x80" else letter for letter in text))

    return call


def _strict(function: Callable[..., Any]) -> Callable[..., Any]:
    """With an error for a value, as cel-python hands them to functions, that error."""

    def call(*given: Any) -> Any:
        return next((value for value in given if isinstance(value, CELEvalError)), None) or function(*given)

    return call


_GIVEN: dict[str, Callable[..., Any]] = {
    **{f"_{sign}_": _compares(sign) for sign in ("==", "!=", "<", "<=", ">", ">=")},
    **{f"_{sign}_": _counts(sign) for sign in "+-*/%"},
    "_in_": _among,
    "int": _converts("int", *_NUMBERS),
    "double": _converts("double", *_NUMBERS),
    "string": _string,
    "size": _converts("size", celtypes.StringType, celtypes.ListType),
    "max": _chosen(max),
    "min": _chosen(min),
    "quantity": _quantity,
    "semver": version,
    "compareTo": _against,
    "isLessThan": _is(-1),
    "isGreaterThan": _is(1),
    "lowerAscii": _letters(str.lower),
    "upperAscii": _letters(str.upper),
}
_FUNCTIONS = {
    **{name: _strict(function) for name, function in _GIVEN.items()},
    **{f"_{sign}_": _decides(sign) for sign in ("&&", "||")},
}
