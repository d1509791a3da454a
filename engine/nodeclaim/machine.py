"""The same table as a `transitions` machine: for the live path's checks, the diagram and the property test."""

from __future__ import annotations

from msgspec import Struct
from transitions import Machine, MachineError

from kerf.engine.nodeclaim.table import ABSENT, ROWS, STATES, Row, TransitionRefused


class ClaimMachine:
    """One claim's state in a `transitions` machine. `before` is the state that it had before it was tainted."""

    state: str

    def __init__(self, claim: str, state: str = ABSENT, before: str = "") -> None:
        self.claim = claim
        self.before = before
        self._event: Struct | None = None
        self._machine = Machine(
            model=self,
            states=list(STATES),
            initial=state,
            transitions=[self._transition(row) for row in ROWS],
            auto_transitions=False,
        )

    def _transition(self, row: Row) -> dict[str, object]:
        spec: dict[str, object] = {"trigger": trigger_name(row.event), "source": row.source, "dest": row.dest}
        if row.guard:
            spec["conditions"] = [lambda: self._guard() == row.guard]
        return spec

    def _guard(self) -> str:
        return str(getattr(self._event, "state", "")) or self.before

    def fire(self, event: Struct) -> str:
        """Moves on by `event` and returns the new state. Raises TransitionRefused (KERF701)."""
        self._event = event
        was = self.state
        try:
            moved = self.trigger(trigger_name(type(event)))  # type: ignore[attr-defined]
        except MachineError as error:
            raise self._refused(event, was) from error
        if not moved:
            raise self._refused(event, was)
        if self.state == "tainted" and was != "tainted":
            self.before = was
        return self.state

    def _refused(self, event: Struct, state: str) -> TransitionRefused:
        return TransitionRefused(
            f"NodeClaim {self.claim} is {state}: {type(event).__name__} is not allowed",
            where=f"nodeclaim/{self.claim}",
            hint="See docs/nodeclaim.md for the table of states and events",
        )


def trigger_name(event: type[Struct]) -> str:
    """`transitions` makes a method of each trigger name; ours must not collide with a model's own attributes."""
    return "on_" + event.__name__


def mermaid() -> str:
    """The state diagram of the table, in Mermaid, in the table's order (docs/nodeclaim.md holds it)."""
    lines = ["stateDiagram-v2"]
    for row in ROWS:
        source = "[*]" if row.source == ABSENT else row.source
        label = row.event.__name__ + (f" [{row.guard}]" if row.guard else "")
        lines.append(f"    {source} --> {row.dest}: {label}")
    lines.append("    terminated --> [*]")
    return "\n".join(lines) + "\n"
