"""The result of a scenario of `kerf plan` as text."""

from __future__ import annotations

from typing import Any

from kerf.adapters.cli.render.text import counted, dollars, some, table_lines
from kerf.replay.scenarios.optional_features import problems_in_words

SMALLEST_SAVING_SHOWN = 0.00005
"""USD per hour: less would be printed as nothing."""


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
    if saved >= SMALLEST_SAVING_SHOWN:
        parts.append(f"{dollars(saved)} less than a first fit")
    if line["kerf"].get("unbound"):
        parts.append(f"{counted(len(line['kerf']['unbound']), 'pod')} may not bind at once")
    if left:
        parts.append(f"no place for {counted(left, 'pod')}")
    if truncated:
        parts.append(f"{counted(len(truncated), 'pod')} not looked at")
    lines = [f"{name}: {', '.join(parts)}"]
    lines += _new_nodes(result["newNodeClaims"])
    lines += [
        f"  {existing_node['name']} takes {some(existing_node['pods'])}" for existing_node in result["existingNodes"]
    ]
    lines += [f"  {problem}" for problem in problems_in_words(line["kerf"])]
    if truncated:
        lines.append(f"  the plan ended at its limit of steps before {some(truncated)}")
    for group in line["kerf"]["unplaced"] + line["kerf"]["ignored"]:
        lines.append(f"  no place for {some(group['pods'])}")
        for reason in group["reasons"]:
            lines.append(f"    {reason['code']}: {reason['text']}")
            lines += [f"      nearest miss: {reason['nearestMiss']}"] if "nearestMiss" in reason else []
    lines += [f"  note on {note['object']}: {note['text']}" for note in line["kerf"].get("notes", ())]
    return [*lines, ""]


def _new_nodes(claims: list[dict[str, Any]]) -> list[str]:
    if not claims:
        return []
    head = ("LAUNCH", "NODEPOOL", "CAPACITY", "ZONE", "PRICE/H", "FOR", "OR ELSE")
    rows = [
        (
            claim["cheapestInstanceType"],
            claim["nodePool"],
            ",".join(claim["launchCapacityTypes"]),
            some(claim["launchZones"]),
            dollars(claim["cheapestPrice"]),
            f"{counted(len(claim['pods']), 'pod')}: {some(claim['pods'])}",
            some(claim["instanceTypes"][1:], 2),
        )
        for claim in claims
    ]
    return table_lines([head, *rows])
