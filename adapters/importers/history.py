"""What an importer gives: what was told, when, and what could not be read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

from msgspec import Struct, field, structs

from kerf.adapters.importers.claim_steps import Step
from kerf.engine.model.karpenter.nodeclaim_objects import NodeClaimObject
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.missing_knowledge import Missing
from kerf.engine.record.observations import Imported, ObjectGone, Observation

SHOWN = 3
"""So many of the lines that cannot be read are shown."""
_LONGEST_SHOWN = 120  # characters of such a line


class Told(Struct, frozen=True):
    """What was told at `at` (ms since the epoch): the observations of one turn."""

    at: int
    observations: tuple[Observation, ...]


class Unread(Struct, frozen=True):
    """A line, or an event, that nobody could read: its number from 1, why, and how it begins."""

    number: int
    why: str
    text: str


class Applied(Struct, frozen=True):
    """An object of a workload as it was applied at `at` (ms since the epoch), as a document; or that it was deleted
    (`gone`), with its kind and name. `runs`: how long a bare pod, or each pod of a Job, ran (ms); 0 if it is not
    known."""

    at: int
    document: dict[str, Any]
    gone: bool = False
    runs: int = 0


class History(Struct):
    """What one file tells. `told` is in order of time; equal times stand in the order of the file (F-4).

    `until` is when the source ends, if it says so. `read` counts the lines or events that tell something, `other` those
    that do not concern nodes, pods or workloads. `applied` are the objects from which `told` was read, as documents.
    """

    source: str
    lacks: tuple[Missing, ...]
    told: list[Told] = field(default_factory=list)
    until: int = 0
    versions: tuple[str, ...] = ()
    read: int = 0
    other: int = 0
    unread: int = 0
    first_unread: list[Unread] = field(default_factory=list)
    applied: list[Applied] = field(default_factory=list)
    steps: dict[bytes, tuple[Step, ...]] = field(default_factory=dict)
    """Of a log: what each line tells, by its digest. Several logs are told as one."""

    def tell(self, at: int, *payloads: Struct, blobs: dict[str, Struct] | None = None) -> None:
        """Adds what was told at one instant. Each call is a turn of its own."""
        if payloads:
            kept = blobs or {}
            self.told.append(Told(at, tuple(Observation(payload, kept) for payload in payloads)))

    def not_read(self, number: int, why: str, text: str = "") -> None:
        self.unread += 1
        if len(self.first_unread) < SHOWN:
            self.first_unread.append(Unread(number, why, text[:_LONGEST_SHOWN]))


_OF_LOGS = ("karpenter-log", "lp4k")
_OF_OBJECTS = "audit-log"


def joined(histories: Sequence[History]) -> list[History]:
    """The histories without what another of them tells better: a log has all steps of a NodeClaim, an audit log has
    Nodes whole (F-147). What both sources say of causes is kept."""
    sources = {history.source for history in histories}
    if _OF_OBJECTS not in sources or not sources.intersection(_OF_LOGS):
        return list(histories)
    return [_without(history, (Node,) if history.source in _OF_LOGS else (NodeClaimObject,)) for history in histories]


def _without(history: History, kinds: tuple[type[Struct], ...]) -> History:
    """The history without objects of these kinds, and without their ends if those are told elsewhere."""
    gone = "nodeclaim" if NodeClaimObject in kinds else ""
    told = []
    for turn in history.told:
        kept = tuple(
            seen for seen in turn.observations
            if not isinstance(seen.payload, kinds)
            and not (isinstance(seen.payload, ObjectGone) and seen.payload.kind == gone)
        )  # fmt: skip
        told += [Told(turn.at, kept)] if kept else []
    return structs.replace(history, told=told)


def in_order(histories: Iterable[History]) -> list[Told]:
    """All that is told, by time. Equal times keep the order of the files, and their order in the file."""
    return sorted((told for history in histories for told in history.told), key=attrgetter("at"))


def imported(histories: Iterable[History]) -> Imported:
    """The mark of the record that these make together. It lacks what each of them lacks."""
    histories = tuple(histories)
    told = in_order(histories)
    lacks = set.intersection(*(set(history.lacks) for history in histories))
    versions = dict.fromkeys(version for history in histories for version in history.versions)
    return Imported(
        sources=tuple(dict.fromkeys(history.source for history in histories)),
        since=told[0].at if told else 0,
        until=max([*(turn.at for turn in told[-1:]), *(history.until for history in histories)], default=0),
        versions=tuple(versions),
        lacks=tuple(code.value for code in Missing if code in lacks),
        read=sum(history.read for history in histories),
        unread=sum(history.unread for history in histories),
        other=sum(history.other for history in histories),
    )
