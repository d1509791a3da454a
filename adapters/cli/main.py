"""The entry point of `kerf`: finds the command, runs it, and turns errors into coded lines and exit codes.

A command is a function: its docstring is its help, its return value the exit code (None for 0). It raises a
`KerfError` for whatever goes wrong; that becomes one coded line on stderr, never a traceback.

Exit codes: 0 done, 1 the answer is no (`kerf verify` found a divergence), 2 usage or bad input, 3 the record is
corrupt, 4 the record needs another version of kerf.

A help page must come at once: `kerf --help` imports neither cyclopts nor a command, and a command's module imports
only what its signature needs. tests/unit/cli/test_startup.py holds this.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import TYPE_CHECKING

from kerf.adapters.cli.render.lines import print_error, print_text
from kerf.engine.errors import KerfError
from kerf.engine.passwords import without_password
from kerf.engine.record.errors import BlobCorrupt, EntryUndecodable, FormatUnsupported, RecordCorrupt, UpcastFailed

if TYPE_CHECKING:
    from cyclopts import CycloptsError

USAGE, CORRUPT, UNSUPPORTED, INTERRUPTED = 2, 3, 4, 130


def main(tokens: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code."""
    arguments = list(sys.argv[1:] if tokens is None else tokens)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a terminal without Unicode shows question marks, not a traceback
            stream.reconfigure(errors="replace")
    try:
        done = _print_overview() if arguments[:1] in ([], ["--help"], ["-h"]) else _run(arguments)
        sys.stdout.flush()
    except KerfError as error:
        return _failed(" ".join(str(error).split()), exit_code(error))
    except BrokenPipeError:  # the reader of our output, `head` say, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return INTERRUPTED
    return done


def exit_code(error: KerfError) -> int:
    """The exit code for an error that ended a command."""
    if isinstance(error, FormatUnsupported | UpcastFailed):
        return UNSUPPORTED
    if isinstance(error, RecordCorrupt | BlobCorrupt | EntryUndecodable):
        return CORRUPT
    return USAGE


def _print_overview() -> int:
    from kerf.adapters.cli.overview import overview

    print_text(overview())
    return 0


def _run(arguments: list[str]) -> int:
    """Parse the command line with cyclopts and run the command that it names."""
    from cyclopts import App, CycloptsError

    import kerf
    from kerf.adapters.cli.command_table import COMMANDS, DESCRIPTION

    # plain text: Markdown takes longer to import than a help page may take
    app = App(name="kerf", help=DESCRIPTION, version=kerf.__version__, help_format="plaintext")
    for command in COMMANDS:
        app.command(command.path, name=command.name)  # imported when it is used
    try:
        done = app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        misused = _misused(error)
        for argument in arguments:
            misused = misused.replace(argument, without_password(argument))
        return _failed(f"KERF200: {misused} Try --help", USAGE)
    return done if isinstance(done, int) else 0


def _misused(error: CycloptsError) -> str:
    """What is wrong with the command line, as one sentence."""
    from cyclopts import UnusedCliTokensError

    if isinstance(error, UnusedCliTokensError):
        more = ", ".join(map(repr, error.unused_tokens or ()))
        command = " ".join(("kerf", *(error.command_chain or ())))
        return f"{command} takes no more arguments, and has no use for {more}."
    return " ".join(str(error).split())


def _failed(line: str, code: int) -> int:
    print_error(line)
    return code
