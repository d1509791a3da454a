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
SetFields = Annotated[
    tuple[str, ...],
    _MANY,
    Parameter(
        help="nodepool/NAME.FIELD=VALUE: a field of a NodePool; items of lists by number or key, as in "
        "requirements[KEY].",
        completer=candidates.fields,
    ),
]
Applied = Annotated[tuple[Path, ...], _MANY, Parameter(help="Apply these manifests, as kubectl apply does.")]
Deleted = Annotated[tuple[str, ...], _MANY, Parameter(completer=candidates.objects)]
Removed = Annotated[
    tuple[str, ...],
    _MANY,
    Parameter(help="node/NAME: take this node away; its pods need another place.", completer=candidates.nodes),
]
AddedPods = Annotated[
    tuple[Path, ...],
    _MANY,
    Parameter(
        help="The pods of these manifests wait for a node: Pods, or the replicas of Deployments, StatefulSets and Jobs."
    ),
]
Prices = Annotated[
    tuple[str, ...],
    _MANY,
    Parameter(help="OFFERING=USD, or OFFERING=+20%: m5.large=0.08, m5.large/spot/us-west-2a=0.03."),
]
NoCapacity = Annotated[
    tuple[str, ...], _MANY, Parameter(help="OFFERING that cannot be had: m5.large, spot/us-west-2a.")
]
ChangedSettings = Annotated[
    tuple[str, ...],
    _MANY,
    Parameter(
        help="NAME=VALUE: a setting of the controller, or a feature gate: batch_idle=5s, SpotToSpotConsolidation=true."
    ),
]
"""The flags that change a record's configuration (`kerf.adapters.cli.input.changes`). What can be deleted is another
thing for each command, which says so itself."""

AsOf = Annotated[str, when("As of then")]
Since = Annotated[str, when("Begin there")]
Until = Annotated[str, when("End there")]


def kubeconfig_of_environment() -> Path | None:
    """The file that KUBECONFIG names."""
    named = os.environ.get("KUBECONFIG")
    return Path(named) if named else None
