"""The fold of what the record says of itself: its beginning, its writers, the settings, and cuts."""

from __future__ import annotations

from kerf.engine.model.content_digest import deviation
from kerf.engine.record import observations as seen
from kerf.engine.record.entries import Entry, UnknownEntry
from kerf.engine.state.objects.static_nodepools import static_gate_changed
from kerf.engine.state.provisioning_window import free_capacity_changed, has_active_buffers
from kerf.engine.state.state import State


def record_started(state: State, started: seen.RecordStarted, entry: Entry) -> None:
    state.facts.record = started.record
    state.facts.imported = started.imported


def office_taken(state: State, office: seen.OfficeTaken, entry: Entry) -> None:
    """A new writer looks at every claim once: what the old one had in mind is not known."""
    state.facts.epoch = office.epoch
    state.indexes.touched.update(dict.fromkeys(state.facts.claims, entry.position))


def settings_seen(state: State, settings: seen.SettingsSeen, entry: Entry) -> None:
    """Other settings may have everything decided otherwise: plans, moves, and what leaves no choice (D-27, D-134)."""
    facts, indexes = state.facts, state.indexes
    known, facts.settings = facts.settings, settings.settings
    facts.settings_digest = deviation(settings.settings)
    static_gate_changed(state)
    if known == settings.settings:
        return
    if not has_active_buffers(facts):  # no pass will say so (S-177)
        facts.buffered = {}
    indexes.touched.update(dict.fromkeys(facts.claims, entry.position))
    free_capacity_changed(state, entry.at)


def unknown_entry(state: State, unknown: UnknownEntry, entry: Entry) -> None:
    state.facts.unknown += 1


def record_cut(state: State, cut: seen.RecordCut, entry: Entry) -> None:
    """The stream of a claim that is over is known until the store has none of its entries any more: kerf tells its own
    old NodeClaim objects by it. Else there would be one for every claim that ever lived."""
    facts = state.facts
    facts.cut = entry.position
    for name in [name for name, position in facts.over.items() if position <= cut.removed]:
        del facts.over[name]
        if name not in facts.claims:
            facts.streams.pop(f"nodeclaim/{name}", None)
