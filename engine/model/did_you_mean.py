"""Which known names a misspelt one may be meant to be. None of it decides anything: it is said to whoever wrote it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

SIMILARITY = 0.6


def did_you_mean(name: str, known: Iterable[str], *, most: int = 1, similarity: float = SIMILARITY) -> list[str]:
    """The known names that are spelt most like a name, the best first. `similarity` is how much of two names has to
    agree, letter for letter: 0 for nothing, 1 for all."""
    return get_close_matches(name, list(known), n=most, cutoff=similarity)


def is_it(names: Sequence[str]) -> str:
    """The question that a hint asks, "Is it a or b?"; "" if there is no name to offer."""
    return f"Is it {' or '.join(names)}?" if names else ""
