"""The state table as a `transitions` machine. It decides on the append path: an event that it refuses is not recorded.

The fold does not use it (`kerf.engine.nodeclaim.state_table`).
"""

from __future__ import annotations

from msgspec import Struct
from transitions import Machine, MachineError

from kerf.engine.nodeclaim.state_table import ABSENT, ROWS, STATES, Row, TransitionRefused, remembered_state


def _transition(row: Row) -> dict[str, object]:
    spec: dict[str, object] = {"trigger": row.event.__name__, "source": row.source, "dest": row.dest}
    if row.guard:
        spec["conditions"] = [lambda data: data.model.guard(data.args[0]) == row.guard]
    return spec


_MACHINE = Machine(
    model=None,
    states=list(STATES),
    initial=ABSENT,
    transitions=[_transition(row) for row in ROWS],
    auto_transitions=False,
    send_event=True,
)
"""One for all claims: to build it takes longer than all else that a claim event costs."""


class ClaimMachine:
    """One claim's state in the machine. `before` is the state that Untainted leads back to."""

    def __init__(self, claim: str, state: str = ABSENT, before: str = "") -> None:
        self.claim = claim
        self.state = state
        self.before = before

    def guard(self, event: Struct) -> str:
        """What the conditions of a row are compared with: the state that the event names, else the remembered one."""
        return str(getattr(event, "state", "")) or self.before

    def fire(self, event: Struct) -> str:
        """Moves on by `event` and returns the new state. Raises TransitionRefused (KERF701) and stays as it was."""
        was = self.state
        try:
            moved = _MACHINE.events[type(event).__name__].trigger(self, event)
        except MachineError as error:
            raise self._refused(event, was) from error
        if not moved:
            raise self._refused(event, was)
        self.before = remembered_state(was, event, self.state, self.before)
        return self.state

    def _refused(self, event: Struct, state: str) -> TransitionRefused:
        return TransitionRefused(
            f"NodeClaim {self.claim} is {state}: {type(event).__name__} is not allowed",
            where=f"nodeclaim/{self.claim}",
            hint="See docs/nodeclaim.md for the table of states and events",
        )


def mermaid() -> str:
    """The state diagram of the table, in Mermaid, in the table's order (docs/nodeclaim.md holds it)."""
    lines = ["stateDiagram-v2"]
    for row in ROWS:
        source = "[*]" if row.source == ABSENT else row.source
        label = row.event.__name__ + (f" [{row.guard}]" if row.guard else "")
        lines.append(f"    {source} --> {row.dest}: {label}")
    lines.append("    terminated --> [*]")
    return "\n".join(lines) + "\n"
