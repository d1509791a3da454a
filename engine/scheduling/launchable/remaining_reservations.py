"""A NodeClass's catalogue with what is left of its capacity reservations now (A-125, A-210).

The record stores a catalogue once, and each use of a reservation in a few bytes. This module puts both together. The
result has a digest of its own, which no record names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from hashlib import blake2b

import msgspec
from msgspec.structs import replace

from kerf.engine.model.instance_types import Catalogue, InstanceType, Offering
from kerf.engine.state.state import State


def catalogue_with_reservations(state: State, node_class: str) -> str:
    """The digest of the catalogue of a NodeClass (`group/kind/name`); "" for none. The state's blobs hold the
    catalogue. Launches on their way count as having taken their part of a reservation; the reference waits for them
    before it plans again (S-58)."""
    digest, seen = state.facts.catalogues.get(node_class, ""), state.facts.reservations.get(node_class)
    left, taken = seen.left if seen is not None else {}, _launches_on_their_way(state)
    if not digest or not (left or taken):
        return digest
    text = msgspec.json.encode((left, taken), order="sorted")
    own = f"{digest}/{blake2b(text, digest_size=8).hexdigest()}"
    blobs = state.indexes.blobs
    if not blobs.has_catalogue(own):
        blobs.offer(own, with_launches_taken(_with_counts(blobs.catalogue(digest), left), taken))
    return own


def _launches_on_their_way(state: State) -> Counter[str]:
    """How many launches without an instance name each reservation. The cloud's count of what is left does not include
    them."""
    return Counter(order.reservation for order in state.facts.launches.values() if order.reservation)


def with_launches_taken(catalogue: Catalogue, taken: Mapping[str, int]) -> Catalogue:
    """The catalogue after so many more instances of each reservation, by its id."""
    if not taken:
        return catalogue
    offerings = (offering for instance_type in catalogue.types for offering in instance_type.offerings)
    left = {
        offering.reservation_id: max(0, offering.reservation_capacity - taken[offering.reservation_id])
        for offering in offerings
        if offering.reservation_id in taken
    }
    return _with_counts(catalogue, left)


def _with_counts(catalogue: Catalogue, left: Mapping[str, int]) -> Catalogue:
    return replace(catalogue, types=tuple(_type(instance_type, left) for instance_type in catalogue.types))


def _type(instance_type: InstanceType, left: Mapping[str, int]) -> InstanceType:
    if not any(offering.reservation_id in left for offering in instance_type.offerings):
        return instance_type
    return replace(instance_type, offerings=tuple(_offering(offering, left) for offering in instance_type.offerings))


def _offering(offering: Offering, left: Mapping[str, int]) -> Offering:
    """The offering with what is left of its reservation. If nothing is, it is not available: pods would wait for it in
    vain (S-114)."""
    count = left.get(offering.reservation_id)
    if count is None:
        return offering
    return replace(offering, reservation_capacity=count, available=offering.available and count > 0)
