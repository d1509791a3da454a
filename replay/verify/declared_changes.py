"""Declare which older decisions today's deciders may make otherwise, and why.

A record of older VERSIONs cannot be the same where a decider was changed on purpose. Whoever changed it declares that:
the decider, its recorded and today's VERSION, and the reason. What differs and is declared is no divergence. A claim
event has no version; it is declared by its type, and only counts in a record with older decisions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kerf.engine.record.decisions import Decision
from kerf.engine.record.entries import Entry
from kerf.replay.errors import DeclarationRefused
from kerf.replay.user_documents import list_of, mapping_of, nearest
from kerf.replay.verify.decide_again import VERSIONS
from kerf.replay.verify.report import DeclaredChange

DECIDER, FROM, TO, WHY, CLAIM_EVENT, CHANGES = "decider", "from", "to", "why", "claimEvent", "changes"
Key = tuple[str, int]
"""A decider with its recorded version, or the type of a claim event with 0."""


class DeclaredChanges:
    """What may differ. `all_of_them` declares everything, to find out what there is to declare."""

    def __init__(self, reasons: Mapping[Key, str] | None = None, *, all_of_them: bool = False) -> None:
        self._reasons = dict(reasons or {})
        self._all = all_of_them

    def __bool__(self) -> bool:
        """Whether anything is declared."""
        return self._all or bool(self._reasons)

    def declares(self, decider: str, version: int) -> bool:
        """Whether decisions of this version may be made otherwise today."""
        return self._declares((decider, version)) and decider in VERSIONS

    def key(self, entry: Entry, recorded: Mapping[str, int]) -> Key | None:
        """Return under what an entry may differ, None if it may not. `recorded` has the version of each decider in the
        record."""
        payload = entry.payload
        if isinstance(payload, Decision):
            version = recorded.get(payload.decider, payload.version)
            older = version != VERSIONS.get(payload.decider)
            return (payload.decider, version) if older and self.declares(payload.decider, version) else None
        older = any(version != VERSIONS.get(decider) for decider, version in recorded.items())
        return (entry.type, 0) if older and self._declares((entry.type, 0)) else None

    def reason(self, key: Key) -> str:
        return self._reasons.get(key, "")

    def _declares(self, key: Key) -> bool:
        return self._all or key in self._reasons


NOTHING_DECLARED = DeclaredChanges()


def read_changes(document: object, where: str) -> DeclaredChanges:
    """Read a document of declared changes. Raises DeclarationRefused (KERF220).

    A declaration for another VERSION than today's declares nothing: the next change is to be declared anew.
    """
    found = mapping_of(document, (CHANGES,), where, DeclarationRefused)
    reasons: dict[Key, str] = {}
    for number, item in enumerate(list_of(found.get(CHANGES), f"{where}: {CHANGES}", DeclarationRefused)):
        place = f"{where}: {CHANGES}[{number}]"
        one = mapping_of(item, (DECIDER, FROM, TO, CLAIM_EVENT, WHY), place, DeclarationRefused)
        why = one.get(WHY)
        if not isinstance(why, str) or not why.strip():
            raise DeclarationRefused("a declared change says why", where=place, hint=f"Write it under {WHY}")
        if (DECIDER in one) == (CLAIM_EVENT in one):
            hint = f"Write {DECIDER}, {FROM} and {TO}, or {CLAIM_EVENT} alone"
            raise DeclarationRefused("it is not said what may differ", where=place, hint=hint)
        reasons.update(dict.fromkeys(_keys(one, place), why.strip()))
    return DeclaredChanges(reasons)


def changes_document(declared: Iterable[DeclaredChange]) -> dict[str, Any]:
    """Return the document that declares what was found, with the figures in place of a reason."""
    return {CHANGES: [_item(change) for change in declared]}


def _keys(one: Mapping[str, Any], place: str) -> list[Key]:
    if CLAIM_EVENT in one:
        extra = [key for key in (FROM, TO) if key in one]
        if extra:
            raise DeclarationRefused("a claim event has no version", where=f"{place}.{extra[0]}", hint="Leave it out")
        return [(str(one[CLAIM_EVENT]), 0)]
    decider, today = str(one[DECIDER]), _version(one.get(TO), f"{place}.{TO}")
    if decider not in VERSIONS:
        raise DeclarationRefused(f"there is no decider {decider!r}", where=place, hint=nearest(decider, VERSIONS))
    recorded = one.get(FROM)
    versions = [
        _version(version, f"{place}.{FROM}") for version in (recorded if isinstance(recorded, list) else [recorded])
    ]
    return [(decider, version) for version in versions if today == VERSIONS[decider]]


def _version(value: object, place: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise DeclarationRefused("a VERSION is a whole number", where=place, hint="kerf verify names both versions")
    return value


def _item(change: DeclaredChange) -> dict[str, Any]:
    why = f"{change.differs} of {change.made_again} differ; say here what was changed on purpose"
    if not change.version:
        return {CLAIM_EVENT: change.what, WHY: why}
    return {DECIDER: change.what, FROM: change.recorded, TO: change.version, WHY: why}
