"""`ClaimTimers` against a plain dict."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kerf.engine.state.claim_timers import ClaimTimers

STEPS = st.lists(
    st.tuples(st.sampled_from(["by", "by", "drop", "take"]), st.sampled_from("abcdef"), st.integers(1, 50)),
    max_size=200,
)


@given(STEPS)
def test_it_is_a_dict_of_times(steps: list[tuple[str, str, int]]) -> None:
    due, plain = ClaimTimers(), dict[str, int]()
    for action, claim, at in steps:
        if action == "by":
            due.by(claim, at)
            plain[claim] = min(at, plain.get(claim, at))
        elif action == "drop":
            due.drop(claim)
            plain.pop(claim, None)
        else:
            reached = sorted(c for c, time in plain.items() if time <= at)
            assert due.take(at) == reached
            for name in reached:
                del plain[name]
        assert due.next() == min(plain.values(), default=0)


def test_what_is_outdated_does_not_pile_up() -> None:
    due = ClaimTimers()
    for at in range(10_000):
        due.drop("a")
        due.by("a", 1_000_000 + at)
    assert len(due._heap) < 100
    assert due.next() == 1_009_999
