"""Pods that must be with others by required affinity: whom they may be with, and an order in which all find room there.

The planner fills a node with the large pods first. If these are the partners, few of the pods that follow them find
room beside them. So one partner comes first, with as many of its followers as its node can hold, and then the next one.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence

from msgspec.structs import replace

from kerf.engine.scheduling.matching.label_selectors import required_affinity_selectors
from kerf.engine.scheduling.optimizer.pods_by_label import PodsByLabel
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.planner import plan
from kerf.engine.scheduling.problem.problem import PendingPod, Problem, ShapeKey

MAX_BESIDE = 250
"""For at most so many followers it is found out how many of them fit beside a partner."""


def affinity_partners(problem: Problem, group: Collection[str]) -> frozenset[str]:
    """The pods (uids) that these, which are alike, must be with; those of their own kind are among them if they may be
    with one another."""
    first = next(pod for pod in problem.pods if pod.uid in group)
    selectors = required_affinity_selectors(problem.shapes[first.shape], first.namespace, problem.namespaces)
    by_label = PodsByLabel(problem, problem.pods_of_kind if selectors else ())
    return _of_kinds(problem, {key for selector in selectors for key in by_label.selected(selector)})


def in_turn(
    problem: Problem, planned: Plan, groups: Iterable[frozenset[str]], partners: frozenset[str], ahead: frozenset[str]
) -> tuple[frozenset[str], ...]:
    """The sets of pods (uids) that come next, the last one first: partners that the plan puts on existing nodes; then
    one for a new node, its followers, the next partner, and so on. `groups`: pods that are pending, each alike.
    `ahead`: those that come ahead already, and stay there if they are not pending."""
    pending = frozenset().union(*(group for group in groups if partners & affinity_partners(problem, group))) - partners
    followers = _mixed(pods_alike(problem, pending) - partners - ahead | pending, problem, pending)
    there = partners & frozenset(uid for on_node in planned.placements for uid in on_node.pods) - ahead
    leaders = sorted(partners - there - ahead)
    most = _most_beside(problem, problem.pod_of[leaders[0]], followers[:MAX_BESIDE]) if leaders else len(followers)
    sets = [there]
    for number in range(math.ceil(len(followers) / most) if most else 0):
        beside = followers[number * most : (number + 1) * most]
        sets += [frozenset(leaders[number : number + 1]), frozenset(pod.uid for pod in beside)]
    return tuple(each for each in reversed(sets) if each)


def pods_alike(problem: Problem, uids: Collection[str]) -> frozenset[str]:
    """All pods (uids) of the kinds of these."""
    return _of_kinds(problem, {problem.pod_of[uid].shape_key for uid in uids})


def _of_kinds(problem: Problem, shape_keys: Collection[ShapeKey]) -> frozenset[str]:
    return frozenset(pod.uid for key in shape_keys for pod in problem.pods_of_kind[key])


def _mixed(uids: Iterable[str], problem: Problem, pending: Collection[str]) -> list[PendingPod]:
    """The pods in such an order that any few in a row are of all kinds in proportion; of each kind first those that are
    pending."""
    by_kind: dict[ShapeKey, list[PendingPod]] = {}
    for pod in map(problem.pod_of.__getitem__, sorted(uids, key=lambda uid: (uid not in pending, uid))):
        by_kind.setdefault(pod.shape_key, []).append(pod)
    mixed = [((n + 0.5) / len(alike), pod.uid) for alike in by_kind.values() for n, pod in enumerate(alike)]
    return [problem.pod_of[uid] for _, uid in sorted(mixed)]


def _most_beside(problem: Problem, leader: PendingPod, followers: Sequence[PendingPod]) -> int:
    """How many of the followers, the first ones, find room beside a leader on a new node."""
    least, most = 0, len(followers)
    while least < most:
        middle = (least + most + 1) // 2
        alone = plan(replace(problem, pods=(leader, *followers[:middle]), nodes=(), leaving=(), bound=()))
        if len(alone.claims) == 1 and len(alone.claims[0].pods) == middle + 1:
            least = middle
        else:
            most = middle - 1
    return least
