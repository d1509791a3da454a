"""Tell a read model what a cut record, or a part of one, begins with.

A read model folds entries, and a base is none. So what the base knows is given to it as entries: each object as it was,
and each NodeClaim without older entries as an adopted one. These entries are no part of the record. Their turn is 0,
and what the read model says of them is thrown away.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from msgspec import Struct

from kerf.engine.model.kinds.watched import WATCHED
from kerf.engine.model.settings import Settings
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.state_table import ABSENT, REQUESTED
from kerf.engine.record.claim_events import Adopted, Requested
from kerf.engine.record.entries import Entry
from kerf.engine.record.entry_types import NAME_OF, TYPES, stream_of
from kerf.engine.record.observations import SettingsSeen
from kerf.engine.record.store import Store
from kerf.engine.state.load import beginning
from kerf.engine.state.state import Facts, State

BASE_TURN = 0
FIRST_SETTINGS_WITHIN = 10
"""The first settings are among this many first entries."""


def first_settings(store: Store) -> Settings | None:
    """Return the settings that the record begins with; None for an empty record. Raises StoreError."""
    if store.base() is not None:
        return beginning(store).facts.settings
    seen = (entry.payload for entry in store.scan(until=FIRST_SETTINGS_WITHIN))
    return next((payload.settings for payload in seen if isinstance(payload, SettingsSeen)), None)


def settings_at(store: Store, state: State) -> Settings:
    """Return the settings of a state of this record: before they are recorded, those that the record begins with."""
    if state.facts.position >= FIRST_SETTINGS_WITHIN:
        return state.facts.settings
    entries = store.scan(until=state.facts.position)
    recorded = store.base() is not None or any(isinstance(entry.payload, SettingsSeen) for entry in entries)
    return state.facts.settings if recorded else first_settings(store) or state.facts.settings


def base_as_entries(store: Store) -> Iterator[Entry]:
    """Give the base of a cut record as entries; none for a record that begins at position 1. Raises StoreError."""
    base = store.base()
    if base is None:
        return
    known_claims = {
        entry.payload.claim
        for entry in store.scan(0, base.position)
        if isinstance(entry.payload, Requested | Adopted)
    }  # fmt: skip
    yield from state_as_entries(beginning(store).facts, base.position, base.at, known_claims)


def state_as_entries(
    facts: Facts, position: int, at: int, known_claims: Collection[str] = frozenset()
) -> Iterator[Entry]:
    """Give a state as entries at a position and a time, for a read model that is to begin there. Claims that it knows
    already are left out."""
    claims = (claim for name, claim in sorted(facts.claims.items()) if name not in known_claims)
    for payload in (*_objects(facts), *_adopted(claims)):
        name = NAME_OF[type(payload)]
        yield Entry(
            position=position, turn=BASE_TURN, stream=stream_of(payload), version=0, type=name,
            schema=TYPES[name].schema, at=at, cause=0, epoch=facts.epoch, payload=payload,
        )  # fmt: skip


def _objects(facts: Facts) -> Iterator[Struct]:
    watched = (getattr(facts, kind.facts) for kind in WATCHED if kind.facts)
    for objects in (facts.node_classes, *watched):
        for _, obj in sorted(objects.items()):
            yield obj


def _adopted(claims: Iterable[NodeClaim]) -> Iterator[Struct]:
    for claim in claims:
        if claim.state not in (ABSENT, REQUESTED):
            yield Adopted(
                claim=claim.name, state=claim.state, instance=claim.instance, provider_id=claim.provider_id,
                instance_type=claim.instance_type, zone=claim.zone, capacity_type=claim.capacity_type,
                price=claim.price, node_pool=claim.node_pool, node_class=claim.node_class, node=claim.node,
                launched=claim.launched, why=claim.why,
            )  # fmt: skip
