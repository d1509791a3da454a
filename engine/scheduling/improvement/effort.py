"""Search effort: counted in steps, never in time, so that a decision can be made again exactly."""

from __future__ import annotations

PODS_A_STEP = 500
"""A step is to plan at most so many pods again; more pods cost accordingly more."""


class Effort:
    """What is left of a pass's search steps."""

    def __init__(self, steps: int) -> None:
        self.left = steps
        self.spent = 0

    def add(self, steps: int) -> None:
        """What was held back."""
        self.left += steps

    def take(self, steps: int) -> bool:
        """Spend so many steps; False, and nothing is spent, if there are not as many left."""
        if steps > self.left:
            return False
        self.left -= steps
        self.spent += steps
        return True


def steps_of(pods: int) -> int:
    """The steps that planning so many pods costs."""
    return max(1, -(-pods // PODS_A_STEP))
