"""What `kerf doctor` found, as text."""

from __future__ import annotations

from collections.abc import Iterable

from kerf.adapters.cli.doctor.finding import BAD, NOTE, OK, Finding
from kerf.adapters.cli.render.output import Printer

_STYLES = {OK: "good", NOTE: "warning", BAD: "error"}


def findings_text(out: Printer, findings: Iterable[Finding]) -> None:
    """One line a finding, and its hint below."""
    for finding in findings:
        out.line(f"{finding.level:<5}{finding.what}: {finding.text}", _STYLES[finding.level])
        if finding.hint:
            out.line(f"     {finding.hint}")
