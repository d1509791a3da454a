"""The base of a record that was cut, made of a state and brought to today's schemas.

It is one document, with the number of the facts' own schema and those of the record's types that stand in them. So an
older one comes to today's form in two steps: the facts by the upcasters here, then each pod, node, NodePool, … in them
by the upcasters that its entries have anyway (docs/adr/0007).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

from kerf.engine.record.base import Base
from kerf.engine.record.entries import EntryType
from kerf.engine.record.entry_types import NAME_OF, TYPES
from kerf.engine.record.errors import UNDECODABLE, EntryUndecodable, FormatUnsupported
from kerf.engine.record.upcast import upcast
from kerf.engine.state import snapshot
from kerf.engine.state.indexes import Blobs
from kerf.engine.state.state import Facts, State

FACTS = EntryType("record.base", 1, Facts)
"""Raise the number, with an upcaster, for each change of the facts but a further field with a default.
tests/unit/state/test_base.py has the shape of each number, and says when that is due."""


@cache
def _tree() -> inspect.Type:
    """The facts' types. To work them out takes a tenth of a command's start, and few commands ask."""
    return inspect.type_info(Facts)


def base_of(data: bytes, digest: str, *, at: int, position: int, chain: bytes, engine: str) -> Base:
    """The base after `position`, of the bytes and digest of a snapshot of today's schema."""
    types = {name: TYPES[name].schema for name in _held(_tree())}
    return Base(
        position=position, at=at, chain=chain, engine=engine, schema=FACTS.schema, types=types, state=data,
        digest=digest,
    )  # fmt: skip


def restore(base: Base, blobs: Blobs) -> State:
    """The state of a base. Raises FormatUnsupported (KERF110), EntryUndecodable (KERF116) and UpcastFailed
    (KERF117).
    """
    newer = [name for name, schema in base.types.items() if name not in TYPES or schema > TYPES[name].schema]
    if base.schema > FACTS.schema or newer:
        what = newer[0] if newer else "the state"
        raise FormatUnsupported(
            f"the base holds a newer schema of {what} than this version of kerf knows",
            position=base.position,
            hint=f"Use kerf {base.engine}, which wrote it, or a newer one",
        )
    try:
        if base.schema == FACTS.schema and all(TYPES[name].schema == schema for name, schema in base.types.items()):
            return snapshot.decode(base.state, blobs)
        plain = msgspec.msgpack.decode(base.state)
        state = State(msgspec.convert(upcast_facts(plain, base.schema, base.types), Facts), blobs)
    except (*UNDECODABLE, LookupError) as error:
        raise EntryUndecodable(
            f"the base does not fit schema {base.schema} of the state: {error}",
            position=base.position,
            hint="Read this record with the version of kerf that cut it, and report this",
        ) from error
    snapshot.rebuild(state)
    return state


def upcast_facts(
    plain: dict[str, Any], schema: int, types: Mapping[str, int], *, facts: EntryType = FACTS,
    known: Mapping[str, EntryType] = TYPES,
) -> dict[str, Any]:  # fmt: skip
    """Bring decoded facts, of facts schema `schema` and with payloads of the versions in `types`, to today's form.

    Raises UpcastFailed (KERF117).
    """
    position = plain.get("position", 0)

    def each(value: Any, info: inspect.Type) -> Any:
        if value is None:
            return None
        if isinstance(info, inspect.DictType):
            return {key: each(part, info.value_type) for key, part in value.items()}
        struct = _struct(info)
        if struct is None:
            return value
        name = NAME_OF.get(struct.cls)
        if name is not None and name in types:
            return upcast(known[name], types[name], value, position=position)
        inner = {field.encode_name: field.type for field in struct.fields}
        return {key: each(part, inner[key]) if key in inner else part for key, part in value.items()}

    changed: dict[str, Any] = each(upcast(facts, schema, plain, position=position), _tree())
    return changed


def _struct(info: inspect.Type) -> inspect.StructType | None:
    """The struct that a value of this type is, if it is one or None."""
    if isinstance(info, inspect.UnionType):
        found = [instance_type for instance_type in info.types if isinstance(instance_type, inspect.StructType)]
        return found[0] if len(found) == 1 else None
    return info if isinstance(info, inspect.StructType) else None


def _held(info: inspect.Type, seen: frozenset[type] = frozenset()) -> dict[str, None]:
    """The names of the record's types that stand in values of this type."""
    if isinstance(info, inspect.DictType):
        return _held(info.value_type, seen)
    struct = _struct(info)
    if struct is None or struct.cls in seen:
        return {}
    if struct.cls in NAME_OF:
        return {NAME_OF[struct.cls]: None}
    found: dict[str, None] = {}
    for field in struct.fields:
        found |= _held(field.type, seen | {struct.cls})
    return dict.fromkeys(sorted(found))
