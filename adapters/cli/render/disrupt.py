"""The result of a scenario of `kerf disrupt` as text."""

from __future__ import annotations

from typing import Any

import msgspec

from kerf.adapters.cli.render.text import counted, dollars, some, table_lines
from kerf.engine.model.reasons import Reason
from kerf.replay.scenarios.disruption_results import text

METHODS = {"emptiness": "emptiness", "multiNode": "multi-node", "singleNode": "single-node"}


def describe(line: dict[str, Any]) -> list[str]:
    """A result in words: the moves, what the fleet costs after them, and why each other node stays."""
    name, result = line["name"] or "scenario", line["result"]
    if "error" in result:
        return [f"{name}: refused", f"  {result['error']}", ""]
    moves = result["kerf"]
    gone = sum(len(command["candidates"]) for command in moves["commands"])
    moved = f"{counted(moves['evictions'], 'pod')} moved"
    lines = [f"{name}: {counted(gone, 'node')} can go, {moved}; then {dollars(moves['endPrice'])} an hour"]
    lines += _commands(moves["commands"])
    lines += [f"  {node} stays: {_why(why)}" for node, why in moves["kept"].items()]
    first = METHODS.get(result["first"])
    lines.append(f"  Karpenter would begin with {first}" if first else "  Karpenter would do nothing")
    return [*lines, ""]


def _commands(commands: list[dict[str, Any]]) -> list[str]:
    if not commands:
        return []
    head = ("REASON", "REMOVE", "LAUNCH", "SAVES/H", "PODS GO TO")
    rows = [
        (
            command["reason"],
            some(command["candidates"]),
            some([new["cheapestInstanceType"] for new in command.get("replacements", [])]) or "-",
            dollars(command["estimatedSavings"]),
            some([there["name"] for there in command.get("podsToExistingNodes", [])]) or "-",
        )
        for command in commands
    ]
    return table_lines([head, *rows])


def _why(why: dict[str, Any]) -> str:
    return text(msgspec.convert(why, Reason))
