"""The checks that tables of rules are made of: enumerations, ranges, names, fields that go together.

A value of the wrong type is passed over: the schema reports it. An empty text counts as absent, as in Go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from ipaddress import ip_address
from typing import Any

from kerf.engine.model.karpenter.nodepool_validation import is_label_value, qualified
from kerf.engine.model.manifests.rules.names import check_domain_name
from kerf.engine.model.manifests.violations import Report
from kerf.engine.model.quantities import parse_quantity

Check = Callable[[Report, str, Any], None]
INT32, INT64 = (1 << 31) - 1, (1 << 63) - 1
_HINT = "Letters, digits, -, _ and ., at most 63; a key may have a DNS domain and / before it"
_PORT_NAME = re.compile(r"(?=.*[a-z])[a-z0-9]+(-[a-z0-9]+)*")
_LONGEST_PORT_NAME = 15


def one_of(*allowed: str) -> Check:
    """A check of an enumeration."""

    def check(report: Report, path: str, value: Any) -> None:
        if isinstance(value, str) and value:
            report.one_of(path, value, allowed)

    return check


def one_of_given(*allowed: str) -> Check:
    """A check of an enumeration where an empty text is not as good as none: a pointer in Go."""

    def check(report: Report, path: str, value: Any) -> None:
        if isinstance(value, str):
            report.one_of(path, value, allowed)

    return check


def between(least: int, most: int) -> Check:
    """A check of a number's range."""

    def check(report: Report, path: str, value: Any) -> None:
        if isinstance(value, int) and not isinstance(value, bool) and not least <= value <= most:
            report.add("KERF309", path, f"The value is {least} to {most}, not {value}")

    return check


def size_of(least: int) -> Check:
    """A check of an amount of bytes. A text that is no quantity is reported, too."""

    def check(report: Report, path: str, value: Any) -> None:
        given = isinstance(value, str | int | float) and not isinstance(value, bool)
        if given and report.attempt(path, parse_quantity, value, "", otherwise=least) < least:
            report.add("KERF309", path, f"The size is {least} or more, not {value}")

    return check


def filled(report: Report, path: str, value: Any) -> None:
    """Report a list without an entry."""
    if value == []:
        report.add("KERF304", path, "The list needs at least one entry")


def unique_by(field: str) -> Check:
    """A check of a list no two entries of which have one value in this field."""

    def check(report: Report, path: str, value: Any) -> None:
        seen: dict[str, int] = {}
        for number, part in enumerate(value if isinstance(value, list) else ()):
            name = part.get(field) if isinstance(part, dict) else None
            if isinstance(name, str) and name and seen.setdefault(name, number) != number:
                message = f"The {field} {name} stands at {path}[{seen[name]}]"
                report.add("KERF321", f"{path}[{number}].{field}", message)

    return check


unique = unique_by("name")
"""Reports entries of a list that have one name."""


def check_labels(report: Report, path: str, value: Any) -> None:
    """Report keys and values that are none of labels."""
    for key, text in value.items() if isinstance(value, dict) else ():
        check_label_key(report, f"{path}[{key}]", key)
        check_label_value(report, f"{path}[{key}]", text)


def check_label_key(report: Report, path: str, key: Any) -> None:
    """Report a text that is no key of labels."""
    if isinstance(key, str) and not qualified(key):
        report.add("KERF312", path, f"{key!r} is not a label key", _HINT)


def check_label_value(report: Report, path: str, text: Any) -> None:
    """Report a text that is no value of labels."""
    if isinstance(text, str) and not is_label_value(text):
        report.add("KERF312", path, f"{text!r} is not a label value", _HINT)


def needs(*fields: str) -> Check:
    """A check of an object that has to have these fields."""

    def check(report: Report, path: str, value: Any) -> None:
        for field in fields if isinstance(value, dict) else ():
            if value.get(field) in (None, ""):
                report.add("KERF304", f"{path}.{field}", f"{field} is required")

    return check


def both(*checks: Check) -> Check:
    """A check that is several."""

    def check(report: Report, path: str, value: Any) -> None:
        for part in checks:
            part(report, path, value)

    return check


def relative_path(report: Report, path: str, value: Any) -> None:
    """Report a path that begins at the root, or leads out of where it begins."""
    if isinstance(value, str) and (value.startswith("/") or ".." in value.split("/")):
        report.add("KERF305", path, f"{value!r} is no path below a folder", "Leave out / before it, and ..")


def one_kind_of(noun: str, *fields: str) -> Check:
    """A check of an object that has one of these fields."""

    def check(report: Report, path: str, value: Any) -> None:
        if isinstance(value, dict):
            given = [name for name in fields if value.get(name) is not None]
            _not_at_once(report, path, f"{noun} has", given)
            if not given:
                report.add("KERF304", path, f"{noun} needs one of {', '.join(fields)}")

    return check


def one_kind_but(noun: str, others: Collection[str]) -> Check:
    """A check of an object that has one field at most besides these others."""

    def check(report: Report, path: str, value: Any) -> None:
        parts = value.items() if isinstance(value, dict) else ()
        given = [name for name, part in parts if name not in others and part is not None]
        _not_at_once(report, path, f"{noun} is", given)

    return check


def _not_at_once(report: Report, path: str, so: str, given: Sequence[str]) -> None:
    if len(given) > 1:
        report.add("KERF309", path, f"{so} {' and '.join(given)} at once", "Leave out all but one")


def of_selector(name: str) -> dict[str, Check]:
    """The rows of a selector of labels."""
    return {
        f"{name}.matchLabels": check_labels,
        f"{name}.matchExpressions[].key": check_label_key,
        f"{name}.matchExpressions[].values[]": check_label_value,
    }


def node_field(report: Report, path: str, value: Any) -> None:
    """Report a term about a node's fields that is not about its name, or about other than one."""
    field = value if isinstance(value, dict) else {}
    key, operator, names = field.get("key"), field.get("operator"), field.get("values")
    if isinstance(key, str) and report.one_of(f"{path}.key", key, ("metadata.name",)) and isinstance(operator, str):
        report.one_of(f"{path}.operator", operator, ("In", "NotIn"))
    if operator in ("In", "NotIn") and isinstance(names, list | None) and len(names or ()) != 1:
        report.add("KERF309", f"{path}.values", f"It needs one name of a node, not {len(names or ())}")
    for number, name in enumerate(names if isinstance(names, list) else ()):
        check_domain_name(report, f"{path}.values[{number}]", name)


def domain_name(report: Report, path: str, value: Any) -> None:
    """Report a text that names no object."""
    if value:
        check_domain_name(report, path, value)


def port_name(report: Report, path: str, value: Any) -> None:
    """Report a text that no port can be called."""
    if isinstance(value, str) and value and not (len(value) <= _LONGEST_PORT_NAME and _PORT_NAME.fullmatch(value)):
        hint = f"Lower-case letters, digits and single -, at most {_LONGEST_PORT_NAME}, one of them a letter"
        report.add("KERF312", path, f"{value!r} is not the name of a port", hint)


def address(report: Report, path: str, value: Any) -> None:
    """Report a text that is no IP address."""
    try:
        ip_address(value if isinstance(value, str) else "::")
    except ValueError:
        report.add("KERF305", path, f"{value!r} is no IP address")


def values_at(holder: Any, field: str, path: str) -> Iterator[tuple[str, Any]]:
    """The values of a field of a table, with their paths; `[]` stands for every entry of a list."""
    step, _, rest = field.partition(".")
    name = step.removesuffix("[]")
    value = holder.get(name) if isinstance(holder, dict) else None
    if value is None:
        return
    at = f"{path}.{name}" if path else name
    entries = enumerate(value if isinstance(value, list) else ())
    found = [(at, value)] if name == step else [(f"{at}[{number}]", part) for number, part in entries]
    for below, part in found:
        if rest:
            yield from values_at(part, rest, below)
        else:
            yield below, part
