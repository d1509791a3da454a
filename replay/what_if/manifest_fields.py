"""Change one field of a manifest, by its path: "spec.disruption.budgets[0].nodes".

In brackets stands the number of an item, the key of a map entry that has dots in it, or what names an item of a list:
its `key`, `name` or `type`.
"""

from __future__ import annotations

import re
from copy import deepcopy
from typing import Any

from kerf.engine.model.did_you_mean import did_you_mean, is_it
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.state.state import State
from kerf.replay.errors import ChangeRefused

Document = dict[str, Any]
_STEP = re.compile(r"\[([^\[\]]+)\]|([^.\[\]]+)")
_PATH = re.compile(r"[^.\[\]]+(?:\.[^.\[\]]+|\[[^\[\]]+\])*")
_KEY_WITH_DOTS = re.compile(r"\b(limits|labels|annotations)\.([^\[\]]+[./][^\[\]]+)$")
_NAMED_BY = ("key", "name", "type")
_MAX_SHOWN = 8


def with_field(document: Document, path: str, value: Any) -> Document:
    """Return a copy of the document with this field set; with None it is removed.

    Fields that are missing on the way are made. Raises ChangeRefused (KERF208) where the path leads through what is
    no object, or to an item that a list does not have.
    """
    changed = deepcopy(document)
    *way, last = _steps(path)
    there: Any = changed
    walked = ""
    for step in way:
        there, walked = _into(there, step, walked, path), _walked(walked, step)
    key = _key(there, last, walked, path, new=value is not None)
    if value is not None and isinstance(there, list) and key == len(there):
        there.append(value)
    elif value is not None:
        there[key] = value
    elif isinstance(there, dict) and key not in there:
        raise _refused(path, f"{walked or 'the manifest'} has no {key}", there)
    else:
        del there[key]
    return changed


def value_at(document: Document, path: str) -> Any:
    """Return what stands at a path; None if there is nothing."""
    there: Any = document
    walked = ""
    for step in _steps(path):
        if isinstance(there, dict) and step not in there:
            return None
        if isinstance(there, list) and step.isdecimal() and int(step) >= len(there):
            return None
        there, walked = there[_key(there, step, walked, path, new=False)], _walked(walked, step)
    return there


def _steps(path: str) -> list[str]:
    if not _PATH.fullmatch(path):
        raise ChangeRefused(f"{path!r} is no path of a field", hint="Write it such as spec.disruption.budgets[0].nodes")
    if (key := _KEY_WITH_DOTS.search(path)) is not None:
        hint = f"Write {path[: key.end(1)]}[{key[2]}]"
        raise ChangeRefused(f"the key {key[2]} has dots, and no brackets around it", where=path, hint=hint)
    return [item or field for item, field in _STEP.findall(path)]


def _into(there: Any, step: str, walked: str, path: str) -> Any:
    """Return what stands at the step. A map that is missing is made."""
    key = _key(there, step, walked, path, new=isinstance(there, dict))
    if isinstance(there, dict) and key not in there:
        there[key] = {}
    return there[key]


def _key(there: Any, step: str, walked: str, path: str, *, new: bool) -> Any:
    """Return the key of a map, or the number of a list's item. `new`: whether it may be one more than there are."""
    if isinstance(there, dict):
        return step
    if not isinstance(there, list):
        raise _refused(path, f"{walked} is {there!r}, and has no fields", there)
    if step.isdecimal() and int(step) < len(there) + new:
        return int(step)
    for number, item in enumerate(there):
        if isinstance(item, dict) and step in (item.get(name) for name in _NAMED_BY):
            return number
    raise _refused(path, f"{walked} has no item {step}", there)


def _walked(walked: str, step: str) -> str:
    return f"{walked}[{step}]" if step.isdecimal() else f"{walked}.{step}".lstrip(".")


def _refused(path: str, why: str, there: Any) -> ChangeRefused:
    if isinstance(there, list):
        items = [next((str(item[name]) for name in _NAMED_BY if name in item), str(number))
                 if isinstance(item, dict) else str(number) for number, item in enumerate(there)]  # fmt: skip
        named = ", ".join(f"[{item}]" for item in items[:_MAX_SHOWN])
        what = f"It has {named}" if items else "It is empty: [0] adds the first item"
    elif isinstance(there, dict):
        what = f"There is {', '.join(sorted(there)[:_MAX_SHOWN])}"
    else:
        what = "Set the field itself"
    return ChangeRefused(why, where=path, hint=what)


def unknown_name(what: str, name: str, known: list[str], where: str = "") -> ChangeRefused:
    """Make the error for a name that the record does not know at this moment, with the nearest ones."""
    near = did_you_mean(name, known, most=3)
    left = len(known) - _MAX_SHOWN
    listed = ", ".join(sorted(known)[:_MAX_SHOWN]) + (f" and {left:,} more" if left > 0 else "")
    hint = is_it(near) or (f"There is {listed}" if known else "There is none at this moment")
    return ChangeRefused(f"there is no {what} {name}", where=where, hint=hint)


def check_node_class(pool: NodePool, before: NodePool | None, state: State, where: str) -> None:
    """Refuse a NodePool that now names a NodeClass which the record does not have: with it the NodePool would not be
    ready, and what the cloud would make of that NodeClass nobody knows. Raises ChangeRefused (KERF208)."""
    there, asked = state.facts.node_classes, pool.node_class
    if there and asked.key not in there and (before is None or before.node_class != asked):
        of_kind = f"{asked.group}/{asked.kind}/"
        known = [key.removeprefix(of_kind) for key in there if key.startswith(of_kind)]
        raise unknown_name(asked.kind, asked.name, known, where)
