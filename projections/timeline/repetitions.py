"""Remember what was said and how often, so that the timeline tells a thing once, and again only when it changes."""

from __future__ import annotations

from collections.abc import Hashable


class Repetitions:
    """Remembers for each subject what was last said of it."""

    def __init__(self) -> None:
        self._said: dict[Hashable, tuple[Hashable, int]] = {}

    def times(self, subject: Hashable, words: Hashable) -> int:
        """Note what is said now, and return how often it has been said without a change: 1 for the first time."""
        before, times = self._said.get(subject, (None, 0))
        times = times + 1 if before == words else 1
        self._said[subject] = words, times
        return times

    def forget(self, subject: Hashable) -> int:
        """Forget what was said of the subject, and return how often that was."""
        return self._said.pop(subject, (None, 0))[1]
