"""Names pods so that they stay in order: as text, and by the numbers at their ends (S-208).

web-2 and web-10 become pod-0042-9f3a1c…-2 and pod-0042-9f3a1c…-10: what stands before the number is replaced as one
name, and the number stays. A name that stands among such pods as text (web-1a) is put there, behind its first digits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from kerf.engine.model.karpenter.capacity_buffers import VIRTUAL
from kerf.engine.model.ordinals import DIGITS, base_and_ordinal

_DIGITS = re.compile(rf"[0-9]{{0,{DIGITS}}}")
_FIRST = "0-"
"""Sorts before every other pseudonym of a pod, and before virtual pods."""


def bases(pods: Iterable[str]) -> set[str]:
    """Returns what stands before the numbers of pods' names."""
    return {base for base, ordinal in map(base_and_ordinal, pods) if ordinal >= 0}


class PodNames:
    """The pseudonyms of pods.

    `numbered`: the bases of pods with numbers. `plain`: the pseudonym of a base by itself, which is in the order of
    the bases. `buffers`: the pseudonyms of CapacityBuffers, after which their virtual pods are named (S-179).
    """

    def __init__(self, numbered: set[str], plain: Callable[[str], str], buffers: dict[str, str]) -> None:
        self._numbered, self._plain, self._buffers = numbered, plain, buffers

    def pseudonym(self, name: str) -> str:
        base, ordinal = base_and_ordinal(name)
        number = f"-{ordinal}" if ordinal >= 0 else ""
        if base.startswith(VIRTUAL) and base.removeprefix(VIRTUAL) in self._buffers:
            return f"{VIRTUAL}{self._buffers[base.removeprefix(VIRTUAL)]}{number}"
        first = _FIRST if self._buffers and name < VIRTUAL else ""
        return f"{first}{self._of_base(base)}{number}"

    def _of_base(self, base: str) -> str:
        outer = next(self._around(base), None)
        if outer is None:
            return self._plain(base)
        rest = base[len(outer) + 1 :]
        digits = next(_DIGITS.finditer(rest))[0]
        after = rest[len(digits) :][:1]
        between = "-" if after in ("", "-", ".") else "9-" if after.isdecimal() else "z-"
        return f"{self._of_base(outer)}-{digits}{between}{self._plain(base)}"

    def _around(self, base: str) -> Iterator[str]:
        """Yields the bases of the numbered pods that a base stands among, the longest first: a dash follows, and no
        letter, which would be behind all numbers.
        """
        for dash in reversed([found.start() for found in re.finditer("-", base)]):
            if base[:dash] in self._numbered and not base[dash + 1 : dash + 2].isalpha():
                yield base[:dash]
