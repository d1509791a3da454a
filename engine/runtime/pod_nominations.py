"""Works out which pending pods are nominated for their planned node (status.nominatedNodeName, KEP-5278).

A pod is nominated when its claim has been launched, the name of the Node is known, and the claim is not in service yet.
No pod is nominated while all waiting pods are alike: none can take another's place then. A nomination is taken back
when the plan no longer says so, also where the Node is there. What somebody else nominated is never touched. Nothing of
this is decided or recorded; the fold sees the result in the pods.

kube-scheduler clears the nomination of a pod that it tries in vain, and then tries all other pods anew. It does so when
a Node comes, which is closed at first. Who is told again meanwhile loses it again. So pods are told again when that is
over and their Node opens (`due` with `opening`); else others would take their room. Later they are told at once.

Of the pods that a topology spread counts, as many at a time are nominated for a node as its skew allows (`ToldAtOnce`).
Who was told already comes first, then who came first: kube-scheduler tries them in this order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from kerf.engine.model.karpenter.nodepools import single_values
from kerf.engine.model.kubernetes.pods import Pod, PodShape
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.state_table import LAUNCHED, REGISTERED, REQUESTED
from kerf.engine.scheduling.matching.resources import added, fits, total
from kerf.engine.scheduling.pods.pod_requirements import hard_spreads
from kerf.engine.scheduling.pods.told_at_once import ToldAtOnce, labels_of_all
from kerf.engine.state.pods.nominations import is_contested
from kerf.engine.state.state import State

MAX_TIMES_TOLD = 3
"""How often one pod is told a node that is open. Each time that kube-scheduler clears it, it tries the other pods
anew."""


class _Waiting(NamedTuple):
    """What waits for one claim: where nothing of it has changed, nothing is due."""

    node: str
    is_open: bool
    pods: list[Pod | None]


WhoWaits = tuple[_Waiting, list[str]]
"""What waits for a claim, and the pods (uids) that may be told its node."""


class PodNominations:
    """For one process, which `due` takes to write what it yields. `node_name` gives the name that the Node of a
    launched claim will have, "" if only the Node itself can tell. `changes`: how often a pod that was told a node was
    seen to lose its nomination, or to be bound."""

    def __init__(self, node_name: Callable[[NodeClaim], str]) -> None:
        self.changes = 0
        self._node_name = node_name
        self._at_once = ToldAtOnce()
        self._written: dict[str, str] = {}  # pod → the node last written, by this process or an earlier one
        self._times: Counter[str] = Counter()  # pod → how often it was told an open node
        self._shown: set[str] = set()  # pods that have shown what was written last
        self._cleared: set[str] = set()  # pods that have shown it, and show it no more
        self._quiet: dict[str, WhoWaits] = {}  # claims for which nothing was due

    def is_told(self, node: str) -> bool:
        """Whether a pod was told this node."""
        return node in self._written.values()

    def spare(self, node: str, state: State) -> int:
        """How many pods that wait for other nodes find room beside those of this one that hold theirs.

        A pod that must be with others, or spread among them, holds none: kube-scheduler may refuse it, and clears what
        it was told, until the others are bound.
        """
        pods, shape_of = state.facts.pods, state.indexes.blobs.shape
        left: dict[str, int] = {}
        others = Counter[str]()
        for name, uids in state.indexes.waiting_for.items():
            shapes = [pods[uid].shape for uid in uids if uid in pods]
            claim = state.facts.claims.get(name)
            if claim is None or self._node_of(claim, state) != node:
                others.update(shapes)
                continue
            unsure = [shape_of(shape).requests for shape in shapes if _waits_for_others(shape_of(shape))]
            seen = state.facts.nodes.get(node)
            free = seen.allocatable if seen is not None and seen.allocatable else claim.allocatable
            left = added(added(free, claim.requests, -1), total({**requests, "pods": 1} for requests in unsure))
        return sum(count for shape, count in others.items() if fits({**shape_of(shape).requests, "pods": 1}, left))

    def first_in_queue(self, node: str, state: State) -> tuple[int, ...]:
        """The place in kube-scheduler's queue of the first pod that was told this node: by priority, then by age."""
        pods, shape_of = state.facts.pods, state.indexes.blobs.shape
        told = (pods[uid] for uid, written in self._written.items() if written == node and uid in pods)
        return min(((-shape_of(pod.shape).priority, pod.created, pod.arrival) for pod in told), default=())

    def more_to_come(self, state: State) -> bool:
        """Whether pods wait for nodes that have not joined, and some of those that wait have rules about others."""
        facts, waiting_for = state.facts, state.indexes.waiting_for
        claims = [facts.claims[name] for name, uids in waiting_for.items() if uids and name in facts.claims]
        joined = state.indexes.nodes_by_provider
        if all(claim.node or (claim.provider_id and joined.get(claim.provider_id)) for claim in claims):
            return False
        shapes = {facts.pods[uid].shape for uids in waiting_for.values() for uid in uids if uid in facts.pods}
        return any(_has_rules(state.indexes.blobs.shape(shape)) for shape in shapes)

    def joining(self, state: State) -> frozenset[str]:
        """The Nodes that have joined and are not registered yet, and which pods were told."""
        claims = (state.facts.claims.get(name) for name, uids in state.indexes.waiting_for.items() if uids)
        seen = state.indexes.nodes_by_provider
        joined = {
            node
            for claim in claims
            if claim is not None and claim.state == LAUNCHED
            for node in seen.get(claim.provider_id, ())
        }
        return frozenset(joined.intersection(self._written.values())) if joined else frozenset()

    def due(self, state: State, opening: str = "") -> Iterator[tuple[Pod, str]]:
        """What is new since the last time: pods with the name of their node, "" where it is taken back. To be gone
        through to its end, after each turn, and before a Node opens (`opening`)."""
        facts = state.facts
        changed = self._changed(state, opening)
        wanted = {uid for _, uids in (*self._quiet.values(), *changed.values()) for uid in uids}
        for name, (waiting, uids) in changed.items() if changed and is_contested(state) else ():
            news = [pod for uid in uids if (pod := facts.pods.get(uid)) and self._is_due(pod, waiting, opening, state)]
            if not news:
                self._quiet[name] = waiting, uids
            for pod in news:
                self._told(pod.uid, waiting, opening)
                yield pod, waiting.node
        for uid, node in {**facts.nominations, **self._written}.items():
            pod = facts.pods.get(uid)
            if uid not in wanted and self._takes_back(uid, pod, node, state) and pod is not None:
                yield pod, ""

    def _changed(self, state: State, opening: str) -> dict[str, WhoWaits]:
        """The claims for which something may be due, since what waits for them has changed, or their node opens, or
        there are nodes in other domains than before. The others stay in `_quiet`."""
        facts = state.facts
        before = {**facts.nominations, **self._written}
        there: dict[str, _Waiting] = {}
        for name, uids in state.indexes.waiting_for.items():
            claim = facts.claims.get(name)
            node = self._node_of(claim, state)
            if claim is not None and node:
                there[name] = _Waiting(node, claim.state == REGISTERED, [facts.pods.get(uid) for uid in uids])
        known, self._quiet = self._quiet, {}
        news = {name for name, waiting in there.items() if name not in known or known[name][0] != waiting}
        news |= {name for name, waiting in there.items() if waiting.node == opening}
        if news and self._sees_other_domains(state):
            news = set(there)
        changed: dict[str, WhoWaits] = {}
        for name, waiting in there.items():
            if name not in news:
                self._quiet[name] = known[name]
            else:
                waits = [pod for pod in waiting.pods if pod is not None]
                waits.sort(key=lambda pod: (before.get(pod.uid) != waiting.node, pod.created, pod.arrival))
                changed[name] = waiting, [pod.uid for pod in self._at_once.of(waits, state.indexes.blobs.shape)]
        return changed

    def _sees_other_domains(self, state: State) -> bool:
        """Whether other labels than before are the same on all nodes, with those that come."""
        pods, shape_of = state.facts.pods, state.indexes.blobs.shape
        waiting = {pods[uid].shape for uids in state.indexes.waiting_for.values() for uid in uids if uid in pods}
        one_domain = labels_of_all(map(shape_of, waiting), _labels_of_nodes(state), _labels_of_requested(state))
        if one_domain == self._at_once.one_domain:
            return False
        self._at_once = ToldAtOnce(one_domain)
        return True

    def _is_due(self, pod: Pod, waiting: _Waiting, opening: str, state: State) -> bool:
        """Whether the pod is to be told now, perhaps again."""
        node = waiting.node
        self._note(pod, node)
        is_open = waiting.is_open or node == opening
        return self._is_free(pod, node, state) and self._is_news(pod.uid, node, is_open, node == opening)

    def _told(self, uid: str, waiting: _Waiting, opening: str) -> None:
        self._written[uid] = waiting.node
        self._times[uid] += waiting.is_open and waiting.node != opening
        self._shown.discard(uid)
        self._cleared.discard(uid)

    def _node_of(self, claim: NodeClaim | None, state: State) -> str:
        if claim is None or claim.state not in (LAUNCHED, REGISTERED):
            return ""
        seen = state.indexes.nodes_by_provider.get(claim.provider_id, {})
        return next(iter(seen)) if len(seen) == 1 else self._node_name(claim)

    def _note(self, pod: Pod, node: str) -> None:
        """Notes whether a pod shows the node that it was told."""
        if self._written.get(pod.uid) == node == pod.nominated:
            self._shown.add(pod.uid)
        elif pod.uid in self._shown and not pod.nominated:
            self._shown.discard(pod.uid)
            self._cleared.add(pod.uid)
            self.changes += 1

    def _is_free(self, pod: Pod, node: str, state: State) -> bool:
        """Whether the pod may be told this node: it has none, and shows none but what it was told here."""
        ours = (self._written.get(pod.uid, ""), state.facts.nominations.get(pod.uid, ""))
        is_free = not pod.nominated or (pod.nominated != node and pod.nominated in ours)
        return is_free and not (pod.node or pod.deleting)

    def _is_news(self, uid: str, node: str, is_open: bool, opens: bool) -> bool:
        """Whether the pod was not told this node yet, or shows it no more and its node `opens` or is open."""
        if self._written.get(uid) != node or opens:
            return True
        return is_open and uid in self._cleared and self._times[uid] < MAX_TIMES_TOLD

    def _forget(self, uid: str) -> None:
        self._written.pop(uid, None)
        self._times.pop(uid, None)
        self._shown.discard(uid)
        self._cleared.discard(uid)

    def _takes_back(self, uid: str, pod: Pod | None, node: str, state: State) -> bool:
        """A claim in service keeps its nominations until its pods are bound, as long as the plan has them there: what
        waits for a node takes room there from other pods."""
        if pod is None or pod.node:
            self.changes += uid in self._written
            self._forget(uid)
            return False
        planned = state.facts.claims.get(state.facts.targets.get(uid, ""))
        if pod.nominated != node or (planned is not None and planned.node == node):
            return False
        self._forget(uid)
        return True


def _labels_of_nodes(state: State) -> Iterator[Mapping[str, str]]:
    """The labels of the nodes that are there, and of those that come."""
    yield from (node.labels for node in state.facts.nodes.values())
    yield from (claim.labels for claim in state.facts.claims.values() if not claim.node and claim.provider_id)


def _labels_of_requested(state: State) -> Iterator[Mapping[str, str]]:
    """The labels that nodes which are not launched yet will have by what their claims require."""
    return (single_values(claim.requirements) for claim in state.facts.claims.values() if claim.state == REQUESTED)


def _has_rules(shape: PodShape) -> bool:
    """Whether a pod must be with, or apart from, others."""
    return _waits_for_others(shape) or any(not term.weight for term in shape.anti_affinity)


def _waits_for_others(shape: PodShape) -> bool:
    """Whether others may have to be bound before a pod can be."""
    return bool(hard_spreads(shape)) or any(not term.weight for term in shape.affinity)
