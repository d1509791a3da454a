"""Random numbers as a pure function of a seed and a name.

Each draw is named by what it is for ("join", instance id), not by its place in one stream of random numbers. So a
change in one corner of a scenario does not change the draws elsewhere, and neither hash seed nor call order matters.
"""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b

SAFE_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""The letters of generated Kubernetes names: no vowels, so no words; none that look alike."""


class SeededRandom:
    """Draws for one seed. Equal seed and equal name always give an equal draw."""

    def __init__(self, seed: int) -> None:
        self._key = seed.to_bytes(16, "big", signed=True)
        self.struck: Counter[str] = Counter()
        """What has gone wrong by chance, by kind (see Chance)."""

    def fraction(self, *name: str | int) -> float:
        """Draw uniformly from [0, 1)."""
        return (int.from_bytes(self._bytes(name)[:7], "big") >> 3) / (1 << 53)

    def between(self, low: int, high: int, *name: str | int) -> int:
        """Draw uniformly from low..high, both included."""
        return low + int(self.fraction(*name) * (high - low + 1))

    def happens(self, probability: float, *name: str | int) -> bool:
        return self.fraction(*name) < probability

    def suffix(self, length: int, *name: str | int) -> str:
        """Letters for a generated name, such as the x7k2p of a pod."""
        return letters(self._bytes(name), length)

    def hex(self, length: int, *name: str | int) -> str:
        return self._bytes(name).hex()[:length]

    def uid(self, *name: str | int) -> str:
        """A Kubernetes object uid, in the form of a version 4 UUID."""
        text = self._bytes(name).hex()
        return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-a{text[17:20]}-{text[20:32]}"

    def _bytes(self, name: tuple[str | int, ...]) -> bytes:
        return blake2b("\0".join(map(str, name)).encode(), digest_size=20, key=self._key).digest()


def letters(source: bytes, length: int) -> str:
    """Return `length` safe letters made from the bytes' value."""
    value = int.from_bytes(source, "big")
    text = ""
    for _ in range(length):
        value, index = divmod(value, len(SAFE_LETTERS))
        text += SAFE_LETTERS[index]
    return text
