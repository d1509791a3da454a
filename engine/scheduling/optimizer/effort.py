"""Search effort, counted in work and never in time, so that a replay makes the same decision.

Work is counted in *touches*: looking at one node for one pod is one touch. A step of effort is a fixed number of
touches, so that one effort takes about the same time for any problem, and only a little longer for a large one. A
search that cannot afford a whole new plan finds nothing.
"""

from __future__ import annotations

from collections import Counter

from kerf.engine.scheduling.problem.problem import Problem

CHEAPER_PER_STEP, CHEAPER_PER_POD = 500, 0.33
"""Touches that one step of effort gives the search for cheaper plans: a fixed part, and a part for each pod of the
problem (of at most `MAX_PODS_COUNTED`), because more pods take longer to plan."""
MAX_PODS_COUNTED = 6_000
RATING_PER_STEP = 4_000
"""Touches that one step gives to rate plans: each takes some runs of the scheduler's model."""
BINDING_PER_STEP = 2_000
"""So many of these, at most, go to the search for nodes on which every pod is bound: each set of nodes takes a run of
the scheduler's model. Few sets are worth it after the first ones."""

TOUCHES_PER_POD = 40
"""Planning a pod that other pods matter to, or the first one of a shape."""
TOUCHES_PER_REPEATED_POD = 4
"""Planning a pod like the one before."""
TOUCHES_PER_PLAN = 200
"""A plan, besides its pods."""
TOUCHES_PER_RUN = 100
"""A run of the scheduler's model, besides its pods and nodes."""
TOUCHES_PER_NODE_SET = 20
"""Estimating how many pods another set of nodes leaves unbound, besides looking at its nodes."""
TOUCHES_PER_TYPE = 6
"""Looking at a node as another type."""


def touches_for_cheaper(steps: int, pods: int) -> int:
    """The touches that so many steps give the search for cheaper plans of a problem with so many pods."""
    return int(steps * (CHEAPER_PER_STEP + CHEAPER_PER_POD * min(pods, MAX_PODS_COUNTED)))


def touches_for_rating(steps: int) -> int:
    """The touches that so many steps give to rate plans."""
    return steps * RATING_PER_STEP


def touches_for_binding(steps: int) -> int:
    """How many of these may go to the search for plans that bind whole."""
    return steps * BINDING_PER_STEP


class Effort:
    """What is left of a pass's effort, in touches, and what is kept `back` and will not be spent."""

    def __init__(self, touches: int) -> None:
        self.left, self.back = touches, 0

    def take(self, touches: int) -> bool:
        """Spend some touches. If there are too few left, spend nothing and return False."""
        if touches > self.left:
            return False
        self.left -= touches
        return True

    def give(self, touches: int) -> None:
        """Add touches, or return what was taken in advance."""
        self.left += touches

    def keep(self, most: int) -> None:
        """Leave no more than so many touches."""
        self.back += max(0, self.left - most)
        self.left = min(self.left, most)

    def charge(self, touches: int) -> None:
        """Spend touches on what is done already; never below 0."""
        self.left = max(0, self.left - touches)


def binding_touches(problem: Problem) -> int:
    """About what a run of the scheduler's model takes at least for each new node, in touches: each shape of the pods
    looks at the node, and each pod that is scored by the pods around it does."""
    counts = Counter([pod.shape for pod in problem.pods])
    shapes = ((problem.shapes[digest], count) for digest, count in counts.items())
    return sum(count if shape.spread or shape.affinity else 1 for shape, count in shapes)


def planning_touches(problem: Problem) -> int:
    """What it costs to plan a problem, in touches."""
    touches = TOUCHES_PER_PLAN + len(problem.nodes)
    for digest, count in Counter(pod.shape for pod in problem.pods).items():
        shape = problem.shapes[digest]
        alone = not (shape.spread or shape.affinity or shape.anti_affinity)
        touches += TOUCHES_PER_POD + (count - 1) * (TOUCHES_PER_REPEATED_POD if alone else TOUCHES_PER_POD)
    return touches
