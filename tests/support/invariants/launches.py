"""Launches come to an end: few for one pod that waits, and none for what launches have not given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from msgspec.structs import replace

from kerf.engine.model.karpenter.nodepools import NodePool, RequirementSpec
from kerf.engine.model.kubernetes.pods import Expression, Pod
from kerf.engine.record import claim_events as ev
from kerf.engine.record.observations import NodeClassSeen, ObjectGone
from tests.support.judges.labels import expression_holds

IN_VAIN = 3
"""After so many launches in a row that did not give a label, no more are asked for it."""
FOR_A_POD = 20
"""Nodes that may be launched for one pod before it runs, or its NodePool or NodeClass is changed, which may help. Nodes
that vanish or never join are among them."""


@dataclass
class Launches:
    """Counts launches by pod (uid), and those in a row that did not meet a requirement (by NodePool). `stale`: claims
    that were requested before their NodePool was changed. `known`: the pods (uids) that exist. The virtual pods of a
    CapacityBuffer do not, and wait for ever."""

    requests: dict[str, ev.Requested] = field(default_factory=dict)  # by claim
    stale: set[str] = field(default_factory=set)
    pools: dict[str, NodePool] = field(default_factory=dict)
    for_pods: Counter[str] = field(default_factory=Counter)
    in_vain: Counter[tuple[str, RequirementSpec]] = field(default_factory=Counter)
    known: set[str] = field(default_factory=set)

    def see(self, payload: object) -> Iterator[tuple[str, str]]:
        """Broken invariants, as (name, what happened)."""
        if isinstance(payload, Pod):
            self.known.add(payload.uid)
            if payload.node:
                self.for_pods.pop(payload.uid, None)
        elif isinstance(payload, ObjectGone) and payload.kind == "pod":
            self.known.discard(payload.key)
            self.for_pods.pop(payload.key, None)
        elif isinstance(payload, ObjectGone) and payload.kind == "nodepool":
            self.pools.pop(payload.key, None)  # one of the same name is another
        elif isinstance(payload, NodePool):
            self._changed(payload)
        elif isinstance(payload, NodeClassSeen):
            self.in_vain.clear()
            self.for_pods.clear()
            self.stale.update(self.requests)
        elif isinstance(payload, ev.Requested):
            self.requests[payload.claim] = payload
            yield from self._requested(payload)
        elif isinstance(payload, ev.Launched | ev.Initialized) and payload.claim in self.requests:
            yield from self._launched(payload, self.requests[payload.claim])

    def _changed(self, pool: NodePool) -> None:
        known = self.pools.get(pool.name)
        self.pools[pool.name] = asked = replace(pool, ready=True, generation=0, hash_version="", deleting=0)
        if known != asked:
            self.for_pods.clear()
            for key in [key for key in self.in_vain if key[0] == pool.name]:
                del self.in_vain[key]
            self.stale |= {claim for claim, request in self.requests.items() if request.node_pool == pool.name}

    def _requested(self, request: ev.Requested) -> Iterator[tuple[str, str]]:
        for asked in request.requirements:
            if self.in_vain[request.node_pool, asked] >= IN_VAIN:
                yield "no launch in vain", f"{request.claim} is launched for {asked}, which three nodes did not get"

    def _launched(self, event: ev.Launched | ev.Initialized, request: ev.Requested) -> Iterator[tuple[str, str]]:
        if isinstance(event, ev.Initialized):
            for asked in request.requirements:
                if asked not in event.unmet:
                    self.in_vain.pop((request.node_pool, asked), None)
            return
        for asked in not_given(request, event) if event.claim not in self.stale else ():
            self.in_vain[request.node_pool, asked] += 1
        for uid in sorted(self.known.intersection(request.pods)):
            self.for_pods[uid] += 1
            if self.for_pods[uid] > FOR_A_POD:
                yield "few launches for a pod", f"{self.for_pods[uid]} nodes were launched for {uid}, which waits still"


def not_given(request: ev.Requested, launched: ev.Launched) -> list[RequirementSpec]:
    """What a claim asked for and its launch did not give."""
    labels = {**launched.labels, **request.labels}
    return [
        asked
        for asked in request.requirements
        if not expression_holds(Expression(asked.key, asked.operator, asked.values), labels)
    ]
