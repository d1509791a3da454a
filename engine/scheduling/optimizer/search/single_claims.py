"""Plans pods alone: a group of pods, or those of one claim, on one claim of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from kerf.engine.model.kubernetes.pods import Resources
from kerf.engine.scheduling.matching.resources import added
from kerf.engine.scheduling.optimizer.alternative_plans import CandidateClaim
from kerf.engine.scheduling.optimizer.effort import Effort, planning_touches
from kerf.engine.scheduling.optimizer.instance_options import InstanceOptions, PodKind
from kerf.engine.scheduling.optimizer.partial_problems import (
    counted,
    problem_of_claim,
    problem_of_group,
    problem_on_node,
)
from kerf.engine.scheduling.optimizer.search.regrouping import PodGroup
from kerf.engine.scheduling.plan import OpenedClaim
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem.problem import PendingPod, PoolInput, Problem, by_name


class SingleClaims:
    """Plans single claims of one problem, within an effort. Problems that are equal but for the names of their pods are
    planned once."""

    def __init__(self, problem: Problem, options: InstanceOptions, effort: Effort) -> None:
        self._problem, self._options, self._effort = problem, options, effort
        self._claims: dict[object, OpenedClaim | None] = {}
        self._unlabelled: dict[str, int] = {}
        self._numbers: dict[str, int] = {}

    def claim(self, problem: Problem, key: object) -> OpenedClaim | None:
        """The one claim that the planner opens for a problem; None if it is not exactly one for all pods.

        Problems with equal keys are equal but for the names of the pods; they are planned once.
        """
        claim = self._planned(problem) if key is None or key not in self._claims else self._claims[key]
        if key is not None:
            self._claims[key] = claim
        if claim is None:
            return None
        return replace(claim, pods=tuple(pod.uid for pod in sorted(problem.pods, key=by_name)))

    def of_groups(
        self,
        groups: Iterable[PodGroup],
        pods: Sequence[tuple[PodKind, Sequence[PendingPod]]],
        kept: Sequence[CandidateClaim],
    ) -> list[CandidateClaim] | None:
        """Plan every group alone; None if one of them needs more than one node, or the effort is spent."""
        used = {
            name: counted(self._problem, pool, (part.claim for part in kept if part.claim.node_pool == name))
            for name, pool in self._problem.pool_of.items()
        }
        planned = []
        left = [[(kind, pod) for pod in reversed(alike)] for kind, alike in pods]
        for group in groups:
            members = [left[index].pop() for index, count in group.counts for _ in range(count)]
            pool = self._problem.pool_of[self._options.templates[group.template].name]
            part = self._plan_group(group, members, pool, used[pool.pool.name])
            if part is None:
                return None
            planned.append(part)
            used[pool.pool.name] = added(used[pool.pool.name], counted(self._problem, pool, [part.claim]))
        return planned

    def widened(self, part: CandidateClaim) -> CandidateClaim:
        """The claim with all types that it may become, as far as its cheapest type stays the same."""
        claim = part.claim
        if claim.reservations:
            return part
        pool = self._problem.pool_of[claim.node_pool]
        largest = counted(self._problem, pool, [claim])
        pods = [self._problem.pod_of[uid] for uid in claim.pods]
        problem = problem_of_claim(self._problem, claim, pods, pool, largest)
        shapes = tuple(sorted(self._shape_without_labels(pod.shape) for pod in pods))
        wide = self.claim(problem, (claim.node_pool, claim.constraints, tuple(sorted(largest.items())), shapes))
        if wide is None or wide.reservations or wide.instance_types[0] != claim.instance_types[0]:
            return part  # the node that was rated is launched first, and takes nothing that others hold
        return CandidateClaim(
            replace(wide, constraints=claim.constraints, labels=claim.labels), part.base_number, problem
        )

    def _planned(self, problem: Problem) -> OpenedClaim | None:
        alone = plan(problem, told=False) if self._effort.take(planning_touches(problem)) else None
        if alone is None or len(alone.claims) != 1 or alone.unplaced or alone.ignored or alone.truncated:
            return None
        return alone.claims[0]

    def _plan_group(
        self, group: PodGroup, members: Sequence[tuple[PodKind, PendingPod]], pool: PoolInput, used: Resources
    ) -> CandidateClaim | None:
        instance_type = self._options.templates[group.template].catalogue.types[group.type_number]
        largest = {name: instance_type.capacity.get(name, 0) for name in used}
        usage = added(pool.usage, used)
        pool_with_usage, pods = replace(pool, usage=usage), [pod for _, pod in members]
        labels = dict(pair for kind, _ in members for pair in kind.labels)
        if any(kind.related for kind, _ in members):
            problem = problem_on_node(self._problem, labels, pods, pool_with_usage, largest, preferences=True)
        else:
            problem = problem_of_group(self._problem, pods, pool_with_usage, largest)
        shapes = tuple(sorted(self._shape_without_labels(pod.shape) for pod in pods))
        limits = pool.pool.limits or {}
        roomy = all(usage[name] + largest[name] < limits[name] for name in used)  # so they leave out none of the types
        alike = roomy and not any(self._problem.shapes[pod.shape].volumes for pod in pods)  # theirs are not alike
        key = (group.template, group.type_number, tuple(sorted(labels.items())), shapes) if alike else None
        claim = self.claim(problem, key)
        return None if claim is None else CandidateClaim(claim, -1, problem)

    def _shape_without_labels(self, digest: str) -> int:
        """A number that is equal for shapes that differ in labels at most: what groups of pods are planned alone as."""
        number = self._unlabelled.get(digest)
        if number is None:
            text = repr(replace(self._problem.shapes[digest], labels={}))
            number = self._unlabelled[digest] = self._numbers.setdefault(text, len(self._numbers))
        return number
