"""The file lock of observe mode: its name can be guessed, so it follows no link and waits for no pipe."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from kerf.adapters.manager.leadership import FileLock, RecordLocked
from kerf.engine.record.errors import SpecialFile


@pytest.mark.asyncio(loop_scope="function")
async def test_one_process_has_the_lock(tmp_path: Path) -> None:
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    await first.acquire()
    assert stat.S_IMODE((tmp_path / "lock").stat().st_mode) == 0o600
    with pytest.raises(RecordLocked, match="KERF343"):
        await second.acquire()
    await first.release()
    await second.acquire()
    await second.release()


@pytest.mark.asyncio(loop_scope="function")
async def test_links_and_pipes_are_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe"):
        with pytest.raises(SpecialFile, match="KERF119"):
            await FileLock(tmp_path / name).acquire()
    assert not (tmp_path / "nothing").exists()
