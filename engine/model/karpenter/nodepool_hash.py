"""The hash of a NodePool's template, equal bit for bit to the reference's (D-129, L-103).

So no node looks drifted in a cluster that kerf takes over or observes. The hash is FNV-1 over 64 bits, with the
structure of the Go types: fields that are absent or zero are left out, lists count as sets, maps by their entries. It
is computed when a NodePool is read, and recorded. Deciders compare it as text, so it still works in a record whose
names were replaced.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from msgspec.structs import replace

from kerf.engine.model.karpenter.nodepools import NodeClassRef, NodePool
from kerf.engine.model.kubernetes.pods import Taint
from kerf.engine.model.labels import NODEPOOL_HASH, NODEPOOL_HASH_VERSION

VERSION = "v3"
"""The value of the annotation `karpenter.sh/nodepool-hash-version` beside a hash made in this way (D-128)."""

_OFFSET, _PRIME, _MASK = 14695981039346656037, 1099511628211, (1 << 64) - 1
_NANOSECONDS = 1_000_000  # in a millisecond


def hashed(pool: NodePool, *, empty: Collection[str] = ()) -> NodePool:
    """Returns the NodePool with its hash."""
    return replace(pool, hash=template_hash(pool, empty=empty))


def hash_annotations(pool: NodePool) -> dict[str, str]:
    """Returns the annotations with the hash, for NodeClaims and for the NodePool itself (L-141, D-128)."""
    return {NODEPOOL_HASH: pool.hash, NODEPOOL_HASH_VERSION: VERSION} if pool.hash else {}


def template_hash(pool: NodePool, *, empty: Collection[str] = ()) -> str:
    """Returns the hash of `spec.template` as decimal text (D-129).

    `empty` says which of `labels` and `annotations` are written as empty maps, because those differ from absent ones.
    """
    metadata = {
        "Labels": _map(pool.labels) if pool.labels or "labels" in empty else None,
        "Annotations": _map(pool.annotations) if pool.annotations or "annotations" in empty else None,
    }
    spec = {
        "Taints": _taints(pool.taints),
        "StartupTaints": _taints(pool.startup_taints),
        "NodeClassRef": _node_class(pool.node_class),
        "TerminationGracePeriod": _grace_period(pool.termination_grace_period),
        "ExpireAfter": _expire_after(pool.expire_after),
    }
    has_metadata = any(part is not None for part in metadata.values())
    template = {
        "ObjectMeta": _struct("ObjectMeta", metadata) if has_metadata else None,
        "Spec": _struct("NodeClaimTemplateSpec", spec),
    }
    return str(_struct("NodeClaimTemplate", template))


def fnv(data: bytes) -> int:
    """FNV-1 over 64 bits: also how the hashstructure library hashes a text (A-118)."""
    value = _OFFSET
    for byte in data:
        value = (value * _PRIME & _MASK) ^ byte
    return value


def _text(text: str) -> int:
    return fnv(text.encode())


def _little_endian(number: int) -> bytes:
    return (number & _MASK).to_bytes(8, "little")


def _ordered(first: int, second: int) -> int:
    return fnv(_little_endian(first) + _little_endian(second))


def _finish(value: int) -> int:
    return fnv(_little_endian(value))


def _struct(name: str, fields: Mapping[str, int | None]) -> int:
    """Hashes the fields in declared order. None stands for a field that is absent or zero."""
    value = _text(name)
    for field, part in fields.items():
        if part is not None:
            value = _finish(value ^ _ordered(_text(field), part))
    return value


def _map(entries: Mapping[str, str]) -> int:
    value = 0
    for key, text in entries.items():
        value ^= _ordered(_text(key), _text(text))
    return _finish(value)


def _taints(taints: Iterable[Taint]) -> int | None:
    """Hashes a list as the exclusive or of its elements, so that order does not count. An empty list is absent."""
    value = None
    for taint in taints:
        parts = {"Key": taint.key, "Value": taint.value, "Effect": taint.effect}
        value = (value or 0) ^ _struct("Taint", {field: _text(text) if text else None for field, text in parts.items()})
    return value


def _node_class(ref: NodeClassRef) -> int | None:
    parts = {"Kind": ref.kind, "Name": ref.name, "Group": ref.group}
    if not any(parts.values()):
        return None
    return _struct("NodeClassReference", {field: _text(text) if text else None for field, text in parts.items()})


def _grace_period(milliseconds: int | None) -> int | None:
    """Hashes a grace period. `0s` is a duration without fields, not an absent one."""
    if milliseconds is None:
        return None
    return _struct("Duration", {"Duration": _nanoseconds(milliseconds) if milliseconds else None})


def _expire_after(milliseconds: int | None) -> int | None:
    """Hashes an expiry. `Never` is absent."""
    return None if milliseconds is None else _struct("NillableDuration", {"Duration": _nanoseconds(milliseconds)})


def _nanoseconds(milliseconds: int) -> int:
    return fnv(_little_endian(milliseconds * _NANOSECONDS))
