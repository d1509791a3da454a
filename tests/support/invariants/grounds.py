"""What a node goes by choice on, looked up in what the record has shown by then: nothing on it forbids it (D-30, D-54),
and its pods have somewhere to go. By code that shares nothing with what decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.kubernetes.pods import DAEMONSET, NODE_OWNER, STATEFULSET, Pod, PodShape, Taint
from kerf.engine.record.decisions import Move
from kerf.engine.record.observations import ObjectGone
from tests.support.judges.candidates import DISRUPTED, DO_NOT_DISRUPT, duration
from tests.support.judges.labels import selected, tolerated, tolerates, wants_node


@dataclass
class Picture:
    """The pods (by uid), Nodes (by name) and PodDisruptionBudgets (by uid) that the record has shown last, and the pods
    that moves have promised a place: uid → (where, where they were then, and the position at which the move started);
    one that waits is promised nothing, for the next plan may place it otherwise. `shape` knows the shape of a
    digest."""

    shape: Callable[[str], PodShape]
    pods: dict[str, Pod] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    pdbs: dict[str, PodDisruptionBudget] = field(default_factory=dict)
    promised: dict[str, tuple[str, str, int]] = field(default_factory=dict)

    def see(self, payload: object) -> None:
        if isinstance(payload, Pod):
            self.pods[payload.uid] = payload
        elif isinstance(payload, Node):
            self.nodes[payload.name] = payload
        elif isinstance(payload, PodDisruptionBudget):
            self.pdbs[payload.uid] = payload
        elif isinstance(payload, ObjectGone):
            kinds: dict[str, dict[str, Any]] = {"pod": self.pods, "node": self.nodes, "pdb": self.pdbs}
            kinds.get(payload.kind, {}).pop(payload.key, None)

    def on(self, node: str) -> list[Pod]:
        return [pod for pod in self.pods.values() if pod.node == node and pod.phase not in ("Succeeded", "Failed")]

    def unused(self, name: str, meant: Iterable[str], asked: int) -> bool:
        """Whether no pod is on a node, since some of those that it was launched for run where they ran before."""
        found = [self.pods[uid] for uid in meant if uid in self.pods]
        stay = [pod for pod in found if pod.node and 0 < pod.started <= asked and not pod.deleting]
        return bool(stay) and not any(map(_moves, self.on(name)))

    # ── what forbids it ────────────────────────────────────────────────────────────────────────────────────────────

    def forbidden(self, name: str, pool: NodePool, why: str, now: int, *, waived: bool) -> Iterator[str]:
        """`waived`: pods and their budgets hold nothing (D-31)."""
        node = self.nodes.get(name)
        if node is None:
            yield f"there is no Node {name}"
            return
        if node.annotations.get(DO_NOT_DISRUPT) == "true":
            yield f"{name} carries do-not-disrupt"
        if why != "drifted" and pool.consolidate_after is None:
            yield f"consolidateAfter of {pool.name} is Never"
        if why == "underutilized" and pool.consolidation_policy == "WhenEmpty":
            yield f"{pool.name} consolidates empty nodes only"
        pods = self.on(name)
        if why == "empty" and any(map(_moves, pods)):
            yield f"{name} is not empty"
        if not waived:
            yield from (f"{pod.key} carries do-not-disrupt" for pod in pods if not pod.deleting and _shielded(pod, now))
            yield from (f"PodDisruptionBudgets forbid to evict {pod.key}" for pod in pods if self._held(pod, now))

    def _held(self, pod: Pod, now: int) -> bool:
        shape = self.shape(pod.shape)
        own = pod.owner is not None and pod.owner.kind == NODE_OWNER
        if pod.deleting or own or _shielded(pod, now) or tolerated(Taint(DISRUPTED, "NoSchedule"), shape):
            return False
        found = [
            pdb for pdb in self.pdbs.values() if pdb.namespace == pod.namespace and selected(pdb.selector, shape.labels)
        ]
        if len(found) != 1:
            return len(found) > 1
        excused = found[0].always_allow_unhealthy and not pod.ready
        return not found[0].disruptions_allowed and not excused

    # ── where its pods go ──────────────────────────────────────────────────────────────────────────────────────────

    def homeless(
        self, nodes: Iterable[str], move: Move, now: int, *, proposed: int = 0, started: int = 0
    ) -> Iterator[str]:
        """Pods that have to move and are given no place, or one that cannot take them. `proposed` and `started` are
        positions. The pass that proposes a move places the pods of started ones anew: their promises do not bind."""
        placed = {uid: place.node for place in move.placements for uid in place.pods}
        launched = {uid for new in move.replacements for uid in new.pods}
        for pod in (pod for name in nodes for pod in self.on(name) if _moves(pod)):
            held = not pod.deleting and self._stays(pod, now)
            if pod.uid not in placed and pod.uid not in launched and not held:
                yield f"{pod.key} has nowhere to go"
        for uid in launched:
            self.promised.pop(uid, None)  # it goes to a new node now
        there = {uid: self.pods[uid].node for uid in placed if uid in self.pods}
        self.promised |= {uid: (placed[uid], node, started) for uid, node in there.items() if node}
        for name in sorted(set(placed.values())):
            yield from self._too_much(name, [uid for uid, node in placed.items() if node == name], now, proposed)

    def _stays(self, pod: Pod, now: int) -> bool:
        """S-47, D-15: nothing may evict it for now, and so it gets no other place either."""
        return _shielded(pod, now) or self._never(pod)

    def _never(self, pod: Pod) -> bool:
        labels = self.shape(pod.shape).labels
        found = [pdb for pdb in self.pdbs.values() if pdb.namespace == pod.namespace and selected(pdb.selector, labels)]
        absolute = any(budget.max_unavailable in ("0", "0%") or budget.min_available == "100%" for budget in found)
        every = any(not pdb.disruptions_allowed and 0 < pdb.expected_pods <= pdb.desired_healthy for pdb in found)
        return len(found) > 1 or absolute or every

    def _too_much(self, name: str, uids: Iterable[str], now: int, proposed: int) -> Iterator[str]:
        node = self.nodes.get(name)
        if node is None or not node.labels.get("karpenter.sh/initialized"):
            return  # of a node on its way only its claim is known
        binding = [uid for uid, (to, _, since) in self.promised.items() if to == name and since >= proposed]
        arriving = [self.pods[uid] for uid in binding if uid in self.pods]
        coming = [pod for pod in arriving if not pod.deleting and pod.node == self.promised[pod.uid][1]]
        coming = [pod for pod in coming if pod.node in self.nodes]  # with its Node a pod is soon gone, too
        coming = [pod for pod in coming if not self._stays(pod, now)]
        pods = {pod.uid: pod for pod in (*self.on(name), *coming)}
        asked: dict[str, int] = {"pods": len(pods)}
        for pod in pods.values():
            for resource, amount in self.shape(pod.shape).requests.items():
                asked[resource] = asked.get(resource, 0) + amount
        short = sorted(resource for resource, amount in asked.items() if amount > node.allocatable.get(resource, 0))
        if short:
            yield f"{name} has not enough {', '.join(short)} for what moves there"
        for uid in uids:
            moved = self.pods.get(uid)
            if moved is not None:
                shape = self.shape(moved.shape)
                if not wants_node(shape, node.labels) or not tolerates(shape, node.taints):
                    yield f"{name} is no place for {moved.key}"


def _moves(pod: Pod) -> bool:
    """Reschedulable (D-10)."""
    owner = pod.owner.kind if pod.owner is not None else ""
    if pod.phase in ("Succeeded", "Failed") or owner in (DAEMONSET, NODE_OWNER):
        return False
    return not pod.deleting or owner == STATEFULSET


def _shielded(pod: Pod, now: int) -> bool:
    """Whether do-not-disrupt is in force for a pod (D-12)."""
    if pod.do_not_disrupt == "true":
        return True
    length = duration(pod.do_not_disrupt)
    return length is not None and length > 0 and (not pod.started or now - pod.started < length * 1000)
