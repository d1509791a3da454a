"""The difference of two states of one record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from msgspec import Struct

from kerf.engine.model.kinds.watched import NODE, WATCHED
from kerf.engine.model.kubernetes.pods import Pod, is_terminal
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.state.state import State
from kerf.projections.differences.documents import document_of
from kerf.projections.differences.field_changes import FieldChange, field_changes
from kerf.projections.differences.structs import (
    CAME,
    CHANGED,
    GONE,
    NodeChange,
    ObjectChange,
    Places,
    PriceChange,
    StateDifference,
    WorkloadChange,
)
from kerf.projections.workload_names import WorkloadName, workload_of

SETTINGS = "settings"
"""The kind under which changed settings of the controller stand."""
_TOLD_ELSEWHERE = ("pod", "nodeclaim")
"""Kinds of which the difference tells in another way."""


def state_difference(before: State, after: State, reasons: Mapping[str, str]) -> StateDifference:
    """Return what is different in `after`. `reasons` say by claim why those went that are gone."""
    return StateDifference(
        first=before.facts.position,
        since=before.facts.at,
        last=after.facts.position,
        until=after.facts.at,
        prices=tuple(_prices(before, after)),
        objects=tuple(_objects(before, after)),
        nodes=tuple(_nodes(before, after, reasons)),
        workloads=tuple(_workloads(before, after)),
    )


# ── objects ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _objects(before: State, after: State) -> Iterator[ObjectChange]:
    settings = field_changes(document_of(before.facts.settings), document_of(after.facts.settings))
    if settings:
        yield ObjectChange(SETTINGS, "", CHANGED, settings)
    for kind in WATCHED:
        if kind.name not in _TOLD_ELSEWHERE:
            found = _of_kind(kind.name, getattr(before.facts, kind.facts), getattr(after.facts, kind.facts))
            yield from (change for change in found if not _is_of_claim(change, before, after))
    yield from _of_kind("nodeclass", before.facts.node_classes, after.facts.node_classes)


def _is_of_claim(changed: ObjectChange, before: State, after: State) -> bool:
    """Return whether a node came or is gone with its NodeClaim, of which the difference tells anyway."""
    claims = {**before.indexes.claim_by_node, **after.indexes.claim_by_node}
    return changed.kind == NODE.name and changed.change != CHANGED and changed.name in claims


def _of_kind(kind: str, before: Mapping[str, Struct], after: Mapping[str, Struct]) -> Iterator[ObjectChange]:
    for key in sorted(before.keys() | after.keys(), key=lambda key: (_name(after.get(key) or before[key], key), key)):
        was, now = before.get(key), after.get(key)
        if was is None or now is None:
            there = now if now is not None else was
            assert there is not None
            yield ObjectChange(kind, _name(there, key), CAME if was is None else GONE)
        elif was != now:
            fields = field_changes(document_of(was), document_of(now))
            if fields:
                yield ObjectChange(kind, _name(now, key), CHANGED, fields)


def _name(obj: Struct, key: str) -> str:
    """Return namespace/name, or the name alone; the key for what has no name."""
    name = getattr(obj, "name", key)
    namespace = getattr(obj, "namespace", "")
    return f"{namespace}/{name}" if namespace else name


# ── nodes and prices ───────────────────────────────────────────────────────────────────────────────────────────────


def _nodes(before: State, after: State, reasons: Mapping[str, str]) -> Iterator[NodeChange]:
    was, now = before.facts.claims, after.facts.claims
    for name in sorted(was.keys() | now.keys()):
        if name not in was:
            yield _node(now[name], CAME, now[name].why)
        elif name not in now:
            yield _node(was[name], GONE, reasons.get(name) or was[name].why)
        else:
            fields = field_changes(_claim_document(was[name]), _claim_document(now[name]))
            if fields:
                yield _node(now[name], CHANGED, now[name].why, fields)


def _node(claim: NodeClaim, change: str, why: str, fields: tuple[FieldChange, ...] = ()) -> NodeChange:
    return NodeChange(
        claim=claim.name, node=claim.node, change=change, node_pool=claim.node_pool, instance_type=claim.instance_type,
        capacity_type=claim.capacity_type, zone=claim.zone, price=claim.price if claim.launched else 0.0, why=why,
        fields=fields,
    )  # fmt: skip


def _claim_document(claim: NodeClaim) -> dict[str, object]:
    """Return what may change about a claim and matters to its users."""
    return {
        "state": claim.state,
        "why": claim.why or None,
        "node": claim.node or None,
        "instanceType": claim.instance_type or None,
        "price": claim.price if claim.launched else None,
        "drifted": claim.drift.code if claim.drifted_since and claim.drift is not None else None,
        "labels": claim.labels,
        "annotations": claim.annotations,
    }


def _prices(before: State, after: State) -> Iterator[PriceChange]:
    """Return the price of all nodes, then of each NodePool where it differs."""
    was, now = _by_pool(before), _by_pool(after)
    yield PriceChange("", round(sum(was.values()), 6), round(sum(now.values()), 6))
    for pool in sorted(was.keys() | now.keys()):
        if was.get(pool, 0.0) != now.get(pool, 0.0):
            yield PriceChange(pool, was.get(pool, 0.0), now.get(pool, 0.0))


def _by_pool(state: State) -> dict[str, float]:
    prices: dict[str, float] = {}
    for _, claim in sorted(state.facts.claims.items()):
        if claim.launched:
            prices[claim.node_pool] = round(prices.get(claim.node_pool, 0.0) + claim.price, 6)
    return prices


# ── pods ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _workloads(before: State, after: State) -> Iterator[WorkloadChange]:
    was, now = _pods(before), _pods(after)
    for workload in sorted(was.keys() | now.keys()):
        old, new = was.get(workload, {}), now.get(workload, {})
        counts, counts_now = Counter(pod.node for pod in old.values()), Counter(pod.node for pod in new.values())
        places = tuple(
            Places(node, counts[node], counts_now[node])
            for node in sorted(counts.keys() | counts_now.keys())
            if counts[node] != counts_now[node]
        )
        came, gone = sorted(new.keys() - old.keys()), sorted(old.keys() - new.keys())
        moved = sorted(uid for uid in old.keys() & new.keys() if old[uid].node != new[uid].node)
        if places or came or gone or moved:
            yield WorkloadChange(
                workload=workload.key, kind=workload.kind, was=len(old), now=len(new), places=places,
                came=tuple(new[uid].key for uid in came), gone=tuple(old[uid].key for uid in gone),
                moved=tuple(new[uid].key for uid in moved),
            )  # fmt: skip


def _pods(state: State) -> dict[WorkloadName, dict[str, Pod]]:
    """Return the pods that have not ended, by workload and uid."""
    found: dict[WorkloadName, dict[str, Pod]] = {}
    for uid, pod in state.facts.pods.items():
        if not is_terminal(pod):
            found.setdefault(workload_of(pod), {})[uid] = pod
    return found
