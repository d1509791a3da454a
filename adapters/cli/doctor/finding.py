"""What a check of `kerf doctor` found."""

from __future__ import annotations

from msgspec import Struct

OK, NOTE, BAD = "ok", "note", "bad"


class Finding(Struct, frozen=True):
    """The result of one check. `level`: "ok", "note" (kerf runs, but look at it) or "bad" (kerf does not run)."""

    what: str
    level: str
    text: str
    hint: str = ""
