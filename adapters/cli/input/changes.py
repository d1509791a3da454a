"""The changes of a what-if, from the flags of `kerf whatif`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml

from kerf.adapters.cli.input.bounded_yaml import read_yaml
from kerf.adapters.cli.input.manifests import Placed, read_manifests
from kerf.replay.errors import ChangeRefused
from kerf.replay.what_if.changes import Change, set_pool_field, set_setting
from kerf.replay.what_if.object_changes import added_pods, applied, deleted, removed_node
from kerf.replay.what_if.offering_changes import set_price, without_capacity

_SET = "Write it as nodepool/NAME.spec.FIELD=VALUE, such as nodepool/default.spec.limits.cpu=100"


def changes_of(
    fields: Iterable[str],
    manifests: Sequence[Path],
    deletions: Iterable[str],
    removals: Iterable[str],
    pods: Sequence[Path],
    prices: Iterable[str],
    offerings: Iterable[str],
    settings: Iterable[str],
    *,
    needed: bool = True,
) -> list[Change]:
    """Return the changes in the order in which they are made: what is applied first, what waits last. `needed`:
    without any, there is nothing to ask.

    Raises ChangeRefused (KERF208), and FileUnreadable or NotADocument for files.
    """
    found = [
        *(set_setting(*_pair(text, "--setting", "batch_idle=5s")) for text in settings),
        *(applied(manifest.document, manifest.place) for manifest in _manifests(manifests)),
        *(_field(text) for text in fields),
        *(set_price(*_pair(text, "--price", "m5.large=0.08")) for text in prices),
        *(without_capacity(text) for text in offerings),
        *(deleted(text) for text in deletions),
        *(removed_node(text) for text in removals),
        *(added_pods([manifest.document for manifest in _manifests([file])], str(file)) for file in pods),
    ]
    if needed and not found:
        hint = "Give one of --set, --apply, --delete, --remove, --add-pods, --price, --no-capacity, --setting"
        raise ChangeRefused("nothing is changed", hint=hint)
    return found


def _pair(text: str, flag: str, example: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (equals and name and value):
        raise ChangeRefused(f"{text!r} changes nothing", where=flag, hint=f"Write it as {example}")
    return name, value


def _field(text: str) -> Change:
    target, value = _pair(text, "--set", "nodepool/default.spec.limits.cpu=100")
    kind, _, rest = target.partition("/")
    name, dot, path = rest.partition(".spec.")
    if kind.lower() not in ("nodepool", "nodepools") or not dot or not name or not path:
        raise ChangeRefused(f"{target!r} is no field of a NodePool", where="--set",
                            hint=f"{_SET}. --apply takes manifests of other kinds")  # fmt: skip
    return set_pool_field(name, f"spec.{path}", _value(value))


def _value(text: str) -> Any:
    """Read a value as YAML does."""
    try:
        return read_yaml(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return text


def _manifests(files: Sequence[Path]) -> list[Placed]:
    if not files:
        return []
    placed, refused = read_manifests([str(file) for file in files])
    if refused:
        raise refused[0].error
    return placed
