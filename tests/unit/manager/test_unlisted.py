"""What is said while a kind of objects is not listed."""

from __future__ import annotations

import asyncio

import pytest

from kerf.adapters.manager.unlisted import report_unlisted


@pytest.mark.asyncio
async def test_lg14_lists_that_do_not_come_are_told_after_half_a_minute_and_every_ten_seconds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    missing = ["/api/v1/nodes", "/api/v1/pods"]
    telling = asyncio.create_task(report_unlisted(lambda: missing))
    await asyncio.sleep(29)
    assert not capsys.readouterr().err
    await asyncio.sleep(2)
    missing.pop()
    await asyncio.sleep(10)
    telling.cancel()
    assert capsys.readouterr().err.splitlines() == [
        "nothing is decided yet: /api/v1/nodes, /api/v1/pods not listed after 30 s",
        "nothing is decided yet: /api/v1/nodes not listed after 40 s",
    ]
