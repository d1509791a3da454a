"""The client tokens of an intent's fleets."""

from __future__ import annotations

import pytest

from kerf.adapters.aws.launch import client_tokens
from kerf.adapters.aws.launch.client_tokens import ClientTokens


def test_each_fleet_that_started_nothing_uses_up_a_token() -> None:
    """L-154: EC2 would answer the same token with the same errors."""
    made = ClientTokens()
    assert made.next_of("a", 0) == "a"
    made.spend("a")
    made.spend("a")
    assert (made.next_of("a", 0), made.next_of("b", 0)) == ("a-2", "b")
    made.done("a")
    assert made.next_of("a", 0) == "a"


def test_the_newest_failures_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A zone without capacity refuses launches for days: what was refused is not kept for ever."""
    monkeypatch.setattr(client_tokens, "MAX_REMEMBERED", 2)
    made = ClientTokens()
    for token in ("a", "b", "a", "c"):
        made.spend(token)
    assert [made.next_of(token, 0) for token in "abc"] == ["a-2", "b", "c-1"]


def test_a_token_of_another_request_is_used_again_once_ec2_would_show_its_instance() -> None:
    """IdempotentParameterMismatch: the earlier request of the intent may have started an instance, which EC2 does not
    show yet. If it did not, no request with its token would ever be taken."""
    made = ClientTokens()
    made.mismatched("a", 1_000)
    made.mismatched("a", 31_000)
    assert (made.next_of("a", 60_999), made.next_of("b", 99_000)) == ("a", "b")
    assert made.next_of("a", 61_000) == "a-1"
    made.mismatched("a", 62_000)
    assert (made.next_of("a", 121_999), made.next_of("a", 122_000)) == ("a-1", "a-2")
    made.mismatched("a", 123_000)
    made.done("a")
    assert made.next_of("a", 999_000) == "a"
