"""How a number that changes is told in cells of time, compared with one change after the other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kerf.projections.explorer.steps import Steps

TIMES = st.lists(st.integers(0, 200), unique=True, max_size=40).map(sorted)


def one_by_one(steps: Steps, since: int, until: int, apart: int) -> list[int]:
    cells: dict[int, tuple[int, int]] = {}
    known = [(at, value) for at, value in zip(steps.times, steps.values, strict=True) if at <= until]
    before = [pair for pair in known if pair[0] <= since][-1:]
    for at, value in [*before, *(pair for pair in known if pair[0] > since)]:
        first = max(since, at)
        cells[first // apart] = cells.get(first // apart, (first, 0))[0], round(value)
    return [number for pair in cells.values() for number in pair]


@given(TIMES, st.integers(0, 220), st.integers(0, 120), st.sampled_from([1, 2, 5, 16, 64]))
def test_of_the_changes_in_a_cell_the_last_one_counts(times: list[int], since: int, length: int, apart: int) -> None:
    steps = Steps(list(times), [float(7 * at % 10) for at in times])
    assert steps.changes(since, since + length, apart) == one_by_one(steps, since, since + length, apart)
