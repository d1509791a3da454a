"""The types of expressions in spec.kubelet (A-52): what CEL refuses before it knows any instance type (A-129)."""

from __future__ import annotations

from typing import Final

from kerf.engine.model.cel.errors import CelError
from kerf.engine.model.cel.syntax import Call, CelNode, Constant, Item, ListLiteral, Member, Name, Operation, parse

INT, DOUBLE, TEXT, BOOL, NULL, LIST = "an int", "a double", "a string", "a bool", "null", "a list"
NUMBERS: Final = (INT, DOUBLE)
VARIABLES: Final = {
    **dict.fromkeys(("vcpus", "memory_mib", "default_enis", "ips_per_eni", "max_pods"), INT),
    "instance_type": TEXT,
}
_CONSTANTS: Final[dict[type, str]] = {bool: BOOL, int: INT, float: DOUBLE, str: TEXT, type(None): NULL}
_FUNCTIONS: Final[dict[tuple[str, tuple[str, ...]], str]] = {
    **{("size", (kind,)): INT for kind in (TEXT, LIST)},
    **{("int", (kind,)): INT for kind in NUMBERS},
    **{("double", (kind,)): DOUBLE for kind in NUMBERS},
    **{("string", (kind,)): TEXT for kind in (INT, TEXT, BOOL)},
    **{
        (name, (left, right)): INT if left == right == INT else DOUBLE
        for name in ("max", "min")
        for left in NUMBERS
        for right in NUMBERS
    },
}
_METHODS: Final[dict[tuple[str, tuple[str, ...]], str]] = {
    **{(name, (TEXT, TEXT)): BOOL for name in ("startsWith", "endsWith", "contains")},
    **{(name, (TEXT,)): TEXT for name in ("lowerAscii", "upperAscii")},
    **{("size", (kind,)): INT for kind in (TEXT, LIST)},
}
_ORDER: Final = ("<", "<=", ">", ">=")
_OPERANDS: Final = {"+": (*NUMBERS, TEXT), "-": NUMBERS, "*": NUMBERS, "/": NUMBERS, "%": (INT,)}


def check_expression(expression: str) -> None:
    """Raises CelError for what can have no value on any instance type: it cannot be read, it names what there is not,
    its types do not go together, or it is no number."""
    found = _type(parse(expression))
    if found not in NUMBERS:
        raise CelError(f"{expression} is {found}, and no number")


def _type(node: CelNode) -> str:
    match node:
        case Constant(value):
            return _CONSTANTS[type(value)]
        case Name(name) if name in VARIABLES:
            return VARIABLES[name]
        case Name(name):
            raise CelError(f"{name} is not defined", hint=f"There are {', '.join(sorted(VARIABLES))}")
        case ListLiteral(items):
            for item in items:
                _type(item)
            return LIST
        case Call(name, of, arguments):
            known = _FUNCTIONS if of is None else _METHODS
            given = tuple(map(_type, arguments if of is None else (of, *arguments)))
            if (name, given) not in known:
                raise CelError(f"there is no {name} of {' and '.join(given) or 'nothing'}")
            return known[name, given]
        case Operation(operator, operands):
            return _of_operation(operator, tuple(map(_type, operands)))
        case Member() | Item():
            raise CelError("there are no maps here")


def _of_operation(operator: str, given: tuple[str, ...]) -> str:
    """The type of an operator's result. CEL mixes ints and doubles in comparisons alone."""
    first, *others = given
    fits: bool
    found = BOOL
    match operator:
        case "&&" | "||" | "!":
            fits = set(given) == {BOOL}
        case "?":
            fits, found = first == BOOL and others[0] == others[1], others[0]
        case "-" if not others:
            fits, found = first in NUMBERS, first
        case "in":
            fits = others == [LIST]
        case "==" | "!=":
            fits = len(set(given)) == 1 or set(given) <= set(NUMBERS)
        case _ if operator in _ORDER:
            fits = first in (*NUMBERS, TEXT) and (first == others[0] or set(given) <= set(NUMBERS))
        case _:
            fits, found = first in _OPERANDS[operator] and first == others[0], first
    if not fits:
        raise CelError(f"there is no {operator} of {' and '.join(given)}")
    return found
