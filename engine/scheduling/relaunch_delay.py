"""Nodes that were launched for pods which they cannot take: somebody else's taint is on them before the pods are. Each
such node is a reason to plan again, and a plan a reason for another node: a pod gets no other one for ten seconds, as
often as the reference looks at pods that wait (S-57)."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.nodeclaim.claim import ENDED
from kerf.engine.nodeclaim.state_table import GOING
from kerf.engine.record.decisions import Unplaced
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.problem.problem import Problem
from kerf.engine.scheduling.reasons import SchedulingCode, reason
from kerf.engine.state.state import Facts

RELAUNCH_DELAY = 10_000
"""Between the launch for a pod and another one for it, in milliseconds (S-57)."""


class DelayedPods(Struct, frozen=True):
    """Pods that wait for another node, and why; `until`: when one may be launched for the first of them, 0 for none."""

    pods: frozenset[str] = frozenset()
    unplaced: tuple[Unplaced, ...] = ()
    until: int = 0


def recently_launched(facts: Facts, now: int) -> dict[str, str]:
    """Pod (uid) → the claim that was requested for it less than PATIENCE ago, and whose node has joined. (If the room
    of one that has not goes to others, then by kerf's own plan.)"""
    young = [
        claim
        for _, claim in sorted(facts.claims.items())
        if claim.created + RELAUNCH_DELAY > now
        and claim.registered
        and claim.state not in GOING
        and claim.instance_status not in ENDED
    ]
    return {uid: claim.name for claim in young for uid in claim.pods if uid in facts.pods}


def delayed_pods(planned: Plan, recent: dict[str, str], facts: Facts) -> DelayedPods:
    """Of the pods that the plan opens claims for, those for which one was requested recently."""
    waiting: dict[str, list[str]] = {}
    for opened in planned.claims:
        for uid in opened.pods:
            if uid in recent:
                waiting.setdefault(recent[uid], []).append(uid)
    if not waiting:
        return DelayedPods()
    return DelayedPods(
        pods=frozenset(uid for uids in waiting.values() for uid in uids),
        unplaced=tuple(
            Unplaced(tuple(uids), (reason(SchedulingCode.LAUNCHED_IN_VAIN, claim=name),))
            for name, uids in sorted(waiting.items())
        ),
        until=min(facts.claims[name].created for name in waiting) + RELAUNCH_DELAY,
    )


def problem_without(problem: Problem, pods: frozenset[str]) -> Problem:
    """The question about all other pods."""
    return replace(problem, pods=tuple(pod for pod in problem.pods if pod.uid not in pods))
