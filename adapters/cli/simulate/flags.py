"""The flags of `kerf simulate`, read: settings, start and length of the simulated time."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec.structs import replace

from kerf.adapters.cli.input.documents import read_documents
from kerf.engine.errors import InputError
from kerf.engine.model.durations import parse_duration_with_days, parse_time
from kerf.engine.model.feature_gates import with_gates
from kerf.engine.model.settings import Settings
from kerf.engine.scheduling.problem.scheduler_config import default_constraints

_LATEST = parse_time("9000-01-01T00:00:00Z")
"""No time is later than the year 9999, and a simulation may last 292 years."""
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def simulation_settings(gates: str, scheduler_config: Path | None, *, nominate: bool) -> Settings:
    """The settings of the simulated controller. Raises InputError for flags that it would not start with."""
    settings = with_gates(Settings(nominations=nominate), gates)
    if scheduler_config is None:
        return settings
    documents = read_documents([scheduler_config])
    for refused in documents.refused:
        raise refused.error
    return replace(settings, default_spread=default_constraints(documents.good[0] if documents.good else None))


def simulated_time(text: str) -> int:
    """The duration (ms) that --until gives. Raises InputError (KERF332)."""
    try:
        length = parse_duration_with_days(text)
    except InputError as error:
        raise InputError(error.message, where="--until", hint=error.hint, code="KERF332") from error
    if length <= 0:
        raise InputError("a simulation lasts longer than nothing", where="--until", code="KERF332")
    return length


def start_time(text: str) -> int:
    """The time (ms since the epoch) that --start gives: a date, or a time. Raises InputError (KERF332)."""
    try:
        start = parse_time(f"{text}T00:00:00Z" if _DATE.fullmatch(text) else text)
    except InputError as error:
        hint = 'Write a date or a time, such as "2026-03-02" or "2026-03-02T08:00:00Z"'
        raise InputError(error.message, where="--start", hint=hint, code="KERF332") from error
    if not 0 < start < _LATEST:
        raise InputError("a simulation begins after 1970 and before 9000", where="--start", code="KERF332")
    return start
