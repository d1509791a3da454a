"""What is written, and what is read of it, while the page is open: its reader is told, and asks for what it shows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from kerf.adapters.web.reader import RecordReader

LOOKED_EVERY = 1.0  # seconds
QUIET = 15.0  # seconds without news after which a comment is sent, so that a closed page is noticed
AT_A_TIME = 0.04  # seconds for which a long record is read on; other questions wait no longer


async def news(reader: RecordReader) -> AsyncGenerator[str, None]:
    """Give server-sent events: the last position, and the share of the entries that are read for the timeline. Both at
    once, and whenever there is more. A long record is read on for as long as somebody follows."""
    told, shared, waited = 0, -1.0, 0.0
    while True:
        last, read, done = await reader.ask(_read_on)
        if last != told:
            told, waited = last, 0.0
            yield f"event: position\ndata: {last}\n\n"
        if read != shared:
            shared, waited = read, 0.0
            yield f"event: read\ndata: {read}\n\n"
        elif waited >= QUIET:
            waited = 0.0
            yield ": nothing new\n\n"
        pause = LOOKED_EVERY if done else 0.0
        await asyncio.sleep(pause)
        waited += pause


def _read_on(reader: RecordReader) -> tuple[int, float, bool]:
    """Read the record on: first for the timeline, then for the states between its snapshots, then for an index of its
    names. Return its last position, the share that is read for the timeline, and whether there is no more to read."""
    reader.picture.now()
    done = reader.picture.advance(AT_A_TIME) and reader.near.advance(AT_A_TIME)
    if done:
        reader.begin_index()
    return reader.store.last_position(), round(reader.picture.read, 2), done
