"""What the cloud lately had no capacity for, and for whom (A-212, A-290…A-296).

A refused offering counts for all NodeClasses, but one that was refused inside a placement group only for those that
launch into that group. A subnet without free addresses counts for the NodeClasses that have no other in its zone. A
reservation that has nothing left says nothing of others, even of the same type and zone.
"""

from __future__ import annotations

from msgspec.structs import replace

from kerf.engine.model.karpenter.launch_reasons import NO_ADDRESSES, NO_CAPACITY, NO_SPOT_ROLE
from kerf.engine.model.labels import SPOT
from kerf.engine.record.observations import LaunchError
from kerf.engine.state.state import Facts, GroupLacks

Offerings = frozenset[tuple[str, str, str]]
"""As in `Problem.unavailable`: (capacity type, instance type, zone); "" matches any."""


def is_remembered(error: LaunchError) -> bool:
    """Whether what was refused is avoided for a while."""
    return error.code == NO_SPOT_ROLE or (error.code in NO_CAPACITY and bool(error.instance_type))


def remember(facts: Facts, error: LaunchError, until: int) -> None:
    """Note for whom the refused offering is unavailable until then (A-293…A-297)."""
    if not is_remembered(error):
        return
    if error.code == NO_SPOT_ROLE:
        facts.unavailable[f"{SPOT}||"] = until
    elif error.code == NO_ADDRESSES and error.subnet:
        facts.full_subnets[error.subnet] = until  # the type is there for whoever has another subnet
    elif any(error.reservation in seen.left for seen in facts.reservations.values()):
        use_up(facts, error.reservation)
    else:
        group = error.placement_group
        lacks = facts.placement_groups.setdefault(group, GroupLacks()).unavailable if group else facts.unavailable
        whole_zone = bool(group) and error.full
        lacks[f"||{error.zone}" if whole_zone else f"{error.capacity_type}|{error.instance_type}|{error.zone}"] = until


def use_up(facts: Facts, reservation: str) -> None:
    """Note that nothing is left of a reservation, until the cloud tells otherwise (A-297, A-360)."""
    for key, seen in facts.reservations.items():
        if reservation in seen.left:
            facts.reservations[key] = replace(seen, left={**seen.left, reservation: 0})


def unavailable(facts: Facts, now: int) -> Offerings:
    """The offerings that are unavailable to all NodeClasses."""
    return _offerings(facts.unavailable, now)


def unavailable_to(facts: Facts, node_class: str, now: int) -> Offerings:
    """The offerings that are besides unavailable to one NodeClass (`group/kind/name`): all in the zones of which it has
    only full subnets, and what its placement group has no room for (A-212)."""
    known = facts.node_classes.get(node_class)
    if known is None or known.terms is None or not (facts.full_subnets or facts.placement_groups):
        return frozenset()
    full = {subnet for subnet, until in facts.full_subnets.items() if until > now}
    closed = frozenset(("", "", zone) for zone, subnets in known.terms.zones.items() if full.issuperset(subnets))
    group = facts.placement_groups.get(known.terms.placement_group)
    return closed | _offerings(group.unavailable, now) if group is not None else closed


def _offerings(until: dict[str, int], now: int) -> Offerings:
    found = []
    for key, end in until.items():
        if end > now:
            kind, name, zone = key.split("|")
            found.append((kind, name, zone))
    return frozenset(found)


def lapses(facts: Facts) -> list[int]:
    """When something counts as available again (ms since the epoch)."""
    groups = (until for group in facts.placement_groups.values() for until in group.unavailable.values())
    return [*facts.unavailable.values(), *facts.full_subnets.values(), *groups]


def forget_lapsed(facts: Facts, at: int) -> None:
    """Forget what is available again."""
    facts.unavailable = _later(facts.unavailable, at)
    facts.full_subnets = _later(facts.full_subnets, at)
    lacks = {name: GroupLacks(_later(group.unavailable, at)) for name, group in facts.placement_groups.items()}
    facts.placement_groups = {name: group for name, group in lacks.items() if group.unavailable}


def _later(until: dict[str, int], at: int) -> dict[str, int]:
    return {key: end for key, end in until.items() if end > at}


def avoided(facts: Facts, now: int) -> dict[str, int]:
    """What is avoided, by text, with the time until which it is: "capacity type|instance type|zone", with "|in" and a
    placement group behind it where it is avoided only there; or the id of a subnet."""
    found = {**facts.unavailable, **facts.full_subnets}
    for name, group in facts.placement_groups.items():
        found |= {f"{key}|in {name}": until for key, until in group.unavailable.items()}
    return _later(dict(sorted(found.items())), now)
