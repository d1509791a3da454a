"""kube-scheduler's score plugins and their default weights.

Scores are whole numbers from 0 to 100, as kube-scheduler has them. Those that depend on other pods (PodTopologySpread,
InterPodAffinity) are computed in `interpod_counts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kerf.engine.model.kubernetes.pods import ASSUMED, Resources

NODE_AFFINITY_WEIGHT = 2
TAINT_TOLERATION_WEIGHT = 3
POD_TOPOLOGY_SPREAD_WEIGHT = 2
INTERPOD_AFFINITY_WEIGHT = 2

NEUTRAL_SCORE = 100.0 * TAINT_TOLERATION_WEIGHT
"""The static score of every node where pods prefer none of them and no soft taint repels them."""

CpuMemory = tuple[int, int]
"""Milli-CPU and bytes."""

NodeScores = tuple[float, float, int]
"""What pods of one class make of an empty node: the weights of the preferred terms that it meets, how many soft taints
repel them, and its resource score (least and balanced allocation)."""
ScoredNode = tuple[NodeScores, int]
"""The scores of a node, and its number."""
ScoredNodes = tuple[NodeScores, Sequence[int]]
"""The scores that some nodes have in common, and their numbers."""


def scored_requests(requests: Resources) -> CpuMemory:
    """What a pod counts as in NodeResourcesFit's score: a pod without requests counts as a small one."""
    cpu, memory = (requests.get(name) or least for name, least in ASSUMED)
    return cpu, memory


def least_allocated(allocatable: CpuMemory, left: CpuMemory, requested: CpuMemory) -> int:
    """NodeResourcesFit (least allocated): 0 to 100, more for a node with more CPU and memory left after the pod."""
    score = present = 0
    if allocatable[0]:
        present += 1
        if left[0] > requested[0]:
            score += (left[0] - requested[0]) * 100 // allocatable[0]
    if allocatable[1]:
        present += 1
        if left[1] > requested[1]:
            score += (left[1] - requested[1]) * 100 // allocatable[1]
    return score // present if present else 0


def cpu_and_memory(amounts: Resources) -> CpuMemory:
    """These two of all amounts; 0 for one that is not there."""
    return amounts.get("cpu", 0), amounts.get("memory", 0)


def balance(allocatable: CpuMemory, free: CpuMemory) -> int:
    """50 to 100, more where the used parts of CPU and memory differ less: 1 minus their standard deviation. 100 where
    the node does not have both."""
    if not (allocatable[0] and allocatable[1]):
        return 100
    # more than all of it counts as all of it
    cpu = 1.0 if free[0] < 0 else (allocatable[0] - free[0]) / allocatable[0]
    memory = 1.0 if free[1] < 0 else (allocatable[1] - free[1]) / allocatable[1]
    return int((1 - abs(cpu - memory) / 2) * 100)


def balanced_allocation(allocatable: CpuMemory, free: CpuMemory, requested: CpuMemory, before: int | None) -> int:
    """NodeResourcesBalancedAllocation: 0 to 100, more where CPU and memory are used to the same part after the pod.

    `before`: the node's `balance` without the pod, to score whether it makes the node more or less balanced, as
    Kubernetes 1.36 does; None to score the balance after it.
    """
    after = balance(allocatable, (free[0] - requested[0], free[1] - requested[1]))
    if before is None:
        return after
    return 50 + (50 + after - before) // 2 if requested[0] or requested[1] else 0


def static_scores_differ(nodes: Iterable[NodeScores]) -> bool:
    """Whether preferred node affinity or soft taints make one of these nodes better than another."""
    return any(preferred or repelling for preferred, repelling, _ in nodes)


def static_scores(nodes: Sequence[ScoredNodes]) -> dict[int, float]:
    """NodeAffinity and TaintToleration of each node, by number: normalized over all feasible nodes, and weighted."""
    most_preferred = max((preferred for (preferred, _, _), _ in nodes), default=0)
    most_repelling = max((repelling for (_, repelling, _), _ in nodes), default=0)
    scores: dict[int, float] = {}
    for (preferred, repelling, _), numbers in nodes:
        affinity = 100 * preferred // most_preferred if most_preferred else 0
        taints = 100 - 100 * repelling // most_repelling if most_repelling else 100
        score = NODE_AFFINITY_WEIGHT * affinity + TAINT_TOLERATION_WEIGHT * taints
        scores |= dict.fromkeys(numbers, score)
    return scores
