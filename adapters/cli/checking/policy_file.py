"""A policy from its file."""

from __future__ import annotations

from pathlib import Path

from kerf.adapters.cli.input.user_document import read_user_document
from kerf.replay.errors import PolicyRefused
from kerf.replay.policies.check import Assertion
from kerf.replay.policies.reading import read_policy


def policy_of(file: Path) -> tuple[Assertion, ...]:
    """The assertions of a policy. Raises PolicyRefused (KERF221)."""
    hint = "The policy comes first: kerf check POLICY RECORDS"
    return read_policy(read_user_document(file, PolicyRefused, hint), str(file))
