"""Keeps a refusal that lasts from being told again and again."""

from __future__ import annotations

from collections.abc import Iterable

from kerf.adapters.aws.session import AwsError


class ToldOnce:
    """The refusals of one thing that is tried again and again."""

    def __init__(self) -> None:
        self._told: frozenset[tuple[str, str]] = frozenset()

    def news(self, refused: Iterable[AwsError]) -> list[AwsError]:
        """Of all that AWS refused this time, what it did not refuse last time: one for each operation and code. No text
        is compared: EC2 puts another encoded message into each."""
        errors = {(error.operation, error.aws_code): error for error in refused}
        news = [error for key, error in errors.items() if key not in self._told]
        self._told = frozenset(errors)
        return news
