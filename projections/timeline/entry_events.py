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
from kerf.engine.model.missing_knowledge import words_of
from kerf.engine.record import observations as seen
from kerf.engine.record.entries import Entry, UnknownEntry
from kerf.projections.prose.amounts import count, first_names, moment, saved
from kerf.projections.prose.explanation_codes import BY_NOBODY_NAMED, UNKNOWN_ACTOR
from kerf.projections.timeline.event import DEBUG, ERROR, INFO, WARNING, Event, Parameter


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
    imported = started.imported
    if imported is not None:
        code = "record-captured" if imported.captured else "record-imported"
        return [
            make_event(
                entry, code, INFO, "record", record=started.record, engine=started.engine,
                sources=" and ".join(imported.sources), since=moment(imported.since), until=moment(imported.until),
                lacks=", ".join(words_of(code) for code in imported.lacks),
            )
        ]  # fmt: skip
    return [make_event(entry, "record-started", INFO, "record", record=started.record, engine=started.engine)]


def _office(office: seen.OfficeTaken, entry: Entry) -> list[Event]:
    return [make_event(entry, "office-taken", INFO, "record", holder=office.holder, epoch=office.epoch)]


def _cut(cut: seen.RecordCut, entry: Entry) -> list[Event]:
    return [make_event(entry, "record-cut", INFO, "record", base=cut.base)]


def _clocks_differ(differ: seen.ClocksDiffer, entry: Entry) -> list[Event]:
    told = [f"the wall clock jumped by {_signed(differ.jump)}"] if differ.jump else []
    told += [f"it is {_signed(differ.skew)} from the API server's"] if differ.skew else []
    told += [f"time was set by {_signed(differ.moved)}"] if differ.moved else []
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


def claim_object_seen(claim: NodeClaimObject, entry: Entry) -> list[Event]:
    """Tell of an object that was not seen before (`Timeline` tells of its changes)."""
    subject = f"nodeclaim/{claim.name}"
    if claim.deleting:
        return [make_event(entry, "deletion-asked", INFO, subject, actor=UNKNOWN_ACTOR)]
    return [make_event(entry, "object-seen", INFO, subject, kind="NodeClaim")]


def _deletion(deletion: seen.NodeClaimDeletionSeen, entry: Entry) -> list[Event]:
    actor = BY_NOBODY_NAMED.get(deletion.actor, deletion.actor)
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


def _controller_decided(decided: seen.ControllerDecided, entry: Entry) -> list[Event]:
    claims = (*decided.claims, *decided.replacements)
    related = (*(f"nodeclaim/{name}" for name in claims), *(f"node/{name}" for name in decided.nodes))
    who = first_names(decided.claims or decided.nodes)
    if decided.action == seen.FAILED:
        return [make_event(entry, "controller-gave-up", WARNING, "decision/elsewhere", related, who=who,
                           controller=decided.controller)]  # fmt: skip
    first = f", {count(decided.new_nodes, 'new node')} first" if decided.new_nodes else ""
    if decided.replacements:
        first += f" ({first_names(decided.replacements)})"
    saves = f", {saved(decided.savings)}" if decided.savings is not None else ""
    return [
        make_event(
            entry, "controller-decided", INFO, "decision/elsewhere", related, controller=decided.controller,
            why=decided.why, who=who, first=first, saves=saves, pods=decided.pods,
        )
    ]  # fmt: skip


def _controller_said(said: seen.ControllerSaid, entry: Entry) -> list[Event]:
    names = (
        ("nodeclaim", said.claims), ("node", said.nodes), ("pod", said.pods), ("nodepool", said.node_pools),
        ("nodeclass", said.node_classes), ("poddisruptionbudget", said.budgets), ("daemonset", said.daemonsets),
        ("nodeoverlay", said.overlays), ("capacitybuffer", said.buffers),
    )  # fmt: skip
    about = tuple(f"{kind}/{name}" for kind, group in names for name in group)
    level = said.level if said.level in (INFO, WARNING, ERROR) else DEBUG
    subject = about[0] if about else "record"
    code = "controller-said" if said.controller or not said.actor else "who-changed"
    return [
        make_event(entry, code, level, subject, about[1:], controller=said.controller or said.actor, text=said.text)
    ]


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
    seen.InputRefused: _refused,
    seen.WatchGap: _gap,
    seen.ControllerDecided: _controller_decided,
    seen.ControllerSaid: _controller_said,
    UnknownEntry: _unknown,
}
"""Type of entry → its events."""
