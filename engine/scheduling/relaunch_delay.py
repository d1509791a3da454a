"""Wait before launching a second node for a pod that cannot use the first one.

When somebody else's taint comes onto a new node before its pods do, these stay pending, and each pass would launch
another node. So a pod gets no other node for ten seconds after the launch. The reference looks at waiting pods as often
(S-57).
"""

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
    """The pods that wait for a node, and why. `until`: when the first of them may get one (ms since the epoch); 0
    if there are none."""

    pods: frozenset[str] = frozenset()
    unplaced: tuple[Unplaced, ...] = ()
    until: int = 0


def recently_launched(facts: Facts, now: int) -> dict[str, str]:
    """For each pod (uid) the claim that was requested for it less than RELAUNCH_DELAY ago and whose node has joined. A
    claim whose node has not joined is left out: only kerf's own plan can give its room to other pods."""
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
    """The pods that the plan opens claims for although one was requested for them recently."""
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
    """The same question for all other pods."""
    return replace(problem, pods=tuple(pod for pod in problem.pods if pod.uid not in pods))
