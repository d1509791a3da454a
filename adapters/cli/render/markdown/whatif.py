"""The answer of a what-if as Markdown, for a comment on a pull request."""

from __future__ import annotations

from kerf.adapters.cli.render.markdown.pieces import code, table_of, words
from kerf.adapters.cli.render.what_if.whatif import EXACT, decision_words, difference_lines, left_out_lines
from kerf.projections.prose.amounts import dollars, moment
from kerf.projections.prose.printable import printable
from kerf.replay.what_if.whatif import WhatIf

_SIGNS = {"~": "!"}
"""A block of GitHub's language `diff` colours lines that begin with +, - and !."""


def whatif_markdown(answer: WhatIf) -> str:
    """The changes, the decision with and without them, and the plan as a block of `diff`."""
    lines = [f"### kerf whatif, at {moment(answer.at)} (position {answer.position})", ""]
    lines += [f"- {code(change)}" for change in answer.changes]
    lines += [f"- {words(line)}" for line in left_out_lines(answer)]
    old, new = answer.unchanged, answer.changed
    rows = [("next decision", words(decision_words(old, answer)), words(decision_words(new, answer)))]
    if answer.compared:
        rows += [
            ("cost after it", f"{dollars(old.price)}/h", f"{dollars(new.price)}/h"),
            ("evictions", str(old.evictions), str(new.evictions)),
        ]
    else:
        rows.append(("cost after it", f"{dollars(answer.price)}/h now", f"{dollars(new.price)}/h"))
    lines += ["", *table_of(("", "without the change", "with the change"), rows), ""]
    return "\n".join([*lines, *_plan(answer), "", f"_{EXACT}_"])


def _plan(answer: WhatIf) -> list[str]:
    if not answer.differences:
        return ["The change makes no difference to the next decision."]
    lines = ["```diff"]
    for difference in answer.differences:
        first, *rest = list(difference_lines(difference))
        lines.append(f"{_SIGNS.get(difference.sign, difference.sign)} {printable(first)}")
        lines += [f"      {printable(line)}" for line in rest]
    return [*lines, "```"]
