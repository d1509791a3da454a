"""What `kerf import` says of the record that it made."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from kerf.adapters.cli.importing.record import FileRead, Summary
from kerf.engine.model.missing_knowledge import words_of
from kerf.projections.prose.amounts import count, moment


def import_text(summary: Summary) -> list[str]:
    mark = summary.imported
    versions = f", Karpenter {' and '.join(mark.versions)}" if mark.versions else ""
    return [
        f"{summary.record}: {moment(mark.since)} to {moment(mark.until)}{versions}",
        *(line for file in summary.files for line in _file_lines(file)),
        f"  {count(summary.claims, 'NodeClaim')} ({summary.adopted} from before, {summary.gone} gone), "
        f"{count(summary.decisions, 'decision')} of Karpenter's to remove nodes, "
        f"{count(summary.workloads, 'workload')}, {count(summary.pods, 'pod')}",
        f"  Partial; not in it: {', '.join(words_of(code) for code in mark.lacks)}",
        f"Next: kerf log {quote(summary.record)}",
    ]


def _file_lines(file: FileRead) -> Iterator[str]:
    yield f"  {file.file} ({file.source}): {file.read} read, {file.other} of no interest, {file.unread} not readable"
    for unread in file.first_unread:
        yield f"    {unread.number}: {unread.why}: {unread.text!r}"
    if file.unread > len(file.first_unread):
        yield f"    … and {file.unread - len(file.first_unread)} more"
