"""In what order pods of nodes that go together leave: large ones first, so that small ones fill what these leave over.

The cluster's scheduler knows no plan, and binds pods as they come. Small ones that come first spread over all nodes,
and then large ones find no place although there is room for all; so do those that may go to some nodes only, when
others of their size come first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kerf.engine.model.kubernetes.pods import PodShape, Resources
from kerf.engine.model.labels import HOSTNAME

MEMORY_PER_CORE = 4 << 30
"""Bytes of memory that weigh as much as a core: what instances for any purpose have of it."""
WAVE_INTERVAL = 800
"""Milliseconds from one wave to the next, in which evicted pods come back and are bound."""
MAX_WAVES = 6
"""Turns, so that the last one comes before a drain may be over, which takes 5 s at least (L-198)."""


def weight(requests: Resources) -> int:
    """In thousandths of a core."""
    return max(requests.get("cpu", 0), requests.get("memory", 0) * 1_000 // MEMORY_PER_CORE)


def grade(shape: PodShape) -> int:
    """How early pods leave. Of two grades one weighs twice as much as the other, or may not go everywhere."""
    return 2 * weight(shape.requests).bit_length() + _choosy(shape)


def _choosy(shape: PodShape) -> bool:
    spread = any(constraint.topology_key != HOSTNAME for constraint in shape.spread)
    return spread or bool(shape.node_selector or shape.required_terms or shape.affinity)


def wave_grades(shapes: Iterable[PodShape]) -> tuple[int, ...]:
    """The least grade of each wave but the last, by the shapes of all pods that leave."""
    return tuple(sorted({grade(shape) for shape in shapes}, reverse=True)[:MAX_WAVES][:-1])


def wave_of(shape: PodShape, turns: Sequence[int]) -> int:
    """The wave in which pods of this shape leave, counted from 0."""
    own = grade(shape)
    return sum(own < least for least in turns)
