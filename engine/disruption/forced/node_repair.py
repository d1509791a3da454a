"""Node repair (D-134…D-136, L-247, L-248, A-404…A-410): a node that has been unhealthy for long is replaced, as long as
not too many are. Behind the gate NodeRepair."""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.disruption.forced.finding import Finding, keep, remove
from kerf.engine.model import labels as lbl
from kerf.engine.model.disruption_reasons import DisruptionCode, DisruptionReason
from kerf.engine.model.kubernetes.nodes import READY, Node
from kerf.engine.model.reasons import Reason
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.state.node_of_claim import node_of
from kerf.engine.state.state import State

MINUTE = 60_000
BLOCKED_RETRY = 5 * MINUTE
UNHEALTHY_SHARE = 20
"""D-135: in percent of the nodes, rounded up."""


class Policy(Struct, frozen=True):
    """A node whose condition has had one of these statuses for `toleration` ms is to be repaired."""

    condition: str
    statuses: tuple[str, ...]
    toleration: int


POLICIES: dict[str, tuple[Policy, ...]] = {
    "karpenter.k8s.aws": (
        Policy(READY, ("False", "Unknown"), 30 * MINUTE),
        Policy("AcceleratedHardwareReady", ("False",), 10 * MINUTE),
        Policy("StorageReady", ("False",), 30 * MINUTE),
        Policy("NetworkingReady", ("False",), 30 * MINUTE),
        Policy("KernelReady", ("False",), 30 * MINUTE),
        Policy("ContainerRuntimeReady", ("False",), 30 * MINUTE),
    ),
    "karpenter.kwok.sh": (Policy(READY, ("False", "Unknown"), 10 * MINUTE),),
}
"""By the API group of the NodeClass. A provider without policies repairs nothing."""


class Illness(Struct, frozen=True, order=True):
    """A condition that a policy names: since when, and when its toleration is over."""

    due: int
    condition: str
    status: str
    since: int


def unhealthy(claim: NodeClaim, state: State, now: int) -> Finding:
    """D-134, D-135. It works for nodes that never registered or were never initialized, too."""
    policies = POLICIES.get(claim.node_class.group, ()) if state.facts.settings.node_repair else ()
    node = node_of(claim, state) if policies else None
    illness = worst(node, policies) if node is not None else None
    if node is None or illness is None:
        return _told(claim, keep(DisruptionReason.UNHEALTHY, DisruptionCode.NODE_HEALTHY))
    if now < illness.due:
        return _told(claim, keep(DisruptionReason.UNHEALTHY, DisruptionCode.NODE_HEALTHY, due=illness.due))
    ill, nodes = census(state, claim.node_pool, policies)
    if ill > allowed(nodes):
        blocked = Reason.of(DisruptionCode.REPAIR_BLOCKED, ill=ill, nodes=nodes, condition=illness.condition)
        return _told(claim, Finding(DisruptionReason.UNHEALTHY.value, blocked, due=_retry_at(illness, now)))
    return remove(
        DisruptionReason.UNHEALTHY,
        DisruptionReason.UNHEALTHY,
        condition=illness.condition,
        status=illness.status,
        waited=now - illness.since,
        detail=f"{illness.condition}={illness.status}",
    )


def _retry_at(illness: Illness, now: int) -> int:
    """Counted from when its toleration was over, not from when it is looked at: a look that finds nothing new leaves no
    entry, so replay does not know of it."""
    return now + BLOCKED_RETRY - (now - illness.due) % BLOCKED_RETRY


def _told(claim: NodeClaim, finding: Finding) -> Finding:
    """That a repair is held back is told once, and that it is not any more."""
    news = finding.reason.code != (claim.repair or DisruptionCode.NODE_HEALTHY)
    return Finding(finding.method, finding.reason, due=finding.due, told=news)


def worst(node: Node, policies: tuple[Policy, ...]) -> Illness | None:
    """The matching condition whose toleration ends first."""
    found = [
        Illness(since + policy.toleration, policy.condition, status, since)
        for policy in policies
        for status, since in _statuses(node, policy.condition)
        if status in policy.statuses
    ]
    return min(found, default=None)


def _statuses(node: Node, condition: str) -> list[tuple[str, int]]:
    """Of the condition Ready a Node keeps only whether it is True: its policies name both other statuses."""
    if condition == READY:
        return [("False", node.ready_since)] if not node.ready and node.ready_since else []
    return [(each.status, each.since) for each in node.conditions if each.type == condition]


def census(state: State, pool: str, policies: tuple[Policy, ...]) -> tuple[int, int]:
    """How many nodes of the NodePool (of the cluster, for a claim without one) match a policy, for however short a
    time, and how many there are."""
    position, known = state.indexes.health
    if position != state.facts.position:
        known = {}
        state.indexes.health = (state.facts.position, known)
    if pool not in known:
        nodes = [n for n in state.facts.nodes.values() if not pool or n.labels.get(lbl.NODEPOOL) == pool]
        known[pool] = (sum(worst(node, policies) is not None for node in nodes), len(nodes))
    return known[pool]


def allowed(nodes: int) -> int:
    """So many may be unhealthy before repair stops: then it is rather the cluster that is."""
    return -(-nodes * UNHEALTHY_SHARE // 100)
