"""kerf store: what is done with a record as such, while no controller writes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from cyclopts import App, Parameter
from msgspec import Struct

from kerf.adapters.cli.parameters import Json
from kerf.adapters.cli.render.output import Printer, emit_json, progress_line
from kerf.adapters.manager.settings import SettingError, age
from kerf.adapters.manager.settings import size as byte_size
from kerf.adapters.store.chained import ChainedStore
from kerf.adapters.store.open import open_record
from kerf.adapters.store.retention.policy import Extent, Retention, due, extent
from kerf.adapters.store.retention.prune import cut_now, finish
from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.engine.record.errors import StoreReadOnly
from kerf.projections.prose.amounts import moment

store = App(name="store", help="Records as such: make one smaller.")


class Pruned(Struct, frozen=True):
    """What was done, or would be: the record begins after `base` and what is kept from before after `after` (positions;
    0 for no cut), and what the record takes in bytes."""

    base: int
    after: int
    done: bool
    before: Extent
    now: Extent


@store.command
def prune(
    record: str,
    /,
    *,
    observations: str = "7d",
    decisions: str = "90d",
    size: Annotated[str, Parameter(name="--size")] = "0",
    dry_run: Annotated[bool, Parameter(negative="")] = False,
    rebuild: Annotated[bool, Parameter(negative="")] = False,
    json: Json = False,
) -> None:
    """Cut what is old off a record, as `kerf run` does bit by bit. Ages count back from the record's last entry.

    Before the cut only claims' events and decisions are kept: `kerf log`, `story` and `explain` tell them, but they
    cannot be decided again. A controller that still writes the record is fenced: it ends, and goes on once started.

    Examples: `kerf store prune record.kerf --dry-run`,
    `kerf store prune record.kerf --observations 36h --decisions 30d`,
    `kerf store prune "postgresql://kerf@db/kerf" --size 10Gi`

    Parameters
    ----------
    record
        A .kerf file or a postgresql:// URL.
    observations
        Keep everything for so long: 7d, 36h; 0 for ever.
    decisions
        Keep claims' events and decisions for so long, likewise.
    size
        Make the record smaller than this: 10Gi; 0 for any size.
    dry_run
        Say what would go, and change nothing.
    rebuild
        Write a SQLite file of an older kerf anew, so that it gets smaller. Needs as much room again meanwhile.
    json
        Print JSON.
    """
    wanted = _wanted(observations, decisions, size)
    opened = open_record(record, "read" if dry_run else "write")
    try:
        if not isinstance(opened, ChainedStore):
            raise StoreReadOnly("only a .kerf file or a database can be cut", where=record)
        with progress_line("removing entries up to position") as progress:
            found = _pruned(opened, wanted, dry_run, progress)
        if rebuild and not dry_run and isinstance(opened, SQLiteStore):
            opened.rebuild()
    finally:
        opened.close()
    emit_json(found) if json else _print(found, Printer())


def _wanted(observations: str, decisions: str, wanted_size: str) -> Retention:
    found = []
    for option, parse, text in (
        ("observations", age, observations), ("decisions", age, decisions), ("size", byte_size, wanted_size),
    ):  # fmt: skip
        try:
            found.append(parse(text))
        except ValueError as error:
            where, hint = f"--{option}", f"Give {error}"
            raise SettingError(f"{text!r} is not accepted", where=where, hint=hint) from error
    return Retention(*found)


def _pruned(opened: ChainedStore, wanted: Retention, dry_run: bool, progress: Callable[[int], None]) -> Pruned:
    if not dry_run:
        finish(opened, progress=progress)
    before = extent(opened)
    last = next((entry.at for entry in opened.scan(opened.last_position() - 1)), 0)
    cut = due(opened, wanted, last)
    if cut is None or dry_run:
        base, after = (cut.base, cut.after) if cut is not None else (0, 0)
        return Pruned(base, after, False, before, before)
    cut_now(opened, cut, progress=progress)
    return Pruned(cut.base, cut.after, True, before, extent(opened))


def _print(found: Pruned, out: Printer) -> None:
    if not found.base:
        out.line("nothing is due: the record is within its ages and its size", "good")
    else:
        word = "begins" if found.done else "would begin"
        out.line(f"the record {word} after position {found.base}", "title")
        if found.after:
            out.line(
                f"of claims and decisions what is up to position {found.after} {'went' if found.done else 'would go'}"
            )
    out.line(f"it takes {_bytes(found.now)}" + (f", and took {_bytes(found.before)}" if found.done else ""))
    if found.now.oldest:
        since, oldest = moment(found.now.since), moment(found.now.oldest)
        out.line(f"everything is there since {since}, claims and decisions since {oldest}")


def _bytes(found: Extent) -> str:
    return f"{found.size / (1 << 20):,.1f} MiB"
