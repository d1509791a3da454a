"""A NodeClass's catalogue with what is left of its capacity reservations now (A-125, A-210).

The record has a catalogue once, and what a launch takes of a reservation as a few bytes. What is made of both is made
anew by whoever asks for it; it has a digest of its own, which no record names.
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
    """The digest of the catalogue of a NodeClass (`group/kind/name`), which the state's blobs hold; "" for none.
    Launches on their way have taken theirs of what is left: the reference waits for them before it plans again
    (S-58)."""
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
    """Of each reservation, by its id: how many launches name it that have no instance yet. The cloud's count of what is
    left does not have them."""
    return Counter(order.reservation for order in state.facts.launches.values() if order.reservation)


def with_launches_taken(catalogue: Catalogue, taken: Mapping[str, int]) -> Catalogue:
    """The catalogue when so many instances more have been taken of its reservations, by their ids."""
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
    """Of a reservation that is used up there is nothing on offer: pods would be deferred for its sake (S-114)."""
    count = left.get(offering.reservation_id)
    if count is None:
        return offering
    return replace(offering, reservation_capacity=count, available=offering.available and count > 0)
