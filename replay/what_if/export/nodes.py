"""Write Nodes and NodeClaims as manifests."""

from __future__ import annotations

from typing import Any

from kerf.engine.model.durations import format_duration
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.state_table import GOING
from kerf.engine.state.state import State
from kerf.projections.differences.node_pool_document import requirement_document, taint_document
from kerf.projections.status.nodeclaim import claim_conditions
from kerf.replay.what_if.export.pods import quantities, time, without_empty

Document = dict[str, Any]


def node_document(node: Node) -> Document:
    """Write a Node with its status."""
    ready = {"type": "Ready", "status": str(node.ready), "lastTransitionTime": time(node.ready_since)}
    others = [{"type": c.type, "status": c.status, "lastTransitionTime": time(c.since)} for c in node.conditions]
    metadata = {
        "name": node.name,
        "uid": node.uid,
        "labels": node.labels,
        "annotations": node.annotations,
        "creationTimestamp": time(node.created),
        "deletionTimestamp": time(node.deleting),
    }
    spec = {"providerID": node.provider_id, "taints": [taint_document(taint) for taint in node.taints]}
    return {
        "metadata": without_empty(metadata),
        "spec": without_empty(spec),
        "status": {
            "capacity": quantities(node.capacity),
            "allocatable": quantities(node.allocatable),
            "conditions": [without_empty(condition) for condition in (ready, *others)],
        },
    }


def goes(claim: NodeClaim) -> bool:
    """Whether the claim is on its way out, or somebody has asked for its deletion."""
    return claim.state in GOING or bool(claim.deletion)


def claim_document(claim: NodeClaim, state: State, now: int) -> Document:
    """Write a NodeClaim with the conditions that it has at `now`."""
    conditions = [
        without_empty(
            {"type": c.type, "status": c.status, "reason": c.reason or c.type, "lastTransitionTime": time(c.since)}
        )
        for c in claim_conditions(claim, state, now)
    ]
    metadata = {
        "name": claim.name,
        "labels": claim.labels,
        "annotations": claim.annotations,
        "creationTimestamp": time(claim.created),
        "deletionTimestamp": time(claim.tainted or now) if goes(claim) else "",
    }
    spec: Document = {
        "nodeClassRef": {"group": claim.node_class.group, "kind": claim.node_class.kind, "name": claim.node_class.name},
        "requirements": [requirement_document(requirement) for requirement in claim.requirements],
        "taints": [taint_document(taint) for taint in claim.taints],
        "startupTaints": [taint_document(taint) for taint in claim.startup_taints],
        "resources": {"requests": quantities(claim.requests)},
        "expireAfter": format_duration(claim.expire_after),
    }
    if claim.termination_grace_period is not None:
        spec["terminationGracePeriod"] = format_duration(claim.termination_grace_period)
    status = {
        "providerID": claim.provider_id,
        "nodeName": claim.node,
        "imageID": claim.image,
        "capacity": quantities(claim.capacity),
        "allocatable": quantities(claim.allocatable),
        "conditions": conditions,
        "lastPodEventTime": time(claim.last_pod_event),
    }
    return {"metadata": without_empty(metadata), "spec": spec, "status": without_empty(status)}
