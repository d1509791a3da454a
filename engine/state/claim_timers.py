"""When each claim must be looked at although nothing changed, so that no turn has to go through all claims."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

_SLACK = 64


class ClaimTimers:
    """Claim → time (ms since the epoch). A heap whose outdated entries are left behind until they come up, or until
    they are more than half of it."""

    def __init__(self) -> None:
        self._at: dict[str, int] = {}
        self._heap: list[tuple[int, str]] = []

    def by(self, claim: str, at: int) -> None:
        """The claim is due at `at`, or earlier if it is already."""
        known = self._at.get(claim)
        if known is not None and known <= at:
            return
        self._at[claim] = at
        heappush(self._heap, (at, claim))
        if len(self._heap) > 2 * len(self._at) + _SLACK:
            self._heap = [(at, claim) for claim, at in self._at.items()]
            heapify(self._heap)

    def drop(self, claim: str) -> None:
        self._at.pop(claim, None)

    def clear(self) -> None:
        """No claim is due."""
        self._at.clear()
        self._heap.clear()

    def next(self) -> int:
        """The earliest time, 0 for never."""
        while self._heap and self._at.get(self._heap[0][1]) != self._heap[0][0]:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else 0

    def take(self, now: int) -> list[str]:
        """The claims that are due at `now`, by name; they are due no more."""
        found = []
        while 0 < self.next() <= now:
            _, claim = heappop(self._heap)
            del self._at[claim]
            found.append(claim)
        return sorted(found)
