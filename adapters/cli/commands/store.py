"""`kerf store`: what is done with a record as such, while no controller writes it."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from kerf.adapters.cli.parameters import Json

store = App(name="store", help="Records as such: make one smaller.")


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

    Before the cut only claims' events and decisions are kept: `kerf log`, `story`
    and `explain` tell them, but they cannot be decided again. A controller that
    still writes the record is fenced: it ends, and goes on once started.

    For example:

        kerf store prune record.kerf --dry-run
        kerf store prune record.kerf --observations 36h --decisions 30d
        kerf store prune "postgresql://kerf@db/kerf" --size 10Gi

    Parameters
    ----------
    record
        A .kerf file or a postgresql:// URL.
    observations
        Keep everything for so long: 7d, 36h; 0 for ever.
    decisions
        Keep claims' events and decisions for so long, likewise.
    size
        Make the record smaller than this: 10Gi; 0 for no limit.
    dry_run
        Say what would go, and change nothing.
    rebuild
        Write a SQLite file of an older kerf anew, so that it gets smaller. Needs as much room again meanwhile.
    json
        Print JSON.
    """
    from kerf.adapters.cli.pruning import prune_record, retention_of
    from kerf.adapters.cli.render.files.pruning import pruned_text
    from kerf.adapters.cli.render.output import Printer, emit_json
    from kerf.adapters.cli.render.progress import progress_line
    from kerf.adapters.store.chained import ChainedStore
    from kerf.adapters.store.open import open_record
    from kerf.adapters.store.sqlite.store import SQLiteStore
    from kerf.engine.record.errors import StoreReadOnly

    policy = retention_of(observations, decisions, size)
    opened = open_record(record, "read" if dry_run else "write")
    try:
        if not isinstance(opened, ChainedStore):
            raise StoreReadOnly("only a .kerf file or a database can be cut", where=record)
        with progress_line("removing entries up to position") as progress:
            pruned = prune_record(opened, policy, dry_run=dry_run, progress=progress)
        if rebuild and not dry_run and isinstance(opened, SQLiteStore):
            opened.rebuild()
    finally:
        opened.close()
    emit_json(pruned) if json else pruned_text(Printer(), pruned)
