"""The NodeClaim's state table: declared once; everything else about states is derived from it.

`ROWS` is the table. From it come the `transitions` machine, which decides on the append path whether an event may
happen (`kerf.engine.nodeclaim.state_machine`), the diagram in docs/nodeclaim.md, and `FLAT`, the lookup by which the
fold moves a claim on: what stands in the record was decided on before, and a fold reads millions of entries. Property
tests hold machine and lookup equal.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from kerf.engine.errors import KerfError
from kerf.engine.record import claim_events as ev

ABSENT = "absent"  # before the first event; no claim is ever stored in this state
REQUESTED = "requested"
LAUNCHED = "launched"
REGISTERED = "registered"
INITIALIZED = "initialized"
TAINTED = "tainted"
DRAINING = "draining"
TERMINATED = "terminated"

STATES = (ABSENT, REQUESTED, LAUNCHED, REGISTERED, INITIALIZED, TAINTED, DRAINING, TERMINATED)
STEADY = (LAUNCHED, REGISTERED, INITIALIZED)
"""States with an instance that is to stay."""
GOING = (TAINTED, DRAINING)
"""States on the way out."""
ADOPTABLE = (LAUNCHED, REGISTERED, INITIALIZED, TAINTED, DRAINING)


class Row(NamedTuple):
    """`guard` is the state that the claim must remember (Untainted) or the event must name (Adopted) for the row."""

    event: type[Struct]
    source: str
    dest: str
    guard: str = ""


ROWS: tuple[Row, ...] = (
    Row(ev.Requested, ABSENT, REQUESTED),
    *(Row(ev.Adopted, ABSENT, state, state) for state in ADOPTABLE),
    Row(ev.Launched, REQUESTED, LAUNCHED),
    Row(ev.LaunchFailed, REQUESTED, TERMINATED),
    Row(ev.LaunchTimedOut, REQUESTED, TERMINATED),
    Row(ev.Cancelled, REQUESTED, TERMINATED),
    Row(ev.Registered, LAUNCHED, REGISTERED),
    Row(ev.Initialized, REGISTERED, INITIALIZED),
    *(Row(ev.Tainted, state, TAINTED) for state in STEADY),
    *(Row(ev.ReasonRaised, state, state) for state in GOING),
    *(Row(ev.Untainted, TAINTED, state, state) for state in STEADY),
    Row(ev.DrainStarted, TAINTED, DRAINING),
    Row(ev.PodEvicted, DRAINING, DRAINING),
    Row(ev.PodForced, DRAINING, DRAINING),
    Row(ev.Drained, DRAINING, DRAINING),
    Row(ev.VolumesDetached, DRAINING, DRAINING),
    # Without a node or without a drain (D-138, L-194) a claim goes from tainted to terminated.
    *(Row(ev.Terminated, state, TERMINATED) for state in GOING),
    *(Row(ev.InstanceVanished, state, TERMINATED) for state in (*STEADY, *GOING)),
)

FLAT: dict[tuple[str, type[Struct], str], str] = {(r.source, r.event, r.guard): r.dest for r in ROWS}
"""(state, event type, guard) → next state."""

GUARDED: frozenset[type[Struct]] = frozenset(r.event for r in ROWS if r.guard)


class TransitionRefused(KerfError):
    """An event that the table does not allow in the present state."""

    code = "KERF701"


def next_state(state: str, event: Struct, *, before: str = "", position: int = 0) -> str:
    """The state that `event` leads to from `state`; `before` is the state that a tainted claim remembers.

    Raises TransitionRefused (KERF701), which names claim, state, event and position.
    """
    kind = type(event)
    guard = ""
    if kind in GUARDED:
        guard = before if kind is ev.Untainted else getattr(event, "state", "")
    found = FLAT.get((state, kind, guard))
    if found is None:
        claim = getattr(event, "claim", "?")
        raise TransitionRefused(
            f"NodeClaim {claim} is {state}: {kind.__name__} is not allowed" + (f" (guard: {guard})" if guard else ""),
            where=f"nodeclaim/{claim}, position {position}" if position else f"nodeclaim/{claim}",
            hint="See docs/nodeclaim.md for the table of states and events",
        )
    return found


def remembered_state(was: str, event: Struct, state: str, before: str) -> str:
    """The state that a claim remembers after `event` has led it from `was` to `state`: Untainted leads back there."""
    if isinstance(event, ev.Adopted) and state in GOING:
        return INITIALIZED if event.initialized else REGISTERED if event.registered else LAUNCHED
    if isinstance(event, ev.Untainted):
        return ""
    return was if state == TAINTED and was != TAINTED else before
