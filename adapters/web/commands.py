"""Commands that take long, asked from the page: each in a process of its own, one at a time, with the command's limits
and a time limit.

A change may make a decision long, and a stranger's record may make it longer. Neither may hold up the page.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE
from contextlib import suppress
from tempfile import TemporaryFile

from kerf.adapters.cli.limits import LIFTED, NO_LIMITS
from kerf.engine.errors import InputError, KerfError

LONGEST = 60.0  # seconds


class Commands:
    """Runs commands of kerf, one after the other."""

    def __init__(self) -> None:
        self._turn = asyncio.Semaphore(1)
        self.flags = (NO_LIMITS,) if LIFTED.get() else ()

    async def run(self, *arguments: str, given: str = "") -> str:
        """Return what a command prints. `given` is its standard input.

        Raises InputError (KERF862) if it takes too long, and what the command refuses with the command's code.
        """
        async with self._turn:
            code, out, error = await _run(given, *self.flags, *arguments)
        if code:
            raise _refused(error)
        return out


async def _run(given: str, *arguments: str) -> tuple[int, str, str]:
    with TemporaryFile() as file:  # a socket, which asyncio would make, cannot be opened as /dev/stdin
        file.write(given.encode())
        file.seek(0)
        command = (sys.executable, "-m", "kerf", *arguments)
        process = await asyncio.create_subprocess_exec(*command, stdin=file, stdout=PIPE, stderr=PIPE)
    told = asyncio.ensure_future(process.communicate())
    try:
        await asyncio.wait([told], timeout=LONGEST)
        if not told.done():
            hint = "Ask on the command line, where it may take longer"
            raise InputError(f"the answer took over {LONGEST:.0f} s", hint=hint, code="KERF862")
    finally:
        with suppress(ProcessLookupError):
            process.kill()
    out, error = await told
    return process.returncode or 0, out.decode(errors="replace"), error.decode(errors="replace")


def _refused(said: str) -> KerfError:
    """The command's own error: its last line is CODE: message. hint"""
    code, _, message = (said.strip().splitlines() or ["KERF900: it ended without a word"])[-1].partition(": ")
    return InputError(message, code=code) if code.startswith("KERF") else InputError(said.strip()[-300:])
