"""The errors of questions in SQL."""

from __future__ import annotations

from kerf.replay.errors import ReplayError


class AnalysisUnavailable(ReplayError):
    """DuckDB is not installed."""

    code = "KERF240"


class QueryRefused(ReplayError):
    """A query that DuckDB cannot answer, or one that does something other than to ask."""

    code = "KERF241"
