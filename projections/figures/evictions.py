"""Measure evictions: pods that kerf made leave a node, and those that the API refused to evict."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from msgspec import Struct

from kerf.engine.model.kubernetes.pods import DAEMONSET, Pod, owned_by
from kerf.engine.record import claim_events as ev
from kerf.engine.record.decisions import Decision, DeletePod, EvictPod
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import ControllerSaid, EffectAnswered
from kerf.projections.figures.lives import Life, LivesFold
from kerf.projections.figures.measures import Measure
from kerf.projections.workload_names import workload_of

EVICTED, FORCED, REFUSED = "evicted", "forced", "refused"
AGAIN_WITHIN = 1_800_000
"""A pod that came for an evicted one and is evicted within this time (ms) of its creation is evicted again."""
COMES_WITHIN = 60_000
"""A pod that is created within this time (ms) after an eviction of its workload was asked for came for the evicted
one."""
GRAIN = 1_000
"""The time of a pod's creation is one of whole seconds (ms)."""
GONE_ALREADY = "404"


def evicted_pods(entry: Entry) -> Iterator[str]:
    """Give the uids of the pods whose eviction an entry asks for or tells. What is measured depends on no other pod."""
    payload = entry.payload
    if isinstance(payload, Decision):
        yield from (intent.uid for intent in payload.intents if isinstance(intent, EvictPod | DeletePod))
    elif isinstance(payload, ev.PodEvicted | ev.PodForced) or (
        isinstance(payload, ControllerSaid) and payload.eviction
    ):
        yield payload.uid


class EvictedAgain(NamedTuple):
    """The eviction of a pod that had come for an evicted one."""

    at: int
    workload: str
    claim: str


class _Asked(NamedTuple):
    """An eviction that was asked for, with the workload of its pod: the answer may come when the pod is gone."""

    intent: EvictPod | DeletePod
    workload: str


class EvictionsFold:
    """Folds evictions over the lives of nodes, which are to be given each entry first.

    An eviction counts once the API has granted it. Where its answer is not in the record, the claim event counts.
    """

    reads: frozenset[type[Struct]] = frozenset(
        {Decision, Pod, EffectAnswered, ControllerSaid, ev.PodEvicted, ev.PodForced}
    )

    def __init__(self, lives: LivesFold) -> None:
        self._lives = lives
        self._asked: dict[str, _Asked] = {}
        self._workloads: dict[str, str] = {}  # by pod
        self._counted: set[tuple[str, str]] = set()  # pod and what happened to it
        self._created: dict[str, int] = {}  # by pod
        self._evicted_at: dict[str, int] = {}  # when the latest one was asked for, by workload
        self.measures: list[Measure] = []
        self.again: list[EvictedAgain] = []

    def apply(self, entry: Entry) -> None:
        payload = entry.payload
        if isinstance(payload, Decision):
            for index, intent in enumerate(payload.intents):
                if isinstance(intent, EvictPod | DeletePod):
                    self._ask(f"{entry.position}.{index}", intent, entry.at)
        elif isinstance(payload, Pod):
            self._seen(payload)
        elif isinstance(payload, EffectAnswered) and payload.intent in self._asked:
            self._answered(self._asked.pop(payload.intent), payload, entry)
        elif isinstance(payload, ev.PodEvicted | ev.PodForced):
            what = EVICTED if isinstance(payload, ev.PodEvicted) else FORCED
            self._once(entry, payload.claim, payload.uid, payload.pod, what)
        elif isinstance(payload, ControllerSaid) and payload.eviction:
            self._told(payload, entry)

    def _seen(self, pod: Pod) -> None:
        """Note a pod that came for an evicted one of its workload. It may be there before the eviction is answered. A
        DaemonSet's pod comes for its node, whoever left another one."""
        if owned_by(pod, DAEMONSET):
            return
        if self._evicted_at and pod.created and pod.uid not in self._created:
            evicted_at = self._evicted_at.get(workload_of(pod).key, 0)
            if -GRAIN < pod.created - evicted_at <= COMES_WITHIN:
                self._created[pod.uid] = pod.created

    def _ask(self, ref: str, intent: EvictPod | DeletePod, at: int) -> None:
        pod = self._lives.pods.get(intent.uid)
        key = f"{intent.namespace}/{intent.name}"
        workload = self._workloads.get(intent.uid) or (workload_of(pod).key if pod is not None else key)
        self._workloads[intent.uid] = workload
        self._asked[ref] = _Asked(intent, workload)
        self._evicted_at[workload] = at

    def _answered(self, asked: _Asked, answer: EffectAnswered, entry: Entry) -> None:
        intent = asked.intent
        key = f"{intent.namespace}/{intent.name}"
        if not answer.ok:
            if answer.code != GONE_ALREADY:
                self._add(entry, intent.claim, key, asked.workload, REFUSED)
        elif answer.code != GONE_ALREADY:
            what = EVICTED if isinstance(intent, EvictPod) else FORCED
            self._once(entry, intent.claim, intent.uid, key, what)

    def _told(self, said: ControllerSaid, entry: Entry) -> None:
        """An eviction in an imported record, whoever asked for it (F-126)."""
        pod, key = self._lives.pods.get(said.uid), said.pods[0]
        claim = self._lives.by_node.get(pod.node, "") if pod is not None else ""
        workload = workload_of(pod).key if pod is not None else key
        if said.eviction == REFUSED:
            self._add(entry, claim, key, workload, REFUSED, said.actor)
            return
        self._workloads[said.uid or key] = workload
        self._evicted_at[workload] = entry.at
        self._once(entry, claim, said.uid or key, key, said.eviction, said.actor)

    def _once(self, entry: Entry, claim: str, uid: str, key: str, what: str, actor: str = "") -> None:
        if (uid, what) not in self._counted:
            self._counted.add((uid, what))
            self._life(claim).evicted += 1
            workload = self._workloads.get(uid, key)
            created = self._created.pop(uid, 0)
            if created and entry.at - created <= AGAIN_WITHIN:
                self.again.append(EvictedAgain(entry.at, workload, claim))
            self._add(entry, claim, key, workload, what, actor)

    def _add(self, entry: Entry, claim: str, key: str, workload: str, what: str, actor: str = "") -> None:
        """Where nothing says that the node has to go, the reason of an eviction is who asked for it."""
        life = self._life(claim)
        reason = life.why or (f"by {actor}" if actor else "")
        about = {**life.about(), "reason": reason, "workload": workload, "pod": key}
        self.measures.append(Measure(entry.at, about, {what: 1}))

    def _life(self, claim: str) -> Life:
        return self._lives.life(claim) if claim else Life(claim="")
