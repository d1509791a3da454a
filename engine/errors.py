"""The one root error and its families. Every concrete error has a stable code and says what, where and what to do next.

Codes: KERF1xx store and record, KERF2xx replay, KERF3xx input (manifests, messages, price lists), KERF4xx scheduling,
KERF5xx cloud, KERF6xx cluster, KERF7xx runtime and the NodeClaim aggregate, KERF8xx simulation and scenarios.
"""

from __future__ import annotations

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
            text += f". {self.hint}"
        return text


class InputError(KerfError):
    """Bad input at the edge: refused, recorded and shown; it never stops the loop or drops other work."""

    code = "KERF300"


class AdapterFault(KerfError):
    """A defect in an adapter."""

    code = "KERF605"


def fault_of(error: Exception, where: str) -> KerfError:
    """Returns a coded error as it is, and any other exception as the defect that it shows."""
    if isinstance(error, KerfError):
        return error
    hint = "This is a defect of kerf: please report it with a bundle of the record"
    return AdapterFault(f"{type(error).__name__}: {error}", where=where, hint=hint)
