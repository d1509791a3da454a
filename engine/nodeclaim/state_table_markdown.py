"""The state table as Markdown: docs/nodeclaim.md is this text, and a test holds them equal."""

from __future__ import annotations

from kerf.engine.nodeclaim.state_machine import mermaid
from kerf.engine.nodeclaim.state_table import ROWS, STATES
from kerf.engine.record.claim_events import CLAIM_EVENTS

_INTRO = """# The NodeClaim's states and events

Made from the table in `engine/nodeclaim/state_table.py` by `kerf.engine.nodeclaim.state_table_markdown`; a test holds
both equal. The `transitions` machine of this table decides whether an event may be appended; the fold reads the same
table as a flat lookup.

An event that the table does not allow in the present state is refused with `KERF701`, which names claim, state, event
and position. *[state]* is a guard: `Untainted` leads back to the state that the claim remembers, `Adopted` to the state
that the event names. `absent` is the time before the first event.
"""


def markdown() -> str:
    """The whole page: diagram, and the full state × event table ("·" where the event is refused)."""
    states = [s for s in STATES if s != "terminated"]
    head = "| event | " + " | ".join(states) + " |"
    rule = "|---" * (len(states) + 1) + "|"
    rows = [
        "| " + " | ".join([event.__name__, *(_cell(event, state) for state in states)]) + " |" for event in CLAIM_EVENTS
    ]
    diagram = "```mermaid\n" + mermaid() + "```\n"
    return "\n".join([_INTRO, diagram, head, rule, *rows, "", "`terminated` allows no event.", ""])


def _cell(event: type, state: str) -> str:
    found = [r.dest + (f" [{r.guard}]" if r.guard else "") for r in ROWS if r.event is event and r.source == state]
    return "<br>".join(found) or "·"
