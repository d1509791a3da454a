"""Finds the rule for each field of the record's types and of the state, by the mark on the field
(kerf.engine.model.names).

A field with text and no mark stops the export.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from msgspec import Struct
from msgspec.structs import replace

from kerf.adapters.store.pseudonyms import device_names as d
from kerf.adapters.store.pseudonyms import replacements as r
from kerf.adapters.store.pseudonyms import templates as t
from kerf.adapters.store.pseudonyms.names import Names, Rule, StructRule
from kerf.adapters.store.pseudonyms.reasons import params, reason, words
from kerf.adapters.store.pseudonyms.replacements import Keyed
from kerf.engine.model.karpenter.nodeclaim_templates import Difference
from kerf.engine.model.karpenter.nodepools import RequirementSpec
from kerf.engine.model.kinds.kind import WatchedKind
from kerf.engine.model.kinds.watched import WATCHED
from kerf.engine.model.kubernetes.pods import Expression, Taint, Toleration
from kerf.engine.model.names import KNOWN_OR_NAME, NAME, NAMESPACED, WORKLOAD_KEY, Mark
from kerf.engine.model.reasons import Reason
from kerf.engine.record.observations import ObjectGone

_OF_KIND: dict[str, Callable[[str], Rule]] = {
    NAME: r.name_of,
    NAMESPACED: r.key_of,
    WORKLOAD_KEY: r.key_of,
    KNOWN_OR_NAME: r.known_or_name,
}
_RULES: dict[str, Rule] = {
    "keep": r.keep,
    "digest": r.BLOB,
    "hash": r.hashed,
    "value": r.value,
    "blank": r.blank,
    "words": words,
    "key": r.key,
    "labels": r.key_map,
    "claim-references": r.claim_references,
    "request-names": r.request_names,
    "bound-devices": d.bound_devices,
    "device": d.device,
    "attribute": d.attribute,
    "selector": d.selector,
    "reason-parameters": params,
    "nodeclass-settings": t.template,
    "made-from": t.made_from,
    "provider-id": r.provider_id,
    "node-class-key": r.node_class_key,
    "stream": r.stream_name,
    "actor-or-unknown": r.actor_or_unknown,
}


@cache
def rules_of(struct: type[Struct]) -> dict[str, Rule] | StructRule:
    """Returns the rules of a struct by field, or one rule for the struct as a whole."""
    if struct in _STRUCT_RULES:
        return _STRUCT_RULES[struct]
    hints = get_type_hints(struct, include_extras=True)
    found = {field: _rule_of(hints[field]) for field in struct.__struct_fields__}
    return {field: rule for field, rule in found.items() if rule is not None}


def _rule_of(hint: Any) -> Rule | None:
    """Returns the rule for a type: that of the first mark in it. Maps have one rule for keys and one for values."""
    for mark in getattr(hint, "__metadata__", ()):
        if isinstance(mark, Mark):
            return _OF_KIND[mark.rule](mark.kind) if mark.rule in _OF_KIND else _RULES[mark.rule]
    arguments = get_args(hint)
    if get_origin(hint) is dict:
        key, value = map(_rule_of, arguments)
        if key is r.keep and (value is r.keep or arguments[1] in (int, float, bool, NoneType)):
            return r.keep
        return Keyed(key or _unmarked, value) if key is not None or value is not None else None
    return next((rule for rule in map(_rule_of, arguments) if rule is not None), None)


def _unmarked(value: str, names: Names) -> str:
    raise TypeError("the keys of a map have no mark, and its values have one")


def key_rules(kinds: Iterable[WatchedKind]) -> dict[str, Rule]:
    """Returns, by the kind's name, how to replace a deleted object's key: it is a uid, or contains the object's
    name.
    """
    return {kind.name: _key_rule(kind) for kind in kinds}


def _key_rule(kind: WatchedKind) -> Rule:
    if kind.key == "uid":
        return r.keep
    mark = next(
        mark
        for mark in getattr(get_type_hints(kind.struct, include_extras=True)["name"], "__metadata__", ())
        if isinstance(mark, Mark)
    )
    return r.name_of(mark.kind) if kind.key == "name" else r.key_of(mark.kind)


_KEY_RULES = key_rules(WATCHED) | {"nodeclass": r.node_class_key}


def object_gone(gone: ObjectGone, names: Names) -> Struct:
    """Replaces the key; that of a kind that this version does not know, as a whole."""
    rule = _KEY_RULES.get(gone.kind, r.name_of("object"))
    return replace(gone, key=rule(gone.key, names))


_STRUCT_RULES: dict[type[Struct], StructRule] = {
    Expression: r.keyed_values,
    RequirementSpec: r.keyed_values,
    Taint: r.keyed_value,
    Toleration: r.keyed_value,
    Difference: t.difference,
    ObjectGone: object_gone,
    Reason: reason,
}
"""Rules for structs in which one field decides how another is replaced."""
