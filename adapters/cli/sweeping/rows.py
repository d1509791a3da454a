"""The table of a sweep: one row is one cell."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from kerf.projections.tables.columns import CountIfKnown, Flag, HoursIfKnown, Seconds, Text, Texts, Usd


class CellRow(Struct, frozen=True, kw_only=True):
    """The cells of a sweep: each record under each configuration. All figures but `recorded_…` are modelled."""

    configuration: Annotated[Text, "axis=value of each axis, or unchanged"]
    changes: Annotated[Texts, "what it changes, from what to what"]
    holds: Annotated[Flag, "whether the model of this record is near enough to what was recorded"]
    cost: Annotated[Usd, "modelled"]
    node_hours: Annotated[HoursIfKnown, "modelled"]
    evictions: Annotated[CountIfKnown, "pods evicted or deleted by force, modelled"]
    pending_seconds: Annotated[Seconds, "how long pods waited in all, modelled"]
    launched: Annotated[CountIfKnown, "nodes, modelled"]
    gone: Annotated[CountIfKnown, "nodes, modelled"]
    running: Annotated[CountIfKnown, "nodes at the end, modelled"]
    unchanged_cost: Annotated[Usd, "modelled without a change"]
    unchanged_evictions: Annotated[CountIfKnown, "modelled without a change"]
    recorded_cost: Annotated[Usd, "what the record says"]
    recorded_evictions: Annotated[CountIfKnown, "what the record says"]
    error: Annotated[Text, "why the cell has no figures"]
