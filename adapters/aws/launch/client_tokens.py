"""The client tokens of CreateFleet.

A fleet that started nothing has used up its token: EC2 would only repeat its errors. The next try of the same intent
takes the next of a row, and a process that forgot how far it was walks the row again.
"""

from __future__ import annotations

import threading

KEPT = 10_000
"""Intents whose fleets started nothing are remembered, the newest: most are never tried again (L-152)."""


class Tokens:
    """Safe for threads."""

    def __init__(self) -> None:
        self._spent: dict[str, int] = {}  # token of the intent → how many fleets of it started nothing
        self._lock = threading.Lock()

    def next_of(self, token: str) -> str:
        """The client token of the intent's next fleet."""
        spent = self._spent.get(token, 0)
        return f"{token}-{spent}" if spent else token

    def spend(self, token: str) -> None:
        """A fleet of it started nothing."""
        with self._lock:
            self._spent[token] = self._spent.pop(token, 0) + 1
            if len(self._spent) > KEPT:
                del self._spent[next(iter(self._spent))]

    def done(self, token: str) -> None:
        """A fleet of it started an instance: nobody asks for another."""
        with self._lock:
            self._spent.pop(token, None)
