"""The errors of `kerf demo`."""

from __future__ import annotations

from kerf.engine.errors import KerfError


class DemoUnavailable(KerfError):
    """The demonstration cannot begin."""

    code = "KERF850"


class DemoFailed(KerfError):
    """A part of the demonstration did not go as it should. `where` names the part."""

    code = "KERF851"
