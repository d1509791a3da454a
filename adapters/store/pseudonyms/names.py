"""What a rule gets to replace names with, and the forms of rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from msgspec import Struct


class Names(Protocol):
    def name(self, kind: str, text: str) -> str: ...
    def digest(self, digest: str) -> str: ...
    def words(self, text: str) -> str: ...
    def public(self, kind: str, text: str) -> None:
        """Notes a text of this kind that stays: replaced ones keep their order relative to it."""

    def is_public(self, kind: str, text: str) -> bool: ...
    def given_to(self, kind: str) -> Iterable[tuple[str, str]]: ...
    def once(self, text: str, make: Callable[[], str]) -> str: ...


Rule = Callable[[Any, Names], Any]
StructRule = Callable[[Any, Names], Struct]
