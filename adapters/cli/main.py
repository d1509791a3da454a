"""The command line. Commands are imported when they are used, so that a small one stays small and quick.

A command is a function: its docstring is its help, its return value the exit code (None for 0). It raises a
`KerfError` for whatever goes wrong; that becomes one coded line on stderr, never a traceback.

Exit codes: 0 done, 1 the answer is no (`kerf verify` found a divergence), 2 usage or bad input, 3 the record is
corrupt, 4 the record needs another version of kerf.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper

from cyclopts import App, CycloptsError, UnusedCliTokensError

import kerf
from kerf.engine.errors import KerfError
from kerf.engine.record.errors import BlobCorrupt, EntryUndecodable, FormatUnsupported, RecordCorrupt, UpcastFailed

COMMANDS: tuple[tuple[str, str], ...] = (
    ("demo", "kerf.adapters.cli.commands.demo:demo"),
    ("simulate", "kerf.adapters.cli.commands.simulate:simulate"),
    ("plan", "kerf.adapters.cli.commands.plan:plan"),
    ("disrupt", "kerf.adapters.cli.commands.disrupt:disrupt"),
    ("run", "kerf.adapters.cli.commands.run:run"),
    ("observe", "kerf.adapters.cli.commands.observe:observe"),
    ("doctor", "kerf.adapters.cli.commands.doctor:doctor"),
    ("validate", "kerf.adapters.cli.commands.validate:validate"),
    ("convert", "kerf.adapters.cli.commands.convert:convert"),
    ("log", "kerf.adapters.cli.commands.record:log"),
    ("at", "kerf.adapters.cli.commands.record:at"),
    ("explain", "kerf.adapters.cli.commands.record:explain"),
    ("story", "kerf.adapters.cli.commands.record:story"),
    ("verify", "kerf.adapters.cli.commands.record:verify"),
    ("bundle", "kerf.adapters.cli.commands.bundle:bundle"),
    ("store", "kerf.adapters.cli.commands.store:store"),
)
"""Name and "module:function" (or "module:app") of every command. A module that cannot be imported is an error."""

USAGE, CORRUPT, UNSUPPORTED, INTERRUPTED = 2, 3, 4, 130


def build(*, overview: bool = False) -> App:
    """The application with all commands, none of them imported yet, but for the overview, which shows their help."""
    app = App(
        name="kerf",
        help="An event-sourced Kubernetes node autoscaler: every decision can be replayed, explained and tried again.",
        version=kerf.__version__,
    )
    for name, path in COMMANDS:
        app.command(path, name=name)
        if overview:
            app[name]
    return app


def main(tokens: Sequence[str] | None = None) -> int:
    """Runs one command and gives its exit code."""
    given = list(sys.argv[1:] if tokens is None else tokens)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a terminal without Unicode shows question marks, not a traceback
            stream.reconfigure(errors="replace")
    try:
        done = build(overview=given[:1] in ([], ["--help"], ["-h"]))(
            given,
            exit_on_error=False,
            print_error=False,
            result_action="return_value",
        )
        sys.stdout.flush()
    except CycloptsError as error:
        return _failed(f"KERF200: {_misused(error)} Try --help", USAGE)
    except KerfError as error:
        return _failed(" ".join(str(error).split()), exit_code(error))
    except BrokenPipeError:  # the reader of our output, `head` say, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return INTERRUPTED
    return done if isinstance(done, int) else 0


def exit_code(error: KerfError) -> int:
    """The exit code for an error that ended a command."""
    if isinstance(error, FormatUnsupported | UpcastFailed):
        return UNSUPPORTED
    if isinstance(error, RecordCorrupt | BlobCorrupt | EntryUndecodable):
        return CORRUPT
    return USAGE


def _misused(error: CycloptsError) -> str:
    """What is wrong with the command line, as one sentence."""
    if isinstance(error, UnusedCliTokensError):
        more = ", ".join(map(repr, error.unused_tokens or ()))
        command = " ".join(("kerf", *(error.command_chain or ())))
        return f"{command} takes no more arguments, and has no use for {more}."
    return " ".join(str(error).split())


def _failed(line: str, code: int) -> int:
    print(line, file=sys.stderr)
    return code
