"""The objects whose conditions are metrics, with what the state knows of their conditions (L-415, L-424)."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from kerf.engine.model.karpenter.nodeclaim_objects import Condition
from kerf.engine.model.kubernetes.nodes import READY, Node
from kerf.engine.model.labels import INITIALIZED, NODEPOOL
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.record.observations import NodeClassSeen
from kerf.engine.state.indexes import Blobs
from kerf.engine.state.state import State
from kerf.projections.metrics.counted_claims import leaves_since
from kerf.projections.status.nodeclaim import FALSE, TRUE, claim_conditions
from kerf.projections.status.nodeclass import class_conditions, resolved_class
from kerf.projections.status.nodepool import nodepool_conditions
from kerf.projections.status.overlays_and_buffers import BufferStatuses

BUFFER = "capacitybuffer"
NODE_CLASS_KINDS = {"aws": "ec2nodeclass", "kwok": "kwoknodeclass"}
_NODE_CLASS_LABELS = {"aws": "karpenter_k8s_aws_ec2nodeclass", "kwok": "karpenter_kwok_sh_kwoknodeclass"}
_ON_NODES = {"aws": "karpenter.k8s.aws/ec2nodeclass", "kwok": "karpenter.kwok.sh/kwoknodeclass"}

Since = Mapping[tuple[str, str, str], int]
"""Since when conditions are as they are (ms since the epoch), by kind, object and type."""


class Shown(Struct, frozen=True):
    """One object's conditions, with the values of its additional labels (A in L-424), and since when it is deleted."""

    name: str
    conditions: tuple[Condition, ...]
    own: tuple[str, ...] = ()
    deleting: int = 0
    namespace: str = ""


def own_labels(provider: str) -> tuple[str, str]:
    """Return the additional labels of metrics about NodeClaims: NodeClass and NodePool (A in L-424)."""
    return _NODE_CLASS_LABELS[provider], "karpenter_sh_nodepool"


def node_pools(state: State, since: Since) -> list[Shown]:
    pools = state.facts.pools
    return [Shown(name, pool_conditions(state, name, since), deleting=pools[name].deleting) for name in pools]


def pool_conditions(state: State, pool: str, since: Since) -> tuple[Condition, ...]:
    """Return a NodePool's conditions. Only the record's readers know since when they are as they are."""
    return tuple(
        Condition(
            nodepool_condition.type,
            nodepool_condition.status,
            nodepool_condition.reason or nodepool_condition.type,
            since=since.get(("nodepool", pool, nodepool_condition.type), 0),
        )
        for nodepool_condition in nodepool_conditions(state, pool)
    )


def buffers(statuses: BufferStatuses, state: State, since: Since) -> list[Shown]:
    """Return the CapacityBuffers. Of `since` they are known by `namespace/name`."""
    return [
        Shown(
            status.name,
            tuple(
                Condition(
                    each.type,
                    TRUE if each.true else FALSE,
                    each.reason,
                    since=since.get((BUFFER, f"{status.namespace}/{status.name}", each.type), 0),
                )
                for each in status.conditions
            ),
            namespace=status.namespace,
        )
        for status in statuses.statuses(state)
    ]


def class_shown(seen: NodeClassSeen, blobs: Blobs) -> Shown:
    known = resolved_class(seen, blobs)
    return Shown(seen.name, class_conditions(seen, blobs), deleting=known.deleting if known is not None else 0)


def node_claims(state: State, now: int) -> list[Shown]:
    return [
        Shown(
            claim.name,
            tuple(claim_conditions(claim, state, now)),
            claim_labels(claim),
            leaves_since(claim),
        )
        for claim in state.facts.claims.values()
    ]


def claim_labels(claim: NodeClaim) -> tuple[str, str]:
    return claim.node_class.name, claim.node_pool


def nodes(state: State, provider: str) -> list[Shown]:
    return [
        Shown(node.name, node_conditions(node), node_labels(node, provider), node.deleting)
        for node in state.facts.nodes.values()
    ]


def node_conditions(node: Node) -> tuple[Condition, ...]:
    """Return the condition Ready of a Node, and those of node repair that are not True. The record has no others."""
    ready = Condition(READY, TRUE if node.ready else FALSE, since=node.ready_since)
    return (
        ready,
        *(Condition(condition.type, condition.status, since=condition.since) for condition in node.conditions),
    )


def node_labels(node: Node, provider: str) -> tuple[str, str, str]:
    keys = (_ON_NODES[provider], NODEPOOL, INITIALIZED)
    node_class, pool, initialized = (node.labels.get(key, "") for key in keys)
    return node_class, pool, initialized
