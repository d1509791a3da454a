"""The verdict on a cluster: fine, busy, degraded or failing, with its grounds. `words` has what each ground says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kerf.engine.model.reasons import Reason
from kerf.engine.nodeclaim.state_table import INITIALIZED
from kerf.engine.scheduling.reasons import SchedulingCode
from kerf.projections.cluster_status.structs import (
    BUSY,
    DEGRADED,
    FAILING,
    FINE,
    LEVELS,
    ClusterVerdict,
    Ground,
    NodeStatus,
    PoolStatus,
    UnderWay,
    WaitingWorkload,
)
from kerf.projections.cluster_status.waiting_pods import IGNORED, NO_PLACE, NOT_ASKED, NOT_BOUND, ON_ITS_WAY

PATIENCE = 600_000
"""A pod whose node is on its way should have it by then (ms)."""
MAX_SUBJECTS = 5
"""At most so many are named of what a ground is about."""
_NO_CAPACITY = (SchedulingCode.TYPES_OFFERINGS.value, SchedulingCode.NO_INSTANCE_TYPES.value)


def judged(
    waiting: Iterable[WaitingWorkload],
    nodes: Iterable[NodeStatus],
    pools: tuple[PoolStatus, ...],
    going_on: Iterable[UnderWay],
    orphans: Iterable[str],
    *,
    clocks_differ: bool = False,
) -> ClusterVerdict:
    """Return the verdict: the level of the worst ground."""
    nodes = tuple(nodes)
    grounds = [
        *_of_waiting(tuple(waiting), pools),
        *_ground(DEGRADED, "pool-not-ready", [pool.name for pool in pools if pool.wrong]),
        *_ground(DEGRADED, "late", [part.subjects[0] for part in going_on if part.late]),
        *_ground(
            DEGRADED, "node-not-ready", [node.name for node in nodes if node.state == INITIALIZED and not node.ready]
        ),
        *_ground(DEGRADED, "drifted-kept", [node.name for node in nodes if node.kept_by]),
        *_ground(DEGRADED, "clocks-differ", [pool.name for pool in pools] if clocks_differ else ()),
        *_ground(DEGRADED, "orphans", orphans),
        *_ground(BUSY, "under-way", [part.subjects[0] for part in going_on]),
    ]
    return _worst(grounds)


def with_trouble(verdict: ClusterVerdict, trouble: Mapping[str, tuple[str, ...]]) -> ClusterVerdict:
    """Return the verdict with what came again and again lately (see `Recent`)."""
    more = (ground for code, claims in trouble.items() for ground in _ground(DEGRADED, code, claims))
    return _worst([*verdict.grounds, *more])


def _worst(grounds: list[Ground]) -> ClusterVerdict:
    grounds.sort(key=lambda ground: -LEVELS.index(ground.level))
    return ClusterVerdict(grounds[0].level if grounds else FINE, tuple(grounds))


def _of_waiting(waiting: tuple[WaitingWorkload, ...], pools: tuple[PoolStatus, ...]) -> Iterator[Ground]:
    """Judge the pods that wait, each once, by the worst that is true of it."""
    by_code: dict[tuple[str, str], list[str]] = {}
    for group in waiting:
        if group.outlook == NOT_ASKED:
            continue  # whoever closed its gates opens them
        by_code.setdefault(_of_group(group, any(pool.ready for pool in pools)), []).extend(group.pods)
    for (level, code), pods in by_code.items():
        yield from _ground(level, code, pods)


def _of_group(group: WaitingWorkload, a_pool_is_ready: bool) -> tuple[str, str]:
    if group.outlook in (NO_PLACE, IGNORED):
        if not a_pool_is_ready:
            return FAILING, "no-pool-ready"
        return (FAILING, "no-capacity") if _lacks_capacity(group.reason) else (DEGRADED, "no-place")
    if group.outlook in (ON_ITS_WAY, NOT_BOUND) and group.waited > PATIENCE:
        return DEGRADED, "waiting-long"
    return BUSY, "waiting"


def _lacks_capacity(reason: Reason | None) -> bool:
    return reason is not None and reason.code in _NO_CAPACITY


def _ground(level: str, code: str, subjects: Iterable[str]) -> Iterator[Ground]:
    found = list(subjects)
    if found:
        yield Ground(level, code, len(found), tuple(dict.fromkeys(found))[:MAX_SUBJECTS])
