"""Choose events of the timeline by what they are about: subject, kind, name, namespace, workload, reason."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from msgspec import Struct

from kerf.engine.model.did_you_mean import is_it
from kerf.engine.model.kinds.watched import WATCHED
from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.record.claim_events import Adopted, Launched, Registered
from kerf.engine.record.entries import Entry
from kerf.projections.timeline.event import Event
from kerf.projections.workload_names import workload_of
from kerf.replay.history.histories import ClaimHistory, Histories
from kerf.replay.subject_names import kind_of, similar_names, with_canonical_kind

_POD, _WORKLOAD, _MACHINE = "pod", "workload", ("nodeclaim", "node", "instance")
_OBJECTS = {
    **{
        word: kind.struct.__name__.lower()
        for kind in WATCHED
        for word in (kind.name, f"{kind.name}s", *(served.plural for served in kind.served))
    },
}
"""A word for a kind of object, as kubectl takes it → the kind in the subjects of events."""


_CALLED = {"claim-instance-vanished": "instance-vanished"}
"""What figures and explanations call the reason of an event that has none itself."""


class Asked(Struct, frozen=True):
    """What is asked for; "" asks for anything. `name` and `reason` take patterns, such as `web-*`. `workload` is
    namespace/name or a name; `reason` the code of a reason or of an event."""

    subject: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""
    workload: str = ""
    reason: str = ""

    def __str__(self) -> str:
        """As the flags of `kerf log` say it; a subject alone by its name."""
        given = {field: getattr(self, field) for field in self.__struct_fields__ if getattr(self, field)}
        return (
            self.subject if set(given) == {"subject"} else " ".join(f"--{flag} {text}" for flag, text in given.items())
        )


class EventFilter:
    """Chooses events. It has to see each entry before its events: that is how it knows pods' workloads."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self._kind = kind_of(asked.kind) or _kind_of_object(asked.kind)
        word, slash, key = asked.subject.partition("/")
        known = with_canonical_kind(asked.subject)
        self._spellings = {asked.subject, known, f"{_kind_of_object(word)}/{key}" if slash else ""}
        self._machines = set[str]()  # further names of the machines that the subject stands for
        self._claims: dict[str, ClaimHistory] = {}
        self._objects = bool(asked.kind or asked.name or asked.namespace or asked.workload)
        self._workloads: dict[str, str] = {}  # by pod
        self.other_reasons: set[str] = set()
        """Those of events about what is asked for."""

    def knows_machines(self, histories: Histories) -> None:
        """Take also events of the NodeClaim, node and instance that belong to the one that is asked for."""
        for claim in histories.claims.values():
            self._knows_machine(claim)

    def _knows_machine(self, claim: ClaimHistory) -> None:
        if self._concerns(names := claim.subjects()):
            self._machines.update(names)

    @property
    def may_ask_for_machine(self) -> bool:
        """Whether the subject may be a NodeClaim, a node or an instance."""
        kind, slash, _ = with_canonical_kind(self.asked.subject).partition("/")
        return bool(kind) and (not slash or kind in _MACHINE)

    def see(self, entry: Entry) -> None:
        if self.asked.workload and isinstance(entry.payload, Pod):
            self._workloads[entry.payload.key] = workload_of(entry.payload).key
        if isinstance(entry.payload, Launched | Registered | Adopted) and self.may_ask_for_machine:
            claim = self._claims.setdefault(entry.payload.claim, ClaimHistory(entry.payload.claim))
            claim.happened(entry.payload)
            self._knows_machine(claim)  # of a record that is followed, it may not have been there before

    def subjects(self) -> set[str]:
        """The names, without a kind, of all that may be asked for; none if anything may be."""
        subject = self.asked.subject
        bare = [name.partition("/")[2] for name in (subject, with_canonical_kind(subject), *self._machines)]
        spellings = (subject, *bare)
        return set(filter(None, spellings)) if not self._objects else set()

    def takes(self, event: Event) -> bool:
        """Whether one object that the event is about is what is asked for, and its reason, too."""
        names = (event.subject, *event.related)
        if not self._concerns(names) and self._machines.isdisjoint(names):
            return False
        if self._objects and not any(map(self._is_asked, names)):
            return False
        if not self.asked.reason or any(fnmatchcase(code, self.asked.reason) for code in _reasons(event)):
            return True
        self.other_reasons.update(filter(None, _reasons(event)))
        return False

    def likely(self, others: Iterable[str]) -> str:
        """Ask about names that are like one that is asked for and not among the subjects; "" if there are none."""
        asked, subjects = self.asked, sorted(others)
        split = [(kind, *key.rpartition("/")) for kind, _, key in (subject.partition("/") for subject in subjects)]
        known: tuple[tuple[str, Iterable[str]], ...] = (
            (asked.subject, subjects),
            (asked.workload, self._workloads.values()),
            (asked.kind, {kind for kind, *_ in split}),
            (asked.namespace, {namespace for _, namespace, *_ in split if namespace}),
            (asked.name, {name for kind, *_, name in split if self._kind in ("", kind)}),
        )
        questions = (is_it(similar_names(name, there)) for name, there in known if name and name not in there)
        return next(filter(None, questions), "")

    def _concerns(self, names: Iterable[str]) -> bool:
        subject = self.asked.subject
        return not subject or any(name in self._spellings or name.partition("/")[2] == subject for name in names)

    def _is_asked(self, name: str) -> bool:
        asked = self.asked
        kind, _, key = name.partition("/")
        namespace, _, bare = key.rpartition("/")
        return (
            (not self._kind or kind == self._kind or (self._kind == _WORKLOAD and kind_of(kind) == _WORKLOAD))
            and (not asked.namespace or namespace == asked.namespace)
            and (not asked.name or fnmatchcase(bare, asked.name) or fnmatchcase(key, asked.name))
            and (not asked.workload or asked.workload in self._workload(kind, key))
        )

    def _workload(self, kind: str, key: str) -> tuple[str, ...]:
        """The names of the workload that an object is of, or is."""
        found = self._workloads.get(key, "") if kind == _POD else key if kind_of(kind) == _WORKLOAD else ""
        return (found, found.rpartition("/")[2]) if found else ()


def _kind_of_object(word: str) -> str:
    name = word.lower().partition(".")[0]
    return _OBJECTS.get(name, name)


def _reasons(event: Event) -> tuple[str, ...]:
    reason = event.reason.code if event.reason is not None else ""
    named = (str(event.params[name]) for name in ("why", "error") if name in event.params)
    return event.code, reason, _CALLED.get(event.code, ""), *named
