"""Errors of conformance scenarios (KERF84x)."""

from __future__ import annotations

from kerf.engine.errors import KerfError


class ScenarioError(KerfError):
    """A scenario cannot be read. The others of its file are not affected."""

    code = "KERF840"


class CatalogueError(ScenarioError):
    """A scenario names a catalogue or an instance type that does not exist or cannot be read."""

    code = "KERF841"
