"""How many examples property tests try: a third in `make test`, all where THOROUGH is set, as in CI's last steps."""

from __future__ import annotations

import os

THOROUGH = bool(os.environ.get("THOROUGH"))


def examples(thorough: int) -> int:
    """`@settings(max_examples=examples(300))`: 300 in a thorough run, else 100."""
    return thorough if THOROUGH else max(5, thorough // 3)
