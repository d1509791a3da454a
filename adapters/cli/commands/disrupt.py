"""`kerf disrupt`: which nodes could go, decided per cluster, without a cluster and without a cloud."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from kerf.adapters.cli.commands.plan import REFUSED, readable, scenarios_of
from kerf.adapters.cli.render.text import columns, counted, dollars, some
from kerf.engine.model.reasons import Reason
from kerf.replay.scenarios.catalogues import Catalogues
from kerf.replay.scenarios.disruption_results import text
from kerf.replay.scenarios.disruption_scenarios import disrupt_scenario
from kerf.replay.scenarios.plan_scenarios import read_catalogues

METHODS = {"emptiness": "emptiness", "multiNode": "multi-node", "singleNode": "single-node"}


def disrupt(
    scenarios: Path,
    *,
    catalogues: Annotated[Path | None, Parameter(help="A file of named instance-type catalogues.")] = None,
    json: Annotated[bool, Parameter(help="One result per line, in the format of the scenarios.", negative="")] = False,
) -> int:
    """Decide once for each cluster: which nodes go, what replaces them, and why the others stay.

    A scenario names nodes with their pods, NodePools and instance types; docs/disrupt.md describes the format. Shown
    are kerf's own moves, which may all be under way at once; with --json also what each of the reference's methods
    decides. Exit codes: 0 all were decided, 1 a scenario was refused, 2 usage or an unreadable file.

    Examples: `kerf disrupt docs/examples/disrupt/scale-in.json`,
    `kerf disrupt scenarios.jsonl --catalogues catalogues.json --json`

    Parameters
    ----------
    scenarios: Path
        A JSON file of one scenario, or of many: one per line.
    """
    known = readable(catalogues, read_catalogues) if catalogues is not None else Catalogues({})
    refused = False
    for scenario in readable(scenarios, scenarios_of):
        line = disrupt_scenario(scenario, known)
        refused = refused or "error" in line["result"]
        print(msgspec.json.encode(line).decode() if json else "\n".join(describe(line)))
    return REFUSED if refused else 0


# ── for people ──────────────────────────────────────────────────────────────────────────────────────────────


def describe(line: dict[str, Any]) -> list[str]:
    """A result in words: the moves, what the fleet costs after them, and why each other node stays."""
    name, result = line["name"] or "scenario", line["result"]
    if "error" in result:
        return [f"{name}: refused", f"  {result['error']}", ""]
    moves = result["kerf"]
    gone = sum(len(each["candidates"]) for each in moves["commands"])
    moved = f"{counted(moves['evictions'], 'pod')} moved"
    lines = [f"{name}: {counted(gone, 'node')} can go, {moved}; then {dollars(moves['endPrice'])} an hour"]
    lines += _commands(moves["commands"])
    lines += [f"  {node} stays: {_why(why)}" for node, why in moves["kept"].items()]
    first = METHODS.get(result["first"])
    lines.append(f"  the reference would begin with {first}" if first else "  the reference would do nothing")
    return [*lines, ""]


def _commands(commands: list[dict[str, Any]]) -> list[str]:
    if not commands:
        return []
    head = ("REASON", "REMOVE", "LAUNCH", "SAVES/H", "PODS GO TO")
    rows = [
        (
            each["reason"],
            some(each["candidates"]),
            some([new["cheapestInstanceType"] for new in each.get("replacements", [])]) or "-",
            dollars(each["estimatedSavings"]),
            some([there["name"] for there in each.get("podsToExistingNodes", [])]) or "-",
        )
        for each in commands
    ]
    return columns([head, *rows])


def _why(why: dict[str, Any]) -> str:
    return text(msgspec.convert(why, Reason))
