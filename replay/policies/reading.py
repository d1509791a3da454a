"""Make assertions of the document that a user wrote."""

from __future__ import annotations

from typing import Any

from kerf.replay.errors import PolicyRefused
from kerf.replay.policies.check import KINDS, Assertion
from kerf.replay.policies.selectors import read_selector
from kerf.replay.policies.windows import Moments, Recurring, read_between
from kerf.replay.user_documents import list_of, mapping_of

POLICY, NAME, FOR, BETWEEN = "policy", "name", "for", "between"


def read_policy(document: object, where: str) -> tuple[Assertion, ...]:
    """Read a policy: a mapping with a list of assertions under `policy`. Raises PolicyRefused (KERF221)."""
    found = mapping_of(document, (POLICY,), where, PolicyRefused)
    items = list_of(found.get(POLICY), f"{where}: {POLICY}", PolicyRefused)
    return tuple(_assertion(item, f"{where}: {POLICY}[{number}]") for number, item in enumerate(items))


def _assertion(item: object, where: str) -> Assertion:
    parts = mapping_of(item, (*KINDS, NAME, FOR, BETWEEN), where, PolicyRefused)
    kinds = [kind for kind in KINDS if kind in parts]
    if len(kinds) != 1:
        what = f"asserts {' and '.join(kinds)}" if kinds else "asserts nothing"
        raise PolicyRefused(f"an item {what}", where=where, hint=f"Write one of {', '.join(KINDS)}")
    kind = kinds[0]
    bound = KINDS[kind].form(parts[kind], f"{where}.{kind}")
    selector = read_selector(parts.get(FOR, {}), KINDS[kind].about, f"{where}.{FOR}")
    of = f" of {selector.words}" if selector.words else ""
    name = parts.get(NAME, f"{kind} {_shown(parts[kind])}".rstrip() + of)
    if not isinstance(name, str) or not name:
        raise PolicyRefused("a name is a text", where=f"{where}.{NAME}", hint="Write it in quotes")
    between = read_between(parts[BETWEEN], f"{where}.{BETWEEN}") if BETWEEN in parts else Moments()
    if isinstance(between, Recurring) and not KINDS[kind].about:
        hint = "Leave between out"
        raise PolicyRefused(f"{kind} is about the whole record", where=f"{where}.{BETWEEN}", hint=hint)
    return Assertion(name=name, kind=kind, bound=bound, selector=selector, between=between, where=where)


def _shown(value: Any) -> str:
    if value is True:
        return ""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_shown(part)}" for key, part in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
