"""How the fold takes what is left of capacity reservations: a launch takes one, and the catalogue that names them
stays. Which of them have any left at all is the catalogue's to say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import ReservationsSeen
from kerf.engine.state.provisioning_window import room_changed
from kerf.engine.state.state import State


def _seen(state: State, reservations: ReservationsSeen, entry: Entry) -> None:
    facts = state.facts
    if facts.reservations.get(reservations.node_class) != reservations:
        facts.reservations[reservations.node_class] = reservations
        room_changed(state, entry.at)


RESERVATION_HANDLERS: dict[type[Struct], Callable[[State, Any, Entry], None]] = {ReservationsSeen: _seen}
