"""Put into words which DaemonSets leave pods no type that is large enough."""

from __future__ import annotations

from kerf.engine.model.quantities import format_quantity
from kerf.engine.scheduling.explain.crowding_daemonsets import CrowdingDaemonSets
from kerf.projections.prose.amounts import count, first_names


def daemonsets_in_words(crowding: CrowdingDaemonSets | None) -> str:
    """What follows the sentence that no type is large enough; "" where DaemonSets are not why."""
    if crowding is None:
        return ""
    largest = sorted(crowding.requests.items(), key=lambda of: (-sum(of[1].values()), of[0]))
    each = [
        f"{name} takes " + " and ".join(f"{format_quantity(amount, what)} {what}" for what, amount in requests.items())
        for name, requests in largest
    ]
    return f"; without DaemonSets {count(crowding.types, 'type')} would be large enough: {first_names(each)}"
