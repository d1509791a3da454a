"""Compare what the cloud asks for instances at two moments."""

from __future__ import annotations

from collections.abc import Iterator

from kerf.engine.model.instance_types import Catalogue
from kerf.engine.record.errors import BlobMissing
from kerf.engine.state.indexes import Blobs
from kerf.engine.state.state import State
from kerf.projections.differences.structs import OfferChange

_Offer = tuple[str, str, str]
"""Instance type, zone and capacity type."""


def changed_offers(before: State, after: State) -> Iterator[OfferChange]:
    """Give the changed prices, by NodeClass and capacity type. The example is one that a node has or had, if there is
    one, and else the one that changed most."""
    claims = [*before.facts.claims.values(), *after.facts.claims.values()]
    used = {(claim.instance_type, claim.zone, claim.capacity_type) for claim in claims if claim.launched}
    for name, digest in sorted(after.facts.catalogues.items()):
        earlier = before.facts.catalogues.get(name, digest)
        if earlier == digest:
            continue
        try:
            was, now = (_prices(after.indexes.blobs, found) for found in (earlier, digest))
        except BlobMissing:  # a part of a record does not hold them
            continue
        for capacity_type in sorted({offer[2] for offer in now}):
            change = _change(name.rpartition("/")[2], capacity_type, was, now, used)
            if change is not None:
                yield change


def _change(
    node_class: str, capacity_type: str, was: dict[_Offer, float], now: dict[_Offer, float], used: set[_Offer]
) -> OfferChange | None:
    both = [offer for offer in now if offer[2] == capacity_type and was.get(offer)]
    factors = {offer: now[offer] / was[offer] for offer in both if now[offer] != was[offer]}
    if not factors:
        return None
    example = min(factors, key=lambda offer: (offer not in used, -abs(factors[offer] - 1), offer))
    return OfferChange(
        node_class=node_class,
        capacity_type=capacity_type,
        changed=len(factors),
        offers=len(both),
        least=round(min(factors.values()), 4),
        most=round(max(factors.values()), 4),
        instance_type=example[0],
        zone=example[1],
        was=was[example],
        now=now[example],
    )


def _prices(blobs: Blobs, digest: str) -> dict[_Offer, float]:
    catalogue: Catalogue = blobs.catalogue(digest)
    return {
        (kind.name, offer.zone, offer.capacity_type): offer.price
        for kind in catalogue.types
        for offer in kind.offerings
        if not offer.reservation_id and offer.tenancy == "default"
    }
