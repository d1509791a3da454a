"""Names as people give them: kinds as kubectl takes them, and what was probably meant by one that the record does not
know."""

from __future__ import annotations

from collections.abc import Iterable

from kerf.engine.model.did_you_mean import did_you_mean, is_it
from kerf.replay.errors import SubjectUnknown

_MAX_SUGGESTIONS = 3
_KINDS: dict[str, tuple[str, ...]] = {
    "pod": ("pods", "po"),
    "node": ("nodes", "no"),
    "nodeclaim": ("nodeclaims", "nc"),
    "decision": ("decisions",),
    "instance": ("instances",),
}
_GROUPS = {"nodeclaim": "karpenter.sh"}


def kind_of(word: str) -> str:
    """The kind that a word names, as kubectl takes it: "Pods", "po" and "pod" are one, and so are "nodeclaim" and
    "nodeclaims.v1.karpenter.sh". "" for a word that names none."""
    name, _, group = word.lower().partition(".")
    kind = next((kind for kind, others in _KINDS.items() if name in (kind, *others)), "")
    if group and (kind not in _GROUPS or group not in (_GROUPS[kind], f"v1.{_GROUPS[kind]}")):
        return ""
    return kind


def with_canonical_kind(name: str) -> str:
    """A name with its kind before it, the kind by its one name ("no/n1" as "node/n1"); any other as it is."""
    word, slash, rest = name.partition("/")
    kind = kind_of(word)
    return f"{kind}/{rest}" if kind and slash and rest else name


def similar_names(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """The names most like it, best first: by spelling, or as a part of them."""
    names = sorted(set(known))
    found = did_you_mean(name, names, most=_MAX_SUGGESTIONS)
    parts = [each for each in names if name and name in each and each not in found]
    return tuple([*found, *parts][:_MAX_SUGGESTIONS])


def unknown_subject(
    said: str, name: str, known: Iterable[str], *, where: str = "", otherwise: str = ""
) -> SubjectUnknown:
    """The error that says so: with the names most like it, or else `otherwise` and where all of them are listed."""
    likely = similar_names(name, known)
    hint = is_it(likely) or f"{otherwise}kerf log RECORD lists what there is"
    return SubjectUnknown(said, where=where, hint=hint)
