"""Explain a workload: where its pods are, and why those wait that wait."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

from kerf.engine.record.store import Store
from kerf.engine.state.state import State
from kerf.replay.explain.pod import (
    GONE,
    UNBOUND,
    WAITING,
    PodExplanation,
    decisive_decision,
    explain_known_pod,
    pod_status,
)
from kerf.replay.history.histories import Histories
from kerf.replay.history.pod_histories import PodHistory


class PodGroup(Struct, frozen=True, kw_only=True):
    """Pods of a workload about which the same is to be said: all that have a `status`, and of those that wait all of
    the same decision. `longest` is how long the first of them has waited (ms). `example` explains the first of
    those without a node."""

    status: str
    pods: tuple[str, ...]
    nodes: tuple[str, ...] = ()
    longest: int = 0
    example: PodExplanation | None = None


class WorkloadExplanation(Struct, frozen=True, kw_only=True):
    """All that is known of a workload's pods. `statuses` counts those that are there, `gone` those that were."""

    workload: str
    kind: str
    position: int
    at: int
    statuses: dict[str, int]
    gone: int
    groups: tuple[PodGroup, ...]


def explain_workload(store: Store, histories: Histories, state: State, name: str) -> WorkloadExplanation:
    """Explain the workload `name` (namespace/name), which the histories know."""
    pods = histories.pods.of_workload(name)
    groups: dict[tuple[str, str, int], list[PodHistory]] = {}
    for pod in pods:
        status = pod_status(pod, state)
        decision = decisive_decision(pod) if status == WAITING else None
        key = (status, decision.result, decision.position) if decision is not None else (status, "", 0)
        groups.setdefault(key, []).append(pod)
    statuses = Counter({status: 0 for status, *_ in groups})
    for (status, *_), alike in groups.items():
        statuses[status] += len(alike)
    gone = statuses.pop(GONE, 0)
    there = sorted((key, alike) for key, alike in groups.items() if key[0] != GONE)
    there.sort(key=lambda item: item[0][0] != WAITING)
    workload = pods[0].workload
    return WorkloadExplanation(
        workload=name,
        kind=workload.kind if workload is not None and workload.key == name else pods[0].owner.split("/")[-2],
        position=state.facts.position,
        at=state.facts.at,
        statuses=dict(sorted(statuses.items())),
        gone=gone,
        groups=tuple(_group(store, histories, state, status, alike) for (status, *_), alike in there),
    )


def _group(store: Store, histories: Histories, state: State, status: str, pods: list[PodHistory]) -> PodGroup:
    pods = sorted(pods, key=lambda pod: (pod.waiting_since, pod.key))
    without_node = status in (WAITING, UNBOUND)
    example = explain_known_pod(store, histories, state, pods[0]) if without_node else None
    return PodGroup(
        status=status,
        pods=tuple(pod.key for pod in pods),
        nodes=tuple(sorted({pod.node for pod in pods if pod.node})),
        longest=example.waited if example is not None else 0,
        example=example,
    )
