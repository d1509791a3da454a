"""The line in which Karpenter says that it takes nodes away, in the forms of its versions (F-81…F-86)."""

from __future__ import annotations

import re

from kerf.adapters.importers.claim_steps import Decided, GaveUp, Target
from kerf.adapters.importers.karpenter.lines import LogLine
from kerf.adapters.importers.untrusted import name_of, text_of, whole_number
from kerf.engine.model.disruption_reasons import DisruptionReason

_LONGEST = 1 << 16  # characters of a text that is searched
_LONGEST_ERROR = 2_000  # characters of an error that are kept
_COMMAND_ID = re.compile(r"\w+/(?P<id>[\w-]+)")
_COMMAND = re.compile(r"(?P<why>\w+)/(?P<id>[\w-]+): (?P<action>delete|replace)\b")
_POOLS = re.compile(r"nodepools=\[([^\]]*)\]")
_SAVINGS = re.compile(r"\(savings: \$(-?\d{1,9}(?:\.\d{1,6})?)\)")
_PROSE = re.compile(
    r"disrupting (?:nodeclaim\(s\) )?via (?:(?P<method>\w+) )?(?P<action>delete|replace), "
    r"terminating (?P<count>\d{1,6}) \w+ (?:\((?P<pods>\d{1,9}) pods\) )?(?P<nodes>.*?)"
    r"(?: and replacing with (?P<new>.*))?",
    re.DOTALL,
)
_METHODS = {
    "consolidation": DisruptionReason.UNDERUTILIZED,
    "drift": DisruptionReason.DRIFTED,
    "emptiness": DisruptionReason.EMPTY,
    "expiration": DisruptionReason.EXPIRED,
}
"""What a method of up to 0.37 means (F-81)."""
_NEW_NODES = re.compile(r"(\d{1,6}) spot and (\d{1,6}) on-demand\b")
"""Of several new nodes. One that may become either counts as both, so that the larger number is what is certain."""


def decision_of(line: LogLine) -> Decided | None:
    """The decision in a line `disrupting …`; None if it is in no known form."""
    if line.message == "disrupting node(s)":
        return _of_fields(line)
    found = _PROSE.fullmatch(line.message[:_LONGEST])
    return _of_prose(line, found) if found is not None else None


def _of_fields(line: LogLine) -> Decided | None:
    command = text_of(line.fields.get("command"))[:_LONGEST]
    said = _COMMAND.match(command)
    why = line.text("reason") or (said["why"] if said else "")
    targets = line.fields.get("disrupted-nodes")
    if not why or not isinstance(targets, list):
        return None
    pools, savings = _POOLS.search(command), _SAVINGS.search(command)
    return Decided(
        at=line.at,
        why=_why(why),
        action=line.text("decision") or (said["action"] if said else ""),
        targets=tuple(_target(target) for target in targets if isinstance(target, dict)),
        new_nodes=whole_number(line.fields.get("replacement-node-count")),
        pods=whole_number(line.fields.get("pod-count")),
        savings=float(savings[1]) if savings else None,
        command=line.text("command-id") or (said["id"] if said else ""),
        run=line.text("reconcileID"),
        node_pools=tuple(filter(None, (name_of(name.strip()) for name in pools[1].split(",")))) if pools else (),
    )


def gave_up_on(line: LogLine) -> GaveUp:
    """Which decision failed: by its id, or by the nodes that are named as text or as in the decision (F-78)."""
    said = _COMMAND_ID.match(line.text("command")[:_LONGEST])
    listed = line.fields.get("disrupted-nodes")
    targets = [_target(target) for target in listed if isinstance(target, dict)] if isinstance(listed, list) else []
    named = (name_of(name.strip()) for name in line.text("nodes").split(","))
    return GaveUp(
        at=line.at,
        command=line.text("command-id") or (said["id"] if said else ""),
        nodes=tuple(dict.fromkeys(filter(None, (*named, *(target.node for target in targets))))),
        claims=tuple(filter(None, (target.claim for target in targets))),
        error=line.text("error")[:_LONGEST_ERROR] or "a disruption failed",
    )


def _why(word: str) -> str:
    """kerf's word for Karpenter's: "Underutilized" is "underutilized"."""
    return word.lower()


def _target(target: dict[str, object]) -> Target:
    return Target(
        name_of(target.get("Node")), name_of(target.get("NodeClaim")), text_of(target.get("instance-type")),
        text_of(target.get("capacity-type")),
    )  # fmt: skip


def _of_prose(line: LogLine, found: re.Match[str]) -> Decided:
    """The nodes are `name/type/capacity type`, with commas between them."""
    named = (part.strip().split("/") for part in found["nodes"].split(","))
    targets = tuple(
        Target(name_of(parts[0]), "", parts[1], parts[2]) for parts in named if len(parts) == 3 and name_of(parts[0])
    )
    new = _NEW_NODES.match(found["new"] or "")
    return Decided(
        at=line.at,
        why=_METHODS.get(found["method"] or "", _why(line.text("reason")) or DisruptionReason.UNKNOWN),
        action=found["action"],
        targets=targets,
        new_nodes=(max(int(new[1]), int(new[2])) if new else 1) if found["new"] else 0,
        pods=int(found["pods"] or 0),
        command=line.text("command-id"),
        run=line.text("reconcileID"),
    )
