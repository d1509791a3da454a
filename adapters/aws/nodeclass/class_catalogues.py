"""The catalogue of each EC2NodeClass: what its nodes are sized by, and what of it is new."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from kerf.adapters.aws.catalogue.facts import InstanceTypeFacts
from kerf.adapters.aws.catalogue.instance_types import NodeSettings, kubelet_on
from kerf.adapters.aws.catalogue.market import LiveMarket
from kerf.adapters.aws.catalogue.node_memory import JoinedNode, NodeMemory
from kerf.adapters.aws.catalogue.offerings import catalogue
from kerf.adapters.aws.nodeclass.known import Known
from kerf.adapters.aws.nodeclass.resolved import node_settings, zones
from kerf.adapters.aws.nodeclass.resolver import NodeClassResolver
from kerf.adapters.aws.nodeclass.seen import GROUP, KIND
from kerf.adapters.aws.settings import AwsSettings
from kerf.adapters.aws.zonal_shift import ZonalShifts
from kerf.engine.errors import InputError
from kerf.engine.model.content_digest import content
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.karpenter.ec2nodeclasses import EC2NodeClass
from kerf.engine.record.observations import CatalogueSeen, Observation, ReservationsSeen


class ClassCatalogues:
    """Makes catalogues. Classes that differ in nothing that a catalogue is made from share one: as many are kept as
    there are classes."""

    def __init__(
        self,
        settings: AwsSettings,
        market: LiveMarket,
        classes: NodeClassResolver,
        shifts: ZonalShifts,
        clock: Callable[[], int],
    ) -> None:
        self._settings, self._market, self._classes, self._shifts = settings, market, classes, shifts
        self._clock = clock
        self._memory = NodeMemory()
        self._made: list[tuple[tuple[object, ...], Catalogue, str]] = []  # from what, what, its digest

    def learn(self, nodes: Iterable[JoinedNode], known: Known) -> None:
        """Take in the memory of Nodes of a class that have registered (A-170)."""
        self._memory.learn(nodes, known.types, known.resolved.status.amis, self._clock())

    def keep(self, classes: int) -> None:
        """Keep only the catalogues that were used last, one for each class."""
        del self._made[: max(0, len(self._made) - classes)]

    def of(self, resolved: EC2NodeClass) -> Catalogue:
        """The catalogue of a class. Raises `InputError` for a class whose nodes nobody can size."""
        return self._digested(resolved)[0]

    def news(self, known: Known) -> list[Observation]:
        """A new catalogue, if its inputs changed and it came out different. How much of a reservation is left is
        observed by itself, unless it is nothing: each launch into it changes that."""
        resolved = known.resolved
        reservations = self._classes.reservations.offered(resolved.status)
        some = tuple(replace(reservation, available=min(reservation.available, 1)) for reservation in reservations)
        left = ReservationsSeen(
            f"{GROUP}/{KIND}/{resolved.name}", {reservation.id: reservation.available for reservation in reservations}
        )
        counted = [Observation(left)] if left.left and left != known.left else []
        known.left = left
        try:
            made_from = (self._market.market, self.sized(resolved), resolved.status.subnets, some, self._shifts.zones())
            if known.made_from == made_from or not resolved.status.subnets:
                return counted
            made, digest = self._digested(resolved)
        except InputError:
            return counted  # its condition says why; what it launched before is still of the types known before
        known.made_from = made_from
        known.types = {kind.name: kind for kind in made.types}
        if digest == known.catalogue:
            return counted
        known.catalogue = digest
        return [Observation(CatalogueSeen(left.node_class, digest), {digest: made}), *counted]

    def _digested(self, resolved: EC2NodeClass) -> tuple[Catalogue, str]:
        reservations = self._classes.reservations.offered(resolved.status)
        market, sized, there = self._market.market, self.sized(resolved), zones(resolved.status)
        made_from = (market, sized, there, reservations, self._shifts.zones())
        known = next((number for number, entry in enumerate(self._made) if entry[0] == made_from), None)
        if known is None:
            made = catalogue(market, sized, there, reservations=reservations, shifted=self._shifts.zones())
            self._made.append((made_from, made, content(made)[0]))
        else:
            self._made.append(self._made.pop(known))
        return self._made[-1][1:]

    def sized(self, resolved: EC2NodeClass) -> NodeSettings:
        """What the nodes of a class are sized by. Raises `InputError`."""
        settings, group = self._settings, self._classes.placement_group(resolved.name)
        sized = node_settings(
            resolved,
            reserved_enis=settings.reserved_enis,
            overhead=settings.memory_overhead,
            expressions=settings.node_class_cel,
        )
        memory = self._memory.of(resolved.status.amis, self._clock())
        return replace(
            sized,
            placement=group.strategy,
            placement_id=group.id,
            partitions=group.partitions,
            seen_memory=memory,
        )

    def facts(self) -> list[InstanceTypeFacts]:
        """What EC2 says of its types, by name."""
        return [facts for _, facts in sorted(self._market.market.facts.items())]

    def kubelets(self, resolved: EC2NodeClass) -> Callable[[str], dict[str, Any]] | None:
        """What becomes of the kubelet of a class with expressions, by type; None for a class without (A-257)."""
        sized = self.sized(resolved)
        facts = self._market.market.facts
        return (lambda name: kubelet_on(facts[name], sized)) if sized.kubelet else None
