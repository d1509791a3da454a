"""Tries examples of a fuzz target."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from tests.fuzz.bounds import bounded
from tests.fuzz.target import Target

QUICK, QUICK_OF_SLOW, SLOW = 60, 5, 10
"""Examples of a target in `make test`, of a target whose examples are slow, and how many times as many in the slow
tests."""


def fuzz(target: Target, examples: int, *, same: bool = False) -> None:
    """Tries so many examples, the same ones each time if asked for.

    Fails with the smallest one that ends in anything but a value or a coded error.
    """
    checks = list(HealthCheck)

    @settings(max_examples=examples, deadline=None, derandomize=same, suppress_health_check=checks, database=None)
    @given(target.given)
    def tried(example: object) -> None:
        with bounded():
            target.check(example)

    tried()
