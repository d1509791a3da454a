"""Flags and arguments that several commands have."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

Json = Annotated[bool, Parameter(name="--json", negative="")]
When = Annotated[str, Parameter(allow_leading_hyphen=True)]
"""A position or a time, "-5m" among them: see `kerf.replay.at.locate`."""
