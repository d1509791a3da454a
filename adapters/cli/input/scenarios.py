"""Files of scenarios, for `kerf plan` and `kerf disrupt`."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from kerf.adapters.cli.simulate.market import catalogues, zones_sold
from kerf.adapters.kwok.catalogue import built_in as kwok_types
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.record.errors import UNDECODABLE
from kerf.replay.scenarios.catalogues import BuiltIn, Catalogues
from kerf.replay.scenarios.errors import ScenarioError
from kerf.replay.scenarios.plan_scenarios import read_catalogues, read_scenarios


def scenarios_of(path: Path) -> Iterator[dict[str, Any]]:
    """The scenarios of a file or a pipe. An empty one gives one scenario that is refused."""
    scenarios = _of_file(path) if path.is_file() else _of_pipe(path)
    first = next(scenarios, None)
    if first is None:
        first = _refused("there is no scenario in the file", str(path))
    return chain([first], scenarios)


def _of_pipe(path: Path) -> Iterator[dict[str, Any]]:
    """The scenarios of a copy: a pipe can be read only once."""
    with TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        with path.open("rb") as pipe, copy.open("wb") as file:
            shutil.copyfileobj(pipe, file)
        yield from _of_file(copy)


def _of_file(path: Path) -> Iterator[dict[str, Any]]:
    listed = _listed(path)
    return iter(listed) if listed is not None else read_scenarios(path)


def _listed(path: Path) -> list[dict[str, Any]] | None:
    """The scenarios of a JSON list; None if the file is no list. An item that is no object is refused."""
    data = path.read_bytes()
    if not data.lstrip().startswith(b"["):
        return None
    try:
        items = msgspec.json.decode(data, type=list[Any])
    except UNDECODABLE:
        return None
    return [
        item if isinstance(item, dict) else _refused("no JSON object", f"{path.name}[{at}]")
        for at, item in enumerate(items)
    ]


def _refused(what: str, where: str) -> dict[str, Any]:
    return {"name": where, "error": str(ScenarioError(what, where=where, hint="docs/plan.md says what a scenario is"))}


def named_catalogues(file: Path | None) -> Catalogues:
    """The catalogues of a file, and those that need none: `aws`, EC2's types as `kerf simulate` sells them, and `kwok`.
    Raises ScenarioError if the file cannot be read."""
    built_in: BuiltIn = {"aws": _ec2_types, "kwok": lambda zones: kwok_types()}
    return Catalogues({}, built_in) if file is None else readable(file, partial(read_catalogues, built_in=built_in))


def _ec2_types(zones: Sequence[str]) -> Catalogue:
    return catalogues(*zones_sold(zones))(None)


def readable(path: Path, read: Any) -> Any:
    """What `read` makes of a file. Raises ScenarioError if there is no such file, or it may not be read."""
    try:
        return read(path)
    except OSError as error:
        hint = "Check the path"
        if path.is_dir():
            hint = "Give a JSON file of scenarios (docs/plan.md); kerf simulate takes folders of manifests"
        raise ScenarioError(f"cannot read the file: {error.strerror}", where=str(path), hint=hint) from error
    except RecursionError as error:
        raise ScenarioError("the JSON is nested too deeply", where=str(path)) from error
