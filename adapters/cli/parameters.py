"""Flags and arguments that several commands have."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

Json = Annotated[bool, Parameter(name="--json", negative="")]
When = Annotated[str, Parameter(allow_leading_hyphen=True)]
"""A position or a time, such as "-5m": see `kerf.replay.time_travel.positions.locate`."""


def kubeconfig_of_environment() -> Path | None:
    """The file that KUBECONFIG names."""
    named = os.environ.get("KUBECONFIG")
    return Path(named) if named else None
