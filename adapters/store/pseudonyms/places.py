"""Where names are put that have to sort among NodeClaims."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate


class Places:
    """What other names' pseudonyms begin with, so that they sort behind the claims that the names sort behind, and
    before the others. `claims`: each claim's pseudonym, in the order of their names.
    """

    def __init__(self, claims: dict[str, str]) -> None:
        self._claims, self._given = list(claims), list(claims.values())
        self._highest = list(accumulate(self._given, max))
        self._lowest = list(accumulate(reversed(self._given), min))[::-1]

    def before(self, name: str) -> str:
        """Returns the beginning. It names no claim, if the claims on both sides are of different NodePools."""
        at = bisect_left(self._claims, name)
        if not at:
            return "0-"
        kind_and_rank = "-".join(self._given[at - 1].split("-")[:2])
        between = f"{kind_and_rank}z-"
        is_between = self._highest[at - 1] < between and (at == len(self._given) or between < self._lowest[at])
        return between if is_between else f"{self._given[at - 1]}0-"
