"""Says which kinds of objects are still not listed (LG-14)."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence

UNLISTED_AFTER, UNLISTED_EVERY = 30.0, 10.0  # seconds until it is said that a list is missing, and said again


async def report_unlisted(unlisted: Callable[[], Sequence[str]]) -> None:
    """Say again and again what is still `unlisted` after half a minute: nothing is decided meanwhile (LG-14)."""
    waited = UNLISTED_AFTER
    await asyncio.sleep(waited)
    while True:
        kinds = ", ".join(unlisted())
        sys.stderr.write(f"nothing is decided yet: {kinds} not listed after {waited:.0f} s\n")
        sys.stderr.flush()
        await asyncio.sleep(UNLISTED_EVERY)
        waited += UNLISTED_EVERY
