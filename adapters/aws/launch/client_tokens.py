"""The client tokens of CreateFleet.

A fleet that started nothing has used up its token: with the same one EC2 would only repeat its errors. So the next try
of an intent takes the next token of a fixed row. A process that lost count walks the row again.
"""

from __future__ import annotations

import threading

MAX_REMEMBERED = 10_000
"""How many intents whose fleets started nothing are remembered, the newest: most are never tried again (L-152)."""


class ClientTokens:
    """Counts the used tokens of each intent. Safe for threads."""

    def __init__(self) -> None:
        self._spent: dict[str, int] = {}  # token of the intent → how many fleets of it started nothing
        self._lock = threading.Lock()

    def next_of(self, token: str) -> str:
        """The client token of the intent's next fleet."""
        spent = self._spent.get(token, 0)
        return f"{token}-{spent}" if spent else token

    def spend(self, token: str) -> None:
        """Note that a fleet with this token started nothing."""
        with self._lock:
            self._spent[token] = self._spent.pop(token, 0) + 1
            if len(self._spent) > MAX_REMEMBERED:
                del self._spent[next(iter(self._spent))]

    def done(self, token: str) -> None:
        """Note that a fleet started an instance: the intent needs no further token."""
        with self._lock:
            self._spent.pop(token, None)
