"""A task that waits can be ended at any moment: asyncio.wait_for swallows a cancellation that comes together with what
it waits for (Python 3.11), and kerf then hung at its end."""

from __future__ import annotations

import ast
import asyncio
from pathlib import Path

import pytest

import kerf
from kerf.adapters.controller.inbox import Inbox
from kerf.engine.record.observations import ObjectGone, Observation

ADAPTERS = Path(kerf.__file__).parent / "adapters"


@pytest.mark.asyncio(loop_scope="function")
@pytest.mark.parametrize("steps", range(5))
async def test_a_wait_that_is_cancelled_as_something_arrives_ends(steps: int) -> None:
    async def forever(inbox: Inbox) -> None:
        while True:
            await inbox.wait(5)
            inbox.take()

    async def run() -> bool:
        inbox = Inbox()
        task = asyncio.create_task(forever(inbox))
        for _ in range(3):
            await asyncio.sleep(0)
        inbox.put([Observation(ObjectGone("pod", "p"))])
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=0.5)
        return bool(done)

    assert await run()


def test_no_adapter_waits_so() -> None:
    calls = [
        f"{path.name}:{node.lineno}"
        for path in sorted(ADAPTERS.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == "wait_for"
    ]
    assert not calls
