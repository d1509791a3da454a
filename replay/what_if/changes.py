"""Changes of a recorded moment, as the observations that kerf's adapters would have recorded of them.

A change is a function of the state: several of them are made one after the other, each on what the one before left.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from types import NoneType
from typing import Any, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import fields, replace

from kerf.engine.errors import InputError
from kerf.engine.model.crds.definitions import admit
from kerf.engine.model.durations import parse_go_duration
from kerf.engine.model.feature_gates import FIELDS as GATES
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.model.manifests.decode import decode_object
from kerf.engine.model.manifests.violations import Report
from kerf.engine.model.settings import Settings
from kerf.engine.record.observations import Observation, SettingsSeen
from kerf.engine.state.state import State
from kerf.projections.differences.node_pool_document import Document, node_pool_document
from kerf.replay.errors import ChangeRefused
from kerf.replay.what_if.manifest_fields import check_node_class, unknown_name, value_at, with_field


class Applied(Struct, frozen=True):
    """What a change comes to. `said` tells what it changes, and from what to what. `takes` says of a pod whether its
    workload is deleted: in a model none of these comes again."""

    said: str
    observations: tuple[Observation, ...]
    takes: Callable[[Pod], bool] | None = None


Change = Callable[[State], Applied]
"""Makes the observations of a change on a state. Raises ChangeRefused (KERF208)."""


def no_change(same: bool) -> str:
    """Say so where a change leaves everything as it is: "5m0s" and "5m" are written differently and mean the same."""
    return " (no change)" if same else ""


_LARGEST_SETTING = 1 << 53
_OF_THE_CLUSTER = ("cluster", "cluster_name", "node_classes", "observe")
"""Settings that say whose record it is: another value would make it another record."""


def set_pool_field(name: str, path: str, value: Any) -> Change:
    """Set one field of a NodePool's manifest; None removes it. What depends on the field follows: defaults, and the
    hash by which claims drift."""

    def change(state: State) -> Applied:
        pool = state.facts.pools.get(name)
        if pool is None:
            raise unknown_name("NodePool", name, list(state.facts.pools), f"nodepool/{name}.{path}")
        before = node_pool_document(pool)
        was = value_at(before, path)
        changed = _changed_pool(pool, _decoded(before, path, was), _with_value(before, path, value, was))
        check_node_class(changed, pool, state, f"nodepool/{name}.{path}")
        told = f"nodepool/{name} {path}: {_shown(was)} → {_shown(value)}"
        return Applied(told + no_change(changed is pool), (Observation(changed),))

    return change


def _with_value(document: Document, path: str, value: Any, was: Any) -> NodePool:
    """Return the NodePool with this value in its manifest. A number is written as text where the field holds text,
    such as the `nodes` of a budget."""
    try:
        return _decoded(with_field(document, path, value), path, was)
    except ChangeRefused:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise
        with suppress(ChangeRefused):
            return _decoded(with_field(document, path, str(value)), path, was)
        raise


def _decoded(document: Document, path: str, was: Any) -> NodePool:
    report = Report()
    admit(dict(document), report)
    unknown = [violation for violation in report.violations if violation.code == "KERF320"]
    try:
        pool = decode_object(document).object
    except InputError as error:
        hint = f"{error.hint}. It is {_shown(was)} now".removeprefix(". ")
        raise ChangeRefused(error.message, where=path, hint=hint) from error
    if unknown:
        raise ChangeRefused(f"a NodePool has no field {unknown[0].path}", where=path, hint=unknown[0].hint)
    assert isinstance(pool, NodePool)
    return pool


def _changed_pool(pool: NodePool, before: NodePool, after: NodePool) -> NodePool:
    """Return the NodePool with the fields in which the two manifests differ. All else stays as it was recorded, even
    what its manifest does not show."""
    changed = {
        name: getattr(after, name) for name in pool.__struct_fields__ if getattr(before, name) != getattr(after, name)
    }
    return replace(pool, **changed, generation=pool.generation + 1) if changed else pool


def _shown(value: Any) -> str:
    if value is None:
        return "not set"
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def set_setting(name: str, text: str) -> Change:
    """Set one of the settings, by its name in `Settings` or that of a feature gate. Durations take "15s"."""
    field = GATES.get(name, name.replace("-", "_"))

    def change(state: State) -> Applied:
        settings = state.facts.settings
        kinds = {known.name: known.type for known in fields(Settings) if _is_plain(known.type)}
        if field not in kinds or field in _OF_THE_CLUSTER:
            raise unknown_name(
                "setting", name, sorted(kinds.keys() - set(_OF_THE_CLUSTER)) + sorted(GATES), "--setting"
            )
        was = getattr(settings, field)
        value = _setting_value(text, kinds[field], name, was)
        changed = replace(settings, **{field: value})
        told = f"setting {field}: {_shown(was)} → {_shown(value)}"
        return Applied(told + no_change(value == was), (Observation(SettingsSeen(changed)),))

    return change


def _is_plain(kind: Any) -> bool:
    """Whether a setting is a number, a text or a switch."""
    return bool({kind, *get_args(kind)} & {int, float, bool, str}) and NoneType not in get_args(kind)


def _setting_value(text: str, kind: Any, name: str, was: Any) -> Any:
    value = _read_setting(text, kind, name, was)
    if isinstance(value, int | float) and not 0 <= value <= _LARGEST_SETTING:
        raise _bad_setting(text, name, was)
    return value


def _read_setting(text: str, kind: Any, name: str, was: Any) -> Any:
    if isinstance(was, int) and not isinstance(was, bool) and not text.lstrip("-").isdecimal():
        try:
            return parse_go_duration(text)
        except InputError as error:
            raise _bad_setting(text, name, was) from error
    try:
        return msgspec.convert(text, kind, strict=False)
    except msgspec.ValidationError as error:
        raise _bad_setting(text, name, was) from error


def _bad_setting(text: str, name: str, was: Any) -> ChangeRefused:
    return ChangeRefused(f"{name} cannot be {text}", where="--setting", hint=f"It is {_shown(was)} now")
