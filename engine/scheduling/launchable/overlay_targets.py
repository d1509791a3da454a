"""What NodeOverlays are about (S-184): the types and offerings of one catalogue, as bits.

Bit i of every mask stands for type i, as the catalogue lists them. Which types an overlay selects follows mostly from
their labels alone. So each answer is kept, and the NodePools of one catalogue share it.
"""

from __future__ import annotations

from collections.abc import Sequence

from kerf.engine.model.instance_types import InstanceType, Offering
from kerf.engine.model.karpenter.requirements import NEGATIVE, Requirement, Requirements
from kerf.engine.model.labels import (
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    RESERVATION_ID,
    RESERVATION_TYPE,
    WELL_KNOWN,
    ZONE,
    ZONE_ID,
)
from kerf.engine.scheduling.launchable.compiled_catalogue import LabelIndex

_OFFERING_LABELS = (ZONE, CAPACITY_TYPE, ZONE_ID, RESERVATION_ID, RESERVATION_TYPE)


class OverlayTargets:
    """The types of one catalogue as overlays select them. A *kind* is what no overlay tells apart of offerings.
    `kinds[i]`: for each offering of type i, the number of its kind."""

    __slots__ = ("_admitted", "_everything", "_labels", "_offers", "_types", "_usable", "kinds")

    def __init__(self, types: Sequence[InstanceType]) -> None:
        self._types = types
        self._everything = (1 << len(types)) - 1
        numbers: dict[tuple[str, ...], int] = {}
        sellers: list[int] = []
        self.kinds: list[tuple[int, ...]] = []
        for number, instance_type in enumerate(types):
            kinds = tuple([numbers.setdefault(_said(offer), len(numbers)) for offer in instance_type.offerings])
            sellers.extend([0] * (len(numbers) - len(sellers)))
            for kind in kinds:
                sellers[kind] |= 1 << number
            self.kinds.append(kinds)
        self._offers = [(_requirements(said), sellers[kind]) for said, kind in numbers.items()]
        self._labels: dict[str, LabelIndex] = {}
        self._admitted: dict[tuple[Requirement, Requirement | None], int] = {}
        self._usable: dict[Requirements, tuple[tuple[int, int], ...]] = {}

    def matched(self, requirements: Requirements, pool: Requirements) -> dict[int, int]:
        """For each kind of offering that an overlay is about, the types that have it. `pool`: labels of a NodePool."""
        types = self._everything
        for requirement in requirements:
            asked = requirement, pool.find(requirement.key)
            admitted = self._admitted.get(asked)
            if admitted is None:
                admitted = self._admitted[asked] = self._admitting(*asked)
            types &= admitted
            if not types:
                return {}
        usable = self._usable.get(requirements)
        if usable is None:
            usable = self._usable[requirements] = tuple(
                (kind, sellers)
                for kind, (offer, sellers) in enumerate(self._offers)
                if requirements.compatible(offer, WELL_KNOWN)
            )
        return {kind: types & sellers for kind, sellers in usable if types & sellers}

    def _admitting(self, requirement: Requirement, pool: Requirement | None) -> int:
        """The types whose label, if the NodePool says this of it, does not conflict with the requirement. Where neither
        defines it, only what a missing label satisfies is met (S-17)."""
        index = self._labels.get(requirement.key)
        if index is None:
            index = self._labels[requirement.key] = self._index(requirement.key)
        open_to_none = requirement.operator in NEGATIVE
        unknown = self._everything & ~index.known
        if pool is None:
            return index.admitted(requirement) | (unknown if open_to_none else 0)
        agreeing = 0  # the types that can have the NodePool's value: what is left of the others' label is none
        for value in pool.values:
            agreeing |= index.values.get(value, 0)
        admitted = 0 if pool.conflicts(requirement) else agreeing | unknown
        return admitted | (index.known & ~agreeing if open_to_none else 0)

    def _index(self, key: str) -> LabelIndex:
        index = LabelIndex()
        for number, instance_type in enumerate(self._types):
            values = _values(instance_type, key)
            if values is not None:
                index.add(1 << number, values)
        return index


def _values(instance_type: InstanceType, key: str) -> tuple[str, ...] | None:
    """The values of a type's label. What the type leaves to its offerings comes from these."""
    values = instance_type.requirements.get(key)
    if values is None and key == INSTANCE_TYPE:
        return (instance_type.name,)
    if values is None and key == ZONE:
        return tuple([offering.zone for offering in instance_type.offerings])
    if values is None and key == CAPACITY_TYPE:
        return tuple([offering.capacity_type for offering in instance_type.offerings])
    return values


def _said(offering: Offering) -> tuple[str, ...]:
    """The values of an offering's labels, in the order of `_OFFERING_LABELS`."""
    return (
        offering.zone,
        offering.capacity_type,
        offering.zone_id,
        offering.reservation_id,
        offering.reservation_type,
    )


def _requirements(said: tuple[str, ...]) -> Requirements:
    labels = zip(_OFFERING_LABELS, said, strict=True)
    return Requirements(Requirement(key, False, frozenset([value])) for key, value in labels if value)
