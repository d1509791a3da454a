"""Write a moment as a scenario: pods, nodes, NodePools, and what they could launch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.durations import format_time
from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.kubernetes.pods import Pod, is_terminal
from kerf.engine.model.ordinals import base_and_ordinal
from kerf.engine.nodeclaim.state_table import GOING, REQUESTED
from kerf.engine.scheduling.pods.evictability import EvictionRules
from kerf.engine.scheduling.problem.departing_pods import departing_pods
from kerf.engine.state.nodeclaims.unavailable import unavailable, unavailable_to
from kerf.engine.state.state import State
from kerf.projections.differences.node_pool_document import node_pool_document
from kerf.replay.what_if.export.instance_types import Offerings, source_of
from kerf.replay.what_if.export.nodes import claim_document, goes, node_document
from kerf.replay.what_if.export.pods import pod_document, selector_document, spec_document
from kerf.replay.what_if.export.volumes import volume_documents

Document = dict[str, Any]


class Exported(Struct, frozen=True):
    """A scenario, and what of the moment is not in it."""

    scenario: Document
    left_out: tuple[str, ...]


def scenario_of(state: State, now: int, name: str) -> Exported:
    """Write the state at `now` (ms since the epoch) as a scenario of this name."""
    facts, writer = state.facts, _Writer(state, now)
    unready = [found for pool in facts.pools if (found := _unready(state, pool))]
    scenario: Document = {
        "name": name,
        "now": format_time(now),
        "pods": writer.waiting_pods(),
        "nodes": writer.nodes(),
        "nodePools": [node_pool_document(pool) for name, pool in sorted(facts.pools.items()) if not pool.deleting],
        **writer.instance_types(),
        "daemonSets": writer.daemon_sets(),
        "namespaces": [
            {"metadata": {"name": found.name, "labels": found.labels}} for _, found in sorted(facts.namespaces.items())
        ],
        "pdbs": [_budget(budget) for _, budget in sorted(facts.pdbs.items())],
        **volume_documents(facts),
        "options": {
            "preferencePolicy": facts.settings.preference_policy,
            "minValuesPolicy": facts.settings.min_values_policy,
            "ignoreDraRequests": facts.settings.ignore_dra_requests,
            "featureGates": {"SpotToSpotConsolidation": facts.settings.spot_to_spot},
        },
    }
    return Exported(scenario, (*unready, *_left_out(state)))


def _unready(state: State, pool: str) -> str:
    """A scenario's NodePools are ready, and their NodeClasses are not in it."""
    ref = state.facts.pools[pool].node_class
    node_class = state.facts.node_classes.get(ref.key)
    return "" if node_class is not None and node_class.ready else f"that NodePool {pool} is not ready"


def _left_out(state: State) -> Iterable[str]:
    facts = state.facts
    for what, found in (
        ("ResourceClaims and devices", facts.resource_claims or facts.resource_slices),
        ("NodeOverlays", facts.overlays),
        ("CapacityBuffers", facts.buffers),
        ("the default topology spread", facts.settings.default_spread),
        ("claims that are requested and not launched", [c for c in facts.claims.values() if c.state == REQUESTED]),
    ):
        if found:
            yield what


def _budget(budget: PodDisruptionBudget) -> Document:
    amounts = {"maxUnavailable": budget.max_unavailable, "minAvailable": budget.min_available}
    spec: Document = {name: _amount(text) for name, text in amounts.items() if text is not None}
    if budget.always_allow_unhealthy:
        spec["unhealthyPodEvictionPolicy"] = "AlwaysAllow"
    selector = {} if budget.selector is None else {"selector": selector_document(budget.selector)}
    status = {
        "disruptionsAllowed": budget.disruptions_allowed,
        "expectedPods": budget.expected_pods,
        "desiredHealthy": budget.desired_healthy,
    }
    metadata = {"name": budget.name, "namespace": budget.namespace, "uid": budget.uid}
    return {"metadata": metadata, "spec": spec | selector, "status": status}


def _amount(text: str) -> int | str:
    return int(text) if text.isdecimal() else text


def _planned_for_although_kept(state: State, now: int) -> dict[str, Pod]:
    departing = [pod for pods in departing_pods(state, now).values() for pod in pods]
    shapes = {pod.shape: state.indexes.blobs.shape(pod.shape) for pod in departing}
    rules = EvictionRules(shapes, tuple(state.facts.pdbs.values()), now)
    return {pod.uid: pod for pod in departing if not rules.moves(pod)}


def _by_arrival(pod: Pod) -> tuple[int, str, str, int, str]:
    name, ordinal = base_and_ordinal(pod.name)
    return pod.arrival, pod.namespace, name, ordinal, pod.uid


def _as_waiting(pod: Pod) -> Pod:
    return replace(pod, node="", phase="Pending", unschedulable=True, ready=False, started=0, deleting=0)


class _Writer:
    """Writes what has names that a scenario has only once."""

    def __init__(self, state: State, now: int) -> None:
        self._state, self._now = state, now
        facts = state.facts
        self._forced = _planned_for_although_kept(state, now)
        self._often = {name for name, times in Counter(pod.name for pod in facts.pods.values()).items() if times > 1}

    def waiting_pods(self) -> list[Document]:
        """Write the pods without a node, and those that must leave theirs although a budget or an annotation keeps
        them: a scenario knows no deadline, and would plan for these only once they may go."""
        facts = self._state.facts
        homeless = (pod for pod in facts.pods.values() if pod.node not in facts.nodes)
        return self.pods([*homeless, *(_as_waiting(pod) for pod in self._forced.values())])

    def pods(self, pods: Iterable[Pod]) -> list[Document]:
        """Write the pods that have not ended, in the order of their arrival: a scenario's is that of the file. One
        whose name stands in several namespaces gets the namespace's, too."""
        shape = self._state.indexes.blobs.shape
        alive = sorted((pod for pod in pods if not is_terminal(pod)), key=_by_arrival)
        return [pod_document(pod, shape(pod.shape), self._name(pod)) for pod in alive]

    def _name(self, pod: Pod) -> str:
        return f"{pod.name}.{pod.namespace}" if pod.name in self._often else pod.name

    def nodes(self) -> list[Document]:
        facts, indexes, now = self._state.facts, self._state.indexes, self._now
        documents = []
        for name in sorted(facts.nodes):
            claim = facts.claims.get(indexes.claim_by_node.get(name, ""))
            on_it = (facts.pods[uid] for uid in indexes.pods_by_node.get(name, {}) if uid not in self._forced)
            entry: Document = {"node": node_document(facts.nodes[name]), "pods": self.pods(on_it)}
            if claim is not None:
                entry["nodeClaim"] = claim_document(claim, self._state, now)
                entry["markedForDeletion"] = goes(claim)
                entry["nominated"] = now < claim.nominated_until or bool(indexes.waiting_for.get(claim.name))
            documents.append(entry)
        joined = set(indexes.claim_by_node.values())
        for name, claim in sorted(facts.claims.items()):
            if name not in joined and claim.state not in (REQUESTED, *GOING):
                documents.append({"nodeClaim": claim_document(claim, self._state, now), "pods": []})
        return documents

    def instance_types(self) -> Document:
        """Write the instance types once, if all NodePools have the same."""
        facts, blobs = self._state.facts, self._state.indexes.blobs
        keys = {name: pool.node_class.key for name, pool in sorted(facts.pools.items())}
        sources = {
            key: source_of(
                blobs.catalogue(facts.catalogues[key]),
                self._unavailable(key),
                self._unavailable(key, in_doubt=True) - self._unavailable(key),
                facts.reservations[key].left if key in facts.reservations else {},
            )
            for key in sorted({*keys.values()} & facts.catalogues.keys())
        }
        if len(sources) == 1 and {*keys.values()} == sources.keys():
            return {"instanceTypes": next(iter(sources.values()))}
        return {"instanceTypesByNodePool": {name: sources.get(key, {"inline": []}) for name, key in keys.items()}}

    def _unavailable(self, node_class: str, *, in_doubt: bool = False) -> Offerings:
        facts, now = self._state.facts, self._now
        return unavailable(facts, now, in_doubt=in_doubt) | unavailable_to(facts, node_class, now, in_doubt=in_doubt)

    def daemon_sets(self) -> list[Document]:
        facts, shape = self._state.facts, self._state.indexes.blobs.shape
        return [
            {
                "metadata": {"name": found.name, "namespace": found.namespace, "uid": found.uid},
                "spec": {
                    "template": {
                        "metadata": {"labels": shape(found.shape).labels},
                        "spec": spec_document(shape(found.shape)),
                    }
                },
            }
            for _, found in sorted(facts.daemonsets.items())
        ]
