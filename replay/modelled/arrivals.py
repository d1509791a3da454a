"""Make steps of the lives of pods: how many replicas each workload had, and which pods came and went on their own.

A replica that came for a displaced one is no arrival. A displaced one for which none came was scaled away, and stays
away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from msgspec import Struct

from kerf.engine.model.kubernetes.pods import STATEFULSET, Pod
from kerf.replay.modelled.pod_lives import PodLife, PodLives, in_order
from kerf.replay.modelled.workload import Comes, Group, Leaves, Replicas, Timed

LOOKED_WITHIN = 10_000
"""A pod at which no scheduler has looked for so long (ms) is held by a scheduling gate, or by another scheduler."""
COMES_WITHIN = 30_000
"""A replica comes for a displaced one within this time (ms)."""
SAME_NAME_WITHIN = 600_000
"""A StatefulSet's pod comes again under its name within this time (ms)."""
_JOB = "batch/v1/Job"
NEVER_LOOKED_AT = "pods at which no scheduler looked"


class Arrivals(Struct, frozen=True):
    """The steps of all pods, the groups of those that stand for each other, and the pods that are there at the
    beginning but come later, since they are held back (by uid)."""

    steps: tuple[Timed, ...]
    groups: tuple[Group, ...]
    held: frozenset[str]
    left_out: dict[str, int]


def arrivals(lives: PodLives, since: int, until: int, deletions: Sequence[Callable[[Pod], bool]] = ()) -> Arrivals:
    """Return what came and went between two times (ms since the epoch). With the changes, none comes of the pods that
    one of the `deletions` takes."""
    looked_at, held, never = [], set(), 0
    for life in in_order(lives.lives.values()):
        if _held(life, until) and life.there:
            held.add(life.pod.uid)
        if not life.looked and _held(life, until):
            never += 1
        else:
            looked_at.append(life)
    steps: list[Timed] = []
    groups = []
    for (workload, own), found in groupby(sorted(_named(looked_at), key=lambda n: n[:2]), key=lambda n: n[:2]):
        pods = in_order(life for _, _, life in found)
        deleted = any(takes(pods[0].pod) for takes in deletions)
        own_steps = _slots(workload, pods) if own else _replicas(workload, pods, since)
        steps += [Timed(timed.at, timed.step, changed=False) for timed in own_steps] if deleted else own_steps
        if not own:
            groups.append(_group(workload, pods))
            steps += [Timed(since, Replicas(workload, 0), changed=True)] if deleted else []
    steps.sort(key=lambda timed: timed.at)
    return Arrivals(tuple(steps), tuple(groups), frozenset(held), {NEVER_LOOKED_AT: never} if never else {})


def _held(life: PodLife, until: int) -> bool:
    return (life.looked or life.left or until) - life.came > LOOKED_WITHIN and not (life.there and life.looked)


def _came(life: PodLife) -> int:
    """When it came, as far as the scheduler is concerned."""
    if life.looked - life.came > LOOKED_WITHIN:
        return life.looked
    return life.pod.created if 0 <= life.came - life.pod.created <= COMES_WITHIN and not life.there else life.came


def _named(lives: list[PodLife]) -> list[tuple[str, bool, PodLife]]:
    """Give each life with its workload, and whether its pods stand for themselves."""
    run = Counter(workload_key(life.pod) for life in lives if life.phase == "Succeeded")
    return [(key := workload_key(life.pod), _own(life.pod) or run[key] > 0, life) for life in lives]


def _own(pod: Pod) -> bool:
    return pod.owner is None or pod.owner.kind in (STATEFULSET, _JOB)


def workload_key(pod: Pod) -> str:
    """Name what made a pod, so that no two are named alike."""
    owner = pod.owner
    return pod.key if owner is None else f"{pod.namespace}/{owner.kind}/{owner.name}/{owner.uid}"


# ── replicas that stand for each other ─────────────────────────────────────────────────────────────────────────────


def _group(workload: str, pods: list[PodLife]) -> Group:
    owner = pods[0].pod.owner
    assert owner is not None
    come = tuple(life.pod for life in pods if not life.there) or (pods[-1].pod,)
    return Group(workload, owner.uid, owner.name, come)


def _replicas(workload: str, pods: list[PodLife], since: int) -> Iterator[Timed]:
    changes = Counter({since: sum(life.there and not life.pod.deleting for life in pods)})
    displaced: list[int] = []
    for at, _, life in _events(pods):
        if at == life.left and _left_later(life):
            if life.displaced:
                displaced.append(at)
            else:
                changes[at] -= 1
            continue
        while displaced and at - displaced[0] > COMES_WITHIN:
            changes[displaced.pop(0)] -= 1
        if displaced:
            displaced.pop(0)
        else:
            changes[_came(life)] += 1
    last = max((max(life.came, life.left) for life in pods), default=since)
    for at in displaced:
        if last - at > COMES_WITHIN:
            changes[at] -= 1
    count = 0
    for at, change in sorted(changes.items()):
        count = max(0, count + change)
        if change:
            yield Timed(at, Replicas(workload, count))


def _events(pods: list[PodLife]) -> list[tuple[int, bool, PodLife]]:
    """Give arrivals and departures by time. A departure comes before an arrival of the same time."""
    came = [(life.came, True, life) for life in pods if not life.there]
    left = [(life.left, False, life) for life in pods if _left_later(life)]
    return sorted(came + left, key=lambda event: (event[0], event[1], event[2].pod.uid))


def _left_later(life: PodLife) -> bool:
    return bool(life.left) and not (life.there and life.pod.deleting)


# ── pods that stand for themselves ─────────────────────────────────────────────────────────────────────────────────


def _slots(workload: str, pods: list[PodLife]) -> Iterator[Timed]:
    for number, chain in enumerate(_chains(pods)):
        first, last = chain[0], chain[-1]
        owner = first.pod.owner
        named = owner is not None and owner.kind == STATEFULSET
        slot = f"{workload}/{first.pod.name}/{number}"
        runs = last.ended - (last.started or last.came) if last.ended and not last.displaced else 0
        comes = Comes(
            slot=slot,
            pod=first.pod,
            runs=max(1, runs) if runs else 0,
            phase=last.phase,
            kept=last.gone - last.ended if runs and last.gone else 0,
            again=owner is not None,
            named=named,
        )
        yield Timed(_came(first), comes)
        if last.left and not last.ended and (not last.displaced or owner is not None):
            yield Timed(last.left, Leaves(slot))


def _chains(pods: list[PodLife]) -> list[list[PodLife]]:
    """Put each pod behind the displaced one that it came for."""
    chains: list[list[PodLife]] = []
    for life in pods:
        chain = next((chain for chain in chains if _comes_for(life, chain[-1])), None)
        if chain is None:
            chains.append([life])
        else:
            chain.append(life)
    return chains


def _comes_for(life: PodLife, earlier: PodLife) -> bool:
    owner = life.pod.owner
    if owner is None or life.there or not earlier.displaced:
        return False
    if owner.kind == STATEFULSET:
        return life.pod.name == earlier.pod.name and 0 <= life.came - earlier.left <= SAME_NAME_WITHIN
    return 0 <= life.came - earlier.left <= COMES_WITHIN
