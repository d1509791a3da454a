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
        score += max(0, left[0] - requested[0]) * 100 // allocatable[0]
    if allocatable[1]:
        present += 1
        score += max(0, left[1] - requested[1]) * 100 // allocatable[1]
    return score // max(1, present)


def balanced_allocation(allocatable: CpuMemory, free: Resources, requests: Resources, *, against_before: bool) -> int:
    """NodeResourcesBalancedAllocation: 0 to 100, more where CPU and memory are used to the same part after the pod.

    `against_before`: score whether the pod makes the node more or less balanced, as Kubernetes 1.36 does.
    """
    cpu, memory = allocatable
    more_cpu, more_memory = requests.get("cpu", 0), requests.get("memory", 0)
    cpu_free, memory_free = free.get("cpu", 0), free.get("memory", 0)
    comparable = bool(cpu) and bool(memory)
    after = 100
    if comparable:
        after = _balance((cpu - cpu_free + more_cpu) / cpu, (memory - memory_free + more_memory) / memory)
    if not against_before:
        return after
    before = _balance((cpu - cpu_free) / cpu, (memory - memory_free) / memory) if comparable else 100
    return 50 + (50 + after - before) // 2 if more_cpu or more_memory else 0


def _balance(cpu: float, memory: float) -> int:
    """50 to 100, more where the used parts of two resources differ less: 1 minus their standard deviation."""
    return int((1 - abs(min(1.0, cpu) - min(1.0, memory)) / 2) * 100)


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
