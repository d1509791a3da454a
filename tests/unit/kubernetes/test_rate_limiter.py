"""The token bucket in front of all requests."""

from __future__ import annotations

from kerf.adapters.kubernetes.rate_limiter import TokenBucket


def test_a_burst_goes_at_once_and_then_so_many_each_second() -> None:
    """L-290: client-go's flow control."""
    now = [100.0]
    bucket = TokenBucket(10, 3, lambda: now[0])
    assert [bucket.reserve() for _ in range(3)] == [0.0] * 3
    assert [round(bucket.reserve(), 3) for _ in range(3)] == [0.1, 0.2, 0.3]
    now[0] += 0.3
    assert round(bucket.reserve(), 3) == 0.1
    now[0] += 3600
    assert [bucket.reserve() for _ in range(3)] == [0.0] * 3
    assert bucket.reserve() > 0
