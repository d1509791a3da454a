"""The results of a policy as Markdown, for a comment on a pull request."""

from __future__ import annotations

from kerf.adapters.cli.render.markdown.pieces import code, table_of, words
from kerf.adapters.cli.render.policies.text import breach_lines, command_of, summary
from kerf.replay.policies.outcomes import BROKEN, HOLDS, PolicyReport, RecordResults

_MARKS = {HOLDS: "✅ holds", BROKEN: "❌ broken"}


def markdown_of(report: PolicyReport) -> str:
    """A line that sums up, then a table of assertions and the breaches for each record."""
    lines = [f"### kerf check: {words(summary(report))}", ""]
    for record in report.records:
        lines += _record(record)
    return "\n".join(lines).rstrip()


def _record(record: RecordResults) -> list[str]:
    marks = [_MARKS.get(result.outcome, "❔ not known") for result in record.results]
    rows = [(mark, words(one.name), words(one.note)) for mark, one in zip(marks, record.results, strict=True)]
    lines = [f"**{words(record.record)}**", "", *table_of(("", "assertion", "note"), rows), ""]
    for result in record.results:
        for breach in result.breaches:
            what = breach_lines(breach)[0]
            lines.append(f"- {words(what)}" + (f"<br>{code(command_of(breach))}" if breach.command else ""))
        hidden = result.broken - len(result.breaches)
        lines += [f"- … and {hidden} more of {words(result.name)}"] if hidden > 0 else []
    return [*lines, ""]
