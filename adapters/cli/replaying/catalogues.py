"""What the cloud of a record sells: the catalogue of each NodeClass, and all of them together."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from kerf.adapters.simulation.cloud.market import SHARED_CATALOGUE, Market
from kerf.engine.model.instance_types import Catalogue, InstanceType
from kerf.engine.state.state import State
from kerf.replay.modelled.workload import Sells


class RecordedCatalogues:
    """The catalogues as they are at a time. `shared` is their union."""

    def __init__(self, start: State) -> None:
        self._source = start.indexes.blobs.source
        self._known = {
            node_class: start.indexes.blobs.catalogue(digest)
            for node_class, digest in sorted(start.facts.catalogues.items())
        }

    @property
    def shared(self) -> Catalogue:
        """All that is sold to anybody. Where NodeClasses have the same offering, the first one's counts."""
        known = list(self._known.values())
        if len(known) == 1:
            return known[0]
        types: dict[str, InstanceType] = {}
        for catalogue in known:
            for kind in catalogue.types:
                types[kind.name] = _united(types[kind.name], kind) if kind.name in types else kind
        return replace(known[0], types=tuple(types.values())) if known else Catalogue(())

    def stock(self, market: Market) -> None:
        for node_class, catalogue in self._known.items():
            market.stock(node_class, catalogue)

    def sell(self, market: Market, step: Sells) -> bool:
        """Sell another catalogue from now on. Return whether that changes anything."""
        catalogue = step.catalogue
        if catalogue is None:
            catalogue = msgspec.msgpack.decode(self._source(step.digest), type=Catalogue)
        self._known[step.node_class] = catalogue
        market.stock(SHARED_CATALOGUE, self.shared)
        return market.stock(step.node_class, catalogue)


def _united(one: InstanceType, other: InstanceType) -> InstanceType:
    have = {(o.zone, o.capacity_type, o.reservation_id) for o in one.offerings}
    more = tuple(o for o in other.offerings if (o.zone, o.capacity_type, o.reservation_id) not in have)
    return replace(one, offerings=(*one.offerings, *more)) if more else one
