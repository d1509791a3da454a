"""Replaces names in the fields of NodePools and NodeClasses that drift compares."""

from __future__ import annotations

import re

from msgspec import Struct
from msgspec.structs import replace

from kerf.adapters.store.pseudonyms.names import Names
from kerf.adapters.store.pseudonyms.reasons import sentence
from kerf.adapters.store.pseudonyms.replacements import hashed, key, known_or_name, value_under
from kerf.engine.model.karpenter import nodeclaim_templates as templates
from kerf.engine.model.karpenter.nodeclass_terms import USER_DATA

_KINDS = {
    "nodeClassRef.name": "nodeclass", "image": "image", "subnets": "subnet", "securityGroups": "security-group",
    "capacityReservations": "reservation",
}  # fmt: skip
_REFERENCES = {"nodeClassRef.group": "nodeclass-group", "nodeClassRef.kind": "nodeclass-kind"}
_LISTS = ("blockDeviceMappings", "networkInterfaces")
"""Fields with items: what names an item is a user's, the rest is the API's."""
_PARTS = ("connectionTracking", "cpuOptions", "placementGroupSelector")
"""Fields whose keys are the API's."""
_PUBLIC_FIELDS = ("expireAfter", "terminationGracePeriod", "instanceType")


def difference(found: templates.Difference, names: Names) -> Struct:
    """Replaces one field of a NodePool or NodeClass. A value gets the pseudonym that it has in the object it
    came from.
    """
    was = _field_value(found.field, found.key, found.was, names)
    if found.field == "requirements":  # `now` is what stands behind the key in a requirement's text (S-14)
        now: str | None = sentence(f"{found.key} {found.now}", names).partition(" ")[2]
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


_USER_DATA = re.compile(r"blake2b-128:(?:[0-9a-f]{32}|none)")


def _user_data(text: str, names: Names) -> str:
    """Keys the digest of user data. In older records its beginning stands there."""
    return hashed(text, names) if _USER_DATA.fullmatch(text) else names.name("setting", text)


def _field_key(field: str, at: str, names: Names) -> str:
    """Replaces what stands behind a field: the key of a map of users, or which item of a list and what of it."""
    if not at or field == "metadataOptions":
        return at
    item, space, rest = at.partition(" ")
    if field in _LISTS:
        named = item if item.isdecimal() else names.name("setting", item)
        return named + space + rest
    kept = field == "kubelet" or field in _PARTS
    return (item if kept else str(key(item, names))) + space + (str(key(rest, names)) if rest else "")


def _field_value(field: str, at: str, text: str | None, names: Names) -> str | None:
    if text is None or field in _PUBLIC_FIELDS:
        return text
    if field in _REFERENCES:
        return str(known_or_name(_REFERENCES[field])(text, names))
    if field in _KINDS:
        return names.name(_KINDS[field], text)
    if field == USER_DATA:
        return _user_data(text, names)
    if field == "requirements" or field.partition("/")[0] in ("labels", "annotations", "taints", "startupTaints"):
        return value_under(at, text, names)
    return names.name("setting", text)
