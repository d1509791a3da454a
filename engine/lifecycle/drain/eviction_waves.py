"""Eviction waves: the order in which the pods of nodes that go together leave. Large pods leave first.

kube-scheduler does not know the plan. It binds pods as they come. Small pods that come first spread over all nodes;
then large pods find no node, although there is room for all. The same happens to pods that may run on some nodes only,
when others of their size come before them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kerf.engine.model.kubernetes.pods import PodShape, Resources
from kerf.engine.model.labels import HOSTNAME

MEMORY_PER_CORE = 4 << 30
"""Bytes of memory that count as much as one core, as in general purpose instances."""
WAVE_INTERVAL = 800
"""Milliseconds from one wave to the next, in which evicted pods come back and are bound."""
MAX_WAVES = 6
"""At most so many waves, so that the last one comes before a drain can be over, which takes at least 5 s (L-198)."""


def weight(requests: Resources) -> int:
    """How large a pod or node with these requests is, in thousandths of a core."""
    return max(requests.get("cpu", 0), requests.get("memory", 0) * 1_000 // MEMORY_PER_CORE)


def grade(shape: PodShape) -> int:
    """How early pods of this shape leave: the higher, the earlier.

    Doubling the weight adds two; pods that may not run on every node get one more.
    """
    return 2 * weight(shape.requests).bit_length() + _restricted(shape)


def _restricted(shape: PodShape) -> bool:
    spread = any(constraint.topology_key != HOSTNAME for constraint in shape.spread)
    return spread or bool(shape.node_selector or shape.required_terms or shape.affinity)


def wave_grades(shapes: Iterable[PodShape]) -> tuple[int, ...]:
    """The least grade of each wave but the last, by the shapes of all pods that leave."""
    return tuple(sorted({grade(shape) for shape in shapes}, reverse=True)[:MAX_WAVES][:-1])


def wave_of(shape: PodShape, waves: Sequence[int]) -> int:
    """The wave in which pods of this shape leave, counted from 0."""
    own = grade(shape)
    return sum(own < least for least in waves)
