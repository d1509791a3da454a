"""The one root error and its families. Every concrete error has a stable code and says what, where and what to do next.

Codes: KERF1xx store and record, KERF2xx replay, KERF3xx input (manifests, messages, price lists), KERF4xx scheduling,
KERF5xx cloud, KERF6xx cluster, KERF7xx runtime and the NodeClaim aggregate, KERF8xx simulation and scenarios,
KERF9xx any command.
"""

from __future__ import annotations

from collections.abc import Callable

from kerf.engine.passwords import without_passwords


class KerfError(Exception):
    """Root of all errors that kerf raises on purpose.

    `code` is stable (docs/errors.md); `where` names the object, field or position; `hint` says what to do. None of them
    shows a URL's password.
    """

    code = "KERF000"

    def __init__(self, message: str, *, where: str = "", hint: str = "", code: str = "") -> None:
        self.message, self.where, self.hint = map(without_passwords, (message, where, hint))
        if code:
            self.code = code
        super().__init__(self.__str__())

    def __str__(self) -> str:
        text = f"{self.code}: {self.message}"
        if self.where:
            text += f" [{self.where}]"
        if self.hint:
            text += f"{'' if text.endswith(('.', '!', '?')) else '.'} {self.hint}"
        return text


class InputError(KerfError):
    """Bad input at the edge: refused, recorded and shown; it never stops the loop or drops other work."""

    code = "KERF300"


class AdapterFault(KerfError):
    """A defect in an adapter."""

    code = "KERF605"


class Defect(KerfError):
    """What nobody expected has ended a command or the controller."""

    code = "KERF900"


REPORT = "This is a defect of kerf: docs/security.md says how to report it (kerf bundle export --pseudonymise)"
_LONGEST_SAID = 300
"""Characters of another exception's text that an error shows."""


FAULT_WATCHERS: list[Callable[[Exception], None]] = []
"""Called with each exception that becomes a KERF605. What is done goes on, so nothing else shows it whole."""


def fault_of(error: Exception, where: str) -> KerfError:
    """Returns a coded error as it is, and any other exception as the defect that it shows."""
    if isinstance(error, KerfError):
        return error
    for watcher in FAULT_WATCHERS:
        watcher(error)
    return AdapterFault(summary_of(error), where=where, hint=REPORT)


def summary_of(error: BaseException) -> str:
    """Returns an exception's type and text on one line, and the line of kerf's code that it came from."""
    text = " ".join(str(error).split())
    if len(text) > _LONGEST_SAID:
        text = text[:_LONGEST_SAID] + "…"
    place, trace = "", error.__traceback__
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__", ""))
        if module.startswith("kerf."):
            place = f" ({module}:{trace.tb_lineno})"
        trace = trace.tb_next
    return f"{type(error).__name__}{': ' if text else ''}{text}{place}"


def extra_hint(extra: str) -> str:
    """What to do where the packages of an extra are missing. There is no published distribution to name."""
    return f"In kerf's source tree: pip install '.[{extra}]' (make setup has it)"
