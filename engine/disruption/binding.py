"""Whether the cluster's scheduler would find places for the pods that move. It does not know the plan: where a plan
fits exactly, it may leave a pod over, a node is launched for that pod, and consolidation begins anew (hysteresis)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

from msgspec.structs import replace

from kerf.engine.disruption.cluster import Cluster, moving_pods, what_if
from kerf.engine.disruption.consolidation import Command
from kerf.engine.record.decisions import Placement
from kerf.engine.scheduling.improvement.rating import unbound
from kerf.engine.scheduling.plan import OpenedClaim, Plan
from kerf.engine.scheduling.problem import Problem

CHECKS = 24
"""How many times the scheduler is asked about the commands of one pass, at most, after they were chosen."""


class Binding:
    """What the scheduler would make of one cluster without some of its nodes."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    @cached_property
    def _anyway(self) -> frozenset[str]:
        """The pods that might be left over although no node goes."""
        return _left(self._cluster, frozenset(), ())

    def left_over(self, leaving: Iterable[str], claims: Iterable[OpenedClaim]) -> frozenset[str]:
        """The pods (uids) of these nodes, and of those on their way out already, that might be left over on what stays
        and on these claims; without those that might be left over anyway."""
        left = _left(self._cluster, frozenset(leaving), tuple(claims))
        return left and left - self._anyway

    def fits(self, commands: Iterable[Command]) -> bool:
        """Whether these commands together leave no pod over."""
        made = tuple(commands)
        news = [replace(new.claim, instance_types=new.instance_types) for each in made for new in each.replacements]
        return not self.left_over((name for each in made for name in each.names), news)

    def bindable(self, commands: Sequence[Command]) -> list[Command]:
        """Those of these commands that may be made together, in their order: the longest prefix that bisection finds,
        and of those after it each that may be made beside the ones before."""
        least, most, left = 0, len(commands), CHECKS
        if not most or self.fits(commands):
            return list(commands)
        while most - least > 1:
            middle, left = (least + most) // 2, left - 1
            least, most = (middle, most) if self.fits(commands[:middle]) else (least, middle)
        kept = list(commands[:least])
        for each in commands[most : most + max(0, left)]:
            if self.fits([*kept, each]):
                kept.append(each)
        return kept


def _left(cluster: Cluster, leaving: frozenset[str], claims: tuple[OpenedClaim, ...]) -> frozenset[str]:
    going, gone = moving_pods(cluster, leaving)
    problem = _smallest_first(what_if(cluster, leaving, respect_settling=False))
    on_new = frozenset(uid for each in claims for uid in each.pods)
    others = tuple(pod.uid for pod in (*going, *gone) if pod.uid not in on_new)
    return frozenset(unbound(problem, Plan(claims=claims, placements=(Placement("", "", others),))))


def _smallest_first(problem: Problem) -> Problem:
    """In what order the pods come back nobody knows. Small ones that take the room of large ones do most harm."""
    sizes = {digest: sorted(shape.requests.items()) for digest, shape in problem.shapes.items()}
    ranked = sorted(problem.pods, key=lambda pod: (sizes[pod.shape], pod.namespace, pod.name, pod.uid))
    return replace(problem, pods=tuple(replace(pod, created=rank) for rank, pod in enumerate(ranked)))
