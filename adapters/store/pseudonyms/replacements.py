"""Replaces names, and names inside texts: one function per rule that a field's mark names (see `rules`)."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kerf.adapters.store.pseudonyms.device_names import device_list
from kerf.adapters.store.pseudonyms.names import Names, Rule
from kerf.adapters.store.pseudonyms.vocabulary import KNOWN, KNOWN_KEYS
from kerf.engine.lifecycle.adoption import ACTOR as UNKNOWN_ACTOR
from kerf.engine.lifecycle.adoption import NODE_DELETED
from kerf.engine.lifecycle.static_nodepools import ACTOR as STATIC_SCALE_DOWN
from kerf.engine.model import labels
from kerf.engine.model.karpenter import nodepools as pools
from kerf.engine.model.kubernetes import pods
from kerf.engine.record.entry_types import STREAM_OF

# ── values ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def keep(value: Any, names: Names) -> Any:
    return value


def blank(value: str, names: Names) -> str:
    """Empties free text of other programs, because account numbers, ARNs and names may stand in it."""
    return ""


def hashed(value: str, names: Names) -> str:
    """Keys a digest. What stands before it ("kerf3/", "blake2b-128:") says how it was made, and stays."""
    start = max(value.rfind("/"), value.rfind(":")) + 1
    digest = value[start:]
    return value[:start] + (digest if digest in ("", "none") else names.digest(digest))


def value(text: str, names: Names) -> str:
    """Replaces a value, unless it says no more than yes, no, how many or how long. Longer numbers may be accounts."""
    if not _HARMLESS.fullmatch(text):
        return names.name("value", text)
    names.public("value", text)
    return text


_HARMLESS = re.compile(r"true|false|-?\d{1,10}|(?:\d+(?:\.\d+)?(?:ns|us|ms|[hms]))+|\d{4}-\d\d-\d\dT[\d:.]+Z")


def name_of(kind: str) -> Rule:
    """Returns the rule for a name, or a tuple of names, of this kind."""

    def rule(value: Any, names: Names) -> Any:
        if isinstance(value, tuple):
            return tuple(names.name(kind, part) for part in value)
        return names.name(kind, value)

    return rule


def claim_references(value: Any, names: Names) -> Any:
    """Replaces a pod's own names of its ResourceClaims, each with "=" and the object's name or "@" and the
    template's.
    """
    return tuple(re.sub("[^=@]+", lambda part: names.name("resource-claim", part[0]), reference) for reference in value)


def request_names(value: Any, names: Names) -> Any:
    """Replaces names of device requests. In constraints some have a slash and the name of an alternative."""
    if isinstance(value, str):
        return names.name("device-request", value)
    return tuple("/".join(names.name("device-request", part) for part in request.split("/")) for request in value)


def provider_id(value: str, names: Names) -> str:
    """Replaces the instance in a provider id, and where it is unless a cloud says it that kerf knows."""
    start, slash, instance = value.rpartition("/")
    where = start if _OF_KNOWN_CLOUDS.match(value) else names.name("provider", start)
    return where + slash + names.name("instance", instance)


_OF_KNOWN_CLOUDS = re.compile(r"aws:///[a-z0-9-]+/i-|kwok://")


def node_class_key(value: str, names: Names) -> str:
    """Replaces group/kind/name."""
    start, slash, name = value.rpartition("/")
    group, between, kind = start.rpartition("/")
    before = known_or_name("nodeclass-group")(group, names) + between + known_or_name("nodeclass-kind")(kind, names)
    return f"{before}{slash}{names.name('nodeclass', name)}"


def key_of(kind: str) -> Rule:
    """Returns the rule for a key namespace/name, with or without something before it, or for a tuple of them."""

    def rule(value: Any, names: Names) -> Any:
        if isinstance(value, tuple):
            return tuple(rule(part, names) for part in value)
        start, slash, name = value.rpartition("/")
        before, end, namespace = start.rpartition("/")
        return before + end + names.name("namespace", namespace) + slash + names.name(kind, name)

    return rule


def namespaced(name_kind: str, value: str, names: Names) -> str:
    namespace, slash, name = value.rpartition("/")
    return names.name("namespace", namespace) + slash + names.name(name_kind, name)


def known_or_name(kind: str) -> Rule:
    """Returns the rule for a text that is a name of this kind, unless it is a word of Kubernetes' or EC2's own."""
    known = KNOWN[kind]

    def rule(value: Any, names: Names) -> Any:
        if isinstance(value, tuple):
            return tuple(rule(part, names) for part in value)
        if not known.fullmatch(value):
            return names.name(kind, value)
        names.public(kind, value)
        return value

    return rule


class Keyed:
    """The rule for the keys of a map, and for its values. Without a rule for values, structs among them are walked."""

    def __init__(self, key: Rule, value: Rule | None = None) -> None:
        self.key, self.value = key, value

    def __call__(self, value: dict[str, Any], names: Names) -> dict[str, Any]:
        """Replaces only the keys; the walker replaces the values."""
        return {self.key(old_key, names): part for old_key, part in value.items()}


def BLOB(value: str, names: Names) -> str:  # noqa: N802  (a mark, compared by identity: the walker follows the digest)
    return value


# ── keys and the values under them ─────────────────────────────────────────────────────────────────────────────────

_VALUE_KINDS = {
    labels.NODEPOOL: "nodepool",
    labels.HOSTNAME: "node",
    labels.EC2NODECLASS: "nodeclass",
    labels.KWOKNODECLASS: "nodeclass",
    labels.RESERVATION_ID: "reservation",
    "metadata.name": "node",
    "kubernetes.io/metadata.name": "namespace",
    "statefulset.kubernetes.io/pod-name": "pod",
}
_PUBLIC_VALUES = labels.WELL_KNOWN | {
    labels.NODEPOOL_HASH_VERSION, f"{labels.EC2NODECLASS}-hash-version",
}  # fmt: skip
"""Keys whose values are the same in every cluster."""
_HASHES = (labels.NODEPOOL_HASH, f"{labels.EC2NODECLASS}-hash")
COMPARED = "compared"
"""What stands for the keys whose values are compared as numbers."""
_COMPARISONS = ("Gt", "Lt", "Gte", "Lte")


def key(value: Any, names: Names) -> Any:
    """Replaces a label, taint or annotation key, or a tuple of them.

    Keys that are the same in every cluster stay, and so do those that deciders read as another key (S-5).
    """
    if isinstance(value, tuple):
        return tuple(key(part, names) for part in value)
    if value not in KNOWN_KEYS:
        return names.name("key", value)
    names.public("key", value)
    return value


def value_under(under: str, text: str, names: Names) -> str:
    value_kind = _VALUE_KINDS.get(under)
    if value_kind is not None:
        return names.name(value_kind, text)
    if under == labels.DRA_DRIVERS:
        return device_list(text, names)
    if under in _HASHES:
        return hashed(text, names)
    is_number = text.isdecimal() and names.is_public(COMPARED, under)
    return text if is_number or labels.normalise(under) in _PUBLIC_VALUES else value(text, names)


def key_map(value: dict[str, Any], names: Names) -> dict[str, Any]:
    """Replaces labels, annotations, or the requirements of an instance type (key → values)."""
    return {
        key(k, names): tuple(value_under(k, part, names) for part in v)
        if isinstance(v, tuple)
        else value_under(k, v, names)
        for k, v in value.items()
    }


def keyed_values(term: pods.Expression | pools.RequirementSpec, names: Names) -> Struct:
    if term.operator in _COMPARISONS:
        names.public(COMPARED, term.key)
    values = tuple(value_under(term.key, value, names) for value in term.values)
    return replace(term, key=key(term.key, names), values=values)


def keyed_value(taint: pods.Taint | pods.Toleration, names: Names) -> Struct:
    return replace(taint, key=key(taint.key, names), value=value_under(taint.key, taint.value, names))


# ── of the state ───────────────────────────────────────────────────────────────────────────────────────────────────


_KERF_SAYS = ("", UNKNOWN_ACTOR, NODE_DELETED, STATIC_SCALE_DOWN)


def actor_or_unknown(actor: str, names: Names) -> str:
    """Replaces a user's name, and no word of kerf's own that stands in its place."""
    return actor if actor in _KERF_SAYS else names.name("actor", actor)


def stream_name(stream: str, names: Names) -> str:
    """Replaces the claim in a stream. A stream of a newer kerf is replaced as a whole."""
    start, slash, name = stream.partition("/")
    if start == "nodeclaim":
        return start + slash + names.name("claim", name)
    return stream if stream in _STREAMS or start == "decision" else f"stream/{names.digest(stream)}"


_STREAMS = frozenset(STREAM_OF.values())
