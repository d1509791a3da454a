"""The one root error and its families. Every concrete error has a stable code and says what, where and what to do next.

Codes: KERF1xx store and record, KERF2xx replay, KERF3xx input (manifests, messages, price lists), KERF4xx scheduling,
KERF5xx cloud, KERF6xx cluster, KERF7xx runtime and the NodeClaim aggregate, KERF8xx simulation and scenarios.
"""

from __future__ import annotations


class KerfError(Exception):
    """Root of all errors that kerf raises on purpose.

    `code` is stable (docs/errors.md); `where` names the object, field or position; `hint` says what to do.
    """

    code = "KERF000"

    def __init__(self, message: str, *, where: str = "", hint: str = "", code: str = "") -> None:
        self.message = message
        self.where = where
        self.hint = hint
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
