"""How often this process looks for garbage: for objects that hold each other and that nobody else holds."""

from __future__ import annotations

import atexit
import gc
import sys

OBJECTS = 50_000
"""A look comes when there are so many more objects than at the one before. Python looks at every 700, which takes a
tenth of the time of a plan or of a day, and finds next to nothing: decisions are made of values, without cycles."""
LOOKS = 20
"""So many looks at young objects come for one at older ones."""


def leave_what_is_kept() -> None:
    """Leaves what there is now out of all looks to come: it stays as long as the process. A look at all objects of a
    server that has read a long record takes some 35 ms, in the middle of an answer."""
    gc.freeze()


def look_rarely() -> None:
    """Lets the process look for garbage less often than Python does by itself. It costs some 10 MB. And not as it ends:
    that would take a tenth of a second after a day was verified, and its memory goes back anyway."""
    gc.set_threshold(OBJECTS, LOOKS, LOOKS)
    atexit.unregister(_leave_all)
    atexit.register(_leave_all)


def _leave_all() -> None:
    if "duckdb" not in sys.modules:  # which complains of each object that is left when Python ends
        gc.freeze()
