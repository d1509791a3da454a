"""How an object is refused: with every violation found, each with a code, the exact field and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.errors import InputError
from kerf.engine.model.reasons import Reason

CODES: dict[str, str] = {
    "KERF301": "The document is not JSON, or not an object",
    "KERF302": "apiVersion and kind name nothing that kerf reads, or one of them is missing, or it is a kind that has "
    "no place there",
    "KERF303": "A field holds a value of the wrong type",
    "KERF304": "A required field is missing or empty",
    "KERF305": "The value is not one of the allowed ones",
    "KERF306": "The text is not a quantity, or the quantity is not allowed here",
    "KERF307": "The text is not a duration, or the duration is not allowed here",
    "KERF308": "The text is not an RFC 3339 time",
    "KERF309": "A number, or a number of entries, is out of range",
    "KERF310": "A requirement's values do not suit its operator",
    "KERF311": "The label key belongs to Karpenter or its provider and may not be set or selected on here",
    "KERF312": "The text is not a valid key or value of labels and taints, or of an identifier",
    "KERF313": "minValues asks for more values than the requirement lists",
    "KERF314": "A disruption budget contradicts itself or cannot be read, or the schedule of a CronJob cannot",
    "KERF315": "A static NodePool (with replicas) has a field that only dynamic ones may have",
    "KERF316": "A selector term or block device of a NodeClass selects nothing, or contradicts itself",
    "KERF317": "Fields of a NodeClass contradict one another",
    "KERF318": "The tag is managed by Karpenter and may not be set",
    "KERF319": "The field stands in another place in this apiVersion",
    "KERF320": "There is no such field",
    "KERF321": "The same stands in the list twice",
    "KERF322": "A selector does not select the labels of its own template",
}
"""The closed list of codes for refused manifests (docs/errors-input.md holds the same table)."""

_UNKNOWN = "KERF320"
_TYPE = "KERF303"
_OF_FORM = frozenset({_TYPE, "KERF319", _UNKNOWN})
"""What says that a whole object is no such object: nothing is said of fields in it."""

T = TypeVar("T")


class Violation(Struct, frozen=True, omit_defaults=True):
    """One mistake in an object. `path` is the Kubernetes field path, "" for the whole document."""

    code: str
    path: str
    message: str
    hint: str = ""


class ManifestError(InputError):
    """An object was refused. `violations` holds everything found; the error's code and text are those of the first.

    `object` is "Kind/name" or "Kind/namespace/name", as far as it could be read.
    """

    def __init__(self, subject: str, violations: Iterable[Violation], *, source: str = "") -> None:
        self.violations = tuple(violations)
        self.object = subject
        self.source = source
        first = self.violations[0]
        super().__init__(first.message, where=self._where(first), hint=first.hint, code=first.code)

    def _where(self, violation: Violation) -> str:
        where = f"{self.object}: {violation.path}" if violation.path else self.object
        return f"{self.source}: {where}" if self.source else where

    def __str__(self) -> str:
        """One line per violation."""
        return "\n".join(map(self._line, self.violations))

    def _line(self, violation: Violation) -> str:
        where = self._where(violation)
        return str(InputError(violation.message, where=where, hint=violation.hint, code=violation.code))


class Report:
    """Collects violations and notes while one object is read. Paths are relative to the object.

    `moved` maps a path of the converted object to the path where the author wrote the field (v1beta1). `admitted`: the
    object is read from the API server. What only a controller refuses of it is no violation then: its conditions tell.
    """

    def __init__(self, *, moved: dict[str, str] | None = None, admitted: bool = False) -> None:
        self.admitted = admitted
        self.violations: list[Violation] = []
        self.notes: list[Reason] = []
        self._moved = moved or {}
        self._mended: list[str] = []

    def add(self, code: str, path: str, message: str, hint: str = "") -> None:
        """Adds a violation, unless there is one already for this field or for a field that contains it.

        An unknown field is also told where a rule fails on its object: it is often why.
        """
        path = self._written(path)
        if code == _TYPE and hint:
            self._take_hint(path, hint)
        holders = [found for found in self.violations if _holds(found.path, path)]
        if not any(code != _UNKNOWN or found.path == path or found.code in _OF_FORM for found in holders):
            self.violations.append(Violation(code, path, message, hint))

    def _take_hint(self, path: str, hint: str) -> None:
        """Lets what the schema says of a wrong type stand for what decoding said: it knows which texts are allowed."""
        self.violations = [
            replace(found, hint=hint) if (found.code, found.path) == (_TYPE, path) else found
            for found in self.violations
        ]

    def mended(self, path: str) -> None:
        """Remembers that a neutral value stands at this path instead of the author's, which is reported. What rules say
        of it is not true of what the author wrote."""
        self._mended.append(path)

    def is_mended(self, path: str) -> bool:
        """Returns whether a neutral value stands at this path, or within it."""
        return any(_holds(path, mended) for mended in self._mended)

    def note(self, code: str, **params: str | int | float | list[str]) -> None:
        """Adds a note for the author, although the object is accepted."""
        self.notes.append(Reason(code, dict(params)))

    def attempt(self, path: str, parse: Callable[..., T], *arguments: str | int | float, otherwise: T) -> T:
        """Return `parse(*arguments)`. If it raises InputError, note that at `path` and return `otherwise`."""
        try:
            return parse(*arguments)
        except InputError as error:
            self.add(error.code, path, error.message, error.hint)
            return otherwise

    def one_of(self, path: str, value: str, allowed: tuple[str, ...], hint: str = "") -> bool:
        """Returns whether an enumeration's value is known; adds KERF305 if not."""
        if value in allowed:
            return True
        names = ", ".join(name or '""' for name in allowed)
        self.add("KERF305", path, f"{value!r} is not one of {names}", hint)
        return False

    def _written(self, path: str) -> str:
        for converted in sorted(self._moved, key=lambda p: (-len(p), p)):
            if _holds(converted, path):
                return self._moved[converted] + path[len(converted) :]
        return path


def _holds(outer: str, inner: str) -> bool:
    """Returns whether the field at path `inner` is `outer` or lies within it."""
    return not outer or inner == outer or (inner.startswith(outer) and inner[len(outer)] in ".[")
