"""The list of all entry types. Their names and schema numbers are a contract with every record ever written."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from kerf.engine.model.kinds.kind import WatchedKind
from kerf.engine.model.kinds.watched import WATCHED
from kerf.engine.record import observations as seen
from kerf.engine.record.claim_events import CLAIM_EVENTS
from kerf.engine.record.decisions import Decision
from kerf.engine.record.entries import EntryType


def _kebab(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()


def entry_types_of(kinds: Iterable[WatchedKind]) -> tuple[EntryType, ...]:
    """Returns the entry types for the objects of watched kinds."""
    return tuple(EntryType(f"{kind.name}.seen", kind.schema, kind.struct, kind.upcasters) for kind in kinds)


OBSERVATIONS: tuple[EntryType, ...] = (
    EntryType("record.started", 1, seen.RecordStarted),
    EntryType("record.office-taken", 1, seen.OfficeTaken),
    EntryType("record.cut", 1, seen.RecordCut),
    EntryType("clocks.differ", 1, seen.ClocksDiffer),
    EntryType("clocks.agree", 1, seen.ClocksAgree),
    EntryType("clocks.time-set-back", 1, seen.TimeSetBack),
    EntryType("settings.seen", 1, seen.SettingsSeen),
    *entry_types_of(WATCHED),
    EntryType("nodeclass.seen", 1, seen.NodeClassSeen),
    EntryType("object.gone", 1, seen.ObjectGone),
    EntryType("catalogue.seen", 1, seen.CatalogueSeen),
    EntryType("reservations.seen", 1, seen.ReservationsSeen),
    EntryType("nodeclaim.deletion-seen", 1, seen.NodeClaimDeletionSeen),
    EntryType("launch.answered", 1, seen.LaunchAnswered),
    EntryType("instance.seen", 1, seen.InstanceSeen),
    EntryType("instance.listed", 1, seen.InstancesListed),
    EntryType("effect.answered", 1, seen.EffectAnswered),
    EntryType("interruption.seen", 1, seen.InterruptionSeen),
    EntryType("controller.decided", 1, seen.ControllerDecided),
    EntryType("controller.said", 1, seen.ControllerSaid),
    EntryType("input.refused", 1, seen.InputRefused),
    EntryType("watch.gap", 1, seen.WatchGap),
)
CLAIM: tuple[EntryType, ...] = tuple(EntryType(f"claim.{_kebab(t.__name__)}", 1, t) for t in CLAIM_EVENTS)
DECISION = EntryType("decision.made", 1, Decision)

TYPES: dict[str, EntryType] = {t.name: t for t in (*OBSERVATIONS, *CLAIM, DECISION)}
NAME_OF: dict[type[Struct], str] = {t.payload: t.name for t in TYPES.values()}

STREAM_OF: dict[type[Struct], str] = {t.payload: "seen/" + t.name.partition(".")[0] for t in OBSERVATIONS}
"""Maps each payload struct to its stream. Observations have one stream per kind; claim events `nodeclaim/<name>`;
decisions `decision/<decider>`.
"""


def stream_of(payload: Struct) -> str:
    """Returns the stream that an entry with this payload belongs to."""
    if isinstance(payload, Decision):
        return "decision/" + payload.decider
    stream = STREAM_OF.get(type(payload))
    return stream if stream is not None else f"nodeclaim/{payload.claim}"  # type: ignore[attr-defined]


BLOB_FIELD: dict[type[Struct], str] = {
    **{kind.struct: kind.digest_field for kind in WATCHED if kind.digest_field},
    seen.CatalogueSeen: "digest",
    seen.NodeClassSeen: "digest",
}
"""Maps each payload struct to the field that names a blob by its digest; empty if there is none."""


def blob_of(payload: Struct) -> str:
    """Returns the digest of the blob that this payload names; empty if it names none."""
    field = BLOB_FIELD.get(type(payload))
    return getattr(payload, field) if field is not None else ""
