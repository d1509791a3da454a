"""Numbers at the ends of pods' names: web-9 comes before web-10."""

from __future__ import annotations

import re

DIGITS = 4
"""An ordinal has so many at most. The random ends of a ReplicaSet's pods have five characters."""
_ORDINAL = re.compile(rf"(.+)-(0|[1-9][0-9]{{0,{DIGITS - 1}}})", re.DOTALL)


def base_and_ordinal(name: str) -> tuple[str, int]:
    """Returns what stands before the ordinal of a name, and the ordinal: ("web", 10) of web-10, ("web", -1) of web.

    Pods are in the order of these two where their controller makes them in the order of their numbers. Pseudonyms keep
    this order, and that of the names as text.
    """
    found = _ORDINAL.fullmatch(name)
    return (found[1], int(found[2])) if found else (name, -1)
