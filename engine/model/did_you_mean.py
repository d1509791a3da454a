"""Finds known names that are spelt like an unknown one. The results are only shown to users; nothing is decided by
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

SIMILARITY = 0.6


def did_you_mean(name: str, known: Iterable[str], *, most: int = 1, similarity: float = SIMILARITY) -> list[str]:
    """Returns the known names that are spelt most like a name, the best first.

    `similarity` is how much of the two names must agree, letter by letter: 0 for nothing, 1 for all.
    """
    return get_close_matches(name, list(known), n=most, cutoff=similarity)


def is_it(names: Sequence[str]) -> str:
    """Returns the question that a hint asks, "Is it a or b?"; "" if there is no name to suggest."""
    return f"Is it {' or '.join(names)}?" if names else ""
