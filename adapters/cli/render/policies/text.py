"""The results of a policy as lines for a terminal."""

from __future__ import annotations

import shlex
from collections import Counter

from kerf.adapters.cli.render.output import Printer
from kerf.projections.prose.amounts import count, moment
from kerf.replay.policies.outcomes import BROKEN, HOLDS, UNKNOWN, Breach, PolicyReport, Result

_STYLES = {HOLDS: "good", BROKEN: "error", UNKNOWN: "warning"}


def policy_text(printer: Printer, report: PolicyReport) -> None:
    """Print each assertion with its breaches, record by record, and a last line that sums up."""
    for record in report.records:
        printer.line(record.record, "title")
        for result in record.results:
            printer.line(f"  {result.outcome:7}  {result.name}", _STYLES[result.outcome])
            for line in result_lines(result):
                printer.line(f"           {line}")
    printer.line(summary(report), "good" if report.exit_code == 0 else "title")


def result_lines(result: Result) -> list[str]:
    """Write what there is to say of a result: its breaches, how many there are more, and its note."""
    lines = [line for breach in result.breaches for line in breach_lines(breach)]
    hidden = result.broken - len(result.breaches)
    if hidden > 0:
        lines.append(f"… and {hidden} more")
    return [*lines, result.note] if result.note else lines


def breach_lines(breach: Breach) -> list[str]:
    """Write a breach: what, where, and the command that explains it."""
    at = f"position {breach.position}, {moment(breach.at)}: " if breach.position else ""
    return [at + breach.what, *([f"  why: {command_of(breach)}"] if breach.command else [])]


def command_of(breach: Breach) -> str:
    """Write the command as a shell takes it."""
    return shlex.join(breach.command)


def summary(report: PolicyReport) -> str:
    """Say how many assertions hold."""
    outcomes = Counter(result.outcome for record in report.records for result in record.results)
    parts = [f"{count(outcomes[HOLDS], 'assertion')} {'holds' if outcomes[HOLDS] == 1 else 'hold'}"]
    parts += [f"{outcomes[BROKEN]} broken"] if outcomes[BROKEN] else []
    parts += [f"{outcomes[UNKNOWN]} not known"] if outcomes[UNKNOWN] else []
    return ", ".join(parts)
