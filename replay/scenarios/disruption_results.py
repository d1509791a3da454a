"""Write disruption decisions in the form of the reference's results (docs/plan.md, section 3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kerf.engine.disruption.cluster import Cluster, moving_pods
from kerf.engine.disruption.consolidation.commands import Command, Replacement
from kerf.engine.disruption.consolidation.karpenter_methods import Proposal
from kerf.engine.disruption.consolidation.sequential_search import ChosenCommands
from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.model.labels import HOSTNAME
from kerf.engine.model.reasons import Reason
from kerf.replay.scenarios.plan_results import requirement_of

NO_METHOD: dict[str, Any] = {"candidates": [], "allowedDisruptions": {}, "commands": []}


def failed(identity: Mapping[str, str], error: str) -> dict[str, Any]:
    """Return the result of a scenario that could not be read."""
    methods = {name: dict(NO_METHOD) for name in ("emptiness", "multiNode", "singleNode")}
    moves = {"commands": [], "endPrice": 0.0, "evictions": 0, "kept": {}}
    return {**identity, "result": {**methods, "first": "none", "kerf": moves, "error": error}}


def method_of(proposal: Proposal, cluster: Cluster) -> dict[str, Any]:
    commands = [] if proposal.command is None else [command_of(proposal.command, cluster)]
    result: dict[str, Any] = {
        "candidates": [
            {
                "name": candidate.name,
                "price": candidate.price,
                "disruptionCost": candidate.cost,
                "savingsRatio": candidate.ratio,
            }
            for candidate in proposal.candidates.chosen
        ],
        "allowedDisruptions": dict(sorted(proposal.allowed.items())),
        "commands": commands,
    }
    stay = {**proposal.candidates.excluded, **proposal.refused}
    if stay:
        result["unconsolidatable"] = {name: text(stay[name]) for name in sorted(stay)}
    return result


def moves_of(moves: ChosenCommands, cluster: Cluster) -> dict[str, Any]:
    """Write kerf's own moves: the commands, the price of the fleet afterwards (USD per hour), and why each other node
    stays."""
    kept = {
        name: {"code": why.code, **({"params": why.params} if why.params else {})} for name, why in moves.kept.items()
    }
    result = {
        "commands": [command_of(command, cluster) for command in moves.commands],
        "endPrice": moves.end_price,
        "evictions": moves.evictions,
        "kept": kept,
    }
    return result | ({"exhausted": True} if moves.exhausted else {})


def command_of(command: Command, cluster: Cluster) -> dict[str, Any]:
    names = _pods_by_uid(command, cluster)
    existing = [
        {"name": placement.node, "pods": sorted(names[uid].name for uid in placement.pods)}
        for placement in command.placements
    ]
    result: dict[str, Any] = {
        "decision": command.decision,
        "reason": command.reason.karpenter,
        "candidates": list(command.names),
    }
    if command.replacements:
        result["replacements"] = [_replacement_of(replacement, names) for replacement in command.replacements]
    if existing:
        result["podsToExistingNodes"] = existing
    return {**result, "estimatedSavings": command.savings}


def _pods_by_uid(command: Command, cluster: Cluster) -> dict[str, Pod]:
    going, gone = moving_pods(cluster, frozenset(command.names))
    return {pod.uid: pod for pod in (*cluster.pending, *gone, *going, *(p for n in cluster.nodes for p in n.pods))}


def _replacement_of(new: Replacement, pods: Mapping[str, Pod]) -> dict[str, Any]:
    """Write a replacement as an entry of `newNodeClaims` (docs/plan.md, section 2)."""
    requests = new.claim.requests
    result: dict[str, Any] = {
        "nodePool": new.claim.node_pool,
        "pods": sorted(pods[uid].name for uid in new.claim.pods),
        "instanceTypes": list(new.instance_types),
        "requirements": {
            requirement.key: requirement_of(requirement)
            for requirement in new.requirements
            if requirement.key != HOSTNAME
        },
        "requests": {name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in requests.items()},
        "cheapestPrice": new.price,
        "cheapestInstanceType": new.instance_types[0],
        "launchCapacityTypes": list(new.capacity_types),
    }
    return result | ({"minValuesRelaxed": True} if new.claim.min_values_relaxed else {})


def text(why: Reason) -> str:
    """Write a reason in one line: its code and its parameters."""
    facts = ", ".join(f"{name} {_plain(value)}" for name, value in sorted(why.params.items()))
    return f"{why.code}: {facts}" if facts else why.code


def _plain(value: str | int | float | list[str]) -> str:
    return ", ".join(value) if isinstance(value, list) else str(value)
