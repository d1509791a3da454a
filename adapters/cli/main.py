"""The entry point of `kerf`: finds the command, runs it, and gives its exit code.

A command is a function: its docstring is its help, its return value the exit code (None for 0). It raises a
`KerfError` for whatever goes wrong. `kerf.adapters.cli.boundary` says what becomes of it, and of what nobody expected.

A help page must come at once: `kerf --help` imports neither cyclopts nor a command, and a command's module imports
only what its signature needs. tests/unit/cli/test_startup.py holds this.
"""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any

from kerf.adapters.cli.boundary import (
    DEBUG,
    INTERRUPTED,
    USAGE,
    ended_by,
    silence_output,
    split_flags,
    survived_defects_shown,
)
from kerf.adapters.cli.garbage import look_rarely
from kerf.adapters.cli.limits import LIFTED, NO_LIMITS
from kerf.adapters.cli.render.lines import print_error, print_text
from kerf.adapters.cli.render.progress import how_far
from kerf.engine.passwords import without_password

if TYPE_CHECKING:
    from cyclopts import App, CycloptsError
    from rich.console import Console

_LIKE_IT = "kerf-like-it"
_PLAIN = str.maketrans({"→": "->", "…": "...", "–": "-", "×": "x", "─": "-", "│": "|", **dict.fromkeys("╭╮╰╯", "+")})
"""What a terminal without Unicode shows for what kerf writes; a question mark for all else."""


def main(tokens: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code."""
    look_rarely()
    how_far()  # of a command before this one, in the same process
    arguments, flags = split_flags(sys.argv[1:] if tokens is None else tokens)
    LIFTED.set(NO_LIMITS in flags)
    _open_streams()
    try:
        with survived_defects_shown(debug=DEBUG in flags):
            done = _print_overview() if arguments[:1] in ([], ["--help"], ["-h"]) else _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of our output, `head` say, has seen enough
        silence_output()
        return 0
    except KeyboardInterrupt:
        if told := how_far():
            print_error(f"Stopped by Ctrl-C: {told}")
        return INTERRUPTED
    except Exception as error:
        code = ended_by(error, arguments, debug=DEBUG in flags)
        _flush_or_silence()
        return code
    finally:
        LIFTED.set(False)
    return done


def _open_streams() -> None:
    """See to it that there are streams to write to, and that a terminal without Unicode shows something like it."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115, PTH123 - closed by whoever started kerf
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115, PTH123
    codecs.register_error(_LIKE_IT, _like_it)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=_LIKE_IT)


def _like_it(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return error.object[error.start : error.end].translate(_PLAIN).encode("ascii", "replace").decode(), error.end


def _flush_or_silence() -> None:
    """Write what is left. Where that fails, the interpreter would fail again at its end, and change the exit code."""
    try:
        sys.stdout.flush()
    except OSError:
        silence_output()


def _print_overview() -> int:
    from kerf.adapters.cli.overview import overview

    print_text(overview())
    return 0


def parser() -> App:
    """The parser of all commands. A command's module is imported when it is used."""
    from cyclopts import App, Parameter

    import kerf
    from kerf.adapters.cli.command_table import COMMANDS, DESCRIPTION

    # plain text: Markdown takes longer to import than a help page may take
    app = App(
        name="kerf",
        help=DESCRIPTION,
        version=kerf.__version__,
        help_format="plaintext",
        suppress_keyboard_interrupt=False,
        default_parameter=Parameter(show_default=_told_default, negative_iterable=""),
        console=_plain_console(),
    )
    for command in COMMANDS:
        app.command(command.path, name=command.name)
    return app


def _told_default(value: object) -> Any:
    """A default as a help page tells it: None for one that says no more than that it may be left out."""
    return None if value is None or value is False or value in ("", ()) else str(value)


def _plain_console() -> Console | None:
    """What help is printed on where NO_COLOR is set; None for the usual, which begins without importing rich."""
    if not os.environ.get("NO_COLOR"):
        return None
    from kerf.adapters.cli.render.console import Output

    return Output()


def _run(arguments: list[str]) -> int:
    """Parse the command line with cyclopts and run the command that it names."""
    from cyclopts import CycloptsError

    from kerf.adapters.cli.command_table import COMMANDS, STANDARD_INPUT

    if any(command.reads_input and command.name == arguments[0] for command in COMMANDS):
        arguments = [STANDARD_INPUT if argument == "-" else argument for argument in arguments]
    try:
        done = parser()(arguments, exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        misused = _misused(error)
        for argument in arguments:
            misused = misused.replace(argument, without_password(argument))
        print_error(f"KERF200: {misused} Try --help")
        return USAGE
    except SystemExit as ended:  # rich, which prints help pages, ends the process where their reader has seen enough
        raise BrokenPipeError from ended
    return done if isinstance(done, int) else 0


def _misused(error: CycloptsError) -> str:
    """What is wrong with the command line, as one sentence."""
    from cyclopts import MissingArgumentError, UnknownOptionError, UnusedCliTokensError

    command = " ".join(("kerf", *(error.command_chain or ())))
    if isinstance(error, MissingArgumentError) and error.argument is not None and "Did you mean" not in str(error):
        return f"{command} needs {error.argument.name}" + (" with a value." if error.keyword else ".")
    if isinstance(error, UnusedCliTokensError):
        more = ", ".join(map(repr, error.unused_tokens or ()))
        return f"{command} takes no more arguments, and has no use for {more}."
    if isinstance(error, UnknownOptionError) and error.token.value == "-":
        return f"{command} does not read standard input (-). Give a file."
    return " ".join(str(error).split())
