"""The provisioning window (S-55…S-57) and which pods a provisioning pass is about."""

from __future__ import annotations

from kerf.engine.model.kubernetes.pods import Pod, is_reschedulable
from kerf.engine.model.settings import Settings
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.state_table import INITIALIZED
from kerf.engine.state.state import Facts, State

ARRIVAL_GAPS = 50
"""See `_pause`."""


def open_window(facts: Facts, at: int) -> None:
    """Opens the window, or extends it."""
    if not facts.batch_opened:
        facts.batch_opened = at
    facts.batch_last = at


def free_capacity_changed(state: State, at: int) -> None:
    """Notes a change that may give pods a place, or take their planned place away.

    Karpenter plans again every ten seconds (S-57). kerf plans again when something changed, so every change that a plan
    can depend on has to be noted here.
    """
    facts = state.facts
    note_disruption_change(facts, at)
    waiting = has_active_buffers(facts) or bool(state.indexes.pending)
    if waiting or any(going_pods(state, node) for node, _ in going_nodes(state)):
        open_window(facts, at)


def leaves_limits(facts: Facts, claim: NodeClaim) -> bool:
    """Whether pods may have waited for what the limits of the claim's NodePool leave once it is launched: until then it
    counted as the largest of its types (S-70)."""
    pool = facts.pools.get(claim.node_pool)
    return facts.unplaced and len(claim.instance_types) > 1 and pool is not None and bool(pool.limits)


def has_active_buffers(facts: Facts) -> bool:
    """Whether there are CapacityBuffers, which are planned for although no pod waits (S-57)."""
    return facts.settings.capacity_buffers and bool(facts.buffers)


def note_disruption_change(facts: Facts, at: int) -> None:
    """Notes a change after which a disruption pass may decide otherwise (D-27)."""
    facts.moves_changed = facts.moves_changed or at


def nomination_period(settings: Settings) -> int:
    """For how long a node that a plan counts on is not disrupted, in ms (D-8)."""
    return max(2 * settings.batch_max, 10_000)


def window_closes_at(facts: Facts) -> int:
    """When the open window closes (S-55): quiet for `batch_idle`, or `batch_max` after it opened; in a burst
    `batch_idle` after it opened, or when no more pods seem to come."""
    settings = facts.settings
    if 0 < settings.batch_enough <= len(facts.arrived):
        quiet = max(facts.batch_opened + settings.batch_idle, facts.arrived_at + _arrival_pause(facts))
        return min(facts.batch_opened + settings.batch_max, quiet)
    return min(facts.batch_opened + settings.batch_max, facts.batch_last + settings.batch_idle)


def _arrival_pause(facts: Facts) -> int:
    """For how long (ms) after the latest pod another one is waited for: ARRIVAL_GAPS times the average time between two
    pods of the burst, but at least a tenth and at most a quarter of `batch_idle`.

    Nodes for pods that come after all cost more than nodes for all together."""
    idle, lasted = facts.settings.batch_idle, facts.arrived_at - facts.batch_opened
    return max(idle // 10, min(idle // 4, ARRIVAL_GAPS * lasted // len(facts.arrived)))


def in_service(facts: Facts, target: str) -> bool:
    """Whether pods can be bound now to the claim or unmanaged node that a plan put them on."""
    claim = facts.claims.get(target)
    return claim.state == INITIALIZED if claim is not None else target in facts.nodes


def going_nodes(state: State) -> list[tuple[str, NodeClaim | None]]:
    """The Nodes that are on their way out, each with its claim (S-50): first those of claims, by the claim's name, then
    deleted Nodes that no claim has, by their own."""
    claims, indexes = state.facts.claims, state.indexes
    claimed = [(claims[name].node, claims[name]) for name in sorted(indexes.going) if claims[name].node]
    without_claim = [(name, None) for name in sorted(indexes.deleted_nodes) if name not in indexes.claim_by_node]
    return [*claimed, *without_claim]


def is_going(state: State, node: str) -> bool:
    """Whether a Node of this name is on its way out (S-50)."""
    indexes = state.indexes
    claim = indexes.claim_by_node.get(node)
    return node in indexes.deleted_nodes if claim is None else claim in indexes.going


def going_pods(state: State, node: str) -> list[Pod]:
    """Return the pods on a going Node that will need another place, by namespace and name (S-46, S-47)."""
    uids = state.indexes.pods_by_node.get(node, {})
    pods = (state.facts.pods[uid] for uid in uids)
    return sorted((p for p in pods if is_reschedulable(p)), key=lambda p: (p.namespace, p.name, p.uid))
