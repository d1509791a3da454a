"""Funnels in words: what ruled instance types out, what would let some through, and what a pod gave up."""

from __future__ import annotations

from kerf.engine.model.quantities import format_quantity
from kerf.engine.scheduling.explain.relaxed_preferences import RelaxedPreference
from kerf.engine.scheduling.explain.tracer import Cut, NearMiss
from kerf.projections.prose.reasons import count, requirement_words

CUTS: dict[str, str] = {
    "limits": "more {key} than the NodePool's limits leave",
    "taint": "the taint {wanted}, which is not tolerated",
    "requirement": "not {wanted}",
    "offering": "not on offer in the zones and capacity types that are left",
    "left-out": "left out by the search for a cheaper plan when it opened this node",
    "unavailable": "no capacity when last tried",
    "resource": "too little {key} for {wanted}",
    "host-ports": "a DaemonSet takes the host ports {wanted}",
    "devices": "not the devices for {wanted}",
    "volumes": "not where the pods' volumes are: {wanted}",
    "topology": "no place that spread and affinity over {wanted} allow",
    "min-values": "fewer values than minValues asks for",
}
"""Why a funnel's step ruled types out."""

NEAR: dict[str, str] = {
    "limits": "if the NodePool's limits left {short} more {key}",
    "taint": "if the pods tolerated the taint {key}",
    "requirement": "if {side} allowed {values} for {key}",
    "label": "if {side} asked nothing of {key}",
    "offering": "if they were on offer",
    "unavailable": "if there were capacity again",
    "resource": "if the pods asked for {short} less {key}",
    "host-ports": "if the host ports were free",
    "devices": "if they brought the devices",
    "min-values": "if minValues asked for less",
    "topology": "if {side} over {key} allowed {values}",
    "follow": "if they did not have to be with other pods (affinity over {key})",
}
"""What single change would let more types through."""

GIVEN_UP: dict[str, str] = {
    "required-term": "{asked}, the first of its alternatives",
    "preferred-term": "its preference for {asked}",
    "affinity": "its preference to be with other pods, over {key}",
    "anti-affinity": "its preference to be apart from other pods, over {key}",
    "spread": "its spread over {key}, which is ScheduleAnyway",
    "soft-taints": "to keep off taints that are PreferNoSchedule",
}
"""What pods may give up for a place."""

VALUES = 6
"""So many of the values that a label would have to allow are named."""

_GI = 2**30
_MANY = 10 * _GI
_SIDES = {
    "pod": "the pods",
    "node-pool": "the NodePool",
    "spread": "their spread",
    "anti-affinity": "the anti-affinity",
}


def cut_sentence(cut: Cut) -> str:
    wanted = format_quantity(int(cut.wanted), cut.key) if cut.what == "resource" and cut.wanted else cut.wanted
    besides = f" and up to {format_quantity(cut.daemons, cut.key)} for daemons" if cut.daemons else ""
    return CUTS[cut.what].format(key=cut.key, wanted=requirement_words(wanted)) + besides


def near_sentence(miss: NearMiss) -> str:
    values, side = _any_of(miss), _SIDES.get(miss.side, "the NodePool or the pods")
    change = NEAR[_change(miss)].format(key=miss.key, short=_at_most(miss.short, miss.key), values=values, side=side)
    meant = f" (is {' or '.join(miss.meant)} meant?)" if miss.meant else ""
    return f"{count(miss.types, 'type')} would do {change}, {miss.example} first{meant}"


def _change(miss: NearMiss) -> str:
    if miss.what == "requirement" and not miss.values:
        return "label"
    return "follow" if miss.what == "topology" and miss.side == "affinity" else miss.what


def _at_most(amount: int, resource: str) -> str:
    """An amount; many bytes in whole Gi, rather too many than too few."""
    exact = format_quantity(amount, resource)
    return f"{-(-amount // _GI)}Gi" if exact.endswith(("Ki", "Mi")) and amount > _MANY else exact


def _any_of(miss: NearMiss) -> str:
    """The values that would have to be allowed, what may be meant first."""
    values = (*miss.meant, *(each for each in miss.values if each not in miss.meant))
    shown = values[: len(miss.meant) or VALUES]
    if not values:
        return "a further node"
    more = f" (and {len(values) - len(shown)} more)" if len(values) > len(shown) else ""
    return f"{' or '.join(shown)}{more}"


def given_up_sentence(found: RelaxedPreference) -> str:
    asked = " and ".join(requirement_words(each) for each in found.requirements)
    weight = f" (weight {found.weight})" if found.weight else ""
    return GIVEN_UP[found.what].format(asked=asked or "any node", key=found.key) + weight
