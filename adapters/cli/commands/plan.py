"""`kerf plan`: one provisioning decision per scenario, without a cluster and without a cloud."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter
from cyclopts.validators import Number

from kerf.adapters.cli.render.text import columns, counted, dollars, some
from kerf.replay.scenarios.catalogues import Catalogues
from kerf.replay.scenarios.errors import ScenarioError
from kerf.replay.scenarios.optional_features import problems_in_words
from kerf.replay.scenarios.plan_scenarios import EFFORT, MAX_STEPS, plan_scenario, read_catalogues, read_scenarios

SHOWN = 0.00005
"""Savings below this would be shown as nothing, USD per hour."""
REFUSED = 1
"""The exit code when a scenario could not be read."""


def plan(
    scenarios: Path,
    *,
    catalogues: Annotated[Path | None, Parameter(help="A file of named instance-type catalogues.")] = None,
    json: Annotated[bool, Parameter(help="One result per line, in the format of the scenarios.", negative="")] = False,
    trace: Annotated[bool, Parameter(help="With --json: what ruled out each instance type.", negative="")] = False,
    effort: Annotated[
        int, Parameter(validator=Number(gte=0), help="Search steps for a cheaper plan; 0: the first one.")
    ] = EFFORT,
    max_steps: Annotated[
        int, Parameter(validator=Number(gte=1), help="Attempts to place a pod, after which a plan ends.")
    ] = MAX_STEPS,
) -> int:
    """Decide once for each scenario: which pods go where, and which nodes are launched for the rest.

    A scenario names pods, NodePools, nodes and instance types; docs/plan.md describes the format. A scenario that
    cannot be read gets a line with its error, and the others go on. Exit codes: 0 all were planned, 1 a scenario was
    refused, 2 usage or an unreadable file.

    Examples: `kerf plan docs/examples/plan/workshop.json`,
    `kerf plan scenarios.jsonl --catalogues catalogues.json --json`

    Parameters
    ----------
    scenarios: Path
        A JSON file of one scenario, of a list of them, or of one per line.
    """
    known = readable(catalogues, read_catalogues) if catalogues is not None else Catalogues({})
    refused = False
    for scenario in readable(scenarios, scenarios_of):
        result = plan_scenario(scenario, known, trace=trace, effort=effort, max_steps=max_steps)
        if not json and result["result"].get("errors"):  # people are told of the nearest misses; it takes much longer
            result = plan_scenario(scenario, known, trace=True, effort=effort, max_steps=max_steps)
        refused = refused or "error" in result["result"]
        print(msgspec.json.encode(result).decode() if json else "\n".join(describe(result)))
    return REFUSED if refused else 0


def scenarios_of(path: Path) -> Iterator[dict[str, Any]]:
    """The scenarios of a file; of one without any, a scenario that is refused."""
    found = _listed(path)
    scenarios = iter(found) if found is not None else read_scenarios(path)
    first = next(scenarios, None)
    if first is None:
        first = _refused("there is no scenario in the file", str(path))
    return chain([first], scenarios)


def _listed(path: Path) -> list[dict[str, Any]] | None:
    """The scenarios of a JSON list, None if the file is none. An item that is no object becomes one that is refused."""
    if not path.is_file():  # a pipe can be read only once
        return None
    data = path.read_bytes()
    if not data.lstrip().startswith(b"["):
        return None
    try:
        items = msgspec.json.decode(data, type=list[Any])
    except msgspec.DecodeError:
        return None
    return [
        item if isinstance(item, dict) else _refused("no JSON object", f"{path.name}[{at}]")
        for at, item in enumerate(items)
    ]


def _refused(what: str, where: str) -> dict[str, Any]:
    return {"name": where, "error": str(ScenarioError(what, where=where, hint="docs/plan.md says what a scenario is"))}


def readable(path: Path, read: Any) -> Any:
    """What `read` makes of a file. Raises ScenarioError if there is no such file, or it may not be read."""
    try:
        return read(path)
    except OSError as error:
        hint = "Check the path"
        raise ScenarioError(f"cannot read the file: {error.strerror}", where=str(path), hint=hint) from error
    except RecursionError as error:
        raise ScenarioError("the JSON is nested too deeply", where=str(path)) from error


# ── for people ──────────────────────────────────────────────────────────────────────────────────────────────


def describe(line: dict[str, Any]) -> list[str]:
    """A result in words: the nodes it launches, what goes on existing ones, and why pods are left over."""
    result, summary, name = line["result"], line["summary"], line["name"] or "scenario"
    if "error" in result:
        return [f"{name}: refused", f"  {result['error']}", ""]
    truncated = line["kerf"].get("truncated", ())
    left = summary["unschedulableCount"] + len(result.get("unprocessed", ())) - len(truncated)
    parts = [f"{counted(summary['nodes'], 'new node')} for {dollars(summary['totalCheapestPrice'])} an hour"]
    if summary["podsOnExistingNodes"]:
        parts.append(f"{counted(summary['podsOnExistingNodes'], 'pod')} on existing nodes")
    saved = line["kerf"].get("firstPrice", 0.0) - summary["totalCheapestPrice"]
    if saved >= SHOWN:
        parts.append(f"{dollars(saved)} less than a first fit")
    if line["kerf"].get("unbound"):
        parts.append(f"{counted(len(line['kerf']['unbound']), 'pod')} may not bind at once")
    if left:
        parts.append(f"no place for {counted(left, 'pod')}")
    if truncated:
        parts.append(f"{counted(len(truncated), 'pod')} not looked at")
    lines = [f"{name}: {', '.join(parts)}"]
    lines += _new_nodes(result["newNodeClaims"])
    lines += [f"  {each['name']} takes {some(each['pods'])}" for each in result["existingNodes"]]
    lines += [f"  {each}" for each in problems_in_words(line["kerf"])]
    if truncated:
        lines.append(f"  the plan ended at its limit of steps before {some(truncated)}")
    for each in line["kerf"]["unplaced"] + line["kerf"]["ignored"]:
        lines.append(f"  no place for {some(each['pods'])}")
        for reason in each["reasons"]:
            lines.append(f"    {reason['code']}: {reason['text']}")
            lines += [f"      nearest miss: {reason['nearestMiss']}"] if "nearestMiss" in reason else []
    lines += [f"  note on {each['object']}: {each['text']}" for each in line["kerf"].get("notes", ())]
    return [*lines, ""]


def _new_nodes(claims: list[dict[str, Any]]) -> list[str]:
    if not claims:
        return []
    head = ("LAUNCH", "NODEPOOL", "CAPACITY", "PRICE/H", "FOR", "OR ELSE")
    rows = [
        (
            claim["cheapestInstanceType"],
            claim["nodePool"],
            ",".join(claim["launchCapacityTypes"]),
            dollars(claim["cheapestPrice"]),
            f"{counted(len(claim['pods']), 'pod')}: {some(claim['pods'])}",
            some(claim["instanceTypes"][1:], 2),
        )
        for claim in claims
    ]
    return columns([head, *rows])
