"""The client tokens of an intent's fleets."""

from __future__ import annotations

import pytest

from kerf.adapters.aws.launch import client_tokens
from kerf.adapters.aws.launch.client_tokens import ClientTokens


def test_each_fleet_that_started_nothing_uses_up_a_token() -> None:
    """L-154: EC2 would answer the same token with the same errors."""
    made = ClientTokens()
    assert made.next_of("a") == "a"
    made.spend("a")
    made.spend("a")
    assert (made.next_of("a"), made.next_of("b")) == ("a-2", "b")
    made.done("a")
    assert made.next_of("a") == "a"


def test_the_newest_failures_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A zone without capacity refuses launches for days: what was refused is not kept for ever."""
    monkeypatch.setattr(client_tokens, "MAX_REMEMBERED", 2)
    made = ClientTokens()
    for token in ("a", "b", "a", "c"):
        made.spend(token)
    assert [made.next_of(token) for token in "abc"] == ["a-2", "b", "c-1"]
