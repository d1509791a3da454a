"""What a task of the controller leaves unhandled is told as one coded line, as every other defect."""

from __future__ import annotations

import asyncio
import gc

import pytest

from kerf.adapters.manager.manager import _print_unhandled


@pytest.mark.asyncio(loop_scope="function")
async def test_a_task_that_nobody_waits_for_fails_without_a_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does it show a secret of the environment."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI")
    asyncio.get_running_loop().set_exception_handler(_print_unhandled)

    async def fail() -> None:
        raise KeyError("pods wJalrXUtnFEMI")

    task = asyncio.create_task(fail())
    await asyncio.sleep(1)
    del task
    gc.collect()
    said = capsys.readouterr().err
    assert said.startswith("KERF605: KeyError: 'pods …' [Task exception was never retrieved]. This is a defect of kerf")
    assert said.count("\n") == 1
