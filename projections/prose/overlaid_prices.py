"""Put into words that a node's price is from a NodeOverlay."""

from __future__ import annotations

from kerf.engine.scheduling.explain.overlaid_prices import OverlaidPrice
from kerf.projections.prose.amounts import dollars


def overlaid_words(overlaid: OverlaidPrice | None) -> str:
    """Say which overlay a price is from, and what the cloud asks; "" where it is the cloud's."""
    return f"priced by NodeOverlay {overlaid.overlay} ({dollars(overlaid.listed)}/h without)" if overlaid else ""
