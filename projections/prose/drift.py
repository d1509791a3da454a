"""Put drift into words: the fields in which a node is not as its NodePool and NodeClass ask for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kerf.engine.model.disruption_reasons import DriftReason
from kerf.engine.model.karpenter.nodeclaim_templates import Difference
from kerf.engine.model.reasons import Reason
from kerf.projections.prose.reasons import requirement_words, sentence

MAX_DIFFERENCES_SHOWN = 8
"""At most this many drifted fields are written out."""


def difference_words(difference: Difference) -> str:
    """Describe one field: what the node has, and what is asked for."""
    item, _, rest = difference.key.partition(" ")
    path = f"{difference.field}[{item}]" + (f".{rest}" if rest else "") if item else difference.field
    if difference.field == "requirements":
        has = "without the label" if difference.was is None else f"is {difference.was or 'empty'}"
        asked = requirement_words(f"{difference.key} {difference.now}").partition(" ")[2]
        return f"{difference.key} {has}, and has to be {asked}"
    if difference.was is None:
        return f"{path} is new: {difference.now}"
    if difference.now is None:
        return f"{path} is gone: {difference.was}"
    return f"{path} {difference.was} → {difference.now}"


def differences_words(differences: Sequence[Difference]) -> str:
    """Describe the fields in one line; "" for none."""
    listed = [difference_words(difference) for difference in differences[:MAX_DIFFERENCES_SHOWN]]
    left = len(differences) - len(listed)
    return "; ".join([*listed, f"and {left} more"] if left else listed)


_COMPARED = {
    DriftReason.AMI_DRIFT.value: "image",
    DriftReason.SECURITY_GROUP_DRIFT.value: "security groups",
    DriftReason.SUBNET_DRIFT.value: "subnet",
    DriftReason.INSTANCE_TYPE_NOT_FOUND.value: "instance type",
    DriftReason.CAPACITY_RESERVATION_DRIFT.value: "capacity reservation",
}


def not_compared_words(codes: Iterable[str]) -> str:
    """Name what nobody can compare with what is asked for."""
    return ", ".join(_COMPARED.get(code, code) for code in codes)


def verdict_words(reason: Reason, differences: Sequence[Difference]) -> str:
    """Write a verdict's reason, with the fields that drifted if it has any."""
    fields = differences_words(differences)
    return f"{sentence(reason)} ({fields})" if fields else sentence(reason)


def drifted_words(reasons: Mapping[str, int]) -> str:
    """Say how many nodes have drifted, and by what: 3 drifted (2 AMIDrift, 1 NodePoolDrifted)."""
    return f"{sum(reasons.values()):,} drifted ({', '.join(f'{nodes:,} {name}' for name, nodes in reasons.items())})"
