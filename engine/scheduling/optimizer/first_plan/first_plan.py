"""The plan that the optimizer begins with: the planner's own, or a better one where topology left pods pending.

The planner places pods one after another, so a topology rule can fail that another order would have met. Then the
problem is changed a little (`problem_changes`) and planned again, starting each time from the best plan so far, until
no change helps or the retries are used up. A retry almost never leaves more pods pending: without one that helps, the
planner's own plan stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.scheduling.kube_scheduler.plan_binding import PlanBinding
from kerf.engine.scheduling.optimizer.first_plan.problem_changes import (
    LARGE_PROBLEM,
    ProblemChange,
    combined_changes,
    groups_concerned,
    kinds,
    pending_by_topology,
    single_changes,
)
from kerf.engine.scheduling.optimizer.first_plan.related_pods import problem_of_related_pods
from kerf.engine.scheduling.optimizer.first_plan.unplaceable_pods import UnplaceablePods
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem.problem import Problem

MAX_RETRIES, MAX_PODS_REPLANNED = 40, 8_000
"""A problem is planned again at most so often, and with at most so many pods in all these plans together."""
MIN_RETRIES, MAX_PODS_OF_PROBLEM = 3, 10_000
"""But at least so often, up to problems of so many pods."""


def first_plan(problem: Problem) -> tuple[Problem, Plan]:
    """The problem that was planned in the end, and its plan.

    Compared with the planner's own plan, fewer pods are pending (or cannot be bound) of the highest priority for which
    the two plans differ; of lower priorities there may be more.
    """
    own = plan(problem)
    uneven, pending = own.uneven and len(problem.pods) < LARGE_PROBLEM, pending_by_topology(own)
    if not uneven and not pending:
        return problem, own
    unplaceable = UnplaceablePods(problem, own)
    pending -= unplaceable.of(own)
    if not uneven and not pending:
        return problem, own
    retries = _Retries(problem, own, unplaceable)
    return retries.best() if len(problem.pods) < LARGE_PROBLEM else _for_many_pods(problem, own, pending, retries)


def _for_many_pods(problem: Problem, own: Plan, pending: frozenset[str], retries: _Retries) -> tuple[Problem, Plan]:
    """Find out what helps the pending pods without the pods that have nothing to do with them. Then try that on the
    whole problem, with all other pods after these. What helps none of them in the part helps none in the whole."""
    part = problem_of_related_pods(problem, pending)
    if len(part.pods) < len(problem.pods):
        own_of_part = plan(part)
        retries_of_part = _Retries(part, own_of_part, UnplaceablePods(part, own_of_part))
        if retries_of_part.best()[1].placed.isdisjoint(pending):
            return problem, own
        uids = frozenset(pod.uid for pod in part.pods)
        retries.retry(replace(retries_of_part.change, ahead=(uids, *retries_of_part.change.ahead)))
    return retries.best()


def _max_retries(problem: Problem) -> int:
    least = MIN_RETRIES if len(problem.pods) <= MAX_PODS_OF_PROBLEM else 0
    return min(MAX_RETRIES, max(MAX_PODS_REPLANNED // len(problem.pods), least))


class _Attempt(Struct, frozen=True):
    """A changed problem's plan. `stuck`: some of its pods cannot be bound in any order. `pending`: how many pods are
    pending or stuck, by priority. `unplaceable`: the pods (uids) that are pending in this plan and would be in any."""

    change: ProblemChange
    plan: Plan
    stuck: bool
    pending: tuple[int, ...]
    unplaceable: frozenset[str]


class _Retries:
    """Plans one problem again with changes, at most as often as `_max_retries` says."""

    def __init__(self, problem: Problem, own: Plan, unplaceable: UnplaceablePods) -> None:
        self._problem, self._own = problem, own
        # Whether pods can be bound is not checked for large problems: that takes too long.
        self._plan_binding = PlanBinding(problem) if len(problem.pods) < LARGE_PROBLEM else None
        self._unplaceable = unplaceable
        self._best = self._attempt(ProblemChange(problem.careful), own)
        self._tried = {self._best.change}
        self._retries_left = _max_retries(problem)
        self._pending_anyway = len(_unplaced(own)) - len(pending_by_topology(own))

    @property
    def change(self) -> ProblemChange:
        """The change of the best plan so far."""
        return self._best.change

    def best(self) -> tuple[Problem, Plan]:
        """Try single changes, from each better plan anew, then combined ones. The best changed problem and its plan."""
        changes = [single_changes(self._problem, self._best.change, self._best.plan)]
        while changes and not self._done:
            change = next(changes[-1], None)
            if change is None:
                changes.pop()
            elif self.retry(change):
                changes.append(single_changes(self._problem, self._best.change, self._best.plan))
        for change in combined_changes(self._problem, self._best.change, self._best.plan):
            if self._done:
                break
            self.retry(change)
        self._narrow()
        return self._best.change.of(self._problem), self._best.plan

    def _narrow(self) -> None:
        """Leave out for a group only what helps it, and not also what helps another one; and then only for those kinds
        of its pods that have to keep off it (S-63, S-88)."""
        if not self._best.change.left_out:
            return
        for uids in (*groups_concerned(self._problem, self._own), *kinds(self._problem)):
            for option in self._best.change.options:
                if uids < option.uids:
                    self.retry(self._best.change.without(option, uids), as_good=True)

    @property
    def _done(self) -> bool:
        """Whether no retry is left, or none can help: only pods are pending that would be anyhow."""
        best = self._best
        uneven = self._plan_binding is not None and best.plan.uneven
        done = sum(best.pending) <= self._pending_anyway or pending_by_topology(best.plan) <= best.unplaceable
        return self._retries_left <= 0 or (done and not uneven)

    def retry(self, change: ProblemChange, *, as_good: bool = False) -> bool:
        """Plan the problem with a change. True if that leaves fewer pods pending, or makes a plan that can be bound;
        with `as_good` also if the plan is as good."""
        if change in self._tried or self._retries_left <= 0:
            return False
        self._tried.add(change)
        self._retries_left -= 1
        changed = plan(change.of(self._problem))
        if _by_priority(self._problem, _unplaced(changed)) > self._best.pending:
            return False
        attempt = self._attempt(change, changed)
        found, before = ((tried.pending, tried.plan.uneven) for tried in (attempt, self._best))
        if (found < before or (as_good and found == before)) and attempt.stuck <= self._best.stuck:
            self._best = attempt
            return True
        # A plan that cannot be bound may become one if pods settle where their nodes will be at once.
        return attempt.stuck and not change.careful and self.retry(replace(change, careful=True))

    def _attempt(self, change: ProblemChange, changed: Plan) -> _Attempt:
        stuck = self._plan_binding.stuck(changed) if self._plan_binding is not None else []
        if changed.uneven and self._plan_binding is not None and not stuck:
            changed = replace(changed, uneven=False)
        pending = _by_priority(self._problem, (*_unplaced(changed), *stuck))
        return _Attempt(change, changed, bool(stuck), pending, self._unplaceable.of(changed))


def _unplaced(planned: Plan) -> list[str]:
    return [uid for group in planned.unplaced for uid in group.pods]


def _by_priority(problem: Problem, uids: Iterable[str]) -> tuple[int, ...]:
    """How many of the pods (uids) are of each priority, the highest first, those of buffers last. Less is better."""
    ranks = {pod.uid: (not pod.virtual, problem.shapes[pod.shape].priority) for pod in problem.pods}
    counts = Counter(ranks[uid] for uid in uids)
    return tuple(counts[rank] for rank in sorted(set(ranks.values()), reverse=True))
