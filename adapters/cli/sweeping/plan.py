"""Read the plan of a sweep: a grid of changes, of which each combination is a configuration."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct

from kerf.adapters.cli.input.bounded_yaml import read_bounded, read_document
from kerf.adapters.cli.sweeping.errors import PlanRefused
from kerf.engine.model.did_you_mean import did_you_mean, is_it

TARGETED = ("set", "price", "setting")
"""Changes of the form TARGET=VALUE, which an axis may give as a target and its values."""
NAMED = ("no-capacity", "delete", "remove")
FILES = ("apply", "add-pods")
FLAGS = (*TARGETED, *NAMED, *FILES)
"""The changes of `kerf whatif`, as its flags are called."""
VALUES = "to"
MOST_CELLS = 10_000
_KEYS = ("grid", "from", "until")
_FORM = "docs/sweep.md has the form of a plan"


class ChangeText(Struct, frozen=True):
    """One change: the flag of `kerf whatif`, and its text. For a file: its name and content."""

    flag: str
    text: str
    content: str = ""


class Configuration(Struct, frozen=True):
    """One combination: each axis with the value taken of it, and the changes that it makes."""

    values: tuple[tuple[str, str], ...]
    changes: tuple[ChangeText, ...]

    @property
    def name(self) -> str:
        return " ".join(f"{axis}={value}" for axis, value in self.values) or UNCHANGED


UNCHANGED = "unchanged"


class Plan(Struct, frozen=True):
    """What part of each record is modelled, and under which configurations. The first is the unchanged one."""

    since: str
    until: str
    configurations: tuple[Configuration, ...]


def read_plan(file: Path) -> Plan:
    """Read a plan of YAML or JSON. Of configurations with the same changes the last is taken.

    Raises PlanRefused (KERF242), which names the place.
    """
    document = _document(file)
    _known(document, _KEYS, str(file))
    grid = document.get("grid")
    if not isinstance(grid, dict) or not grid:
        raise PlanRefused("the plan has no grid", where=str(file), hint=_FORM)
    axes = [(str(name), _axis(axis, f"{file}: grid.{name}", file.parent)) for name, axis in grid.items()]
    cells = 1
    for _, options in axes:
        cells *= len(options)
        if cells > MOST_CELLS:
            told = f"the grid has more than {MOST_CELLS:,} configurations"
            raise PlanRefused(told, where=str(file), hint="Take values away, or sweep twice")
    grid_of = (_configuration([name for name, _ in axes], chosen) for chosen in product(*(o for _, o in axes)))
    changed = {configuration.changes: configuration for configuration in grid_of if configuration.changes}
    since, until = (str(document.get(key, usual)) for key, usual in (("from", "start"), ("until", "end")))
    return Plan(since, until, (Configuration((), ()), *changed.values()))


_Option = tuple[str, tuple[ChangeText, ...]]


def _configuration(axes: list[str], chosen: Iterable[_Option]) -> Configuration:
    options = list(chosen)
    values = tuple((axis, value) for axis, (value, _) in zip(axes, options, strict=True))
    return Configuration(values, tuple(change for _, changes in options for change in changes))


def _document(file: Path) -> dict[Any, Any]:
    try:
        found = read_document(file)
    except OSError as error:
        raise PlanRefused(f"the plan cannot be read: {error.strerror}", where=str(file), hint=_FORM) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise PlanRefused("the plan is neither YAML nor JSON", where=str(file), hint=_FORM) from error
    if not isinstance(found, dict):
        raise PlanRefused("the plan is no object", where=str(file), hint=_FORM)
    return found


def _axis(axis: object, where: str, folder: Path) -> list[_Option]:
    """The values of an axis: named ones, each with its changes, or a target with what it is set to."""
    if not isinstance(axis, dict) or not axis:
        raise PlanRefused("an axis needs values", where=where, hint=_FORM)
    if VALUES not in axis:
        return [(str(name), _changes(changes, f"{where}.{name}", folder)) for name, changes in axis.items()]
    values, flags = axis[VALUES], [key for key in axis if key != VALUES]
    if len(flags) != 1 or flags[0] not in TARGETED:
        hint = f"Write one of {', '.join(TARGETED)} beside {VALUES}, such as {{setting: batch_idle, to: [1s, 5s]}}"
        raise PlanRefused(f"{VALUES} needs one target", where=where, hint=hint)
    if not isinstance(values, list) or not values or not all(_is_plain(v) or _is_listed(v) for v in values):
        raise PlanRefused(f"{VALUES} is no list of values", where=where, hint=_FORM)
    target = str(axis[flags[0]])
    texts = [_text(value) for value in values]
    return [(text, (ChangeText(str(flags[0]), f"{target}={text}"),)) for text in dict.fromkeys(texts)]


def _changes(changes: object, where: str, folder: Path) -> tuple[ChangeText, ...]:
    if changes is None:
        return ()
    if not isinstance(changes, dict):
        hint = "Write changes below it, such as set: nodepool/default.spec.limits.cpu=100, or {} for none"
        raise PlanRefused("a value needs its changes", where=where, hint=hint)
    _known(changes, FLAGS, where)
    found: list[ChangeText] = []
    for flag, texts in changes.items():
        listed = texts if isinstance(texts, list) else [texts]
        if not all(map(_is_plain, listed)):
            raise PlanRefused(f"{flag} is neither a text nor a list of texts", where=where, hint=_FORM)
        found += (_change(str(flag), _text(text), where, folder) for text in listed)
    return tuple(found)


def _change(flag: str, text: str, where: str, folder: Path) -> ChangeText:
    """A change, with what its file holds: the cell takes it along."""
    if flag not in FILES:
        return ChangeText(flag, text)
    try:
        return ChangeText(flag, text, read_bounded(folder / text).decode("utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        hint = "Name a file, from the folder of the plan"
        raise PlanRefused(f"{text} cannot be read", where=where, hint=hint) from error


def _known(given: Mapping[Any, Any], known: tuple[str, ...], where: str) -> None:
    for key in given:
        if key not in known:
            hint = is_it(did_you_mean(str(key), list(known))) or f"Known are {', '.join(known)}"
            raise PlanRefused(f"nobody knows {key!r}", where=where, hint=hint)


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float) and value != ""


def _is_listed(value: object) -> bool:
    """Whether it is a list, such as the `values` of a requirement: one value of an axis."""
    return isinstance(value, list) and all(map(_is_plain, value))


def _text(value: object) -> str:
    """A value as YAML would write it; in a list each keeps its quotes, for "5" is no number."""
    if isinstance(value, list):
        return json.dumps(value, ensure_ascii=False)
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)
