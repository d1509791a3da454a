"""Numbers at the ends of pods' names."""

from __future__ import annotations

import pytest

from kerf.engine.model.ordinals import base_and_ordinal


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("web-0", ("web", 0)),
        ("web-10", ("web", 10)),
        ("web-9999", ("web", 9999)),
        ("web-1-2", ("web-1", 2)),
        ("web", ("web", -1)),
        ("web10", ("web10", -1)),
        ("web-01", ("web-01", -1)),
        ("web-7d9c-29482", ("web-7d9c-29482", -1)),
        ("web-7d9c-5sgdn", ("web-7d9c-5sgdn", -1)),
        ("-1", ("-1", -1)),
    ],
)
def test_only_a_short_number_behind_a_dash_is_an_ordinal(name: str, found: tuple[str, int]) -> None:
    assert base_and_ordinal(name) == found
