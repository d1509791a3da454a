"""Pods that wait for a node, by workload, with what stands in their way."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kerf.engine.model.kubernetes.pods import DAEMONSET, Pod, is_active, is_untried, owned_by
from kerf.engine.model.missing_knowledge import Missing
from kerf.engine.model.reasons import Reason
from kerf.engine.record.decisions import ProvisionResult
from kerf.engine.scheduling.explain.crowding_daemonsets import crowding_behind
from kerf.engine.scheduling.explain.meant_pools import giving
from kerf.engine.scheduling.explain.refused_offerings import refused_zones
from kerf.engine.state.provisioning_window import in_service
from kerf.engine.state.state import State
from kerf.projections.cluster_status.structs import WaitingWorkload
from kerf.projections.prose.daemonsets import daemonsets_in_words
from kerf.projections.prose.nearest_reasons import nearest_first
from kerf.projections.prose.reasons import sentence
from kerf.projections.prose.refused_offerings import refused_in_words
from kerf.projections.workload_names import WorkloadName, workload_of

ON_ITS_WAY, NO_PLACE, NOT_PLANNED, KEPT, IGNORED = "on-its-way", "no-place", "not-planned", "kept", "ignored"
NOT_BOUND = "not-bound"
"""The node that is planned for the pod is in service, and kube-scheduler has not bound the pod there."""
NOT_TOLD = "not-told"
"""Why a pod waits in an imported record: another controller planned, or did not."""
NOT_ASKED = "not-asked"
"""kube-scheduler does not ask for a node: the pod has scheduling gates, or is another scheduler's. A record does not
say which."""

_Outlook = tuple[str, Reason | None]
_UNKNOWN: _Outlook = (NOT_PLANNED, None)


def lacks_pods(state: State) -> bool:
    """Whether the record was imported without all pods, or without the nodes that they are on."""
    imported = state.facts.imported
    return imported is not None and not {Missing.PODS, Missing.BINDINGS}.isdisjoint(imported.lacks)


def waiting_workloads(state: State, now: int, plan: ProvisionResult | None) -> tuple[WaitingWorkload, ...]:
    """Return the waiting pods, those that have waited longest first. `plan` is the latest one that did not repeat
    another."""
    outlooks, untold = _outlooks(plan, state), (NOT_TOLD, None) if state.facts.tells_history else _UNKNOWN
    groups: dict[tuple[WorkloadName, str, bytes, str], list[tuple[Pod, Reason | None]]] = {}
    for pod in _waiting(state):
        target = state.facts.targets.get(pod.uid)
        if target:
            outlook, why = NOT_BOUND if in_service(state.facts, target) else ON_ITS_WAY, None
        elif is_not_asked_for(pod, state):
            outlook, why = NOT_ASKED, None
        else:
            outlook, why = outlooks.get(pod.uid, untold)
        key = (workload_of(pod), outlook, msgspec.json.encode(why, order="sorted"), pod.shape)
        groups.setdefault(key, []).append((pod, why))
    waiting = [
        _workload(state, now, name, (outlook, alike[0][1]), [pod for pod, _ in alike])
        for (name, outlook, *_), alike in groups.items()
    ]
    return tuple(sorted(waiting, key=lambda group: (group.since, group.workload, group.outlook, group.pods)))


def _waiting(state: State) -> list[Pod]:
    """Return the pods to plan for, those that the scheduler has not come to yet, and those for which it does not ask;
    none where the record does not know which pods have a node."""
    if lacks_pods(state):
        return []
    pods = state.facts.pods.values()
    waiting = (
        pod for pod in pods if pod.uid in state.indexes.pending or is_untried(pod) or is_not_asked_for(pod, state)
    )
    return sorted(waiting, key=lambda pod: (pod.key, pod.uid))


def is_not_asked_for(pod: Pod, state: State) -> bool:
    """Whether a pod has no node, and kube-scheduler neither looks for one nor says that there is none."""
    if pod.node or state.facts.tells_history or not is_active(pod) or owned_by(pod, DAEMONSET):
        return False
    return not (pod.nominated or pod.untried or pod.unschedulable)


def _outlooks(plan: ProvisionResult | None, state: State) -> dict[str, _Outlook]:
    """Return what a plan said of the pods that it had no place for, with the reason that is nearest to a place."""
    if plan is None:
        return {}
    found: dict[str, _Outlook] = {}
    for outlook, groups in ((NO_PLACE, plan.unplaced), (IGNORED, plan.ignored), (KEPT, plan.later)):
        for group in groups:
            there = next((state.facts.pods[uid] for uid in group.pods if uid in state.facts.pods), None)
            gives = giving(state, there.shape) if there is not None else None
            nearest = next(iter(nearest_first(group.reasons, gives)), None)
            found.update(dict.fromkeys(group.pods, (outlook, nearest)))
    return found


def _workload(state: State, now: int, name: WorkloadName, outlook: _Outlook, pods: Iterable[Pod]) -> WaitingWorkload:
    alike = sorted(pods, key=lambda pod: (pod.created, pod.key))
    since, reason = alike[0].created or now, outlook[1]
    places = {state.facts.targets.get(pod.uid, "") for pod in alike} - {""}
    crowding = crowding_behind(state, reason, alike[0].shape) if reason is not None else None
    refused = refused_zones(state, now, reason, alike[0].shape) if reason is not None else None
    added = daemonsets_in_words(crowding) + refused_in_words(reason, refused) if reason is not None else ""
    return WaitingWorkload(
        workload=name.key,
        kind=name.kind,
        pods=tuple(pod.key for pod in alike),
        since=since,
        waited=max(0, now - since),
        outlook=outlook[0],
        requests=dict(sorted(state.indexes.blobs.shape(alike[0].shape).requests.items())),
        places=tuple(sorted(places)),
        reason=reason,
        why=sentence(reason) + added if reason is not None else "",
        daemonsets=crowding.requests if crowding is not None else {},
        refused_zones=refused.zones if refused is not None else (),
        again=refused.again if refused is not None else 0,
    )
