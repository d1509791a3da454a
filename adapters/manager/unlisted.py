"""Says which kinds of objects are still not listed (LG-14)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from kerf.adapters.manager.stderr import print_error

UNLISTED_AFTER, UNLISTED_EVERY = 30.0, 10.0  # seconds until it is said that a list is missing, and said again


async def report_unlisted(unlisted: Callable[[], Sequence[str]]) -> None:
    """Say again and again what is still `unlisted` after half a minute: nothing is decided meanwhile (LG-14)."""
    waited = UNLISTED_AFTER
    await asyncio.sleep(waited)
    while True:
        kinds = ", ".join(unlisted())
        print_error(f"nothing is decided yet: {kinds} not listed after {waited:.0f} s")
        await asyncio.sleep(UNLISTED_EVERY)
        waited += UNLISTED_EVERY
