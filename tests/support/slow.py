"""Parameters whose tests take seconds: `make test` leaves them out, `make test-all` runs them."""

from __future__ import annotations

from typing import Any

import pytest


def slow(*values: Any) -> list[Any]:
    """`@pytest.mark.parametrize("seed", [0, 1, *slow(2, 3)])`"""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]
