"""Funnels in words: what ruled instance types out, what would let some through, and what a pod gave up."""

from __future__ import annotations

from kerf.engine.model.quantities import format_quantity
from kerf.engine.scheduling.explain.relaxed_preferences import RelaxedPreference
from kerf.engine.scheduling.explain.tracer import Cut, NearMiss
from kerf.projections.prose.amounts import count
from kerf.projections.prose.reasons import requirement_words

CUT_SENTENCES: dict[str, str] = {
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

NEAR_MISS_SENTENCES: dict[str, str] = {
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

GIVEN_UP_SENTENCES: dict[str, str] = {
    "required-term": "{asked}, the first of its alternatives",
    "preferred-term": "its preference for {asked}",
    "affinity": "its preference to be with other pods, over {key}",
    "anti-affinity": "its preference to be apart from other pods, over {key}",
    "spread": "its spread over {key}, which is ScheduleAnyway",
    "soft-taints": "to keep off taints that are PreferNoSchedule",
}
"""What pods may give up for a place."""

MAX_VALUES_SHOWN = 6
"""So many of the values that a label would have to allow are named."""

_GI = 2**30
_WHOLE_GI_ABOVE = 10 * _GI
_WHO_ASKS = {
    "pod": "the pods",
    "node-pool": "the NodePool",
    "spread": "their spread",
    "anti-affinity": "the anti-affinity",
}


def cut_sentence(cut: Cut) -> str:
    wanted = format_quantity(int(cut.wanted), cut.key) if cut.what == "resource" and cut.wanted else cut.wanted
    besides = f" and up to {format_quantity(cut.daemons, cut.key)} for daemons" if cut.daemons else ""
    return CUT_SENTENCES[cut.what].format(key=cut.key, wanted=requirement_words(wanted)) + besides


def near_miss_sentence(miss: NearMiss) -> str:
    values, side = _wanted_values(miss), _WHO_ASKS.get(miss.side, "the NodePool or the pods")
    change = NEAR_MISS_SENTENCES[_change(miss)].format(
        key=miss.key, short=_rounded_up(miss.short, miss.key), values=values, side=side
    )
    meant = f" (is {' or '.join(miss.meant)} meant?)" if miss.meant else ""
    return f"{count(miss.types, 'type')} would do {change}, {miss.example} first{meant}"


def _change(miss: NearMiss) -> str:
    if miss.what == "requirement" and not miss.values:
        return "label"
    return "follow" if miss.what == "topology" and miss.side == "affinity" else miss.what


def _rounded_up(amount: int, resource: str) -> str:
    """An amount; many bytes in whole Gi, rather too many than too few."""
    exact = format_quantity(amount, resource)
    return f"{-(-amount // _GI)}Gi" if exact.endswith(("Ki", "Mi")) and amount > _WHOLE_GI_ABOVE else exact


def _wanted_values(miss: NearMiss) -> str:
    """The values that would have to be allowed, what may be meant first."""
    values = (*miss.meant, *(each for each in miss.values if each not in miss.meant))
    listed = values[: len(miss.meant) or MAX_VALUES_SHOWN]
    if not values:
        return "a further node"
    more = f" (and {len(values) - len(listed)} more)" if len(values) > len(listed) else ""
    return f"{' or '.join(listed)}{more}"


def given_up_sentence(given_up: RelaxedPreference) -> str:
    asked = " and ".join(requirement_words(each) for each in given_up.requirements)
    weight = f" (weight {given_up.weight})" if given_up.weight else ""
    return GIVEN_UP_SENTENCES[given_up.what].format(asked=asked or "any node", key=given_up.key) + weight
