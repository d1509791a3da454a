"""A coded reason: what ruled something out, or why something was done.

The record keeps the code and its parameters; the sentence is made when somebody reads it. Each list of codes is a
closed enum with the sentences beside them (`ReasonCode`): `disruption_reasons` in this package, `reasons` in
`engine.lifecycle` and `engine.scheduling`. A record may hold codes that this engine does not know: they are text, and
are shown as they are.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from msgspec import Struct

from kerf.engine.model.names import REASON_PARAMETERS, Plain


class ReasonCode(StrEnum):
    """Base of the closed lists: `NAME = "code", "its sentence with {parameters}"`, and what a list adds to these."""

    sentence: str

    def __new__(cls, code: str, sentence: str, *more: object) -> Self:
        member = str.__new__(cls, code)
        member._value_ = code
        member.sentence = sentence
        return member


class Reason(Struct, frozen=True, omit_defaults=True):
    """`code` is stable; `params` hold the facts that its sentence needs."""

    code: Plain
    params: Annotated[dict[str, str | int | float | list[str]], REASON_PARAMETERS] = {}

    @classmethod
    def of(cls, code: ReasonCode, /, **params: str | int | float | list[str]) -> Reason:
        return cls(str(code), params)
