"""The completers of parameters. A help page loads this module: all else is imported where it is used.

cyclopts shows nothing of what a completer raises, so a record that cannot be read has no candidates.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cyclopts.completion import CompletionContext

    from kerf.adapters.cli.completion.record_names import Known

MAX_SHOWN = 200
"""At most so many candidates: a shell shows no more without a question."""
DISTANCES = {
    "start": "the first entry", "end": "the last entry", "now": "this machine's clock",
    "-15m": "before the end", "-1h": "before the end", "+10m": "after the start",
}  # fmt: skip
_RECORDS, _DATABASES = (".kerf", ".kerfb"), ("postgresql://", "postgres://")


def records(context: CompletionContext) -> list[str]:
    """Files that records have, and folders."""
    place, slash, begun = context.incomplete.rpartition("/")
    try:
        entries = sorted(os.scandir((place + slash) or "."), key=lambda entry: entry.name)
    except OSError:
        return []
    shown = [entry for entry in entries if entry.name.startswith(begun or "") and _is_shown(entry, begun)]
    return [f"{place}{slash}{entry.name}{'/' if entry.is_dir() else ''}" for entry in shown][:MAX_SHOWN]


def _is_shown(entry: os.DirEntry[str], begun: str) -> bool:
    hidden = entry.name.startswith(".") and not begun
    return not hidden and (entry.is_dir() or entry.name.endswith(_RECORDS))


def subjects(context: CompletionContext) -> list[tuple[str, str]]:
    """What can be explained, with its kind; bare, or with the kind that is typed before it."""
    known = _known(context)
    if known is None:
        return []
    kind, slash, _ = context.incomplete.partition("/")
    found = [(name, kind) for kind, names in known.subjects.items() for name in names]
    if slash and kind in known.subjects:
        found = [(f"{kind}/{name}", kind) for name in known.subjects[kind]]
    return _begun(found, context.incomplete)


def named(context: CompletionContext) -> list[tuple[str, str]]:
    """Names of the kind that stands before as a word of its own."""
    from kerf.replay.subject_names import kind_of

    known = _known(context)
    kind = kind_of(context["name"].raw or "")
    names = known.subjects.get(kind, ()) if known is not None else ()
    return _begun([(name, kind) for name in names], context.incomplete)


def moments(context: CompletionContext) -> list[tuple[str, str]]:
    """Words for moments, and the positions of the latest decisions."""
    known = _known(context)
    decisions = known.decisions if known is not None else {}
    return _begun([*DISTANCES.items(), *decisions.items()], context.incomplete)


def objects(context: CompletionContext) -> list[tuple[str, str]]:
    """KIND/NAME of what can be deleted."""
    known = _known(context)
    found = [(f"{kind}/{name}", kind) for kind, names in known.objects.items() for name in names] if known else []
    return _begun(found, context.incomplete)


def nodes(context: CompletionContext) -> list[tuple[str, str]]:
    known = _known(context)
    return _begun([(f"node/{name}", "node") for name in known.subjects["node"]] if known else [], context.incomplete)


def fields(context: CompletionContext) -> list[tuple[str, str]]:
    """nodepool/NAME.FIELD= of the NodePools, with what the field is now."""
    known = _known(context)
    found = known.fields() if known is not None else ()
    return _begun([(f"{path}=", f"now {value}") for path, value in found], context.incomplete)


def _known(context: CompletionContext) -> Known | None:
    """What the record that is named knows; None where none is, or one in a database: a key press connects to none."""
    from kerf.adapters.cli.completion.record_names import known_of

    record = context["record"].raw
    return None if not record or record.startswith(_DATABASES) else known_of(record)


def _begun(found: Iterable[tuple[str, str]], begun: str) -> list[tuple[str, str]]:
    return [(name, what) for name, what in found if name.startswith(begun)][:MAX_SHOWN]
