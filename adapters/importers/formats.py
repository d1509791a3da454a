"""Which format a file is in, told by its content and never by its name (F-1), and the history that it tells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path

from kerf.adapters.importers.audit.events import is_audit
from kerf.adapters.importers.audit.read import read_audit
from kerf.adapters.importers.embedded_lines import embedded_lines
from kerf.adapters.importers.errors import NothingTold, Unreadable, Unrecognised
from kerf.adapters.importers.files import content_of
from kerf.adapters.importers.history import History
from kerf.adapters.importers.karpenter.lines import is_karpenters, log_line
from kerf.adapters.importers.karpenter.log import read_log
from kerf.adapters.importers.kubereplay import capture_of, read_capture
from kerf.adapters.importers.lp4k import is_lp4k, read_table
from kerf.adapters.importers.simkube import is_simkube, read_trace
from kerf.adapters.importers.untrusted import object_of
from kerf.adapters.importers.wrapped_lines import Line, lines_of

_LOOKED_AT = 2_000
"""Lines at the beginning that are looked at: a log may begin with what other programs write."""
_CONSOLE = re.compile(
    rb"(?m)^[^\n{]{0,200}?\d{4}-\d\d-\d\dT[^\s{]{5,40}\s{1,20}(?:DEBUG|INFO|WARN|ERROR)\s{1,20}controller(?:\.\S+)?\s"
)
"""Also with what `kubectl logs --prefix` or stern puts before, and with the blanks that a page makes of tabs."""
_BEGINNING = 1 << 16  # bytes in which a line in console form is looked for
KNOWN = "Karpenter's log (JSON lines), audit logs, lp4k's CSV, kubereplay's captures and SimKube's traces"


def read_history(path: Path) -> History:
    """What a file tells. Raises Unrecognised (KERF360), Unreadable (KERF361), TooLarge (KERF362), NothingTold (KERF363)
    and OSError.
    """
    data = content_of(path)
    history = _history(data, path)
    if not history.told:
        counted = f"{history.other} lines tell nothing of nodes and pods, {history.unread} cannot be read"
        because = f" ({history.first_unread[0].why})" if history.first_unread else ""
        raise NothingTold(
            f"there is no history in it: {counted}{because}", where=str(path), hint="Give a longer part of it"
        )
    return history


def _history(data: bytes, path: Path) -> History:
    if is_simkube(data):
        return read_trace(data, str(path))
    capture = capture_of(data)
    if capture is not None:
        return read_capture(capture)
    if is_lp4k(data):
        return read_table(data)
    looked_at: list[Line] = []
    for lines in (lines_of(data), embedded_lines(data)):
        first = list(islice(lines, _LOOKED_AT))
        history = _of_lines(first, chain(first, lines))
        if history is not None:
            return history
        looked_at = looked_at or first
    if _CONSOLE.search(data, 0, _BEGINNING):
        raise Unreadable(
            "this is Karpenter's log in console form, as 0.31 and older write it",
            where=str(path),
            hint="Only JSON lines are read: run Karpenter with the setting logEncoding: json (LOG_LEVEL stays)",
        )
    raise Unrecognised(_looks_like(looked_at), where=str(path), hint=f"kerf import reads {KNOWN}")


def _of_lines(first: list[Line], everything: Iterable[Line]) -> History | None:
    """The history of a log, told by its first lines; None if these are of no log."""
    if any((line := log_line(candidate)) is not None and is_karpenters(line) for candidate in first):
        return read_log(everything)
    if any((fields := object_of(candidate.text)) is not None and is_audit(fields) for candidate in first):
        return read_audit(everything)
    return None


def _looks_like(first: Iterable[Line]) -> str:
    """What was recognised of a file in no known format."""
    objects = [fields for line in first if (fields := object_of(line.text)) is not None]
    if not objects:
        return "this is no history that kerf knows: no line of it is JSON"
    if any(isinstance(fields.get("message"), str) and {"controller", "logger"} & fields.keys() for fields in objects):
        return "this looks like lines of Karpenter's log, but without a time no history can be made of them"
    keys = ", ".join(_shown_keys(objects[0]))
    return f"this is no history that kerf knows: JSON, whose first object has the fields {keys or '(none)'}"


def _shown_keys(fields: dict[str, object]) -> Iterator[str]:
    return (repr(key[:40]) for key in islice(fields, 6))
