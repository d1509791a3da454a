"""Run cells in processes of this machine."""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from kerf.adapters.cli.sweeping.cell import Cell, Done, run_cell_of_file
from kerf.adapters.cli.workers import WorkerDied, cores, end_with_parent


def in_processes(cells: Sequence[Cell], bundles: Mapping[str, Path], jobs: int) -> Done:
    """Give each cell with its outcome as it is done. `bundles` are files by digest; `jobs` 0 means all cores.

    Raises WorkerDied (KERF903). Ctrl-C, and whoever stops asking, ends the processes at once.
    """
    others = multiprocessing.active_children()
    pool = ProcessPoolExecutor(
        min(jobs or cores(), len(cells)), multiprocessing.get_context("spawn"), initializer=_begin
    )
    try:
        waiting = {pool.submit(run_cell_of_file, bundles[cell.bundle], cell): cell for cell in cells}
        for done in as_completed(waiting):
            yield waiting[done], done.result()
    except BrokenProcessPool as error:
        hint = "What is done is kept. Give it more memory, or fewer processes with --jobs 1, and run it again"
        raise WorkerDied("a worker process was killed", hint=hint) from error
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            if process not in others:
                process.terminate()


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the command, which ends its workers
    threading.Thread(target=end_with_parent, daemon=True).start()
