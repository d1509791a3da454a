"""Says that a turn hangs, and where. Times are of the monotonic clock: one that is set does not end a process."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from types import FrameType

from kerf.engine.errors import REPORT, KerfError
from kerf.engine.record.observations import Observation

FRAMES, KINDS = 5, 5  # callers, and kinds of observations, that are named


class TurnHangs(KerfError):
    """A turn takes longer than any should."""

    code = "KERF703"


class TurnWatch:
    """`begin` a turn, `enter` it in its thread, `end` it. Ask at any time whether it is `overdue`."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began: float | None = None
        self._batch: Sequence[Observation] = ()
        self._thread = 0

    def begin(self, batch: Sequence[Observation]) -> None:
        self._began, self._batch, self._thread = self._clock(), batch, 0

    def enter(self) -> None:
        self._thread = threading.get_ident()

    def end(self) -> float:
        """Returns how many seconds the turn took."""
        took = self._clock() - self._began if self._began is not None else 0.0
        self._began, self._batch, self._thread = None, (), 0
        return took

    def seconds(self) -> float:
        """How long the turn under way has taken; 0 where none is."""
        began = self._began
        return 0.0 if began is None else self._clock() - began

    def overdue(self, limit: float) -> TurnHangs | None:
        """What the turn under way is doing, if it has taken over `limit` seconds. 0 is no limit."""
        began, batch, thread = self._began, self._batch, self._thread
        if not limit or began is None or (seconds := self._clock() - began) <= limit:
            return None
        kinds = Counter(type(observation.payload).__name__ for observation in batch)
        named = sorted(kinds.items(), key=lambda kind: (-kind[1], kind[0]))[:KINDS]
        arrived = ", ".join(f"{count} {name}" for name, count in named) or "nothing new"
        text = f"a turn has taken {seconds:.0f} s, {limit:.0f} are allowed (LONGEST_TURN). It is {_doing(thread)}"
        return TurnHangs(text, where=f"a turn about {arrived}", hint=REPORT)


def _doing(thread: int) -> str:
    """The functions of kerf that a thread is in, the innermost first."""
    if not thread:
        return "waiting for what reads the state between turns"
    frame: FrameType | None = sys._current_frames().get(thread)
    inside: list[str] = []
    while frame is not None and len(inside) < FRAMES:
        module = str(frame.f_globals.get("__name__", ""))
        if module.startswith("kerf."):
            inside.append(f"{module.removeprefix('kerf.')}.{frame.f_code.co_name}:{frame.f_lineno}")
        frame = frame.f_back
    return "in " + ", called by ".join(inside) if inside else "ending"
