"""Coded reasons in words. Codes are what the record keeps; prose is made here, as late as possible.

The lists of codes have their sentences beside them (`kerf.engine.model.reasons`). Here these are filled in, with
durations and prices in words; and here is what would have to change before a node may go. A code without a sentence
shows as it is: nothing is hidden, nothing fails.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from kerf.engine.lifecycle.reasons import LifecycleCode
from kerf.engine.model.disruption_reasons import DisruptionCode, DisruptionReason, DriftReason
from kerf.engine.model.karpenter.nodeclaim_templates import Difference
from kerf.engine.model.reasons import Reason, ReasonCode
from kerf.engine.scheduling import reasons as scheduling

_TIMES = ("quiet", "age", "waited")
"""Parameters that are durations."""
_PRICES = ("limit",)
"""Those of disruption and lifecycle that are USD per hour."""

_REQUIREMENTS = ("incoming", "existing")
"""Those that are requirements as text."""
_BOUNDED = re.compile(r" Exists(?: >=(-?\d+))?(?: <=(-?\d+))?(?= |$)")

_LISTS: tuple[type[ReasonCode], ...] = (LifecycleCode, DisruptionCode, DriftReason, DisruptionReason)
_TEMPLATES: dict[str, str] = {code.value: code.sentence for codes in _LISTS for code in codes}
"""Where two lists share a code, the sentence of the later list counts."""

EXPLAINED: dict[str, str] = {
    "deletion-asked": "{actor} asked for its deletion",
    "fits-on-a-cheaper-node": "its pods fit on a node that costs less",
    "goes-at-once": "it may go, within the disruption budgets, and does so at once",
    "goes-as-empty": "it is empty: emptiness decides about it",
    "has-room-elsewhere": "its pods have room on other nodes",
    "ill-for-a-while": "its node is unhealthy ({condition}: {status}), but not for as long as is tolerated",
    "interruption-announced": "the cloud announced: {kind}",
    "launch-failed": "nothing could be launched: {code}",
    "launch-timed-out": "no instance came within the launch limit",
    "move-started-alone": "it goes, for it is {why}: the taint is put on it",
    "nodepool-gone": "NodePool {nodepool} was deleted: its NodeClaims go with it",
    "repair-off": "nodes are not repaired: the feature gate NodeRepair is off",
    "move-started": "it goes, for it is {why}: the taint is put on it, and what replaces it is launched",
    "reason-raised": "a stronger reason came, which waits for nothing",
    "tainted": "it is marked as going",
    "waits-for-budget": "it could go ({why}), as soon as the disruption budgets of its NodePool leave room",
    "would-go": "nothing speaks against its removal now ({why})",
}
"""Codes that only replay's explanations use."""

TO_BE_REMOVED: dict[str, str] = {
    "awaiting-pods": "the pods planned onto it are bound elsewhere or go away",
    "consolidate-after-never": "the NodePool's spec.disruption.consolidateAfter is set to a duration",
    "do-not-disrupt": "the annotation karpenter.sh/do-not-disrupt is taken off",
    "empty-not-long-enough": "it stays empty until the time is up",
    "has-pods": "the pods on it end or move, and then spec.disruption.consolidateAfter passes",
    "no-node": "its Node object shows again",
    "no-nodepool": "the NodePool shows again, or the NodeClaim is deleted",
    "no-usable-nodepool": "a NodePool without spec.replicas becomes ready",
    "not-initialized": "its node becomes ready and is initialized",
    "static-nodepool": "the NodePool's spec.replicas is lowered",
}
"""For a claim that stays for this reason: what would have to happen before it may go."""

DELETED = {
    "": "its NodeClaim was deleted (the API server does not say by whom)",
    "unknown": "its NodeClaim was deleted (the API server does not say by whom)",
    "node deleted": "its Node was deleted (the API server does not say by whom)",
}
"""Of a deletion of which nobody said by whom: what was deleted."""


def sentence(reason: Reason) -> str:
    """The reason in words, without a subject. Two codes are scheduling's as well: its reasons carry `node_pool`."""
    by_nobody = DELETED.get(str(reason.params.get("detail", "")))
    if reason.code == DisruptionReason.DELETED and by_nobody is not None:
        return by_nobody
    template = _TEMPLATES.get(reason.code) or EXPLAINED.get(reason.code)
    if template is None or "node_pool" in reason.params:
        return scheduling.sentence(Reason(reason.code, {k: _in_words(k, v) for k, v in reason.params.items()}))
    said = template.format_map(_Known({name: _shown(name, value) for name, value in reason.params.items()}))
    return " ".join(said.split())


def sentences(reasons: Sequence[Reason]) -> str:
    """Why a pod has no place: the word of each NodePool that was asked, in their order (S-174)."""
    return "; ".join(map(sentence, reasons))


def requirement_words(text: str) -> str:
    """The engine's text of a requirement (S-14), with its bounds in words: cpu Exists <=16 is cpu at most 16."""
    return _BOUNDED.sub(_bounds, text)


def _bounds(found: re.Match[str]) -> str:
    ends = ((word, end) for word, end in zip(("at least", "at most"), found.groups(), strict=True) if end)
    return " " + (" and ".join(f"{word} {end}" for word, end in ends) or "Exists")


def _in_words(name: str, value: str | int | float | list[str]) -> str | int | float | list[str]:
    if name not in _REQUIREMENTS or not isinstance(value, list):
        return value
    return [requirement_words(each) for each in value]


def _shown(name: str, value: str | int | float | list[str]) -> str | int | float:
    if isinstance(value, list):
        return ", ".join(value)
    if isinstance(value, int) and name in _TIMES:
        return duration(value)
    if isinstance(value, int) and name == "pods":
        return count(value, "pod")
    return dollars(value) if name in _PRICES and isinstance(value, int | float) else value


class _Known(dict[str, object]):
    """Parameters of a sentence: one that the record does not have is left out."""

    def __missing__(self, key: str) -> str:
        return ""


SHOWN_DIFFERENCES = 8
"""So many of the fields in which a node has drifted are written out."""


def difference_words(found: Difference) -> str:
    """One field: what the node has, and what is asked for."""
    where = f"{found.field}[{found.key}]" if found.key else found.field
    if found.field == "requirements":
        has = "without the label" if found.was is None else f"is {found.was or 'empty'}"
        return f"{found.key} {has}, and has to be {requirement_words(f'{found.key} {found.now}').partition(' ')[2]}"
    if found.was is None:
        return f"{where} is new: {found.now}"
    return f"{where} is gone: {found.was}" if found.now is None else f"{where} was {found.was}, is {found.now}"


def differences_words(found: Sequence[Difference]) -> str:
    """The fields in one line, "" for none."""
    shown = [difference_words(each) for each in found[:SHOWN_DIFFERENCES]]
    left = len(found) - len(shown)
    return "; ".join([*shown, f"and {left} more"] if left else shown)


def judged(reason: Reason, found: Sequence[Difference]) -> str:
    """A verdict's reason in words, with the fields where it has them."""
    fields = differences_words(found)
    return f"{sentence(reason)} ({fields})" if fields else sentence(reason)


# ── figures ────────────────────────────────────────────────────────────────────────────────────────────────────────


def count(number: int, noun: str) -> str:
    """As in 1 pod, 3 pods; the noun takes a plain s."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def duration(milliseconds: int) -> str:
    """As Go writes durations, to the two largest units: 1h30m, 12.5s, 340ms."""
    sign, rest = ("-", -milliseconds) if milliseconds < 0 else ("", milliseconds)
    if rest < 1_000:
        return f"{sign}{rest}ms" if rest else "0s"
    if rest < 60_000:
        return f"{sign}{rest / 1000:.3f}".rstrip("0").rstrip(".") + "s"
    seconds = rest // 1000
    for unit, size, lower, lower_size in (("d", 86_400, "h", 3_600), ("h", 3_600, "m", 60), ("m", 60, "s", 1)):
        if seconds >= size:
            part = seconds % size // lower_size
            return f"{sign}{seconds // size}{unit}" + (f"{part}{lower}" if part else "")
    raise AssertionError(milliseconds)


def moment(milliseconds: int) -> str:
    """RFC 3339 in UTC with milliseconds."""
    whole, part = divmod(milliseconds, 1000)
    return f"{datetime.fromtimestamp(whole, UTC):%Y-%m-%dT%H:%M:%S}.{part:03d}Z"


def dollars(amount: float) -> str:
    return f"${amount:,.4f}"
