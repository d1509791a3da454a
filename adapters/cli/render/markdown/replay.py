"""The answer of `kerf replay` as Markdown, for a comment on a pull request."""

from __future__ import annotations

from kerf.adapters.cli.render.markdown.pieces import code, table_of, words
from kerf.adapters.cli.replaying.text import ROWS, checked_row, compared_row, horizon_line
from kerf.projections.prose.amounts import moment
from kerf.replay.modelled.comparison import Modelled

_FAR = "**This does not hold: the model is too far from what was recorded.**"


def replay_markdown(answer: Modelled) -> str:
    """The changes, the modelled figures without and with them, and apart from these how good the model is."""
    lines = [f"### kerf replay, modelled from {moment(answer.since)} to {moment(answer.until)}", ""]
    lines += [f"- {code(change)}" for change in answer.changes]
    if not answer.holds:
        lines += ["", _FAR]
    changed = answer.changed
    if changed is not None:
        rows = [tuple(map(words, compared_row(row, answer.unchanged, changed))) for row in ROWS]
        lines += ["", *table_of(("modelled", "unchanged", "changed", "difference"), rows)]
    if answer.errors:
        rows = [tuple(map(words, checked_row(row, answer))) for row in ROWS]
        lines += ["", *table_of(("how good is the model?", "recorded", "modelled, unchanged", "error"), rows)]
    lines += ["", words(horizon_line(answer)), "", "Assumed:", ""]
    return "\n".join([*lines, *(f"- {words(assumption)}" for assumption in answer.assumptions)])
