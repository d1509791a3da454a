"""What ends a command: each exception becomes one coded line and an exit code, and a traceback with `--debug` alone.
`--debug` also shows the traceback of a defect that a command survives (KERF605).

Exit codes: 0 done, 1 the answer is no (`kerf verify` found a divergence), 2 usage, bad input, or the machine refused
something, 3 the record is corrupt, 4 the record needs another version of kerf, 70 a defect of kerf, 130 Ctrl-C.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from kerf.adapters.cli.command_table import COMMANDS
from kerf.adapters.cli.limits import NO_LIMITS
from kerf.adapters.cli.render.lines import print_error
from kerf.engine.errors import FAULT_WATCHERS, REPORT, Defect, KerfError, summary_of
from kerf.engine.passwords import without_secrets
from kerf.engine.record.errors import BlobCorrupt, EntryUndecodable, FormatUnsupported, RecordCorrupt, UpcastFailed
from kerf.replay.errors import DecidedByNewer

USAGE, CORRUPT, UNSUPPORTED, DEFECT, INTERRUPTED = 2, 3, 4, 70, 130
DEBUG = "--debug"


class SystemRefused(KerfError):
    """The system refused to read, write or begin something, and no command expected that."""

    code = "KERF901"


class OutOfMemory(KerfError):
    """The machine, or a limit on the process, has no more memory to give."""

    code = "KERF902"


def split_flags(arguments: Sequence[str]) -> tuple[list[str], set[str]]:
    """Returns the arguments without the flags of all commands (`--debug`, `--no-limits`), and those that were there.
    What stands after "--" is no flag.
    """
    end = arguments.index("--") if "--" in arguments else len(arguments)
    flags = {DEBUG, NO_LIMITS} & set(arguments[:end])
    return [*(argument for argument in arguments[:end] if argument not in flags), *arguments[end:]], flags


def ended_by(error: Exception, arguments: Sequence[str], *, debug: bool) -> int:
    """Prints what ended a command, with a traceback if that was asked for. Returns the exit code."""
    fault = _coded(error, _command(arguments))
    with suppress(OSError):  # standard error is closed, or its disk is full
        if debug:
            print_traceback(error)
        print_error(" ".join(str(fault).split()))
    return exit_code(fault)


def exit_code(error: KerfError) -> int:
    """Returns the exit code for an error that ended a command."""
    if isinstance(error, Defect):
        return DEFECT
    if isinstance(error, FormatUnsupported | UpcastFailed | DecidedByNewer):
        return UNSUPPORTED
    if isinstance(error, RecordCorrupt | BlobCorrupt | EntryUndecodable):
        return CORRUPT
    return USAGE


def _coded(error: Exception, command: str) -> KerfError:
    if isinstance(error, KerfError):
        return error
    if isinstance(error, MemoryError):
        return OutOfMemory("there is not enough memory", where=command, hint="Ask for less at once, or give it more")
    if isinstance(error, OSError) and error.strerror:
        where = f"{command}: {error.filename}" if error.filename else command
        hint = f"Check the path, the disk and the permissions; {DEBUG} shows where it was refused"
        return SystemRefused(without_secrets(error.strerror, os.environ), where=where, hint=hint)
    return Defect(without_secrets(summary_of(error), os.environ), where=command, hint=f"{REPORT}. {DEBUG} shows more")


def _command(arguments: Sequence[str]) -> str:
    """Returns what kerf was doing. Arguments stay out of it: they may hold names and passwords."""
    known = {command.name: command.subcommands for command in COMMANDS}
    words = [word for word in arguments[:1] if word in known]
    words += [word for word in arguments[1:2] if words and word in known[words[0]]]
    return " ".join(("kerf", *words))


def print_traceback(error: Exception) -> None:
    """Prints the traceback without passwords and without values of variables."""
    from traceback import format_exception

    print_error(without_secrets("".join(format_exception(error)).rstrip(), os.environ))


@contextmanager
def survived_defects_shown(*, debug: bool) -> Iterator[None]:
    """Prints the traceback of each defect that a command survives within, if that was asked for."""
    watchers = [print_traceback] if debug else []
    FAULT_WATCHERS.extend(watchers)
    try:
        yield
    finally:
        for watcher in watchers:
            FAULT_WATCHERS.remove(watcher)


@contextmanager
def reader_may_leave() -> Iterator[None]:
    """Lets a reader stop before all is printed that is printed within: what was found is still the exit code."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        silence_output()


def silence_output() -> None:
    """Lets what is still to be written to standard output go nowhere: nobody can take it."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
