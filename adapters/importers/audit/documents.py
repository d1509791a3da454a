"""Objects as an audit log lets them be put together: answers taken as they are, patches folded onto what is known.

A create whose name the server made up is nameless in the log (F-136). The next event with a name that fits is taken for
it; where several fit, only what they all have in common is known, and its time is that of the first of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kerf.adapters.importers.untrusted import name_of, whole_number
from kerf.engine.model.durations import format_time

Document = dict[str, Any]
_DEEPEST = 60  # levels of a document that are merged or compared
_SUFFIX = 5  # characters that the server adds to generateName


def merged(document: Any, patch: Any, depth: int = 0) -> Any:
    """A document with a merge patch applied. Lists of conditions are merged by type, as the API server does for a
    strategic patch; all other lists are replaced."""
    if not isinstance(patch, dict) or depth > _DEEPEST:
        return patch
    result = dict(document) if isinstance(document, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif key == "conditions" and isinstance(value, list):
            result[key] = _conditions(result.get(key), value)
        elif not key.startswith("$"):
            result[key] = merged(result.get(key), value, depth + 1)
    return result


def _conditions(known: Any, patch: list[Any]) -> list[Any]:
    by_type = {_type(condition): condition for condition in known} if isinstance(known, list) else {}
    for condition in patch:
        by_type[_type(condition)] = merged(by_type.get(_type(condition)), condition)
    return list(by_type.values())


def _type(condition: Any) -> str:
    return str(condition.get("type")) if isinstance(condition, dict) else ""


def metadata_of(document: Document) -> dict[str, Any]:
    found: Any = document.get("metadata")
    return dict(found) if isinstance(found, dict) else {}


def spec_of(document: Document) -> dict[str, Any]:
    found: Any = document.get("spec")
    return dict(found) if isinstance(found, dict) else {}


def told_name(document: Document) -> str:
    """Its name; "" if the log does not tell it."""
    return name_of(metadata_of(document).get("name"))


def wanted_replicas(document: Document) -> int | None:
    """spec.replicas, if it is told."""
    found = spec_of(document).get("replicas")
    return whole_number(found) if type(found) is int else None


def created_at(document: Document, at: int) -> Document:
    """The object with the time at which it was created (ms since the epoch)."""
    stamped: Document = merged(document, {"metadata": {"creationTimestamp": format_time(at)}})
    return stamped


def with_known_times(known: Document, answer: Document) -> Document:
    """The object as it was answered, with the times of its creation and deletion as the log has them: to the ms."""
    times = {name: metadata_of(known)[name] for name in ("creationTimestamp", "uid") if metadata_of(known).get(name)}
    stamped: Document = merged(answer, {"metadata": times})
    return stamped


def in_common(documents: Sequence[Document], depth: int = 0) -> Document:
    """What all of these say: equal values, and equal parts of objects."""
    first, *others = documents
    shared: Document = {}
    for key, value in first.items():
        theirs = [other.get(key) for other in others]
        if all(their == value for their in theirs):
            shared[key] = value
        elif isinstance(value, dict) and depth < _DEEPEST:
            objects = [their for their in theirs if isinstance(their, dict)]
            if len(objects) == len(theirs):
                shared[key] = in_common([value, *objects], depth + 1)
    return shared


class Nameless:
    """Creates whose name is not told, in their order, by what their names begin with."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, str, str], list[Document]] = {}

    def add(self, resource: str, namespace: str, document: Document) -> None:
        metadata = document.get("metadata")
        prefix = metadata.get("generateName") if isinstance(metadata, dict) else None
        if isinstance(prefix, str) and prefix:
            self._waiting.setdefault((resource, namespace, prefix), []).append(document)

    def take(self, resource: str, namespace: str, name: str) -> Document | None:
        """What is known of the object that has this name now; None if no such create was seen."""
        waiting = self._waiting.get((resource, namespace, name[:-_SUFFIX]))
        if not waiting:
            return None
        known = in_common(waiting) if len(waiting) > 1 else waiting[0]
        first = waiting.pop(0)
        named: Document = merged(known, {"metadata": {"creationTimestamp": first["metadata"]["creationTimestamp"]}})
        return named
