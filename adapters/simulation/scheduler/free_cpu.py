"""The nodes by the CPU that is free on them. In a full cluster a waiting pod is so tried on few of them."""

from __future__ import annotations

from bisect import bisect_left, insort


class FreeCpu:
    """The free milli-CPU of each node, by name."""

    def __init__(self) -> None:
        self._free: dict[str, int] = {}
        self._order: list[tuple[int, str]] = []

    def put(self, node: str, free: int) -> None:
        """Note what is free on a node."""
        if self._free.get(node) != free:
            self.drop(node)
            self._free[node] = free
            insort(self._order, (free, node))

    def drop(self, node: str) -> None:
        """Forget a node that is gone."""
        free = self._free.pop(node, None)
        if free is not None:
            del self._order[bisect_left(self._order, (free, node))]

    def at_least(self, cpu: int) -> list[str]:
        """The nodes with so much free."""
        return [node for _, node in self._order[bisect_left(self._order, (cpu, "")) :]]
