"""Karpenter's metrics of conditions and deletions of NodePools, NodeClasses, CapacityBuffers, NodeClaims and Nodes
(L-415 to L-420, L-424).

There are few NodePools, NodeClasses and CapacityBuffers, so each has samples of its own. NodeClaims and Nodes have them
on request; else they are counted together, with the name left empty and the longest time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.disruption_reasons import BUDGET_REASONS, karpenter_spelling
from kerf.engine.model.karpenter.capacity_buffers import CapacityBuffer
from kerf.engine.model.karpenter.nodeclaim_objects import Condition
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pod_templates import PodTemplate
from kerf.engine.model.kubernetes.workloads import Workload
from kerf.engine.record import claim_events as ev
from kerf.engine.record.decisions import Decision, DisruptResult
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import NodeClassSeen, ObjectGone, SettingsSeen
from kerf.engine.state.nodeclaims.drift import AS_ASKED, DRIFTED
from kerf.engine.state.state import State
from kerf.projections.metrics.counted_claims import leaves_since
from kerf.projections.metrics.families import CLIENT_DEFAULTS, COUNTER, GAUGE, HISTOGRAM, Family
from kerf.projections.metrics.objects_with_conditions import (
    BUFFER,
    NODE_CLASS_KINDS,
    Shown,
    Since,
    buffers,
    claim_labels,
    class_shown,
    node_claims,
    node_conditions,
    node_labels,
    node_pools,
    nodes,
    own_labels,
    pool_conditions,
)
from kerf.projections.status.nodeclaim import TRUE, UNKNOWN, Reached, drift_condition, reached
from kerf.projections.status.overlays_and_buffers import BufferStatuses

TRANSITIONS: tuple[float, ...] = tuple(0.5 * 2.0**power for power in range(15))
"""Bounds of the buckets, in seconds (E in L-362)."""
_OBJECT = ("namespace", "name")
_CONDITION = (*_OBJECT, "type", "status", "reason")
_OF_BUFFERS = (CapacityBuffer, PodTemplate, Workload, Decision, ObjectGone, SettingsSeen)
"""What may change the conditions of CapacityBuffers."""


def _gauges(kind: str, own: tuple[str, ...], objects: Iterable[Shown], now: int) -> list[Family]:
    name, labels = f"operator_{kind}_status_condition", (*_CONDITION, *own)
    count = Family(f"{name}_count", GAUGE, f"Conditions of {kind}s.", labels)
    age_name, age_help = f"{name}_current_status_seconds", f"How long conditions of {kind}s have been as they are."
    age = Family(age_name, GAUGE, age_help, labels)
    going = Family(
        f"operator_{kind}_termination_current_time_seconds", GAUGE, f"How long {kind}s have been on their way out.",
        (*_OBJECT, *own),
    )  # fmt: skip
    for shown in objects:
        for condition in shown.conditions:
            values = (shown.namespace, shown.name, condition.type, condition.status, condition.reason, *shown.own)
            count.inc(*values)
            if condition.since:
                age.set(max(_seconds(condition.since, now), age.samples.get(values, 0.0)), *values)
        if shown.deleting:
            ending = (shown.namespace, shown.name, *shown.own)
            going.set(max(_seconds(shown.deleting, now), going.samples.get(ending, 0.0)), *ending)
    return [count, age, going]


def _seconds(since: int, now: int) -> float:
    return max(0, now - since) / 1000


def _timed(shown: Shown, kind: str, since: Since) -> Shown:
    """Return an object whose conditions have the times of `since` where they have none of their own."""
    known = (
        replace(condition, since=condition.since or since.get((kind, shown.name, condition.type), 0))
        for condition in shown.conditions
    )
    return replace(shown, conditions=tuple(known))


def _together(objects: Iterable[Shown]) -> list[Shown]:
    return [Shown("", shown.conditions, shown.own, shown.deleting) for shown in objects]


class _Kind:
    """The metrics of one kind of object."""

    def __init__(self, kind: str, own: tuple[str, ...]) -> None:
        bounds = CLIENT_DEFAULTS if kind == NODE_CLASS_KINDS["aws"] else TRANSITIONS
        name = f"operator_{kind}_status_condition"
        self.moved = Family(
            f"{name}_transitions_total", COUNTER, f"Conditions of {kind}s that changed.",
            ("type", "status", "reason", *own),
        )  # fmt: skip
        self.took = Family(
            f"{name}_transition_seconds", HISTOGRAM, "How long a condition had been as it was.",
            ("type", "status", *own), bounds,
        )  # fmt: skip
        self.ended = Family(
            f"operator_{kind}_termination_duration_seconds", HISTOGRAM, "From the order to go to the end.",
            own, bounds,
        )  # fmt: skip

    def families(self) -> list[Family]:
        return [self.moved, self.took, self.ended]


class ConditionMetrics:
    """Counts changes of conditions, and tells those of the state. `apply` each entry, in order; `state` is the one that
    the process goes on with: conditions of NodePools follow from it."""

    def __init__(self, state: State, provider: str) -> None:
        self._state, self._provider = state, provider
        self._class_kind = NODE_CLASS_KINDS[provider]
        own = own_labels(provider)
        of_nodes = (*own, "karpenter_sh_initialized")
        labels = {"nodepool": (), self._class_kind: (), BUFFER: (), "nodeclaim": own, "node": of_nodes}
        self._buffers, self._buffers_at = BufferStatuses(), state.facts.at  # when what they show may have changed
        self._kinds = {kind: _Kind(kind, names) for kind, names in labels.items()}
        self._claims = {name: (claim_labels(claim), leaves_since(claim)) for name, claim in state.facts.claims.items()}
        self._drifted = {name for name, claim in state.facts.claims.items() if claim.drifted_since}
        self._nodes: dict[str, Node] = dict(state.facts.nodes)
        self._known: dict[tuple[str, str], dict[str, Condition]] = {}  # kind and object → type → as it was seen last
        self._classes: dict[str, Shown] = {}
        self._pools_deleting = {name: pool.deleting for name, pool in state.facts.pools.items() if pool.deleting}
        for name in state.facts.pools:
            self._note("nodepool", name, pool_conditions(state, name, {}), state.facts.at)
        for seen in state.facts.node_classes.values():
            self._class(seen, state.facts.at)

    def recall(self, plan: Entry) -> None:
        """Take up the latest plan, which an earlier process made: it says which buffers have their room."""
        self._buffers.apply(plan)

    def shown(self, pool: str, conditions: Iterable[Condition]) -> None:
        """Take up since when a NodePool's conditions are as they are, as its object says: the record does not."""
        seen = self._known.get(("nodepool", pool), {})
        for condition in conditions:
            known = seen.get(condition.type)
            if known is not None and known.status == condition.status and condition.since:
                seen[condition.type] = replace(known, since=condition.since)

    def families(self) -> list[Family]:
        self._look_at_buffers()
        return [family for kind in self._kinds.values() for family in kind.families()]

    def gauges(self, now: int, *, per_object: bool = True) -> list[Family]:
        """Return the gauges of the state; `now` is in ms since the epoch. `per_object`: NodeClaims and Nodes have
        samples of their own."""
        self._look_at_buffers()
        state, own, since = self._state, own_labels(self._provider), self._since()
        claims, of_nodes = node_claims(state, now), nodes(state, self._provider)
        if not per_object:
            claims, of_nodes = _together(claims), _together(of_nodes)
        classes = [_timed(shown, self._class_kind, since) for shown in self._classes.values()]
        return [
            *_gauges("nodepool", (), node_pools(state, since), now),
            *_gauges(self._class_kind, (), classes, now),
            *_gauges(BUFFER, (), buffers(self._buffers, state, since), now),
            *_gauges("nodeclaim", own, claims, now),
            *_gauges("node", (*own, "karpenter_sh_initialized"), of_nodes, now),
        ]

    def _since(self) -> Since:
        """Return since when conditions of NodePools and NodeClasses are as they are, by kind, object and type."""
        return {(*key, kind): condition.since for key, seen in self._known.items() for kind, condition in seen.items()}

    def apply(self, entry: Entry) -> None:
        self._buffers.apply(entry)
        if isinstance(entry.payload, _OF_BUFFERS):
            self._buffers_at = entry.at
        handler = _HANDLERS.get(type(entry.payload))
        if handler is not None:
            handler(self, entry.payload, entry)

    # ── NodePools, NodeClasses, Nodes ───────────────────────────────────────────────────────────────────────

    def _note(self, kind: str, name: str, conditions: Iterable[Condition], at: int) -> None:
        """Count the conditions of an object that are others than before, and keep their times. One that the object has
        no more is forgotten: if it comes back, it is new."""
        before, seen = self._known.get((kind, name), {}), dict[str, Condition]()
        for condition in conditions:
            known = before.get(condition.type)
            if known is not None and known.status == condition.status:
                seen[condition.type] = known
                continue
            seen[condition.type] = Condition(
                condition.type, condition.status, condition.reason, since=condition.since or at
            )
            if known is not None:
                self._changed(kind, known, condition, at, ())
        self._known[kind, name] = seen

    def _changed(self, kind: str, old: Condition, new: Condition, at: int, own: tuple[str, ...]) -> None:
        metrics = self._kinds[kind]
        metrics.moved.inc(new.type, new.status, new.reason, *own)
        if old.since:
            metrics.took.observe(max(0, at - old.since) / 1000, old.type, old.status, *own)

    def _look_at_buffers(self) -> None:
        """Note the conditions of CapacityBuffers when somebody asks: each change of a workload may change them."""
        if self._buffers_at:
            for shown in buffers(self._buffers, self._state, {}):
                self._note(BUFFER, f"{shown.namespace}/{shown.name}", shown.conditions, self._buffers_at)
        self._buffers_at = 0

    def _pool(self, pool: NodePool, entry: Entry) -> None:
        if pool.deleting:
            self._pools_deleting[pool.name] = pool.deleting
        self._pools(pool, entry)

    def _pools(self, payload: Struct, entry: Entry) -> None:
        for name in self._state.facts.pools:
            self._note("nodepool", name, pool_conditions(self._state, name, {}), entry.at)

    def _class_seen(self, seen: NodeClassSeen, entry: Entry) -> None:
        self._class(seen, entry.at)
        self._pools(seen, entry)

    def _class(self, seen: NodeClassSeen, at: int) -> None:
        if seen.kind.lower() == self._class_kind:
            shown = self._classes[seen.name] = class_shown(seen, self._state.indexes.blobs)
            self._note(self._class_kind, seen.name, shown.conditions, at)

    def _node(self, node: Node, entry: Entry) -> None:
        before = self._nodes.get(node.name)
        self._nodes[node.name] = node
        old = (
            {node_condition.type: node_condition for node_condition in node_conditions(before)}
            if before is not None
            else {}
        )
        for condition in node_conditions(node):
            known = old.get(condition.type)
            if known is not None and known.status != condition.status:
                self._changed("node", known, condition, entry.at, node_labels(node, self._provider))

    def _gone(self, gone: ObjectGone, entry: Entry) -> None:
        kind, name = self._class_kind if gone.kind == "nodeclass" else gone.kind, gone.key.rpartition("/")[2]
        deleting = 0
        own: tuple[str, ...] = ()
        if kind == "node" and (node := self._nodes.pop(name, None)) is not None:
            deleting, own = node.deleting, node_labels(node, self._provider)
        elif kind == "nodepool":
            deleting = self._pools_deleting.pop(name, 0)
        elif kind == self._class_kind and (shown := self._classes.pop(name, None)) is not None:
            deleting = shown.deleting
        if deleting:
            self._kinds[kind].ended.observe(_seconds(deleting, entry.at), *own)
        name = gone.key if kind == BUFFER else name
        self._known.pop((kind, name), None)
        if kind == self._class_kind:
            self._pools(gone, entry)

    # ── NodeClaims ──────────────────────────────────────────────────────────────────────────────────────────

    def _claim(self, claim: str) -> tuple[tuple[str, str], int]:
        return self._claims.get(claim, (("", ""), 0))

    def _begun(self, event: ev.Requested | ev.Adopted, entry: Entry) -> None:
        self._claims[event.claim] = (event.node_class.name, event.node_pool), 0

    def _reached(self, event: Reached, entry: Entry) -> None:
        self._became(*reached(event), event.claim, event.took)
        if isinstance(event, ev.Initialized):
            self._became("Ready", TRUE, "Ready", event.claim, event.took)
        elif isinstance(event, ev.Drained) and not event.volumes:  # there is nothing to wait for (D-156)
            self._appeared("VolumesDetached", "VolumesDetached", event.claim)
        self._pools(event, entry)

    def _became(self, kind: str, status: str, reason: str, claim: str, took: int) -> None:
        own, _ = self._claim(claim)
        self._kinds["nodeclaim"].moved.inc(kind, status, reason, *own)
        self._kinds["nodeclaim"].took.observe(took / 1000, kind, UNKNOWN, *own)

    def _appeared(self, kind: str, reason: str, claim: str) -> None:
        """Count a condition that an object gets only when it is true: there is no time in which it was not."""
        self._kinds["nodeclaim"].moved.inc(kind, TRUE, reason, *self._claim(claim)[0])

    def _decision(self, decision: Decision, entry: Entry) -> None:
        result = decision.result
        for verdict in result.verdicts if isinstance(result, DisruptResult) else ():
            if verdict.action == DRIFTED and verdict.claim not in self._drifted:  # other fields by now are no change
                self._drifted.add(verdict.claim)
                self._appeared("Drifted", drift_condition(verdict.reason), verdict.claim)
            elif verdict.action == AS_ASKED:
                self._drifted.discard(verdict.claim)

    def _tainted(self, event: ev.Tainted, entry: Entry) -> None:
        self._appeared("DisruptionReason", karpenter_spelling(event.why), event.claim)
        if event.why not in BUDGET_REASONS:  # a candidate of a move leaves when its drain starts (D-116)
            self._leaves(event, entry)
        self._pools(event, entry)

    def _leaves(self, event: ev.Tainted | ev.ReasonRaised | ev.DrainStarted, entry: Entry) -> None:
        own, since = self._claim(event.claim)
        self._claims[event.claim] = own, since or entry.at

    def _untainted(self, event: ev.Untainted, entry: Entry) -> None:
        self._claims[event.claim] = self._claim(event.claim)[0], 0

    def _over(self, event: Any, entry: Entry) -> None:
        own, since = self._claim(event.claim)
        self._claims.pop(event.claim, None)
        self._drifted.discard(event.claim)
        if since:
            self._kinds["nodeclaim"].ended.observe((entry.at - since) / 1000, *own)
        self._pools(event, entry)  # a launch that came too late says something of its NodePool (L-82)


_HANDLERS: dict[type[Struct], Callable[[ConditionMetrics, Any, Entry], None]] = {
    NodePool: ConditionMetrics._pool,
    NodeClassSeen: ConditionMetrics._class_seen,
    Node: ConditionMetrics._node,
    ObjectGone: ConditionMetrics._gone,
    Decision: ConditionMetrics._decision,
    ev.Requested: ConditionMetrics._begun,
    ev.Adopted: ConditionMetrics._begun,
    ev.Launched: ConditionMetrics._reached,
    ev.Registered: ConditionMetrics._reached,
    ev.Initialized: ConditionMetrics._reached,
    ev.Drained: ConditionMetrics._reached,
    ev.VolumesDetached: ConditionMetrics._reached,
    ev.Tainted: ConditionMetrics._tainted,
    ev.ReasonRaised: ConditionMetrics._leaves,
    ev.DrainStarted: ConditionMetrics._leaves,
    ev.Untainted: ConditionMetrics._untainted,
    ev.LaunchFailed: ConditionMetrics._over,
    ev.LaunchTimedOut: ConditionMetrics._over,
    ev.Cancelled: ConditionMetrics._over,
    ev.Terminated: ConditionMetrics._over,
    ev.InstanceVanished: ConditionMetrics._over,
}
