"""Declare the tables: one struct is one row, and what stands beside a field is the documentation of its column.

A test compares docs/sql.md with these declarations.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from kerf.projections.tables.columns import (
    Bytes,
    Cores,
    Count,
    Flag,
    Hours,
    Number,
    Seconds,
    Text,
    Texts,
    Time,
    Usd,
    UsdPerHour,
)

NodePoolName = Annotated[Text, "its NodePool"]
InstanceType = Annotated[Text, "instance type"]
Zone = Annotated[Text, "zone"]
CapacityType = Annotated[Text, "spot, on-demand or reserved"]
Workload = Annotated[Text, "namespace/name of the Deployment, StatefulSet, Job or DaemonSet"]
ClaimName = Annotated[Text, "the NodeClaim"]
EntryPosition = Annotated[Number, "the entry that says so"]
EntryTime = Annotated[Time, "when"]
ReasonCode = Annotated[Text, "code of the reason"]
Because = Annotated[Text, "the reason as a sentence"]


class RecordRow(Struct, frozen=True, kw_only=True):
    """Each record that was given."""

    since: Annotated[Time, "time of its first entry"]
    until: Annotated[Time, "time of its last entry, up to which costs and durations are counted"]
    last: Annotated[Number, "its last position"]
    imported_from: Annotated[Texts, "what an imported record was made of; empty for one that kerf wrote"]
    lacks: Annotated[Texts, "what an imported record does not know, as codes; empty for one that kerf wrote"]


class ClaimRow(Struct, frozen=True, kw_only=True):
    """NodeClaims: one row for each node that was asked for or adopted."""

    claim: ClaimName
    node_pool: NodePoolName
    node: Annotated[Text, "name of its Node, once it has registered"]
    instance: Annotated[Text, "instance id"]
    instance_type: InstanceType
    zone: Zone
    capacity_type: CapacityType
    price: Annotated[UsdPerHour, "list price at its launch"]
    state: Annotated[Text, "its state at the end of the record"]
    requested: Annotated[Time, "when it was asked for"]
    launched: Annotated[Time, "when its instance started"]
    registered: Annotated[Time, "when its Node joined"]
    initialized: Annotated[Time, "when it was in service"]
    drifted: Annotated[Time, "when it was first found drifted"]
    tainted: Annotated[Time, "since when it is to go"]
    ended: Annotated[Time, "when it was over"]
    launched_for: Annotated[Text, "why it was launched: for pods, static NodePool, adopted, or replaces: and a reason"]
    why: Annotated[Text, "why it went or is to go"]
    failed: Annotated[Text, "why its launch failed"]
    replaces: Annotated[Texts, "the NodeClaims that it was launched in place of"]
    replaced_by: Annotated[Texts, "the NodeClaims that were launched in its place"]
    pods_served: Annotated[Count, "pods that ran on it, DaemonSets left out"]
    pods_evicted: Annotated[Count, "pods that were made to leave it"]
    node_hours: Annotated[Hours, "for how long it has cost"]
    cost: Annotated[Usd, "price × node_hours"]
    position: Annotated[Number, "the entry that asked for it, or adopted it"]


class ClaimStateRow(Struct, frozen=True, kw_only=True):
    """States of NodeClaims: one row for each time that one entered a state."""

    claim: ClaimName
    node_pool: NodePoolName
    state: Annotated[Text, "requested, launched, registered, initialized, tainted, draining or terminated"]
    since: Annotated[Time, "when it entered the state"]
    until: Annotated[Time, "when it left it; NULL while it lasts"]
    seconds: Annotated[Seconds, "how long it was in it, up to the end of the record"]
    event: Annotated[Text, "type of the entry by which it entered"]
    position: EntryPosition


class DecisionRow(Struct, frozen=True, kw_only=True):
    """Decisions, also those to do nothing."""

    position: Annotated[Number, "the decision"]
    time: EntryTime
    decider: Annotated[Text, "provision, disrupt, moves, move, advance, drain or static"]
    version: Annotated[Count, "the decider's VERSION"]
    looked_at: Annotated[Number, "the last entry that the decider saw"]
    subject: Annotated[Text, "the NodeClaim, NodePool or move that it is about; NULL for the whole cluster"]
    step: Annotated[Text, "of a move: started, withdrawn, abandoned or observed"]
    reason: ReasonCode
    because: Because
    repeats: Annotated[Count, "position of the pass whose result this one came to again; NULL for a new result"]
    new_claims: Annotated[Count, "NodeClaims that it asks for"]
    pods_placed: Annotated[Count, "pods for which it has a place"]
    pods_without_place: Annotated[Count, "pods for which it has none"]
    moves_proposed: Annotated[Count, "moves that it proposes"]
    intents: Annotated[Count, "effects that it asks for"]
    touches: Annotated[Count, "effort of the optimizer"]


class VerdictRow(Struct, frozen=True, kw_only=True):
    """Verdicts: what a disruption method said of a node, recorded when it changed."""

    position: Annotated[Number, "the decision"]
    time: EntryTime
    claim: ClaimName
    node_pool: NodePoolName
    method: Annotated[Text, "empty, underutilized, drifted, expired, …"]
    action: Annotated[Text, "keep, remove, note, drifted or not-drifted"]
    reason: ReasonCode
    because: Because
    until: Annotated[Time, "when another one followed or the node began to go; NULL while it holds"]
    seconds: Annotated[Seconds, "how long it held, up to the end of the record"]


class EvictionRow(Struct, frozen=True, kw_only=True):
    """Evictions, as `kerf evictions` counts them: one row for each pod and answer."""

    time: EntryTime
    pod: Annotated[Text, "namespace/name"]
    workload: Workload
    outcome: Annotated[Text, "evicted, forced (deleted because a deadline was near) or refused"]
    claim: Annotated[Text, "the NodeClaim that it had to leave"]
    node_pool: NodePoolName
    instance_type: InstanceType
    zone: Zone
    capacity_type: CapacityType
    reason: Annotated[Text, "why the node had to go"]


class PodRow(Struct, frozen=True, kw_only=True):
    """Pods."""

    uid: Annotated[Text, "UID"]
    pod: Annotated[Text, "namespace/name"]
    namespace: Annotated[Text, "namespace"]
    workload: Workload
    node: Annotated[Text, "the Node that it ran on"]
    claim: Annotated[Text, "the NodeClaim of this Node; NULL for a Node that is not kerf's"]
    cpu: Annotated[Cores, "requested"]
    memory: Annotated[Bytes, "requested"]
    priority: Annotated[Count, "priority"]
    created: Annotated[Time, "when it was created"]
    waiting: Annotated[Time, "when kube-scheduler first had no node for it"]
    bound: Annotated[Time, "when it was bound to a Node"]
    started: Annotated[Time, "when it was running"]
    ended: Annotated[Time, "when it had ended or was gone"]
    phase: Annotated[Text, "its last phase"]
    seconds_waited: Annotated[Seconds, "from waiting to bound, or to its end, or to the end of the record"]


class PriceRow(Struct, frozen=True, kw_only=True):
    """Prices of the catalogues: one row for each time that one changed. What NodeOverlays change is not in them."""

    node_class: Annotated[Text, "group/kind/name of the NodeClass"]
    instance_type: InstanceType
    zone: Zone
    capacity_type: CapacityType
    tenancy: Annotated[Text, "default or dedicated"]
    reservation: Annotated[Text, "id of the capacity reservation"]
    price: Annotated[UsdPerHour, "list price"]
    available: Annotated[Flag, "whether the catalogue offers it"]
    since: Annotated[Time, "from when this price was known"]
    until: Annotated[Time, "when it changed; NULL while it holds"]


class NodeHourRow(Struct, frozen=True, kw_only=True):
    """What each node cost in each hour of the clock. Sums agree with `kerf cost`."""

    hour: Annotated[Time, "beginning of the hour"]
    claim: ClaimName
    node_pool: NodePoolName
    instance_type: InstanceType
    zone: Zone
    capacity_type: CapacityType
    launched_for: Annotated[Text, "why it was launched, as in claims"]
    node_hours: Annotated[Hours, "how long it ran in this hour, 1 at most"]
    cost: Annotated[Usd, "price × node_hours"]


class WorkloadCostRow(Struct, frozen=True, kw_only=True):
    """Which part of a node's cost each workload on it had. Sums agree with `kerf cost --by workload`."""

    claim: ClaimName
    node_pool: NodePoolName
    workload: Annotated[Text, "namespace/name, or (idle) for what no pod asked for"]
    node_hours: Annotated[Hours, "its share of the node's"]
    cost: Annotated[Usd, "its share of the node's"]


class LaunchFailureRow(Struct, frozen=True, kw_only=True):
    """Capacity that was refused, and launches that came to nothing, as `kerf capacity` counts them."""

    time: EntryTime
    claim: ClaimName
    node_pool: NodePoolName
    workload: Annotated[Text, "that of the first pod that the node was for"]
    offering: Annotated[Text, "capacity type/instance type/zone, as far as the answer says"]
    instance_type: InstanceType
    zone: Zone
    capacity_type: CapacityType
    reason: Annotated[Text, "the cloud's code"]
    refused: Annotated[Count, "1 for the refusal of an offering"]
    launches_lost: Annotated[Count, "1 for a launch that came to nothing"]


class MoveRow(Struct, frozen=True, kw_only=True):
    """Moves: NodeClaims that go together, and their replacements."""

    move: Annotated[Text, "position.index of its proposal"]
    why: Annotated[Text, "empty, underutilized or drifted"]
    claims: Annotated[Texts, "the NodeClaims that go"]
    replacements: Annotated[Texts, "the NodeClaims that come in their place, named when it starts"]
    new_nodes: Annotated[Count, "how many these are, also before it starts"]
    savings: Annotated[UsdPerHour, "what the fleet costs less by it"]
    proposed: Annotated[Time, "when it was proposed"]
    started: Annotated[Time, "when it started"]
    ended: Annotated[Time, "when it was withdrawn, abandoned, or over because its nodes drain"]
    outcome: Annotated[Text, "proposed, started, over, withdrawn, abandoned or observed"]
    reason: Annotated[Text, "code of why it started or ended so"]
    because: Because


TABLES: dict[str, type[Struct]] = {
    "records": RecordRow,
    "claims": ClaimRow,
    "claim_states": ClaimStateRow,
    "decisions": DecisionRow,
    "verdicts": VerdictRow,
    "evictions": EvictionRow,
    "pods": PodRow,
    "prices": PriceRow,
    "node_hours": NodeHourRow,
    "workload_costs": WorkloadCostRow,
    "launch_failures": LaunchFailureRow,
    "moves": MoveRow,
}
"""Each table's name, and its row. Before the columns of its row, each has the column `record`."""
