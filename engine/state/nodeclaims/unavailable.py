"""What the cloud lately had no capacity for, and for whom (A-212, A-290…A-296).

A refused offering counts for all NodeClasses, but one that was refused inside a placement group only for those that
launch into that group. A subnet without free addresses counts for the NodeClasses that have no other in its zone. A
reservation that has nothing left says nothing of others, even of the same type and zone.

What is refused is unavailable for three minutes. Then it is *in doubt* for as long as it has been refused without a
launch in between, three minutes at least and an hour at most. Pods that wait are planned for with it, and launch it
first (`kerf.engine.scheduling.launches_in_doubt`). No node is replaced by it.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from kerf.engine.model.karpenter.launch_reasons import NO_ADDRESSES, NO_CAPACITY, NO_SPOT_ROLE
from kerf.engine.model.labels import SPOT
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.record.observations import LaunchError
from kerf.engine.state.state import Facts, GroupLacks

Offerings = frozenset[tuple[str, str, str]]
"""As in `Problem.unavailable`: (capacity type, instance type, zone); "" matches any."""
MIN_DOUBT, MAX_DOUBT = 180_000, 3_600_000
"""For how long an offering is in doubt after it was unavailable, at least and at most (ms)."""


def is_remembered(error: LaunchError) -> bool:
    """Whether what was refused is avoided for a while."""
    return error.code == NO_SPOT_ROLE or (error.code in NO_CAPACITY and bool(error.instance_type))


def remember(facts: Facts, error: LaunchError, until: int, *, doubts: bool = True) -> None:
    """Note for whom the refused offering is unavailable until then (A-293…A-297), and that it is in `doubts` after
    that."""
    if not is_remembered(error):
        return
    if error.code == NO_SPOT_ROLE:
        _refused(facts.unavailable, facts.refused_since, f"{SPOT}||", until, doubts)
    elif error.code == NO_ADDRESSES and error.subnet:  # the type is there for whoever has another subnet
        _refused(facts.full_subnets, facts.subnets_full_since, error.subnet, until, doubts)
    elif any(error.reservation in seen.left for seen in facts.reservations.values()):
        use_up(facts, error.reservation)
    else:
        group = error.placement_group
        lacks = facts.placement_groups.setdefault(group, GroupLacks()) if group else facts
        whole_zone = bool(group) and error.full
        key = f"||{error.zone}" if whole_zone else f"{error.capacity_type}|{error.instance_type}|{error.zone}"
        _refused(lacks.unavailable, lacks.refused_since, key, until, doubts)


def _refused(unavailable: dict[str, int], since: dict[str, int], key: str, until: int, doubts: bool) -> None:
    unavailable[key] = until
    if doubts:
        since.setdefault(key, until)


def use_up(facts: Facts, reservation: str) -> None:
    """Note that nothing is left of a reservation, until the cloud tells otherwise (A-297, A-360)."""
    for key, seen in facts.reservations.items():
        if reservation in seen.left:
            facts.reservations[key] = replace(seen, left={**seen.left, reservation: 0})


def has_launched(facts: Facts, claim: NodeClaim) -> bool:
    """Note that the cloud had capacity for a claim: what it was launched as is in doubt no more. Returns whether it
    was."""
    known = facts.node_classes.get(claim.node_class.key)
    group = known.terms.placement_group if known is not None and known.terms is not None else ""
    lacks = facts.placement_groups.get(group)
    keys = (f"{claim.capacity_type}|{claim.instance_type}|{claim.zone}", f"{claim.capacity_type}||", f"||{claim.zone}")
    found = [facts.refused_since.pop(key, 0) for key in keys] + [facts.subnets_full_since.pop(claim.subnet, 0)]
    found += [lacks.refused_since.pop(key, 0) for key in keys] if lacks is not None else []
    return any(found)


def unavailable(facts: Facts, now: int, *, in_doubt: bool = False) -> Offerings:
    """The offerings that are unavailable to all NodeClasses; also those that are in doubt, if these are asked for."""
    return _offerings(facts.unavailable, facts.refused_since if in_doubt else {}, now)


def unavailable_to(facts: Facts, node_class: str, now: int, *, in_doubt: bool = False) -> Offerings:
    """The offerings that are besides unavailable to one NodeClass (`group/kind/name`): all in the zones of which it has
    only full subnets, and what its placement group has no room for (A-212). `in_doubt`: as above."""
    known = facts.node_classes.get(node_class)
    if known is None or known.terms is None or not (facts.full_subnets or facts.placement_groups):
        return frozenset()
    full = set(_avoided(facts.full_subnets, facts.subnets_full_since if in_doubt else {}, now))
    closed = frozenset(("", "", zone) for zone, subnets in known.terms.zones.items() if full.issuperset(subnets))
    group = facts.placement_groups.get(known.terms.placement_group)
    if group is None:
        return closed
    return closed | _offerings(group.unavailable, group.refused_since if in_doubt else {}, now)


def _offerings(until: dict[str, int], since: dict[str, int], now: int) -> Offerings:
    return frozenset(_offering(key) for key in _avoided(until, since, now))


def _offering(key: str) -> tuple[str, str, str]:
    kind, name, zone = key.split("|")
    return kind, name, zone


def _avoided(until: dict[str, int], since: dict[str, int], now: int) -> Iterator[str]:
    return (key for key, end in until.items() if end + _doubt(key, end, since) > now)


def _doubt(key: str, end: int, since: dict[str, int]) -> int:
    """For how long what is unavailable until `end` is in doubt after that (ms)."""
    return min(max(MIN_DOUBT, end - since[key]), MAX_DOUBT) if key in since else 0


def lapses(facts: Facts) -> list[int]:
    """When something counts, or counted, as available again (ms since the epoch)."""
    return [end for until, _ in _lacks(facts) for end in until.values()]


def doubts_end(facts: Facts) -> list[int]:
    """When something counts, or counted, as available again and is in doubt no more (ms since the epoch)."""
    return [end + _doubt(key, end, since) for until, since in _lacks(facts) for key, end in until.items()]


def _lacks(facts: Facts) -> list[tuple[dict[str, int], dict[str, int]]]:
    """What is unavailable until when, and since when each of these was refused."""
    groups = [(group.unavailable, group.refused_since) for group in facts.placement_groups.values()]
    return [
        (facts.unavailable, facts.refused_since),
        (facts.full_subnets, facts.subnets_full_since),
        *groups,
    ]


def forget_lapsed(facts: Facts, at: int) -> None:
    """Forget what is available again. What was in doubt is remembered for as long again, so that another refusal counts
    with those before."""
    for until, since in _lacks(facts):
        lapsed = [key for key, end in until.items() if end + 2 * _doubt(key, end, since) <= at]
        for key in lapsed:
            del until[key]
            since.pop(key, None)
    for name in [name for name, group in facts.placement_groups.items() if not group.unavailable]:
        del facts.placement_groups[name]


def refused_offerings(
    facts: Facts, node_class: str, now: int, *, in_doubt: bool = False
) -> dict[tuple[str, str, str], int]:
    """What a NodeClass (`group/kind/name`) was refused lately, as in `unavailable` and `unavailable_to`, with the time
    until which it is unavailable; or, if that is asked for, `in_doubt`."""

    def ends(until: dict[str, int], since: dict[str, int]) -> dict[str, int]:
        times = {key: end + (_doubt(key, end, since) if in_doubt else 0) for key, end in until.items()}
        return {key: end for key, end in times.items() if end > now}

    found = {_offering(key): end for key, end in ends(facts.unavailable, facts.refused_since).items()}
    known = facts.node_classes.get(node_class)
    if known is None or known.terms is None:
        return found
    full = ends(facts.full_subnets, facts.subnets_full_since)
    for zone, subnets in known.terms.zones.items():
        if subnets and full.keys() >= {*subnets}:
            found["", "", zone] = min(full[subnet] for subnet in subnets)
    group = facts.placement_groups.get(known.terms.placement_group)
    if group is not None:
        found |= {_offering(key): end for key, end in ends(group.unavailable, group.refused_since).items()}
    return found


def avoided(facts: Facts, now: int) -> dict[str, int]:
    """What is avoided, by text, with the time until which it is: "capacity type|instance type|zone", with "|in" and a
    placement group behind it where it is avoided only there; or the id of a subnet."""
    return {key: until for key, (until, _) in _by_text(facts).items() if until > now}


def doubted(facts: Facts, now: int) -> dict[str, int]:
    """What is in doubt, by text as in `avoided`, with the time until which it is."""
    return {key: end for key, (until, end) in _by_text(facts).items() if until <= now < end}


def _by_text(facts: Facts) -> dict[str, tuple[int, int]]:
    """Until when each is unavailable, and then in doubt, in the order of the texts."""
    lacks = [("", facts.unavailable, facts.refused_since), ("", facts.full_subnets, facts.subnets_full_since)]
    lacks += [(f"|in {name}", group.unavailable, group.refused_since) for name, group in facts.placement_groups.items()]
    found = {
        key + suffix: (end, end + _doubt(key, end, since))
        for suffix, until, since in lacks
        for key, end in until.items()
    }
    return dict(sorted(found.items()))
