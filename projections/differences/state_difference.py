"""The difference of two states of one record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from msgspec import Struct

from kerf.engine.model.kinds.watched import NODE, NODEPOOL, WATCHED
from kerf.engine.model.kubernetes.pods import DAEMONSET, Pod, is_terminal, owned_by
from kerf.engine.model.missing_knowledge import Missing
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.record.errors import BlobMissing
from kerf.engine.state.indexes import Blobs
from kerf.engine.state.state import State
from kerf.projections.differences.documents import camel_case, document_of, pod_document
from kerf.projections.differences.field_changes import FieldChange, field_changes
from kerf.projections.differences.offers import changed_offers
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
_WRITTEN = ("spec.", "template.")
"""What a field begins with that somebody writes, of kinds whose documents have such parts."""


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
        offers=tuple(changed_offers(before, after)),
    )


# ── objects ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _objects(before: State, after: State) -> Iterator[ObjectChange]:
    settings = field_changes(document_of(before.facts.settings), document_of(after.facts.settings))
    if settings:
        yield ObjectChange(SETTINGS, "", CHANGED, settings, asked=True)
    for kind in WATCHED:
        if kind.name not in _TOLD_ELSEWHERE:
            asked = kind is not NODE and bool(kind.spec or kind.announced or kind is NODEPOOL)
            written = (*_WRITTEN, *map(camel_case, kind.spec)) if asked else ()
            found = _of_kind(kind.name, before, after, kind.facts, written)
            yield from (change for change in found if not _is_of_claim(change, before, after))
    yield from _of_kind("nodeclass", before, after, "node_classes", _WRITTEN)


def _told(kind: str, name: str, change: str, written: tuple[str, ...], fields: tuple[FieldChange, ...]) -> ObjectChange:
    """Return the change of an object. `written` are what fields that somebody writes begin with; none of a kind that
    asks for nothing."""
    ordered = sorted(fields, key=lambda field: not field.field.startswith(written))
    asked = bool(written) and (change != CHANGED or ordered[0].field.startswith(written))
    return ObjectChange(kind, name, change, tuple(ordered), asked)


def _is_of_claim(changed: ObjectChange, before: State, after: State) -> bool:
    """Return whether a node came or is gone with its NodeClaim, of which the difference tells anyway."""
    claims = {**before.indexes.claim_by_node, **after.indexes.claim_by_node}
    return changed.kind == NODE.name and changed.change != CHANGED and changed.name in claims


def _of_kind(kind: str, before: State, after: State, facts: str, written: tuple[str, ...]) -> Iterator[ObjectChange]:
    """Give the changed objects of a kind, which the facts keep in this field."""
    old: Mapping[str, Struct] = getattr(before.facts, facts)
    new: Mapping[str, Struct] = getattr(after.facts, facts)
    blobs = after.indexes.blobs
    for key in sorted(old.keys() | new.keys(), key=lambda key: (_name(new.get(key) or old[key], key), key)):
        was, now = old.get(key), new.get(key)
        if was is None or now is None:
            there = now if now is not None else was
            assert there is not None
            yield _told(kind, _name(there, key), CAME if was is None else GONE, written, ())
        elif was != now:
            fields = field_changes(*(document_of(one, blobs.shape, blobs.node_class) for one in (was, now)))
            if fields:
                yield _told(kind, _name(now, key), CHANGED, written, fields)


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
        "price": (claim.price or None) if claim.launched else None,
        "drifted": claim.drift.code if claim.drifted_since and claim.drift is not None else None,
        "labels": claim.labels,
        "annotations": claim.annotations,
    }


def _prices(before: State, after: State) -> Iterator[PriceChange]:
    """Return the price of all nodes, then of each NodePool where it differs; nothing where prices are not known."""
    if after.facts.imported is not None and Missing.PRICES in after.facts.imported.lacks:
        return
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
        fields = _asked_otherwise(old, new, after.indexes.blobs) if old and new else ()
        if places or came or gone or moved or fields:
            yield WorkloadChange(
                workload=workload.key, kind=workload.kind, was=len(old), now=len(new), places=places,
                came=tuple(new[uid].key for uid in came), gone=tuple(old[uid].key for uid in gone),
                moved=tuple(new[uid].key for uid in moved), fields=fields,
            )  # fmt: skip


def _asked_otherwise(old: Mapping[str, Pod], new: Mapping[str, Pod], blobs: Blobs) -> tuple[FieldChange, ...]:
    """Return what the latest pod of a workload asks for, and the latest one before did not."""
    was, now = (max(pods.values(), key=lambda pod: (pod.created, pod.uid)) for pods in (old, new))
    if owned_by(now, DAEMONSET):  # each of these asks for its node; what they have in common is told of the DaemonSet
        return ()
    try:
        return field_changes(*(pod_document(pod, blobs.shape(pod.shape)) for pod in (was, now)))
    except BlobMissing:  # of a part of a record
        return ()


def _pods(state: State) -> dict[WorkloadName, dict[str, Pod]]:
    """Return the pods that have not ended, by workload and uid."""
    found: dict[WorkloadName, dict[str, Pod]] = {}
    for uid, pod in state.facts.pods.items():
        if not is_terminal(pod):
            found.setdefault(workload_of(pod), {})[uid] = pod
    return found
