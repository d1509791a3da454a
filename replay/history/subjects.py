"""Find what a name stands for in a record: a pod, workload, node, NodeClaim, NodePool, NodeClass, instance or
PodDisruptionBudget."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from kerf.engine.model.did_you_mean import did_you_mean, is_it
from kerf.engine.model.missing_knowledge import Missing
from kerf.engine.record.store import Store
from kerf.replay.errors import SubjectAmbiguous, SubjectUnknown
from kerf.replay.history.histories import Histories
from kerf.replay.history.histories_until import histories_of
from kerf.replay.partial_records import require
from kerf.replay.record_names.named_entries import NamedEntries
from kerf.replay.subject_names import kind_of, similar_names, unknown_subject

CLAIM, NODE, POD, INSTANCE, POOL, WORKLOAD = "nodeclaim", "node", "pod", "instance", "nodepool", "workload"
BUDGET, NODE_CLASS = "poddisruptionbudget", "nodeclass"
MAX_MEANINGS_SHOWN = 5
"""At most so many of the things are named that a name may stand for."""


class Subject(Struct, frozen=True):
    """What a name stands for. Pods, workloads and PodDisruptionBudgets are named namespace/name."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


def subject_of(histories: Histories, text: str) -> Subject:
    """Find what a name stands for. A kind before it decides ("node/n1", "deploy/web"), else the first kind of `KINDS`
    that has it. The namespace may be left out.

    Raises SubjectUnknown (KERF203), with the names most like it, SubjectAmbiguous (KERF210) for a name of several
    namespaces, and PartialRecord (KERF211) for a pod in a record that was imported without pods.
    """
    found = _find(histories, text)
    if found is not None:
        return found
    kinds, name = _asked(histories, text)
    what = kind_words(kinds)
    if kinds in ((POD,), (WORKLOAD,)) or "/" in name:
        require(histories.imported, Missing.PODS, f"whether there was a {what} {name!r}")
    names = [known for kind in kinds for known in _NAMES[kind](histories)]
    otherwise = f"A decision is asked for as decision/{name}. " if name.isascii() and name.isdigit() else ""
    near = [] if kinds == KINDS else _nearer_elsewhere(histories, name, similar_names(name, names))
    said = f"the record knows no {what} {name!r}"
    raise SubjectUnknown(said, hint=is_it(near)) if near else unknown_subject(said, name, names, otherwise=otherwise)


def _nearer_elsewhere(histories: Histories, name: str, own: tuple[str, ...]) -> list[str]:
    """Return names to suggest where one of another kind comes nearer than `own`, those of the kind that was asked for.
    A pod's name ends in letters of chance: who mistypes the name of its workload comes near no pod."""
    others = [(kind, near) for kind in KINDS for near in similar_names(name, _NAMES[kind](histories))[:1]]
    best = did_you_mean(name, [*own, *(near for _, near in others)])
    if own and (not best or best[0] in own):
        return []
    return [*(f"{kind}/{near}" for kind, near in others if not own or near == best[0]), *own]


def _asked(histories: Histories, text: str) -> tuple[tuple[str, ...], str]:
    """Return the kinds that a text may name, and the name."""
    word, _, rest = text.partition("/")
    kind = kind_of(word)
    return ((kind,), rest) if kind in _NAMES and rest and not _exactly(histories, POD, text) else (KINDS, text)


def _find(histories: Histories, text: str) -> Subject | None:
    """As `subject_of`; None for an unknown name."""
    kinds, name = _asked(histories, text)
    for kind in kinds:
        if _exactly(histories, kind, name):
            return Subject(kind, name)
    for kind in kinds:
        meant = _CALLED[kind](histories, name) if kind in _CALLED and "/" not in name else []
        if len(meant) > 1:
            listed = ", ".join(meant[:MAX_MEANINGS_SHOWN]) + (" and more" if len(meant) > MAX_MEANINGS_SHOWN else "")
            raise SubjectAmbiguous(f"{name!r} stands for several: {listed}", hint="Write the namespace before the name")
        if meant:
            return Subject(kind, meant[0])
    return None


def subject_at(
    store: Store, text: str, position: int | None, named: NamedEntries | None = None
) -> tuple[Histories, Subject]:
    """Find what a name stands for at a position, and the histories up to there. `named` finds entries up to there.

    As `subject_of`. A name that comes up only later is refused as such.
    """
    histories = histories_of(store, position, named)
    last = store.last_position()
    if position is None or position >= last:
        return histories, subject_of(histories, text)
    found = _find(histories, text)
    if found is not None:
        return histories, found
    later = subject_of(histories_of(store, last, named.up_to(last) if named is not None else None), text)
    raise SubjectUnknown(
        f"{later.kind} {later.name} was not there yet",
        where=f"position {position}",
        hint=f"kerf story RECORD {later} tells when it came",
    )


def kind_words(kinds: Iterable[str]) -> str:
    """Name kinds as a message does."""
    words = [_WORDS.get(kind, kind) for kind in kinds]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]} called"


def _exactly(histories: Histories, kind: str, name: str) -> bool:
    if kind == POD:
        return bool(histories.pods.uids_of(name))
    return bool(histories.pods.of_workload(name)) if kind == WORKLOAD else name in _NAMES[kind](histories)


_WORDS = {CLAIM: "NodeClaim", POOL: "NodePool", BUDGET: "PodDisruptionBudget", NODE_CLASS: "NodeClass"}
_CALLED: dict[str, Callable[[Histories, str], list[str]]] = {
    POD: lambda histories, name: histories.pods.keys_called(name),
    WORKLOAD: lambda histories, name: histories.pods.workloads_called(name),
    BUDGET: lambda histories, name: sorted(key for key in histories.budgets if key.partition("/")[2] == name),
}
"""Kind → the names with their namespaces that have this name."""
_NAMES: dict[str, Callable[[Histories], Iterable[str]]] = {
    CLAIM: lambda histories: [name for name, claim in histories.claims.items() if claim.events],
    NODE: lambda histories: {**histories.nodes, **dict.fromkeys(histories.claims_of_node, 0)},
    POD: lambda histories: histories.pods.names(),
    INSTANCE: lambda histories: {claim.instance for claim in histories.claims.values() if claim.instance},
    POOL: lambda histories: histories.node_pools,
    WORKLOAD: lambda histories: histories.pods.workloads() | histories.pods.controllers(),
    BUDGET: lambda histories: histories.budgets,
    NODE_CLASS: lambda histories: histories.node_classes,
}
KINDS = tuple(_NAMES)
"""The kinds in the order in which a name without one is looked for."""
