"""Put funnels into words: what ruled instance types out, what would let some through, what preferences a pod gave
up."""

from __future__ import annotations

from kerf.engine.model.quantities import format_quantity
from kerf.engine.scheduling.explain.relaxed_preferences import RelaxationKind, RelaxedPreference
from kerf.engine.scheduling.explain.tracer import Cut, NearMiss
from kerf.engine.scheduling.explain.type_filters import FilterKind
from kerf.projections.prose.amounts import count
from kerf.projections.prose.reasons import requirement_words

_FILTER_KINDS = {kind.value: kind for kind in FilterKind}
_RELAXATION_KINDS = {kind.value: kind for kind in RelaxationKind}

_UNCONSTRAINED_LABEL = "if {side} asked nothing of {key}"
_WITHOUT_AFFINITY = "if they did not have to be with other pods (affinity over {key})"

MAX_VALUES_SHOWN = 6
"""At most this many of the values that a label would have to allow are named."""

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
    besides += f"; tolerated is {', '.join(cut.tolerated)}" if cut.tolerated else ""
    return _FILTER_KINDS[cut.what].sentence.format(key=cut.key, wanted=requirement_words(wanted)) + besides


def near_miss_sentence(miss: NearMiss) -> str:
    values, side = _wanted_values(miss), _WHO_ASKS.get(miss.side, "the NodePool or the pods")
    change = _change(miss).format(key=miss.key, short=_rounded_up(miss.short, miss.key), values=values, side=side)
    meant = f" (is {' or '.join(miss.meant)} meant?)" if miss.meant else ""
    return f"{count(miss.types, 'type')} would do {change}, {miss.example} first{meant}"


def _change(miss: NearMiss) -> str:
    """The sentence for the change; with an affinity, or without values to allow, the kind of filter alone does not say
    it."""
    kind = _FILTER_KINDS[miss.what]
    if kind is FilterKind.REQUIREMENT and not miss.values:
        return _UNCONSTRAINED_LABEL
    return _WITHOUT_AFFINITY if kind is FilterKind.TOPOLOGY and miss.side == "affinity" else kind.change


def _rounded_up(amount: int, resource: str) -> str:
    """Write an amount. Many bytes are rounded up to whole Gi."""
    exact = format_quantity(amount, resource)
    return f"{-(-amount // _GI)}Gi" if exact.endswith(("Ki", "Mi")) and amount > _WHOLE_GI_ABOVE else exact


def _wanted_values(miss: NearMiss) -> str:
    """List the values that would have to be allowed, likely typing errors first."""
    values = (*miss.meant, *(value for value in miss.values if value not in miss.meant))
    listed = values[: len(miss.meant) or MAX_VALUES_SHOWN]
    if not values:
        return "a further node"
    more = f" (and {len(values) - len(listed)} more)" if len(values) > len(listed) else ""
    return f"{' or '.join(listed)}{more}"


def given_up_sentence(given_up: RelaxedPreference) -> str:
    asked = " and ".join(requirement_words(requirement) for requirement in given_up.requirements)
    weight = f" (weight {given_up.weight})" if given_up.weight else ""
    return _RELAXATION_KINDS[given_up.what].sentence.format(asked=asked or "any node", key=given_up.key) + weight
