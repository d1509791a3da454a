"""Names that the record does not know, and what was probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from kerf.replay.errors import SubjectUnknown

_SHOWN = 3


def near(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """The names most like it, best first: by spelling, or as a part of them."""
    names = sorted(set(known))
    found = get_close_matches(name, names, n=_SHOWN, cutoff=0.6)
    parts = [each for each in names if name and name in each and each not in found]
    return tuple([*found, *parts][:_SHOWN])


def unknown(said: str, name: str, known: Iterable[str], *, where: str = "", otherwise: str = "") -> SubjectUnknown:
    """The error that says so: with the names most like it, or else `otherwise` and where all of them are listed."""
    likely = near(name, known)
    hint = f"Is it {' or '.join(likely)}?" if likely else f"{otherwise}kerf log RECORD lists what there is"
    return SubjectUnknown(said, where=where, hint=hint)
