"""Tell pods without a place of the pods that they have to run beside, where a PodDisruptionBudget keeps these."""

from __future__ import annotations

from collections.abc import Iterator

from kerf.engine.model.reasons import Reason
from kerf.engine.record.decisions import Unplaced
from kerf.engine.scheduling.problem.problem import Beside, Problem
from kerf.engine.scheduling.reasons import SchedulingCode, reason


def with_held_pods(unplaced: tuple[Unplaced, ...], problem: Problem) -> tuple[Unplaced, ...]:
    """The groups, with a first reason for pods that could run only beside others."""
    beside = {pod.uid: pod.beside for pod in problem.pods if pod.beside is not None}
    return tuple(told for group in unplaced for told in _told(group, beside)) if beside else unplaced


def _told(group: Unplaced, beside: dict[str, Beside]) -> Iterator[Unplaced]:
    for where in dict.fromkeys(beside.get(uid) for uid in group.pods):
        pods = tuple(uid for uid in group.pods if beside.get(uid) == where)
        yield Unplaced(pods, group.reasons if where is None else (_reason(where), *group.reasons))


def _reason(beside: Beside) -> Reason:
    budgets, nodes = list(beside.budgets), list(beside.nodes)
    return reason(SchedulingCode.BESIDE_HELD_PODS, budgets=budgets, nodes=nodes, where=beside.where)
