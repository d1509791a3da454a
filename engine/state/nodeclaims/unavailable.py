"""What the cloud lately had no capacity for, and for whom (A-212, A-290…A-296).

A refused offering counts for all NodeClasses. A subnet without free addresses counts for the NodeClasses that have no
other in its zone.
"""

from __future__ import annotations

from kerf.engine.model.karpenter.launch_reasons import NO_ADDRESSES, NO_SPOT_ROLE
from kerf.engine.model.labels import SPOT
from kerf.engine.record.observations import LaunchError
from kerf.engine.state.state import Facts

CAPACITY_CODES = frozenset(
    [
        "InsufficientInstanceCapacity", "MaxSpotInstanceCountExceeded", "VcpuLimitExceeded", "UnfulfillableCapacity",
        "Unsupported", NO_ADDRESSES, "MaxFleetCountExceeded", "ReservationCapacityExceeded",
    ]
)  # fmt: skip
"""A-290: an offering refused with one of these is taken as unavailable for a while."""

Offerings = frozenset[tuple[str, str, str]]
"""As in `Problem.unavailable`: (capacity type, instance type, zone); "" matches any."""


def is_remembered(error: LaunchError) -> bool:
    """Whether what was refused is avoided for a while."""
    return error.code == NO_SPOT_ROLE or (error.code in CAPACITY_CODES and bool(error.instance_type))


def remember(facts: Facts, error: LaunchError, until: int) -> None:
    """Note for whom the refused offering is unavailable until then (A-293, A-294, A-296)."""
    if not is_remembered(error):
        return
    if error.code == NO_SPOT_ROLE:
        facts.unavailable[f"{SPOT}||"] = until
    elif error.code == NO_ADDRESSES and error.subnet:
        facts.full_subnets[error.subnet] = until  # the type is there for whoever has another subnet
    else:
        facts.unavailable[f"{error.capacity_type}|{error.instance_type}|{error.zone}"] = until


def unavailable(facts: Facts, now: int) -> Offerings:
    """The offerings that are unavailable to all NodeClasses."""
    return _offerings(facts.unavailable, now)


def unavailable_to(facts: Facts, node_class: str, now: int) -> Offerings:
    """The offerings that are besides unavailable to one NodeClass (`group/kind/name`): all in the zones of which it has
    only full subnets (A-212)."""
    known = facts.node_classes.get(node_class)
    if known is None or known.terms is None or not facts.full_subnets:
        return frozenset()
    full = {subnet for subnet, until in facts.full_subnets.items() if until > now}
    return frozenset(("", "", zone) for zone, subnets in known.terms.zones.items() if full.issuperset(subnets))


def _offerings(until: dict[str, int], now: int) -> Offerings:
    found = []
    for key, end in until.items():
        if end > now:
            kind, name, zone = key.split("|")
            found.append((kind, name, zone))
    return frozenset(found)


def lapses(facts: Facts) -> list[int]:
    """When something counts as available again (ms since the epoch)."""
    return [*facts.unavailable.values(), *facts.full_subnets.values()]


def forget_lapsed(facts: Facts, at: int) -> None:
    """Forget what is available again."""
    facts.unavailable = {key: until for key, until in facts.unavailable.items() if until > at}
    facts.full_subnets = {subnet: until for subnet, until in facts.full_subnets.items() if until > at}


def avoided(facts: Facts, now: int) -> dict[str, int]:
    """What is avoided, by text, with the time until which it is: "capacity type|instance type|zone", or the id of a
    subnet."""
    found = {**facts.unavailable, **facts.full_subnets}
    return {text: until for text, until in sorted(found.items()) if until > now}
