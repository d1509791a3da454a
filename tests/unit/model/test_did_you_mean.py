"""What a misspelt name may be meant to be."""

from __future__ import annotations

import re

from kerf.engine.model.did_you_mean import did_you_mean, is_it
from tests.support.repository import ROOT

KINDS = ("Deployment", "StatefulSet", "DaemonSet")


def test_the_best_comes_first_and_what_is_too_different_is_left_out() -> None:
    assert did_you_mean("Deploymnt", KINDS) == ["Deployment"]
    assert did_you_mean("abcd", ["wxyz", "abxy", "abce"], most=3, similarity=0.5) == ["abce", "abxy"]
    assert did_you_mean("DaemonSets", KINDS, similarity=0.99) == []
    assert did_you_mean("Pod", KINDS) == []


def test_the_order_of_the_known_names_does_not_matter() -> None:
    assert did_you_mean("ab", ["abd", "abc"]) == did_you_mean("ab", ["abc", "abd"])


def test_the_question() -> None:
    assert is_it(["a", "b"]) == "Is it a or b?"
    assert is_it([]) == ""


def test_nothing_else_compares_spellings() -> None:
    """One measure for all hints: difflib is imported here alone."""
    sources = [
        path for house in ("engine", "replay", "projections", "adapters") for path in (ROOT / house).rglob("*.py")
    ]
    users = [path.name for path in sources if re.search(r"^(from|import) difflib\b", path.read_text(), re.MULTILINE)]
    assert users == ["did_you_mean.py"]
