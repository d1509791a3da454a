"""`kerf import --timeline`: the workloads of histories as a file for `kerf simulate`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote

import yaml
from msgspec import Struct

from kerf.adapters.cli.importing.record import histories_of
from kerf.adapters.cli.importing.workload_timeline import WorkloadTimeline, workload_timeline
from kerf.adapters.cli.limits import limited
from kerf.adapters.importers.errors import NothingTold
from kerf.adapters.store.files.private_files import write_whole
from kerf.engine.model.durations import format_duration, format_time
from kerf.projections.prose.amounts import count, moment

_WRITER: type[yaml.SafeDumper] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class TimelineMade(Struct, frozen=True):
    """A Timeline that was written, as `WorkloadTimeline` counts it. Times are ms since the epoch."""

    timeline: str
    since: int
    until: int
    workloads: int
    actions: int
    left_out: dict[str, int]


def write_timeline(files: Sequence[Path], target: Path, jobs_run_for: int) -> TimelineMade:
    """Write the workloads of files to a new one. `jobs_run_for`: see `workload_timeline`.

    Raises InputError (KERF36x), StoreError if the file is there already, and LimitReached (KERF128).
    """
    with limited(*files):
        made = workload_timeline(histories_of(files), jobs_run_for)
        if made is None:
            hint = (
                "Captures, traces and audit logs with the bodies of objects tell of workloads; Karpenter's log does not"
            )
            raise NothingTold("no workload is told in it", where=", ".join(map(str, files)), hint=hint)
        write_whole(target, _text(made).encode())
    return TimelineMade(str(target), made.since, made.until, made.workloads, made.actions, made.left_out)


def _text(made: WorkloadTimeline) -> str:
    written = yaml.dump(made.document, Dumper=_WRITER, sort_keys=False, allow_unicode=True, width=120)
    return f"# Made by kerf import. It begins at {format_time(made.since)}.\n{written}"


def timeline_text(made: TimelineMade) -> Iterator[str]:
    """Say what was written, and how it is run."""
    length = format_duration(made.until - made.since)
    yield (
        f"{made.timeline}: {count(made.workloads, 'workload')}, {count(made.actions, 'action')}, "
        f"{moment(made.since)} to {moment(made.until)}"
    )  # fmt: skip
    for what, number in made.left_out.items():
        yield f"  left out: {number} × {what}"
    start = format_time(made.since)
    yield f"Next: kerf simulate YOUR-NODEPOOLS.yaml {quote(made.timeline)} --start {start} --until {length}"
