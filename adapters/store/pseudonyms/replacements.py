"""Replaces names, and names inside texts: one function per rule that a field's mark names (see `rules`)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model import labels
from kerf.engine.model.karpenter import nodeclaim_templates as templates
from kerf.engine.model.karpenter import nodepools as pools
from kerf.engine.model.karpenter.nodeclass_terms import USER_DATA
from kerf.engine.model.kubernetes import pods


class Names(Protocol):
    def name(self, kind: str, text: str) -> str: ...
    def digest(self, digest: str) -> str: ...
    def words(self, text: str) -> str: ...
    def public_key(self, text: str) -> None: ...


Rule = Callable[[Any, Names], Any]
StructRule = Callable[[Any, Names], Struct]

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
    """Replaces a value, unless it says no more than yes, no, how many or how long."""
    return text if _HARMLESS.fullmatch(text) else names.name("value", text)


_HARMLESS = re.compile(r"true|false|-?\d+|(?:\d+(?:\.\d+)?(?:ns|us|ms|[hms]))+|\d{4}-\d\d-\d\dT[\d:.]+Z")


def words(value: Any, names: Names) -> Any:
    """Replaces names in kerf's own text, in strings, lists and maps."""
    if isinstance(value, str):
        return _sentence(value, names)
    if isinstance(value, list | tuple):
        return type(value)(words(part, names) for part in value)
    if isinstance(value, dict):
        return {key: words(part, names) for key, part in value.items()}
    return value


def params(value: dict[str, Any], names: Names) -> dict[str, Any]:
    """Replaces the parameters of a reason: some are names of one kind, the others are text."""
    return {name: _param(name, part, names) for name, part in value.items()}


def _param(name: str, value: Any, names: Names) -> Any:
    if name in _PARAM_KINDS:
        return names.name(_PARAM_KINDS[name], value)
    if name == "budgets" and isinstance(value, list | tuple):  # namespace/name of PodDisruptionBudgets
        return type(value)(namespaced("pdb", part, names) for part in value)
    if name == "resources":  # as in requests, also where an app is called gpu
        return value
    if name == "key" and isinstance(value, str) and _is_public(value):  # also where an app is called zone
        return value
    if name == "keys" and isinstance(value, list | tuple):
        return type(value)(_param("key", part, names) for part in value)
    if name == "pod" and isinstance(value, str) and "/" in value:
        return namespaced("pod", value, names)
    return words(value, names)


_PARAM_KINDS = {
    "nodeclass": "nodeclass", "node_pool": "nodepool", "nodepool": "nodepool", "node": "node", "instance": "instance",
}  # fmt: skip


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


def bound_devices(value: Any, names: Names) -> Any:
    """Replaces driver, pool and name of each device."""
    return tuple((driver, names.name("device-pool", pool), device) for driver, pool, device in value)


def last_part(name: str) -> Rule:
    """Returns the rule for a path whose part after the last slash is a name of this kind."""

    def rule(value: str, names: Names) -> str:
        start, slash, end = value.rpartition("/")
        return start + slash + names.name(name, end)

    return rule


def key_of(kind: str) -> Rule:
    """Returns the rule for a key namespace/name, with or without something before it."""

    def rule(value: str, names: Names) -> str:
        start, slash, name = value.rpartition("/")
        before, end, namespace = start.rpartition("/")
        return before + end + names.name("namespace", namespace) + slash + names.name(kind, name)

    return rule


def namespaced(name_kind: str, value: str, names: Names) -> str:
    namespace, slash, name = value.rpartition("/")
    return names.name("namespace", namespace) + slash + names.name(name_kind, name)


def priority_class(value: str, names: Names) -> str:
    """Keeps Kubernetes' own two priority classes, because they decide when a pod leaves (D-144)."""
    return value if value.startswith("system-") else names.name("priority-class", value)


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

_PUBLIC_DOMAINS = ("kubernetes.io", "k8s.io", "karpenter.sh", "karpenter.k8s.aws", "k8s.aws", "karpenter.kwok.sh")
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
    labels.DRA_DRIVERS, labels.NODEPOOL_HASH_VERSION, f"{labels.EC2NODECLASS}-hash-version",
}  # fmt: skip
"""Keys whose values are the same in every cluster, or are names of drivers."""


def key(value: Any, names: Names) -> Any:
    """Replaces a label, taint or annotation key, or a tuple of them.

    Public domains stay, and so do keys that deciders read as another key (S-5).
    """
    if isinstance(value, tuple):
        return tuple(key(part, names) for part in value)
    if _is_public(value):
        names.public_key(value)
        return value
    return names.name("key", value)


def value_under(under: str, text: str, names: Names) -> str:
    value_kind = _VALUE_KINDS.get(under)
    if value_kind is not None:
        return names.name(value_kind, text)
    if under.endswith("-hash") and _is_public(under):
        return hashed(text, names)
    return text if labels.normalise(under) in _PUBLIC_VALUES else value(text, names)


def _is_public(label: str) -> bool:
    domain = label.rpartition("/")[0]
    return (
        label in _VALUE_KINDS
        or label in labels.ALIASES
        or any(domain == d or domain.endswith("." + d) for d in _PUBLIC_DOMAINS)
    )


def key_map(value: dict[str, Any], names: Names) -> dict[str, Any]:
    """Replaces labels, annotations, or the requirements of an instance type (key → values)."""
    return {
        key(k, names): tuple(value_under(k, part, names) for part in v)
        if isinstance(v, tuple)
        else value_under(k, v, names)
        for k, v in value.items()
    }


# What a reason says of a label or taint: `key In [a b and 2 others]`, `key Exists` (S-14), `key=value:Effect`.
_KEYED = re.compile(
    r"(?P<key>[A-Za-z0-9][A-Za-z0-9._/-]*)"
    r"(?: (?P<operator>In|NotIn) \[(?P<values>[^\]]*?)(?P<more> and \d+ others)?\]|=(?P<value>[A-Za-z0-9._-]+)(?=:)"
    r"|(?= (?:Exists|DoesNotExist)\b))"
)


def _sentence(text: str, names: Names) -> str:
    """Replaces a value by the pseudonym that it has under its key, since the same text may also name something else."""
    parts, end = [], 0
    for found in _KEYED.finditer(text):
        parts += [names.words(text[end : found.start()]), _keyed(found, names)]
        end = found.end()
    return "".join([*parts, names.words(text[end:])])


def _keyed(found: re.Match[str], names: Names) -> str:
    under = found["key"]
    shown = key(under, names)
    if found["value"] is not None:
        return f"{shown}={value_under(under, found['value'], names)}"
    if found["operator"] is None:
        return str(shown)
    values = sorted(value_under(under, value, names) for value in found["values"].split())
    return f"{shown} {found['operator']} [{' '.join(values)}{found['more'] or ''}]"


def keyed_values(term: pods.Expression | pools.RequirementSpec, names: Names) -> Struct:
    values = tuple(value_under(term.key, value, names) for value in term.values)
    return replace(term, key=key(term.key, names), values=values)


def keyed_value(taint: pods.Taint | pods.Toleration, names: Names) -> Struct:
    return replace(taint, key=key(taint.key, names), value=value_under(taint.key, taint.value, names))


_TEMPLATE_KINDS = {
    "nodeClassRef.name": "nodeclass", "image": "image", "subnets": "subnet", "securityGroups": "security-group",
    "capacityReservations": "reservation",
}  # fmt: skip
_PUBLIC_FIELDS = ("nodeClassRef.group", "nodeClassRef.kind", "expireAfter", "terminationGracePeriod", "instanceType")


def difference(found: templates.Difference, names: Names) -> Struct:
    """Replaces one field of a NodePool or NodeClass. A value gets the pseudonym that it has in the object it
    came from.
    """
    was = _field_value(found.field, found.key, found.was, names)
    if found.field == "requirements":  # `now` is what stands behind the key in a requirement's text (S-14)
        now: str | None = _sentence(f"{found.key} {found.now}", names).partition(" ")[2]
    else:
        now = _field_value(found.field, found.key, found.now, names)
    return replace(found, key=_field_key(found.field, found.key, names), was=was, now=now)


def template(value: dict[str, str], names: Names) -> dict[str, str]:
    """Replaces the fields of a NodeClass. Any value may be a name, a tag or a script."""
    shown = {}
    for path, text in value.items():
        field, space, at = path.partition(" ")
        own = _user_data(text, names) if field == USER_DATA else names.name("setting", text)
        shown[field + space + _field_key(field, at, names)] = own
    return shown


def _user_data(text: str, names: Names) -> str:
    """Keys the digest of user data. In older records its beginning stands there."""
    return hashed(text, names) if _USER_DATA.fullmatch(text) else names.name("setting", text)


_USER_DATA = re.compile(r"blake2b-128:(?:[0-9a-f]{32}|none)")


def _field_key(field: str, at: str, names: Names) -> str:
    return str(key(at, names)) if at and field not in ("kubelet", "metadataOptions") else at


def _field_value(field: str, at: str, text: str | None, names: Names) -> str | None:
    if text is None or field in _PUBLIC_FIELDS:
        return text
    if field in _TEMPLATE_KINDS:
        return names.name(_TEMPLATE_KINDS[field], text)
    if field == USER_DATA:
        return _user_data(text, names)
    if field == "requirements" or field.partition("/")[0] in ("labels", "annotations", "taints", "startupTaints"):
        return value_under(at, text, names)
    return names.name("setting", text)


# ── of the state ───────────────────────────────────────────────────────────────────────────────────────────────────


def made_from(found: dict[str, str], names: Names) -> dict[str, str]:
    """Replaces the fields of a NodePool or of a NodeClass."""
    if "nodeClassRef.name" not in found:
        return template(found, names)
    changed = {}
    for path, text in found.items():
        field, space, at = path.partition(" ")
        renamed = difference(templates.Difference(field, at, text), names)
        assert isinstance(renamed, templates.Difference)
        changed[field + space + renamed.key] = renamed.was or ""
    return changed


def actor_or_unknown(actor: str, names: Names) -> str:
    return actor if actor in ("", "unknown") else names.name("actor", actor)


def stream_name(stream: str, names: Names) -> str:
    start, slash, name = stream.partition("/")
    return start + slash + (names.name("claim", name) if start == "nodeclaim" else name)
