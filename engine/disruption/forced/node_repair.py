"""Node repair: a node that has been unhealthy for long is replaced, unless too many nodes are unhealthy (D-134…D-136,
L-247, L-248, A-404…A-410). Behind the feature gate NodeRepair.
"""

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
CALM = 5 * MINUTE
"""For so long no more nodes than allowed have to be unhealthy before a repair that was held back goes on: after an
outage nodes recover one by one."""
UNHEALTHY_SHARE = 20
"""How many nodes may be unhealthy, in percent of all, rounded up (D-135)."""


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


class UnhealthyCondition(Struct, frozen=True, order=True):
    """A condition of a node that a policy names: since when, and when its toleration is over (ms since the epoch)."""

    due: int
    type: str
    status: str
    since: int


def unhealthy(claim: NodeClaim, state: State, now: int) -> Finding:
    """Remove a claim whose node has been unhealthy for as long as its policy tolerates (D-134, D-135).

    That holds for nodes that never registered or were never initialized, too. Nothing is repaired while the clocks
    differ: how long a node has been unhealthy is not known then.
    """
    policies = POLICIES.get(claim.node_class.group, ()) if state.facts.settings.node_repair else ()
    node = node_of(claim, state) if policies else None
    condition = first_due(node, policies) if node is not None else None
    if node is None or condition is None:
        return _noted_once(claim, keep(DisruptionReason.UNHEALTHY, DisruptionCode.NODE_HEALTHY))
    if state.facts.clocks_differ:
        return keep(DisruptionReason.UNHEALTHY, DisruptionCode.CLOCKS_DIFFER)
    if now < condition.due:
        return _noted_once(claim, keep(DisruptionReason.UNHEALTHY, DisruptionCode.NODE_HEALTHY, due=condition.due))
    ill, nodes = count_unhealthy(state, claim.node_pool, policies)
    if ill > unhealthy_limit(nodes):
        blocked = Reason.of(DisruptionCode.REPAIR_BLOCKED, ill=ill, nodes=nodes, condition=condition.type)
        return _noted_once(claim, Finding(DisruptionReason.UNHEALTHY.value, blocked))
    goes_on = _goes_on_at(claim, now)
    if now < goes_on:
        waits = Reason.of(DisruptionCode.REPAIR_WAITS, condition=condition.type, waits=CALM)
        return _noted_once(claim, Finding(DisruptionReason.UNHEALTHY.value, waits, due=goes_on))
    return remove(
        DisruptionReason.UNHEALTHY,
        DisruptionReason.UNHEALTHY,
        condition=condition.type,
        status=condition.status,
        waited=now - condition.since,
        detail=f"{condition.type}={condition.status}",
    )


def _goes_on_at(claim: NodeClaim, now: int) -> int:
    """When a repair that was held back goes on (ms since the epoch); 0 if it was not. The claim is looked at whenever
    the health of some node changes, and what it waits for then is recorded. So nothing depends on other looks, which
    replay would not know of."""
    if claim.repair == DisruptionCode.REPAIR_BLOCKED:
        return now + CALM
    return claim.repair_told + CALM if claim.repair == DisruptionCode.REPAIR_WAITS else 0


def _noted_once(claim: NodeClaim, finding: Finding) -> Finding:
    """Notes once that a repair is held back, and once that it no longer is."""
    is_news = finding.reason.code != (claim.repair or DisruptionCode.NODE_HEALTHY)
    return Finding(finding.method, finding.reason, due=finding.due, note=is_news)


def first_due(node: Node, policies: tuple[Policy, ...]) -> UnhealthyCondition | None:
    """The unhealthy condition whose toleration ends first, if the node has one."""
    matching = [
        UnhealthyCondition(since + policy.toleration, policy.condition, status, since)
        for policy in policies
        for status, since in _statuses(node, policy.condition)
        if status in policy.statuses
    ]
    return min(matching, default=None)


def _statuses(node: Node, condition: str) -> list[tuple[str, int]]:
    """The statuses of a condition, and since when. Of Ready a Node keeps only whether it is True."""
    if condition == READY:
        return [("False", node.ready_since)] if not node.ready and node.ready_since else []
    return [
        (node_condition.status, node_condition.since)
        for node_condition in node.conditions
        if node_condition.type == condition
    ]


def count_unhealthy(state: State, pool: str, policies: tuple[Policy, ...]) -> tuple[int, int]:
    """How many nodes of the NodePool (of the cluster, for a claim without one) match a policy, for however short a
    time, and how many there are."""
    position, known = state.indexes.health
    if position != state.facts.position:
        known = {}
        state.indexes.health = (state.facts.position, known)
    if pool not in known:
        nodes = [n for n in state.facts.nodes.values() if not pool or n.labels.get(lbl.NODEPOOL) == pool]
        known[pool] = (sum(first_due(node, policies) is not None for node in nodes), len(nodes))
    return known[pool]


def unhealthy_limit(nodes: int) -> int:
    """How many of so many nodes may be unhealthy before repair stops: with more, the cluster itself is unhealthy."""
    return -(-nodes * UNHEALTHY_SHARE // 100)
