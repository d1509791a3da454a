"""What a plan cannot know of the cluster's kube-scheduler: the order in which pods reach it, how it breaks ties, its
version.

A plan should bind whole whichever of these variants the real scheduler is like.
"""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.model.ordinals import base_and_ordinal
from kerf.engine.scheduling.problem.problem import PendingPod

HASH_PRIME = 2_654_435_761
"""A prime that scatters small numbers over 32 bits."""


class SchedulerVariant(Struct, frozen=True):
    """One way in which kube-scheduler may behave.

    `by_age`: pods of one priority come in the order of their creation; otherwise all at once.
    `by_arrival`: pods that come at once come in the order of their arrival; otherwise in that of their names.
    `natural_names`: web-10 comes after web-9. Only the number at the end of a name counts.
    `newer`: balanced allocation is scored as in Kubernetes 1.36.
    `seed`: decides between equally good nodes, where a real scheduler throws dice; 0 takes the first by number.
    """

    by_age: bool = True
    by_arrival: bool = False
    natural_names: bool = False
    newer: bool = False
    seed: int = 0

    def queue_key(self, pod: PendingPod, priority: int) -> tuple[int, int, int, str, str, int, str]:
        """Sort pods by this key to get the order of the scheduling queue."""
        name, ordinal = base_and_ordinal(pod.name) if self.natural_names else (pod.name, 0)
        age, arrival = pod.created if self.by_age else 0, pod.arrival if self.by_arrival else 0
        return -priority, age, arrival, pod.namespace, name, ordinal, pod.uid

    def tie_rank(self, node: int) -> int:
        """Of equally good nodes (by number) the one with the lowest rank is taken."""
        return (node + self.seed) * HASH_PRIME * self.seed % 2**32 if self.seed else node


DEFAULT_VARIANT = SchedulerVariant()
SCHEDULER_VARIANTS = (
    SchedulerVariant(by_age=True, by_arrival=True, natural_names=True, newer=True, seed=3),
    SchedulerVariant(by_age=False, by_arrival=True, natural_names=True, newer=True, seed=1),
    DEFAULT_VARIANT,
    SchedulerVariant(by_age=False, natural_names=True, newer=True, seed=2),
    SchedulerVariant(by_age=False, natural_names=False, newer=True, seed=4),
)
"""The variants that a plan is rated with. When plans were carried out on a real scheduler (1.36), the first of these
came closest."""
