"""Flags and arguments that several commands have."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from kerf.adapters.cli.completion import candidates
from kerf.replay.time_travel.moment_forms import MOMENT_FORMS

Json = Annotated[bool, Parameter(name="--json", negative="")]
Markdown = Annotated[bool, Parameter(name="--markdown", negative="")]
Csv = Annotated[bool, Parameter(name="--csv", negative="")]

RECORD = (
    "A .kerf file (also while a controller writes it), a postgresql:// URL, a .kerfb bundle, or the folder of a "
    "golden record."
)
Record = Annotated[str, Parameter(help=RECORD, completer=candidates.records)]
"""The record that a command reads."""


Jobs = Annotated[
    int, Parameter(validator=Number(gte=0), help="How many processes work at once on a long record; 0: one a core.")
]

SettingsFrom = Annotated[
    Path | None,
    Parameter(
        env_var="KERF_SETTINGS_FROM",
        help="ConfigMaps of Karpenter before 0.32: a file, or the folder where one is mounted. "
        "Flags and environment go first.",
    ),
]
Kubeconfig = Annotated[Path | None, Parameter(help="Default: this pod's cluster, else KUBECONFIG.")]


def when(purpose: str) -> Parameter:
    """A parameter that takes a position or a time (`kerf.replay.time_travel.moments.moment_of`), for a purpose."""
    return Parameter(allow_leading_hyphen=True, help=f"{purpose}: {MOMENT_FORMS}.", completer=candidates.moments)


_MANY = Parameter(negative="", consume_multiple=False, allow_leading_hyphen=True, show_default=False)
Changes = Annotated[tuple[str, ...], _MANY]
ChangedFields = Annotated[tuple[str, ...], _MANY, Parameter(completer=candidates.fields)]
ChangedObjects = Annotated[tuple[str, ...], _MANY, Parameter(completer=candidates.objects)]
ChangedNodes = Annotated[tuple[str, ...], _MANY, Parameter(completer=candidates.nodes)]
ChangeFiles = Annotated[tuple[Path, ...], _MANY]
"""The flags that change a record's configuration (`kerf.adapters.cli.input.changes`)."""

AsOf = Annotated[str, when("As of then")]
Since = Annotated[str, when("Begin there")]
Until = Annotated[str, when("End there")]


def kubeconfig_of_environment() -> Path | None:
    """The file that KUBECONFIG names."""
    named = os.environ.get("KUBECONFIG")
    return Path(named) if named else None
