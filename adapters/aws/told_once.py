"""Keeps a refusal that lasts from being told again and again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from kerf.adapters.aws.session import AwsError
from kerf.engine.errors import KerfError

E = TypeVar("E", bound=KerfError)


class ToldOnce:
    """The refusals of one thing that is tried again and again."""

    def __init__(self) -> None:
        self._told: frozenset[tuple[str, str]] = frozenset()

    def news(self, refused: Iterable[E]) -> list[E]:
        """Of all that AWS refused this time, what it did not refuse last time: one for each operation and code. No text
        of AWS is compared: EC2 puts another encoded message into each. Of defects the text says which it is."""
        errors = {_which(error): error for error in refused}
        news = [error for key, error in errors.items() if key not in self._told]
        self._told = frozenset(errors)
        return news


def _which(error: KerfError) -> tuple[str, str]:
    return (error.operation, error.aws_code) if isinstance(error, AwsError) else (error.code, str(error))
