"""Put coded reasons into words. The record keeps codes; sentences are made here, as late as possible.

The lists of codes have their sentences beside them (see `kerf.engine.model.reasons`). Here the parameters are filled
in, with durations and prices in words. A code without a sentence shows as it is: nothing is hidden, nothing fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from kerf.engine.lifecycle.adoption import NODE_DELETED
from kerf.engine.lifecycle.reasons import LifecycleCode
from kerf.engine.model.disruption_reasons import DisruptionCode, DisruptionReason, DriftReason
from kerf.engine.model.reasons import Reason, ReasonCode
from kerf.engine.scheduling import reasons as scheduling
from kerf.projections.prose.amounts import count, dollars, duration
from kerf.projections.prose.explanation_codes import ExplanationCode
from kerf.projections.prose.few_words import few_words
from kerf.projections.prose.nearest_reasons import nearest_first

_DURATION_PARAMETERS = ("quiet", "age", "waited")
"""Parameters that are durations."""
_PRICE_PARAMETERS = ("limit", "savings")
"""Parameters of disruption and lifecycle that are USD per hour."""
_NUMBERS = (*_DURATION_PARAMETERS, *_PRICE_PARAMETERS, "count", "found", "needed", "left", "buffers", "ill")
"""Parameters without which a sentence of disruption or lifecycle says nothing."""

_REQUIREMENT_PARAMETERS = ("incoming", "existing")
"""Parameters that are requirements as text."""
_BOUNDS = re.compile(r" Exists(?: >=(-?\d+))?(?: <=(-?\d+))?(?= |$)")

_LISTS: tuple[type[ReasonCode], ...] = (LifecycleCode, DisruptionCode, DriftReason, DisruptionReason, ExplanationCode)
_TEMPLATES: dict[str, str] = {code.value: code.sentence for codes in _LISTS for code in codes}
"""Where two lists share a code, the sentence of the later list counts."""

DELETED = {
    "": "its NodeClaim was deleted (the API server does not say by whom)",
    "unknown": "its NodeClaim was deleted (the API server does not say by whom)",
    NODE_DELETED: "its Node was deleted (the API server does not say by whom)",
}
"""What was deleted, for deletions where nobody is said to have asked."""


def sentence(reason: Reason) -> str:
    """Write the reason as a sentence without its subject. Two codes are also scheduling's; scheduling's carry
    `node_pool`."""
    by_nobody = DELETED.get(str(reason.params.get("detail", "")))
    if reason.code == DisruptionReason.DELETED and by_nobody is not None:
        return by_nobody
    if reason.code == DisruptionReason.EMPTY and "quiet" not in reason.params:  # of a move, not of one of its nodes
        return "nothing that needs a place runs on it"
    template = _TEMPLATES.get(reason.code)
    if template is None or "node_pool" in reason.params:
        return scheduling.sentence(
            Reason(reason.code, {k: _requirements_in_words(k, v) for k, v in reason.params.items()})
        )
    if any(f"{{{number}}}" in template for number in _NUMBERS if number not in reason.params):
        return few_words(reason.code)  # the code alone was kept, and without its numbers it makes no sentence
    said = template.format_map(
        _Parameters({name: _parameter_in_words(name, value) for name, value in reason.params.items()})
    )
    return " ".join(said.split())


def sentences(
    reasons: Sequence[Reason],
    more: Callable[[Reason], str] = lambda reason: "",
    gives: Callable[[str, Collection[str]], bool] | None = None,
) -> str:
    """Say why a pod has no place: one sentence for each NodePool that was asked, the nearest to a place first
    (S-174), and after each what is `more` known of it. `gives`: see `nearest_first`."""
    return "; ".join(sentence(reason) + more(reason) for reason in nearest_first(reasons, gives))


def requirement_words(text: str) -> str:
    """Write the engine's text of a requirement (S-14) with its bounds in words: "cpu Exists <=16" becomes "cpu at most
    16"."""
    return _BOUNDS.sub(_bounds_in_words, text)


def _bounds_in_words(match: re.Match[str]) -> str:
    ends = ((word, end) for word, end in zip(("at least", "at most"), match.groups(), strict=True) if end)
    return " " + (" and ".join(f"{word} {end}" for word, end in ends) or "Exists")


def _requirements_in_words(name: str, value: str | int | float | list[str]) -> str | int | float | list[str]:
    if name not in _REQUIREMENT_PARAMETERS or not isinstance(value, list):
        return value
    return [requirement_words(requirement) for requirement in value]


def _parameter_in_words(name: str, value: str | int | float | list[str]) -> str | int | float:
    if isinstance(value, list):
        return ", ".join(value)
    if isinstance(value, int) and name in _DURATION_PARAMETERS:
        return duration(value)
    if isinstance(value, int) and name == "pods":
        return count(value, "pod")
    return dollars(value) if name in _PRICE_PARAMETERS and isinstance(value, int | float) else value


class _Parameters(dict[str, object]):
    """The parameters of a sentence. One that the record does not have is left out."""

    def __missing__(self, key: str) -> str:
        return ""
