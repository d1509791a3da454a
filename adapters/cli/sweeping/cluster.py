"""Run cells on a Dask cluster. Its workers need kerf, and nothing of a record but the bundle's bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from socket import create_connection
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from kerf.adapters.cli.sweeping.cell import Cell, Done, run_cell
from kerf.adapters.cli.sweeping.errors import ClusterUnavailable
from kerf.engine.errors import extra_hint
from kerf.engine.passwords import without_password

if TYPE_CHECKING:
    from distributed import Client

ANSWERS_WITHIN = 30  # seconds, for the scheduler and the first worker


def on_cluster(cells: Sequence[Cell], bundles: Mapping[str, Path], address: str) -> Done:
    """Give each cell with its outcome as it is done. `bundles` are files by digest: each is sent once.

    Raises ClusterUnavailable (KERF243) without Dask, without an answer, and for a cell that ended its workers.
    """
    try:
        from distributed import KilledWorker, as_completed
    except ImportError as error:
        hint = extra_hint("sweep")
        raise ClusterUnavailable("--on needs Dask, which is not installed", hint=hint) from error
    with _connected(address) as client:
        sent = {digest: client.scatter(file.read_bytes(), hash=True) for digest, file in bundles.items()}
        waiting = {
            client.submit(run_cell, sent[cell.bundle], cell, key=f"kerf-cell-{cell.key}", pure=True): cell
            for cell in cells
        }
        for done in as_completed(waiting, loop=client.loop):  # type: ignore[no-untyped-call]
            try:
                yield waiting[done], done.result()
            except KilledWorker as error:
                hint = "What is done is kept. Give the workers more memory, and run it again"
                raise ClusterUnavailable("a cell ended its workers", where=waiting[done].record, hint=hint) from error


def _connected(address: str) -> Client:
    from distributed import Client

    where = without_password(address)
    try:
        _require_answer(address)  # Dask itself may wait for ever
        client = Client(address, timeout=ANSWERS_WITHIN, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        hint = "Start one with `dask scheduler`, and name it as it names itself: tcp://HOST:8786"
        raise ClusterUnavailable("no scheduler answers", where=where, hint=hint) from error
    try:
        client.wait_for_workers(1, timeout=ANSWERS_WITHIN)
    except (OSError, TimeoutError) as error:
        client.close()  # type: ignore[no-untyped-call]
        hint = f"Start some with `dask worker {where} --nthreads 1`, where kerf is installed"
        raise ClusterUnavailable("the scheduler has no workers", where=where, hint=hint) from error
    return client


def _require_answer(address: str) -> None:
    """Raise OSError if nobody listens there, ValueError for what is no address."""
    parts = urlsplit(address)
    if parts.scheme not in ("tcp", "tls") or not parts.hostname or not parts.port:
        raise ValueError(f"{address!r} is no address")
    create_connection((parts.hostname, parts.port), timeout=ANSWERS_WITHIN).close()
