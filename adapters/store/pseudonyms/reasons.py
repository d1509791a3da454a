"""Replaces names in what kerf says itself: parameters of reasons, and sentences."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from kerf.adapters.store.pseudonyms.device_names import device, device_request, selector_cut
from kerf.adapters.store.pseudonyms.names import Names, Rule
from kerf.adapters.store.pseudonyms.replacements import (
    actor_or_unknown,
    keep,
    key,
    known_or_name,
    name_of,
    namespaced,
    value_under,
)
from kerf.engine.model.reasons import Reason


def reason(found: Reason, names: Names) -> Reason:
    """Replaces the parameters of a reason. What each of them names follows from its own name, or from the code."""
    return replace(found, params=params(found.params, names, found.code))


def params(value: dict[str, Any], names: Names, code: str = "") -> dict[str, Any]:
    """Replaces the parameters of a reason: most are names of one kind, the others are text."""
    shown = {}
    for name, part in value.items():
        rule = _BY_CODE.get((code, name)) or _BY_NAME.get(name, words)
        shown[name] = _each(rule, part, names)
    under, domains, values = (value.get(name) for name in ("key", "domains", "values"))
    if isinstance(under, str) and isinstance(domains, list):  # "domain=pods"
        shown["domains"] = [_domain(under, part, names) for part in domains]
    if isinstance(under, str) and isinstance(values, list):
        shown["values"] = sorted(value_under(under, part, names) for part in values)
    return shown


def _each(rule: Rule, value: Any, names: Names) -> Any:
    """Applies a rule to a text, or to each text of a list. Numbers stay."""
    if isinstance(value, str):
        return rule(value, names) if value else value
    if isinstance(value, list | tuple):
        return type(value)(_each(rule, part, names) for part in value)
    return value


def words(value: Any, names: Names) -> Any:
    """Replaces names in kerf's own text, in strings, lists and maps."""
    if isinstance(value, str):
        return sentence(value, names)
    if isinstance(value, list | tuple):
        return type(value)(words(part, names) for part in value)
    if isinstance(value, dict):
        return {key: words(part, names) for key, part in value.items()}
    return value


def _object_key(kind: str) -> Rule:
    """Returns the rule for namespace/name; a text without a slash is a sentence."""

    def rule(value: str, names: Names) -> str:
        return namespaced(kind, value, names) if "/" in value else sentence(value, names)

    return rule


def _resource_claim(value: str, names: Names) -> str:
    """Replaces a ResourceClaim: namespace/name, or namespace/pod/name as the pod calls it before it is made."""
    namespace, slash, name = value.partition("/")
    pod, between, own = name.rpartition("/")
    where = names.name("namespace", namespace) + slash + names.name("pod", pod) + between
    return where + names.name("resource-claim", own) if slash else names.name("resource-claim", value)


def _claims(value: str, names: Names) -> str:
    """Replaces a ResourceClaim (namespace/name), or a NodeClaim."""
    return _resource_claim(value, names) if "/" in value else names.name("claim", value)


def _request(value: str, names: Names) -> str:
    """Replaces namespace/claim/request."""
    claim, slash, request = value.rpartition("/")
    return _resource_claim(claim, names) + slash + device_request(request, names)


_TAINT = re.compile(r"([^=:]+)(?:=([^:]*))?(:[A-Za-z]*)?")


def _taint(value: str, names: Names) -> str:
    """Replaces a taint as messages show it: key[=value][:effect]."""
    found = _TAINT.fullmatch(value)
    if found is None:
        return sentence(value, names)
    shown = f"={value_under(found[1], found[2], names)}" if found[2] else ""
    return f"{key(found[1], names)}{shown}{found[3] or ''}"


def _domain(under: str, text: str, names: Names) -> str:
    domain, equals, pods = text.rpartition("=")
    return value_under(under, domain, names) + equals + pods if equals else text


_DEVICE_CLASS = re.compile(r"(there is no DeviceClass )(.+)")


def _claim_problem(value: str, names: Names) -> str:
    found = _DEVICE_CLASS.fullmatch(value)
    return found[1] + names.name("device-class", found[2]) if found else sentence(value, names)


_VOLUME_NAMED = re.compile(
    r"volume (?P<volume>\S+) is (gone|on node (?P<nodes>.+), which is gone)|there is no storage class (?P<class>.+)"
)
_VOLUME_PROBLEMS = re.compile(
    "there is no such claim|the claim is being deleted|the claim has lost its volume|binding is not completed"
    "|neither volume nor storage class|an unbound claim of a class that binds at once"
)


def _volume_problem(value: str, names: Names) -> str:
    """Replaces what a problem of a volume names (S-153). Its words stay, though a label may have one as its value."""
    if _VOLUME_PROBLEMS.fullmatch(value):
        return value
    found = _VOLUME_NAMED.fullmatch(value)
    if found is None:
        return sentence(value, names)
    if found["nodes"] is not None:
        nodes = " or ".join(names.name("node", node) for node in found["nodes"].split(" or "))
        return f"volume {names.name('volume', found['volume'])} is on node {nodes}, which is gone"
    if found["volume"] is not None:
        return f"volume {names.name('volume', found['volume'])} is gone"
    return f"there is no storage class {names.name('storage-class', found['class'])}"


_BY_NAME: dict[str, Callable[[Any, Names], Any]] = {
    "nodeclass": name_of("nodeclass"),
    "node_pool": name_of("nodepool"),
    "nodepool": name_of("nodepool"),
    "node": name_of("node"),
    "nodes": name_of("node"),
    "instance": name_of("instance"),
    "volumes": name_of("volume"),
    "claims": _claims,
    "replacements": name_of("claim"),
    "pod": _object_key("pod"),
    "pods": _object_key("pod"),
    "budgets": _object_key("pdb"),
    "request": _request,
    "resource": known_or_name("resource"),
    "resources": known_or_name("resource"),
    "driver": device,
    "drivers": known_or_name("driver"),
    "rule": keep,  # spread, affinity: kerf's words, which a label may have as its value
    "why": keep,
    "key": key,
    "keys": key,
    "known": key,
    "label": key,
    "taint": _taint,
    "taints": _taint,
    "selectors": selector_cut,
}
_BY_CODE: dict[tuple[str, str], Rule] = {
    ("launched-in-vain", "claim"): name_of("claim"),
    ("launched-tainted", "claim"): name_of("claim"),
    ("beside-held-pods", "where"): _taint,  # key=value
    ("no-place-beside", "where"): _taint,
    ("node-deleted", "detail"): name_of("node"),
    ("deleted", "detail"): actor_or_unknown,
    ("resource-claim", "claim"): _resource_claim,
    ("resource-claim", "problem"): _claim_problem,
    ("resource-claims-ignored", "claims"): name_of("resource-claim"),
    ("volume", "claim"): _object_key("volume-claim"),
    ("volume", "problem"): _volume_problem,
    ("invalid-requirement", "problem"): keep,
}

# What a reason says of a label or taint: `key In [a b and 2 others]`, `key Exists` (S-14), `key=value:Effect`.
_KEYED = re.compile(
    r"(?P<key>[A-Za-z0-9][A-Za-z0-9._/-]*)"
    r"(?: (?P<operator>In|NotIn) \[(?P<values>[^\]]*?)(?P<more> and \d+ others)?\]|=(?P<value>[A-Za-z0-9._-]+)(?=:)"
    r"|(?= (?:Exists|DoesNotExist)\b))"
)


def sentence(text: str, names: Names) -> str:
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
