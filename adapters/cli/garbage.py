"""How often this process looks for garbage: for objects that hold each other and that nobody else holds."""

from __future__ import annotations

import gc

OBJECTS = 50_000
"""A look comes when there are so many more objects than at the one before. Python looks at every 700, which takes a
tenth of the time of a plan or of a day, and finds next to nothing: decisions are made of values, without cycles."""
LOOKS = 20
"""So many looks at young objects come for one at older ones."""


def look_rarely() -> None:
    """Lets the process look for garbage less often than Python does by itself. It costs some 10 MB."""
    gc.set_threshold(OBJECTS, LOOKS, LOOKS)
