"""The client tokens of CreateFleet.

A fleet that started nothing has used up its token: with the same one EC2 would only repeat its errors. So the next try
of an intent takes the next token of a fixed row. A process that lost count walks the row again.
"""

from __future__ import annotations

import threading

SHOWN_WITHIN = 60_000
"""Within this time (ms) EC2 shows every instance that it has started."""
MAX_REMEMBERED = 10_000
"""How many intents whose fleets started nothing are remembered, the newest: most are never tried again (L-152)."""


class ClientTokens:
    """Counts the used tokens of each intent. Safe for threads."""

    def __init__(self) -> None:
        self._spent: dict[str, int] = {}  # token of the intent → how many fleets of it started nothing
        self._mismatched: dict[str, int] = {}  # token of the intent → when EC2 first took it for another request's
        self._lock = threading.Lock()

    def next_of(self, token: str, now: int) -> str:
        """The client token of the intent's next fleet, at `now` (ms)."""
        if now >= self._mismatched.get(token, now) + SHOWN_WITHIN:
            self.spend(token)
        spent = self._spent.get(token, 0)
        return f"{token}-{spent}" if spent else token

    def spend(self, token: str) -> None:
        """Note that a fleet with this token started nothing."""
        with self._lock:
            self._mismatched.pop(token, None)
            self._spent[token] = self._spent.pop(token, 0) + 1
            _keep_newest(self._spent)

    def mismatched(self, token: str, now: int) -> None:
        """Note that EC2 has an earlier, other request of the intent under a token, and that no instance of it is found.
        If none is shown in time, there is none, and the token is spent."""
        with self._lock:
            self._mismatched.setdefault(token, now)
            _keep_newest(self._mismatched)

    def done(self, token: str) -> None:
        """Note that a fleet started an instance: the intent needs no further token."""
        with self._lock:
            self._spent.pop(token, None)
            self._mismatched.pop(token, None)


def _keep_newest(by_token: dict[str, int]) -> None:
    if len(by_token) > MAX_REMEMBERED:
        del by_token[next(iter(by_token))]
