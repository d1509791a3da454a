"""Make timeline events of entries that need no memory: they say the same whatever went before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.karpenter.capacity_buffers import CapacityBuffer
from kerf.engine.model.karpenter.nodeclaim_objects import NodeClaimObject
from kerf.engine.model.karpenter.nodeoverlays import NodeOverlay
from kerf.engine.model.kinds.watched import WATCHED
from kerf.engine.record import observations as seen
from kerf.engine.record.entries import Entry, UnknownEntry
from kerf.projections.prose.amounts import first_names
from kerf.projections.timeline.event import DEBUG, INFO, WARNING, Event, Parameter


def make_event(
    entry: Entry,
    code: str,
    level: str,
    subject: str,
    related: tuple[str, ...] = (),
    reason: Any = None,
    **params: Parameter,
) -> Event:
    """Make an event of an entry: position, turn, time and cause are the entry's."""
    if isinstance(reason, str):  # a NodeClass gives its reason as a word
        params["reason"], reason = reason, None
    return Event(
        position=entry.position, turn=entry.turn, at=entry.at, code=code, level=level, subject=subject,
        related=related, params=params, reason=reason, cause=entry.cause,
    )  # fmt: skip


def _started(started: seen.RecordStarted, entry: Entry) -> list[Event]:
    return [make_event(entry, "record-started", INFO, "record", record=started.record, engine=started.engine)]


def _office(office: seen.OfficeTaken, entry: Entry) -> list[Event]:
    return [make_event(entry, "office-taken", INFO, "record", holder=office.holder, epoch=office.epoch)]


def _cut(cut: seen.RecordCut, entry: Entry) -> list[Event]:
    return [make_event(entry, "record-cut", INFO, "record", base=cut.base)]


def _clocks_differ(differ: seen.ClocksDiffer, entry: Entry) -> list[Event]:
    told = [f"the wall clock jumped by {_signed(differ.jump)}"] if differ.jump else []
    told += [f"it is {_signed(differ.skew)} from the API server's"] if differ.skew else []
    return [make_event(entry, "clocks-differ", WARNING, "record", how=f" ({', '.join(told)})" if told else "")]


def _clocks_agree(agree: seen.ClocksAgree, entry: Entry) -> list[Event]:
    moved = f": time was set by {_signed(agree.moved)}" if agree.moved else ""
    return [make_event(entry, "clocks-agree", INFO, "record", moved=moved)]


def _set_back(back: seen.TimeSetBack, entry: Entry) -> list[Event]:
    return [make_event(entry, "time-set-back", WARNING, "record", by=f"{(back.was - entry.at) / 1000:g} s")]


def _signed(milliseconds: int) -> str:
    return f"{milliseconds / 1000:+g} s"


def _settings(settings: seen.SettingsSeen, entry: Entry) -> list[Event]:
    return [make_event(entry, "settings-seen", DEBUG, "record")]


def _catalogue(catalogue: seen.CatalogueSeen, entry: Entry) -> list[Event]:
    return [make_event(entry, "catalogue-seen", DEBUG, f"nodeclass/{catalogue.node_class.rpartition('/')[2]}")]


def _reservations(reservations: seen.ReservationsSeen, entry: Entry) -> list[Event]:
    subject = f"nodeclass/{reservations.node_class.rpartition('/')[2]}"
    left = ", ".join(f"{name}: {count}" for name, count in sorted(reservations.left.items()))
    return [make_event(entry, "reservations-seen", DEBUG, subject, left=left)]


def _object_seen(obj: Any, entry: Entry) -> list[Event]:
    """Name an object of which the timeline tells nothing else."""
    kind = type(obj).__name__
    namespace = getattr(obj, "namespace", "")
    key = f"{namespace}/{obj.name}" if namespace else obj.name
    return [make_event(entry, "object-seen", DEBUG, f"{kind.lower()}/{key}", kind=kind)]


def planning_input_seen(obj: NodeOverlay | CapacityBuffer, entry: Entry) -> list[Event]:
    """Tell that a user changed something that plans depend on, at level INFO."""
    return [replace(event, level=INFO) for event in _object_seen(obj, entry)]


def _claim_object(claim: NodeClaimObject, entry: Entry) -> list[Event]:
    subject = f"nodeclaim/{claim.name}"
    if claim.deleting:
        return [make_event(entry, "deletion-asked", INFO, subject, actor="somebody")]
    return [make_event(entry, "object-seen", INFO, subject, kind="NodeClaim")]


def _deletion(deletion: seen.NodeClaimDeletionSeen, entry: Entry) -> list[Event]:
    actor = deletion.actor or "somebody"
    return [make_event(entry, "deletion-asked", INFO, f"nodeclaim/{deletion.claim}", actor=actor)]


def _refused(refused: seen.InputRefused, entry: Entry) -> list[Event]:
    error = " ".join(filter(None, (refused.code, refused.field, refused.message)))
    return [
        make_event(entry, "input-refused", WARNING, "record", source=refused.source, object=refused.object, error=error)
    ]


def _gap(gap: seen.WatchGap, entry: Entry) -> list[Event]:
    return [make_event(entry, "watch-gap", WARNING, "record", kind=gap.kind, changed=gap.changed, gone=gap.gone)]


def offering_events(answer: seen.LaunchAnswered, entry: Entry) -> list[Event]:
    """Tell which offerings had no capacity: one event for all that were refused for one reason."""
    refused: dict[tuple[str, str], list[str]] = {}
    for error in answer.errors:
        offering = f"{error.instance_type or 'type'} in {error.zone or 'any zone'}"
        refused.setdefault((error.capacity_type or "any", error.code), []).append(offering)
    return [
        make_event(
            entry, "offering-refused", WARNING, f"nodeclaim/{answer.claim}", capacity_type=capacity_type,
            offerings=first_names(offerings), count=len(offerings), error=error,
        )
        for (capacity_type, error), offerings in refused.items()
    ]  # fmt: skip


def _unknown(unknown: UnknownEntry, entry: Entry) -> list[Event]:
    return [make_event(entry, "entry-unknown", WARNING, "record", type=unknown.type, schema=unknown.schema)]


EVENTS_OF_ENTRY: dict[type[Struct], Callable[[Any, Entry], list[Event]]] = {
    **{kind.struct: planning_input_seen if kind.announced else _object_seen for kind in WATCHED},
    seen.CatalogueSeen: _catalogue,
    seen.ReservationsSeen: _reservations,
    seen.RecordStarted: _started,
    seen.OfficeTaken: _office,
    seen.RecordCut: _cut,
    seen.SettingsSeen: _settings,
    seen.ClocksDiffer: _clocks_differ,
    seen.ClocksAgree: _clocks_agree,
    seen.TimeSetBack: _set_back,
    seen.NodeClaimDeletionSeen: _deletion,
    NodeClaimObject: _claim_object,
    seen.InputRefused: _refused,
    seen.WatchGap: _gap,
    UnknownEntry: _unknown,
}
"""Type of entry → its events."""
