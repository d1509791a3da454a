"""Karpenter's metrics of the conditions and deletions of NodeClaims and NodePools (L-415 to L-420, L-424)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.state_table import GOING
from kerf.engine.record import claim_events as ev
from kerf.engine.record.entries import Entry
from kerf.engine.state.state import State
from kerf.projections.metrics.families import COUNTER, GAUGE, HISTOGRAM, Family
from kerf.projections.status.nodeclaim import TRUE, UNKNOWN, claim_conditions
from kerf.projections.status.nodepool import nodepool_status

TRANSITIONS: tuple[float, ...] = tuple(0.5 * 2.0**power for power in range(15))
"""Bounds of the buckets, in seconds (E in L-362)."""
_OBJECT = ("namespace", "name")
_CONDITION = (*_OBJECT, "type", "status", "reason")
_NODE_CLASSES = {"aws": "karpenter_k8s_aws_ec2nodeclass", "kwok": "karpenter_kwok_sh_kwoknodeclass"}


def own_labels(provider: str) -> tuple[str, str]:
    """Return the additional labels of metrics about NodeClaims: NodeClass and NodePool (A in L-424)."""
    return _NODE_CLASSES[provider], "karpenter_sh_nodepool"


def condition_families(state: State, now: int, provider: str) -> list[Family]:
    """Return the gauges of the state; `now` is in ms since the epoch."""
    return [*_of_pools(state, now), *_of_claims(state, now, own_labels(provider))]


def _of_pools(state: State, now: int) -> list[Family]:
    count, age = _gauges("nodepool", ())
    for name in state.facts.pools:
        for condition in nodepool_status(state, name).conditions:
            labels = ("", name, condition.type, condition.status, condition.reason or condition.type)
            count.set(1, *labels)
            if condition.since:
                age.set(max(0, now - condition.since) / 1000, *labels)
    return [count, age]


def _of_claims(state: State, now: int, own: tuple[str, ...]) -> list[Family]:
    count, age = _gauges("nodeclaim", own)
    going = Family(
        "operator_nodeclaim_termination_current_time_seconds", GAUGE, "How long NodeClaims have been on their way out.",
        (*_OBJECT, *own),
    )  # fmt: skip
    for claim in state.facts.claims.values():
        of_claim = _own(claim)
        for claim_condition in claim_conditions(claim, state, now):
            labels = ("", claim.name, claim_condition.type, claim_condition.status, claim_condition.reason, *of_claim)
            count.set(1, *labels)
            age.set(max(0, now - claim_condition.since) / 1000, *labels)
        if claim.state in GOING:
            going.set(max(0, now - claim.tainted) / 1000, "", claim.name, *of_claim)
    return [count, age, going]


def _gauges(kind: str, own: tuple[str, ...]) -> tuple[Family, Family]:
    name, labels = f"operator_{kind}_status_condition", (*_CONDITION, *own)
    return (
        Family(f"{name}_count", GAUGE, f"Conditions of {kind}s.", labels),
        Family(
            f"{name}_current_status_seconds", GAUGE, f"How long conditions of {kind}s have been as they are.", labels
        ),
    )


def _own(claim: NodeClaim) -> tuple[str, str]:
    return claim.node_class.name, claim.node_pool


class ConditionMetrics:
    """Counts changes of conditions. `apply` each entry, in order; `state` is what the process begins with."""

    def __init__(self, state: State, provider: str) -> None:
        own = own_labels(provider)
        name = "operator_nodeclaim_status_condition"
        self._moved = Family(
            f"{name}_transitions_total", COUNTER, "Conditions of NodeClaims that changed.",
            ("type", "status", "reason", *own),
        )  # fmt: skip
        self._took = Family(
            f"{name}_transition_seconds", HISTOGRAM, "How long a condition had been as it was.",
            ("type", "status", *own), TRANSITIONS,
        )  # fmt: skip
        self._ended = Family(
            "operator_nodeclaim_termination_duration_seconds", HISTOGRAM, "From the order to go to the end.",
            own, TRANSITIONS,
        )  # fmt: skip
        self._claims = {name: (_own(claim), claim.tainted) for name, claim in state.facts.claims.items()}

    def families(self) -> list[Family]:
        return [self._moved, self._took, self._ended]

    def apply(self, entry: Entry) -> None:
        handler = _HANDLERS.get(type(entry.payload))
        if handler is not None:
            handler(self, entry.payload, entry)

    def _known(self, claim: str) -> tuple[tuple[str, str], int]:
        return self._claims.get(claim, (("", ""), 0))

    def _begun(self, event: ev.Requested | ev.Adopted, entry: Entry) -> None:
        self._claims[event.claim] = (event.node_class.name, event.node_pool), 0

    def _reached(self, event: ev.Launched | ev.Registered | ev.Initialized | ev.Drained, entry: Entry) -> None:
        kind = type(event).__name__
        self._transition(kind, event.claim, event.took)
        if isinstance(event, ev.Initialized):
            self._transition("Ready", event.claim, event.took)

    def _transition(self, kind: str, claim: str, took: int) -> None:
        own, _ = self._known(claim)
        self._moved.inc(kind, TRUE, kind, *own)
        self._took.observe(took / 1000, kind, UNKNOWN, *own)

    def _tainted(self, event: ev.Tainted, entry: Entry) -> None:
        self._claims[event.claim] = self._known(event.claim)[0], entry.at

    def _untainted(self, event: ev.Untainted, entry: Entry) -> None:
        self._claims[event.claim] = self._known(event.claim)[0], 0

    def _over(self, event: Any, entry: Entry) -> None:
        own, since = self._known(event.claim)
        self._claims.pop(event.claim, None)
        if since:
            self._ended.observe((entry.at - since) / 1000, *own)


_HANDLERS: dict[type[Struct], Callable[[ConditionMetrics, Any, Entry], None]] = {
    ev.Requested: ConditionMetrics._begun,
    ev.Adopted: ConditionMetrics._begun,
    ev.Launched: ConditionMetrics._reached,
    ev.Registered: ConditionMetrics._reached,
    ev.Initialized: ConditionMetrics._reached,
    ev.Drained: ConditionMetrics._reached,
    ev.Tainted: ConditionMetrics._tainted,
    ev.Untainted: ConditionMetrics._untainted,
    ev.LaunchFailed: ConditionMetrics._over,
    ev.LaunchTimedOut: ConditionMetrics._over,
    ev.Cancelled: ConditionMetrics._over,
    ev.Terminated: ConditionMetrics._over,
    ev.InstanceVanished: ConditionMetrics._over,
}
