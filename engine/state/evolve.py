"""`evolve(state, entry)`: the one function that changes the state, live, in replay and in tests.

Handlers are found by the payload's type. They must stay cheap: a record of a million entries is folded through them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct

from kerf.engine.model.kinds.kind import WatchedKind
from kerf.engine.model.kinds.watched import WATCHED
from kerf.engine.record import observations
from kerf.engine.record.claim_events import CLAIM_EVENTS
from kerf.engine.record.decisions import Decision
from kerf.engine.record.entries import Entry, UnknownEntry
from kerf.engine.state import clocks, record_entries
from kerf.engine.state.decisions import decision_made
from kerf.engine.state.nodeclaims import adoption, events
from kerf.engine.state.objects import nodeclasses
from kerf.engine.state.objects.rules import object_rules
from kerf.engine.state.state import State

Handlers = dict[type[Struct], Callable[[State, Any, Entry], None]]


def evolve(state: State, entry: Entry) -> None:
    """Folds one entry. Raises TransitionRefused (KERF701) for a claim event that the state table does not allow."""
    facts = state.facts
    payload = entry.payload
    handler = _HANDLERS.get(type(payload))
    if handler is not None:
        handler(state, payload, entry)
    facts.position = entry.position
    facts.at = entry.at
    facts.streams[entry.stream] = entry.version


def handlers(kinds: Iterable[WatchedKind] = WATCHED) -> Handlers:
    """By the payload's type, what folds it. An entry of any other type changes only position, time and stream."""
    rules = object_rules(kinds := tuple(kinds))
    gone_rules = {name: rule.gone for name, rule in rules.items()} | {"nodeclass": nodeclasses.nodeclass_gone}

    def object_gone(state: State, gone: observations.ObjectGone, entry: Entry) -> None:
        rule = gone_rules.get(gone.kind)
        if rule is not None:
            rule(state, gone.key, entry)

    return {
        **{kind.struct: rules[kind.name].seen for kind in kinds},
        observations.ObjectGone: object_gone,
        observations.NodeClassSeen: nodeclasses.nodeclass_seen,
        observations.CatalogueSeen: nodeclasses.catalogue_seen,
        observations.ReservationsSeen: nodeclasses.reservations_seen,
        observations.RecordStarted: record_entries.record_started,
        observations.OfficeTaken: record_entries.office_taken,
        observations.SettingsSeen: record_entries.settings_seen,
        observations.RecordCut: record_entries.record_cut,
        observations.ClocksDiffer: clocks.clocks_differ,
        observations.ClocksAgree: clocks.clocks_agree,
        observations.TimeSetBack: clocks.time_set_back,
        observations.NodeClaimDeletionSeen: events.deletion_seen,
        observations.InstanceSeen: events.instance_seen,
        observations.InstancesListed: adoption.instances_listed,
        observations.LaunchAnswered: events.launch_answered,
        observations.EffectAnswered: events.answered,
        observations.InterruptionSeen: events.interrupted,
        observations.ControllerDecided: events.controller_decided,
        Decision: decision_made,
        UnknownEntry: record_entries.unknown_entry,
        **dict.fromkeys(CLAIM_EVENTS, events.claim_event),
    }


_HANDLERS = handlers()
