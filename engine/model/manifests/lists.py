"""Lists as documents: `kubectl get -o yaml` writes a List, the API server a NodePoolList."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kerf.engine.errors import InputError

_FORMS = {str: "a text", bool: "true or false", int: "a number", float: "a number", list: "a list", type(None): "null"}


def form_of(value: Any) -> str:
    """Returns what a value is, as YAML's author would call it."""
    return _FORMS.get(type(value), type(value).__name__)


def items_of(document: Mapping[str, Any], place: str = "") -> Iterator[tuple[str, Mapping[str, Any] | InputError]]:
    """Yields each item of a list, and of lists in it, with its place (`[2]`, behind `place`); any other document as it
    is; and in the place of what is no object, the error that says so.
    """
    kind, items = document.get("kind"), document.get("items")
    if kind == "List" and not isinstance(items, list):
        if items is not None:
            yield place, InputError("the items of a List are a list", where=place, code="KERF331")
        return
    if not (isinstance(kind, str) and kind.endswith("List") and isinstance(items, list)):
        yield place, document
        return
    # The items of a typed list need not say what they are.
    named = {} if kind == "List" else {"apiVersion": document.get("apiVersion"), "kind": kind.removesuffix("List")}
    for number, item in enumerate(items):
        at = f"{place}[{number}]"
        if isinstance(item, Mapping):
            yield from items_of(named | dict(item), at)
        else:
            yield at, InputError(f"the item is {form_of(item)}, and no object", where=at, code="KERF331")
