"""Find what a name that somebody typed stands for, and suggest names where the record knows none like it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import islice

from kerf.engine.errors import InputError
from kerf.engine.model.did_you_mean import did_you_mean, is_it
from kerf.replay.errors import SubjectUnknown

_MAX_SUGGESTIONS = 3
_FEW, _SAME_END = 5_000, 3
"""So many names are all compared with one that somebody typed, letter by letter: that takes some 5 µs each."""
_KINDS: dict[str, tuple[str, ...]] = {
    "pod": ("pods", "po"),
    "node": ("nodes", "no"),
    "nodeclaim": ("nodeclaims", "nc"),
    "decision": ("decisions",),
    "instance": ("instances",),
    "nodepool": ("nodepools", "np"),
    "nodeclass": (
        "nodeclasses", "ec2nodeclass", "ec2nodeclasses", "ec2nc", "ec2ncs", "kwoknodeclass", "kwoknodeclasses",
    ),
    "poddisruptionbudget": ("poddisruptionbudgets", "pdb", "pdbs"),
    "workload": (
        "workloads", "deployment", "deployments", "deploy", "replicaset", "replicasets", "rs", "statefulset",
        "statefulsets", "sts", "daemonset", "daemonsets", "ds", "job", "jobs", "cronjob", "cronjobs", "cj",
    ),
}  # fmt: skip
_SHOWN = ("pod", "workload", "node", "nodeclaim", "nodepool", "nodeclass", "pdb", "instance", "decision")
_BARE = frozenset((*_SHOWN, "poddisruptionbudget", "ec2nodeclass"))
"""Words that are a kind and no name, where they stand alone: a pod may well be called job."""
_GROUPS = {
    "nodeclaim": ("karpenter.sh",), "nodepool": ("karpenter.sh",), "poddisruptionbudget": ("policy",),
    "nodeclass": ("karpenter.k8s.aws", "karpenter.kwok.sh"), "workload": ("apps", "batch"),
}  # fmt: skip


def kind_of(word: str) -> str:
    """Return the kind that a word names, as kubectl takes it, or "" for none. "Pods", "po" and "pod" name the same
    kind; so do "nodeclaim" and "nodeclaims.v1.karpenter.sh"."""
    name, _, group = word.lower().partition(".")
    kind = next((kind for kind, others in _KINDS.items() if name in (kind, *others)), "")
    return kind if not group or group.removeprefix("v1.") in _GROUPS.get(kind, ()) else ""


def with_kind(kind: str, name: str, command: str) -> str:
    """Write kind and name in one, where they are two words; "" for no name. Raises InputError (KERF200) for an unknown
    kind, and for a kind alone."""
    hint = f"kerf {command} RECORD NAME, or KIND NAME: {', '.join(_SHOWN)}"
    if name and not kind_of(kind):
        raise InputError(f"{kind!r} is no kind of what has a name", hint=hint, code="KERF200")
    word, slash, rest = kind.partition("/")
    if not name and kind_of(word) and ((slash and not rest) or (word in _BARE and not slash)):
        raise InputError(f"which {kind_of(word)} is not said", hint=hint, code="KERF200")
    return f"{kind}/{name}" if name else kind


def with_canonical_kind(name: str) -> str:
    """Write the kind before a name in its canonical form ("no/n1" becomes "node/n1"). Return other names as they
    are."""
    word, slash, rest = name.partition("/")
    kind = kind_of(word)
    return f"{kind}/{rest}" if kind and slash and rest else name


def similar_names(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return the most similar names, best first: those spelt alike, then those that contain it. If there
    are none, those spelt alike but for their namespace."""
    names = sorted(set(known))
    alike = did_you_mean(name, _worth_comparing(name, names), most=_MAX_SUGGESTIONS)
    parts = [known_name for known_name in names if name and name in known_name]
    return tuple(dict.fromkeys([*alike, *parts]) or _alike_but_for_namespace(name, names))[:_MAX_SUGGESTIONS]


def _alike_but_for_namespace(name: str, names: Iterable[str]) -> list[str]:
    bare: dict[str, list[str]] = {}
    for known_name in names:
        bare.setdefault(known_name.rpartition("/")[2], []).append(known_name)
    near = did_you_mean(name, _worth_comparing(name, sorted(bare)), most=_MAX_SUGGESTIONS)
    return [full for found in near for full in bare[found]]


def _worth_comparing(name: str, names: list[str]) -> list[str]:
    """Return those of many sorted names that begin or end as a name does; all of a few. Most slips leave one end of a
    name as it was."""
    if len(names) <= _FEW:
        return names
    place, end = bisect_left(names, name), name[-_SAME_END:]
    ending = islice((known for known in names if known.endswith(end)), _FEW)
    return list(dict.fromkeys([*names[max(0, place - _FEW) : place + _FEW], *ending]))


def unknown_subject(
    said: str, name: str, known: Iterable[str], *, where: str = "", otherwise: str = ""
) -> SubjectUnknown:
    """Make the error for a name that the record does not know. Its hint suggests similar names, or else says
    `otherwise` and where all names are listed."""
    likely = similar_names(name, known)
    hint = is_it(likely) or f"{otherwise}kerf log RECORD lists what there is"
    return SubjectUnknown(said, where=where, hint=hint)
