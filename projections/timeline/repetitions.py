"""What was said before, and how often: so that a story tells it once, and again only when it changes."""

from __future__ import annotations

from collections.abc import Hashable


class Repetitions:
    """Per subject the latest that was said of it."""

    def __init__(self) -> None:
        self._said: dict[Hashable, tuple[Hashable, int]] = {}

    def times(self, subject: Hashable, words: Hashable) -> int:
        """Notes it and says how often it has been said without a change, 1 for the first time."""
        before, times = self._said.get(subject, (None, 0))
        times = times + 1 if before == words else 1
        self._said[subject] = words, times
        return times

    def forget(self, subject: Hashable) -> int:
        """The subject has nothing said of it any more; how often the latest was said."""
        return self._said.pop(subject, (None, 0))[1]
