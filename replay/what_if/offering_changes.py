"""Change what the catalogues offer: the price of offerings, or whether they can be had.

An offering is named by any of its instance type, zone and capacity type, with "/" between them: "m5.large/spot".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from kerf.engine.model.content_digest import content
from kerf.engine.model.instance_types import Catalogue, InstanceType, Offering
from kerf.engine.record.observations import CatalogueSeen, Observation
from kerf.engine.state.state import State
from kerf.projections.prose.amounts import count
from kerf.replay.errors import ChangeRefused
from kerf.replay.what_if.changes import Applied, Change, no_change
from kerf.replay.what_if.manifest_fields import unknown_name


def set_price(pattern: str, text: str) -> Change:
    """Set the price of offerings, in USD per hour; or change it by a share, such as "+20%"."""
    new_price = _price(text)

    def change(state: State) -> Applied:
        def priced(offering: Offering) -> Offering:
            return replace(offering, price=new_price(offering.price))

        return _changed(state, pattern, priced, f"price of {pattern}", text)

    return change


def without_capacity(pattern: str) -> Change:
    """Offer these no more."""

    def change(state: State) -> Applied:
        return _changed(state, pattern, lambda offering: replace(offering, available=False), pattern, "no capacity")

    return change


def _price(text: str) -> Callable[[float], float]:
    share = text.endswith("%") and text[:1] in "+-"
    try:
        amount = float(text.rstrip("%")) if share else float(text.removeprefix("$"))
    except ValueError:
        amount = -1.0 if not share else -200.0
    if not (-100 <= amount < 1e6 if share else 0 <= amount < 1e6):
        raise ChangeRefused(f"{text!r} is no price", where="--price", hint='Give USD per hour ("0.05"), or "+20%"')
    return (lambda price: price * (1 + amount / 100)) if share else (lambda price: amount)


def _changed(state: State, pattern: str, change: Callable[[Offering], Offering], what: str, to: str) -> Applied:
    catalogues = {key: state.indexes.blobs.catalogue(digest) for key, digest in sorted(state.facts.catalogues.items())}
    parts = _checked(pattern, catalogues)
    observations, matched, prices, same = [], 0, [], True
    for node_class, catalogue in catalogues.items():
        types, found = [], 0
        for instance_type in catalogue.types:
            hits = [offering for offering in instance_type.offerings if _matches(parts, instance_type, offering)]
            found += len(hits)
            prices += [offering.price for offering in hits]
            offerings = tuple(
                change(offering) if offering in hits else offering for offering in instance_type.offerings
            )
            types.append(replace(instance_type, offerings=offerings) if hits else instance_type)
        matched += found
        if found:
            changed = replace(catalogue, types=tuple(types))
            same &= changed == catalogue
            digest = content(changed)[0]
            observations.append(Observation(CatalogueSeen(node_class, digest), {digest: changed}))
    if not matched:
        raise ChangeRefused(
            f"there is no offering {pattern}", hint="No instance type is offered that way in this record"
        )
    was = f"${min(prices):.4f}" if min(prices) == max(prices) else f"${min(prices):.4f} to ${max(prices):.4f}"
    offerings_said = f"{count(matched, 'offering')} at {was}"
    return Applied(f"{what} ({offerings_said}): {to}{no_change(same)}", tuple(observations))


def _checked(pattern: str, catalogues: dict[str, Catalogue]) -> tuple[str, ...]:
    known = {name for catalogue in catalogues.values() for name in _names(catalogue)}
    parts = tuple(part for part in pattern.split("/") if part)
    unknown = next((part for part in parts if part not in known), "" if parts else pattern)
    if unknown or not parts:
        raise unknown_name("instance type, zone or capacity type", unknown, sorted(known), pattern)
    return parts


def _names(catalogue: Catalogue) -> Iterator[str]:
    for instance_type in catalogue.types:
        yield instance_type.name
        for offering in instance_type.offerings:
            yield from (offering.zone, offering.capacity_type)


def _matches(parts: tuple[str, ...], instance_type: InstanceType, offering: Offering) -> bool:
    return all(part in (instance_type.name, offering.zone, offering.capacity_type) for part in parts)
