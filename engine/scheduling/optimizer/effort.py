"""Search effort: counted in work, never in time, so that a decision can be made again exactly.

What a search does is charged by *touches*: to look at one place for one pod is one. A step of effort is a number of
them, so that the same effort takes about as long whatever the problem is like, and little longer where it is large: a
whole new plan of many pods is dear, and a search that cannot afford one is none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.scheduling.problem.problem import PendingPod

CHEAPER_PER_STEP, CHEAPER_PER_POD = 500, 0.33
"""Touches that one step of effort gives the search for cheaper plans: a fixed part, and a part for each pod of the
problem (of at most `MAX_PODS_COUNTED`), because more pods take longer to plan."""
MAX_PODS_COUNTED = 4_000
BINDING_PER_STEP = 15_000
"""Touches of a step for rating plans, and for what that leads to: to find nodes on which every pod is bound takes a run
of the scheduler's model for each set of nodes that is tried."""
RATING_SHARE = 4
"""One part in so many of that is enough for rating alone."""

TOUCHES_PER_POD = 40
"""What it costs to plan a pod that others matter to, or the first one of a shape."""
TOUCHES_PER_REPEATED_POD = 4
"""What it costs to plan a pod like the one before."""
TOUCHES_PER_PLAN = 200
"""What a plan costs besides."""
TOUCHES_PER_RUN = 100
"""What a run of the scheduler's model costs besides."""
TOUCHES_PER_NODE_SET = 20
"""What it costs to think of another set of nodes, and of what it would leave over, besides looking at its nodes."""
TOUCHES_PER_TYPE = 6
"""What it costs to think of a kind of node as another type."""


def touches_for_cheaper(steps: int, pods: int) -> int:
    """Of so many steps: touches for cheaper plans of a problem with so many pods."""
    return int(steps * (CHEAPER_PER_STEP + CHEAPER_PER_POD * min(pods, MAX_PODS_COUNTED)))


def touches_for_binding(steps: int, *, told: bool = False) -> int:
    """Of so many steps: touches for plans that bind whole. `told`: pods are told their nodes, so that plans are rated
    only."""
    return steps * BINDING_PER_STEP // (RATING_SHARE if told else 1)


class Effort:
    """What is left of a pass's search steps, in touches."""

    def __init__(self, touches: int) -> None:
        self.left = touches

    def take(self, touches: int) -> bool:
        """Spend so much; False, and nothing is spent, if there is not as much left."""
        if touches > self.left:
            return False
        self.left -= touches
        return True

    def give(self, touches: int) -> None:
        """Have so much more, or again, which was taken for later."""
        self.left += touches

    def charge(self, touches: int) -> None:
        """Spend what has been done already."""
        self.left = max(0, self.left - touches)


def planning_touches(pods: Iterable[PendingPod], shapes: Mapping[str, PodShape], nodes: int = 0) -> int:
    """What it costs to plan these pods beside so many nodes."""
    touches = TOUCHES_PER_PLAN + nodes
    for digest, count in Counter(each.shape for each in pods).items():
        shape = shapes[digest]
        alone = not (shape.spread or shape.affinity or shape.anti_affinity)
        touches += TOUCHES_PER_POD + (count - 1) * (TOUCHES_PER_REPEATED_POD if alone else TOUCHES_PER_POD)
    return touches
