"""What a plan cannot know of the cluster's scheduler: the order in which it comes to the pods, which of equally good
nodes it takes (a real one throws dice), and its version."""

from __future__ import annotations

import re

from msgspec import Struct

from kerf.engine.scheduling.problem.problem import PendingPod

HASH_PRIME = 2_654_435_761
"""A prime that scatters small numbers over 32 bits."""
NUMBERS = re.compile(r"[0-9]+")


class SchedulerVariant(Struct, frozen=True):
    """`by_age`: pods come in the order of their creation, else all at once, as they may be made, or come back to the
    queue; `listed`: of those that come at once, each in its turn, where that is known, else in the order of their
    names; `counting`: web-10 comes after web-9; `newer`: its score for balanced allocation is that of Kubernetes 1.36;
    `seed`: which of equally good nodes it takes, the first one by number if 0."""

    by_age: bool = True
    listed: bool = False
    counting: bool = False
    newer: bool = False
    seed: int = 0

    def turn(self, pod: PendingPod, priority: int) -> tuple[int, int, int, str, str, str]:
        """The order of the queue."""
        name = _natural_order(pod.name) if self.counting else pod.name
        age, turn = pod.created if self.by_age else 0, pod.turn if self.listed else 0
        return -priority, age, turn, pod.namespace, name, pod.uid

    def rank(self, number: int) -> int:
        """Of a node among those that are as good."""
        return (number + self.seed) * HASH_PRIME * self.seed % 2**32 if self.seed else number


DEFAULT_VARIANT = SchedulerVariant()
SCHEDULER_VARIANTS = (
    SchedulerVariant(by_age=True, listed=True, counting=True, newer=True, seed=3),
    SchedulerVariant(by_age=False, listed=True, counting=True, newer=True, seed=1),
    DEFAULT_VARIANT,
    SchedulerVariant(by_age=False, counting=True, newer=True, seed=2),
    SchedulerVariant(by_age=False, counting=False, newer=True, seed=4),
)
"""A plan should bind whole whichever of these the scheduler has. Carried out on a real one (1.36), the first comes
closest."""


def _natural_order(name: str) -> str:
    """Such that numbers in names come in their order."""
    return NUMBERS.sub(lambda found: f"{len(found[0]):03d}{found[0]}", name)
