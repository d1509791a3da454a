"""Replaces names of drivers, devices and attributes, and the selectors that ask for them (S-200).

All texts about devices are of one kind, so a text has one pseudonym, in an attribute as in a selector, and texts keep
their order. Numbers, quantities and versions stay. What a selector asks of the letters of a text (`startsWith`) becomes
a list of those texts of the record that do so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kerf.adapters.store.pseudonyms.names import Names
from kerf.engine.model.cel import syntax as cel
from kerf.engine.model.cel.errors import CelError
from kerf.engine.model.kubernetes.devices import Version
from kerf.engine.scheduling.devices.cel_selectors import holds

_SAYS_HOW_MUCH = re.compile(r"true|false|[+-]?\d{1,12}(\.\d{1,12})?([KMGTPE]i|[mkMGTPE]|e\d{1,2})?|\d+\.\d+\.\d+")
_VERSION = re.compile(r"(\d+\.\d+\.\d+)-([0-9A-Za-z.-]+)(?:\+[0-9A-Za-z.-]+)?")
_FIELDS = ("attributes", "capacity", "driver", "allowMultipleAllocations")
_OF_LETTERS = ("startsWith", "endsWith", "contains", "lowerAscii", "upperAscii", "size")
_FUNCTIONS = (
    *_OF_LETTERS, "string", "has", "bind", "quantity", "semver", "major", "minor", "patch", "compareTo", "isLessThan",
    "isGreaterThan",
)  # fmt: skip
_TESTS = ("startsWith", "endsWith", "contains", "==", "!=", "<", "<=", ">", ">=", "in")
_EMPTY = ""  # is its own pseudonym
_MOST_TEXTS = 100  # in the list that stands for a question about letters: a selector has 10 KiB at most


def device(value: Any, names: Names) -> Any:
    """Replaces a text about devices: a driver, a device, a domain, an attribute's name or value."""
    if isinstance(value, tuple):
        return tuple(device(part, names) for part in value)
    if isinstance(value, Version):
        return Version(str(device(value.version, names)))
    if not isinstance(value, str) or not value:
        return value
    if _SAYS_HOW_MUCH.fullmatch(value):
        names.public("device", value)
        return value
    version = _VERSION.fullmatch(value)
    if version is None:
        return names.name("device", value)
    parts = (part if part.isdigit() else names.name("device", part) for part in version[2].split("."))
    return f"{version[1]}-{'.'.join(parts).replace('_', '-')}"


def device_list(value: str, names: Names) -> str:
    """Replaces drivers that stand with commas between them."""
    return ",".join(device(part, names) for part in value.split(","))


def attribute(value: str, names: Names) -> str:
    """Replaces domain/name."""
    domain, slash, name = value.rpartition("/")
    return f"{device(domain, names)}{slash}{device(name, names)}"


def bound_devices(value: Any, names: Names) -> Any:
    """Replaces driver, pool and name of each device."""
    return tuple(
        (device(driver, names), names.name("device-pool", pool), device(name, names)) for driver, pool, name in value
    )


def device_request(value: str, names: Names) -> str:
    return names.name("device-request", value)


# ── selectors ──────────────────────────────────────────────────────────────────────────────────────────────────────


def selector(value: Any, names: Names) -> Any:
    """Replaces a selector, or a tuple of them. One that cannot be read stays one that cannot be read."""
    if isinstance(value, tuple):
        return tuple(selector(part, names) for part in value)
    return names.once(value, lambda: _selector(value, names))


def _selector(expression: str, names: Names) -> str:
    try:
        tree = cel.parse(expression)
    except CelError:
        return f"`{names.name('selector', expression)}"
    return _text(_changed(tree, names))


_CUT = re.compile(r"(?P<selector>.*) (?P<count>\(\d+ of \d+\))", re.DOTALL)
_NO_SELECTORS = ("taints", "others have them")
_ERROR = "KERF353: "


def selector_cut(value: str, names: Names) -> str:
    """Replaces a selector in a reason, which says how many devices it ruled out, or why it has no value."""
    if value.startswith(_ERROR):
        return _ERROR + _error(value.removeprefix(_ERROR), names)
    cut = _CUT.fullmatch(value)
    if cut is None or cut["selector"] in _NO_SELECTORS:
        return value if value == "nothing" or cut is not None else names.words(value)
    return f"{selector(cut['selector'], names)} {cut['count']}"


def _error(message: str, names: Names) -> str:
    """Returns the error that the replaced selector has."""
    for text, pseudonym in names.given_to("selector"):
        if _unread(text) == message:
            return _unread(f"`{pseudonym}")
    return names.words(message)


def _unread(expression: str) -> str:
    try:
        cel.parse(expression)
    except CelError as error:
        return error.message
    return ""


def _changed(node: cel.CelNode, names: Names) -> cel.CelNode:
    asked = _about_letters(node)
    if asked is not None:
        known = [(_EMPTY, _EMPTY), *names.given_to("device")]
        found = {shown for text, shown in known if _is_so(node, asked, text)}
        if len(found) <= _MOST_TEXTS:
            texts = cel.ListLiteral(tuple(map(cel.Constant, sorted(found))))
            _parts_changed(node, names)  # names what stands in it, too
            only_of_texts = cel.Operation("+", (_changed(asked, names), cel.Constant("")))
            return cel.Operation("in", (only_of_texts, texts))
    return _parts_changed(node, names)


def _parts_changed(node: cel.CelNode, names: Names) -> cel.CelNode:
    match node:
        case cel.Constant(value):
            return cel.Constant(device(value, names))
        case cel.Name(name):
            return node if name in ("device", "cel") else cel.Name(device(name, names))
        case cel.ListLiteral(items):
            return cel.ListLiteral(tuple(_changed(item, names) for item in items))
        case cel.Member(of, name):
            own = of == cel.Name("device") and name in _FIELDS
            return cel.Member(_changed(of, names), name if own else device(name, names))
        case cel.Item(of, key):
            return cel.Item(_changed(of, names), _changed(key, names))
        case cel.Call(name, of, arguments):
            called = name if name in _FUNCTIONS else device(name, names)
            changed = tuple(_changed(argument, names) for argument in arguments)
            return cel.Call(called, None if of is None else _changed(of, names), changed)
        case cel.Operation(operator, operands):
            return cel.Operation(operator, tuple(_changed(operand, names) for operand in operands))


def _about_letters(node: cel.CelNode) -> cel.CelNode | None:
    """Returns the one thing of whose letters the node is a test; None for any other node."""
    is_test = (isinstance(node, cel.Operation) and node.operator in _TESTS) or (
        isinstance(node, cel.Call) and node.name in _TESTS
    )
    parts = list(_within(node)) if is_test else []
    calls = {part.name for part in parts if isinstance(part, cel.Call)}
    joins = any(
        isinstance(part, cel.Operation)
        and part.operator == "+"
        and any(isinstance(operand, cel.Constant) and isinstance(operand.value, str) for operand in part.operands)
        for part in parts
    )
    if not (joins or calls.intersection(_OF_LETTERS)) or calls & {"has", "bind"}:
        return None
    things = {part for part in parts if isinstance(part, cel.Member | cel.Item | cel.Name)}
    return things.pop() if len(things) == 1 else None


def _within(node: cel.CelNode) -> Iterator[cel.CelNode]:
    """Yields a node and the nodes in it, but not what a member, an item or a name is made of."""
    yield node
    match node:
        case cel.ListLiteral(parts) | cel.Operation(_, parts):
            pass
        case cel.Call(_, of, arguments):
            parts = arguments if of is None else (of, *arguments)
        case _:
            parts = ()
    for part in parts:
        yield from _within(part)


def _is_so(node: cel.CelNode, asked: cel.CelNode, text: str) -> bool:
    try:
        return holds(_with(node, asked, cel.Constant(text)), {})
    except CelError:
        return False


def _with(node: cel.CelNode, old: cel.CelNode, new: cel.CelNode) -> cel.CelNode:
    """Returns the node with another in the place of one of its nodes."""
    if node == old:
        return new
    match node:
        case cel.ListLiteral(items):
            return cel.ListLiteral(tuple(_with(item, old, new) for item in items))
        case cel.Call(name, of, arguments):
            changed = tuple(_with(argument, old, new) for argument in arguments)
            return cel.Call(name, None if of is None else _with(of, old, new), changed)
        case cel.Operation(operator, operands):
            return cel.Operation(operator, tuple(_with(operand, old, new) for operand in operands))
        case _:
            return node


# ── as text ────────────────────────────────────────────────────────────────────────────────────────────────────────

_WRITTEN = {True: "true", False: "false", None: "null"}


def _text(node: cel.CelNode) -> str:
    match node:
        case cel.Constant(str(value)):
            escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
            return f'"{escaped}"'
        case cel.Constant(value):
            return _WRITTEN[value] if value is None or isinstance(value, bool) else str(value)
        case cel.Name(name):
            return name
        case cel.ListLiteral(items):
            return f"[{', '.join(map(_text, items))}]"
        case cel.Member(of, name):
            return f"{_operand(of)}.{name}"
        case cel.Item(of, key):
            return f"{_operand(of)}[{_text(key)}]"
        case cel.Call(name, of, arguments):
            called = name if of is None else f"{_operand(of)}.{name}"
            return f"{called}({', '.join(map(_text, arguments))})"
        case cel.Operation("?", (condition, yes, no)):
            return f"{_operand(condition)} ? {_operand(yes)} : {_operand(no)}"
        case cel.Operation(operator, (operand,)):
            return f"{operator}{_operand(operand)}"
        case cel.Operation(operator, operands):
            return f" {operator} ".join(map(_operand, operands))


def _operand(node: cel.CelNode) -> str:
    return f"({_text(node)})" if isinstance(node, cel.Operation) else _text(node)
