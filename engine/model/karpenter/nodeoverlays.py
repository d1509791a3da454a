"""NodeOverlays (karpenter.sh/v1alpha1): corrections by users of the cloud's prices and capacities (L-49…L-56,
S-183…S-189).
"""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.model.karpenter.nodepools import RequirementSpec
from kerf.engine.model.kubernetes.pods import Resources
from kerf.engine.model.names import NodeOverlayName, Plain


class Adjustment(Struct, frozen=True):
    """A change of prices: `amount` is in USD per hour, or a percentage."""

    amount: float
    percent: bool = False

    def of(self, price: float) -> float:
        """Returns the changed price, never below zero (L-51)."""
        return max(0.0, price * (1 + self.amount / 100) if self.percent else price + self.amount)


class NodeOverlay(Struct, frozen=True, omit_defaults=True):
    """A NodeOverlay. `price` replaces a price (USD per hour), `adjustment` changes one; at most one of them is set.

    `capacity` adds resources to a type. `generation` counts its changes, 0 if unknown.
    """

    name: NodeOverlayName
    uid: Plain = ""
    requirements: tuple[RequirementSpec, ...] = ()
    price: float | None = None
    adjustment: Adjustment | None = None
    capacity: Resources = {}
    weight: int = 0
    generation: int = 0

    @property
    def prices(self) -> bool:
        """Returns whether the overlay changes prices."""
        return self.price is not None or self.adjustment is not None

    def priced(self, price: float) -> float:
        """Returns a price as the overlay changes it."""
        if self.price is not None:
            return self.price
        return price if self.adjustment is None else self.adjustment.of(price)


FIXED_RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods")
"""Resources that every node has, and no overlay may set (L-52)."""
