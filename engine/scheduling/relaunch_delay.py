"""Wait before launching another node for a pod that cannot use the ones that were launched for it.

When somebody else's taint comes onto a new node before its pods do, these stay pending, and each pass would launch
another node. So a pod gets no other node for ten seconds after the launch. The reference looks at waiting pods as often
(S-57). With each further node that has joined in vain, or was lost before it joined, the pause doubles. So a taint
which comes onto every new node launches ever fewer of them, and so does whatever ends every new instance. Half an hour
is its end: nobody tells kerf when the cause is gone, unless it is a NodePool or NodeClass that changed.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.reasons import Reason
from kerf.engine.nodeclaim.claim import ENDED
from kerf.engine.nodeclaim.state_table import GOING
from kerf.engine.record.decisions import Unplaced
from kerf.engine.scheduling.matching.taints import TOLERATES_PREFER_NO_SCHEDULE, taint_text, untolerated
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.problem.problem import Problem
from kerf.engine.scheduling.reasons import SchedulingCode, reason
from kerf.engine.state.state import Facts, LaunchedFor

RELAUNCH_DELAY = 10_000
"""Between the first launch for a pod and another one for it, in milliseconds (S-57)."""
MAX_RELAUNCH_DELAY = 1_800_000
"""Between two launches for a pod at most, in milliseconds. A NodePool or NodeClass that is changed ends the pause."""


class DelayedPods(Struct, frozen=True):
    """The pods that wait for a node, and why. `until`: when the first of them may get one (ms since the epoch); 0
    if there are none."""

    pods: frozenset[str] = frozenset()
    unplaced: tuple[Unplaced, ...] = ()
    until: int = 0


def recently_launched(facts: Facts, now: int) -> dict[str, LaunchedFor]:
    """For each pod (uid) that waits for its next node, the latest claim that was launched for it. A claim whose node
    is on its way is left out: only kerf's own plan can give its room to other pods."""
    return {uid: latest for uid, latest in sorted(facts.launched_for.items()) if _another_at(latest, facts) > now}


def _another_at(latest: LaunchedFor, facts: Facts) -> int:
    """When the pod may get another node (ms since the epoch): at once if its first one is no longer there."""
    if latest.times > 1:
        doublings = min(latest.times - 1, MAX_RELAUNCH_DELAY.bit_length())
        return latest.at + min(RELAUNCH_DELAY << doublings, MAX_RELAUNCH_DELAY)
    claim = facts.claims.get(latest.claim)
    is_there = claim is not None and claim.state not in GOING and claim.instance_status not in ENDED
    return claim.created + RELAUNCH_DELAY if claim is not None and is_there else 0


def too_early(planned: Plan, recent: Container[str]) -> frozenset[str]:
    """The pods (uids) that the plan opens claims for although one was launched for them recently."""
    return frozenset(uid for opened in planned.claims for uid in opened.pods if uid in recent)


def delayed_pods(pods: Iterable[str], recent: dict[str, LaunchedFor], problem: Problem, facts: Facts) -> DelayedPods:
    """These pods (uids, all of them `recent`), with the reason why they wait."""
    waiting: dict[tuple[LaunchedFor, tuple[str, ...]], list[str]] = {}
    for uid in sorted(pods):
        latest = recent[uid]
        tolerations = problem.shapes[problem.pod_of[uid].shape].tolerations
        taints = untolerated(latest.taints, (*tolerations, TOLERATES_PREFER_NO_SCHEDULE))
        waiting.setdefault((latest, tuple(sorted(map(taint_text, taints)))), []).append(uid)
    return DelayedPods(
        pods=frozenset(uid for uids in waiting.values() for uid in uids),
        unplaced=tuple(
            Unplaced(tuple(uids), (_in_vain(latest.claim, taints),))
            for (latest, taints), uids in sorted(
                waiting.items(), key=lambda item: (item[0][0].claim, item[0][0].times, item[0][1])
            )
        ),
        until=min((_another_at(latest, facts) for latest, _ in waiting), default=0),
    )


def _in_vain(claim: str, taints: tuple[str, ...]) -> Reason:
    if taints:
        return reason(SchedulingCode.LAUNCHED_TAINTED, claim=claim, taints=list(taints))
    return reason(SchedulingCode.LAUNCHED_IN_VAIN, claim=claim)


def problem_without(problem: Problem, pods: frozenset[str]) -> Problem:
    """The same question for all other pods."""
    return replace(problem, pods=tuple(pod for pod in problem.pods if pod.uid not in pods))
