"""NodeOverlays (karpenter.sh/v1alpha1): what a user knows better than the cloud's lists (L-49…L-56, S-183…S-189)."""

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
        """L-51: never below nothing."""
        return max(0.0, price * (1 + self.amount / 100) if self.percent else price + self.amount)


class NodeOverlay(Struct, frozen=True, omit_defaults=True):
    """`price` replaces (USD per hour), `adjustment` changes a price; at most one of them is set. `capacity` adds
    resources to a type."""

    name: NodeOverlayName
    uid: Plain = ""
    requirements: tuple[RequirementSpec, ...] = ()
    price: float | None = None
    adjustment: Adjustment | None = None
    capacity: Resources = {}
    weight: int = 0

    @property
    def prices(self) -> bool:
        """Whether it says anything of prices."""
        return self.price is not None or self.adjustment is not None

    def priced(self, price: float) -> float:
        """What it makes of a price."""
        if self.price is not None:
            return self.price
        return price if self.adjustment is None else self.adjustment.of(price)


FIXED_RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods")
"""L-52: what no overlay may set."""
