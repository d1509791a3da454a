"""Errors of conformance scenarios (KERF84x)."""

from __future__ import annotations

from kerf.engine.errors import KerfError


class ScenarioError(KerfError):
    """A scenario that cannot be read; the others of its file are not affected."""

    code = "KERF840"


class CatalogueError(ScenarioError):
    """A scenario names a catalogue or an instance type that there is none of, or one that cannot be read."""

    code = "KERF841"
