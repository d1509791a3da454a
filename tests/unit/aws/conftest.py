"""Holds every call of these tests against AWS's service models."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.aws.boundary import Boundary, watched


@pytest.fixture(autouse=True)
def boundary() -> Iterator[Boundary]:
    """What kerf asks of AWS in this test, and what is answered, is what AWS's own model allows."""
    with watched() as made:
        yield made
    assert made.problems == []
