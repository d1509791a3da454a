"""Flags and arguments that several commands have."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from kerf.replay.time_travel.moment_forms import MOMENT_FORMS

Json = Annotated[bool, Parameter(name="--json", negative="")]
Csv = Annotated[bool, Parameter(name="--csv", negative="")]

RECORD = (
    "A .kerf file (also while a controller writes it), a postgresql:// URL, a .kerfb bundle, or the folder of a "
    "golden record."
)
Record = Annotated[str, Parameter(help=RECORD)]
"""The record that a command reads."""


def when(purpose: str) -> Parameter:
    """A parameter that takes a position or a time (`kerf.replay.time_travel.moments.moment_of`), for a purpose."""
    return Parameter(allow_leading_hyphen=True, help=f"{purpose}: {MOMENT_FORMS}.")


AsOf = Annotated[str, when("As of then")]
Since = Annotated[str, when("Begin there")]
Until = Annotated[str, when("End there")]


def kubeconfig_of_environment() -> Path | None:
    """The file that KUBECONFIG names."""
    named = os.environ.get("KUBECONFIG")
    return Path(named) if named else None
