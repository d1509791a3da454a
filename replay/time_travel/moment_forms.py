"""How people write a moment of a record: one text for help pages and errors. Imports nothing, for a help page to come
at once."""

from __future__ import annotations

MOMENT_FORMS = (
    "a position (1234), +1d2h (after the start), -15m (before the end), 10:00 (the last such time in the record), "
    '"2026-05-01 10:00" (UTC), 2026-05-01T10:00:00+02:00, start, end or now'
)
