"""The golden tests' composition root: what pytest loads by the entry point `kerf-golden`.

It is loaded in every run of pytest where kerf is installed: it imports late.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from kerf.replay.golden.pytest_plugin import GoldenPlugin

if TYPE_CHECKING:
    from kerf.engine.record.store import Store
    from kerf.replay.golden.rerun import Rerun


def open_folder(folder: Path) -> Store:
    from kerf.adapters.store.files.golden import GoldenStore

    return GoldenStore(folder)


def write_folder(rerun: Rerun, folder: Path) -> list[str]:
    """Writes all files of a golden record, or on an error none, and gives the names of those that changed."""
    from kerf.adapters.store.files.golden import BLOBS, DECISIONS, RECORD, write_golden
    from kerf.adapters.store.files.private_files import write_whole

    changed = []
    with TemporaryDirectory(dir=folder.parent, prefix=".golden-") as scratch:
        fresh = Path(scratch)
        write_golden(rerun, fresh)
        for name in (RECORD, DECISIONS, BLOBS):
            old = folder / name
            if not old.is_file() or old.read_bytes() != (fresh / name).read_bytes():
                changed.append(name)
                write_whole(old, (fresh / name).read_bytes(), replace=True)
    return changed


plugin = GoldenPlugin(open_folder, write_folder)
