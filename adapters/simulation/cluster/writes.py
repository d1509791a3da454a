"""Write to the virtual cluster over an unreliable network: some writes are refused, of some the answer is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kerf.adapters.simulation.clock import Clock
from kerf.adapters.simulation.faults import FaultInjector, FaultPlan
from kerf.adapters.simulation.seeded_random import SeededRandom
from kerf.engine.record.decisions import (
    DeleteNode,
    DeletePod,
    EvictPod,
    InitializeNode,
    RegisterNode,
    TaintNode,
    UntaintNode,
)
from kerf.engine.record.observations import EffectAnswered
from kerf.engine.runtime.ports import Cluster

NodeWrite = RegisterNode | InitializeNode | TaintNode | UntaintNode | DeleteNode
Order = TypeVar("Order", bound=NodeWrite | EvictPod | DeletePod)

CONFLICT = "409"
BUSY = ("429", "500")
LOST = "504"


class FaultyWrites:
    """Implements `kerf.engine.runtime.ports.Cluster` in front of another one, and adds the faults of a plan."""

    def __init__(self, cluster: Cluster, rng: SeededRandom, clock: Clock, faults: FaultPlan) -> None:
        self._cluster, self._rng = cluster, rng
        self._fault_injector = FaultInjector(faults, rng, clock)
        self._calls = 0

    def register(self, order: RegisterNode, *, intent: str) -> EffectAnswered:
        return self._write(self._cluster.register, order, intent)

    def initialize(self, order: InitializeNode, *, intent: str) -> EffectAnswered:
        return self._write(self._cluster.initialize, order, intent)

    def taint(self, order: TaintNode, *, intent: str) -> EffectAnswered:
        return self._write(self._cluster.taint, order, intent)

    def untaint(self, order: UntaintNode, *, intent: str) -> EffectAnswered:
        return self._write(self._cluster.untaint, order, intent)

    def evict(self, order: EvictPod, *, intent: str) -> EffectAnswered:
        return self._write(self._cluster.evict, order, intent)

    def delete_pod(self, order: DeletePod, *, intent: str) -> EffectAnswered:
        return self._write(self._cluster.delete_pod, order, intent)

    def delete_node(self, order: DeleteNode, *, intent: str) -> EffectAnswered:
        return self._write(self._cluster.delete_node, order, intent)

    def _write(self, write: Callable[..., EffectAnswered], order: Order, intent: str) -> EffectAnswered:
        """Write, unless a fault strikes. A conflict (409) is only made for Nodes, by resourceVersion: for a pod it
        would mean another uid."""
        self._calls += 1
        if self._fault_injector.strikes("write_refused", self._calls):
            codes = (*BUSY, CONFLICT) if isinstance(order, NodeWrite) else BUSY
            code = codes[self._rng.between(0, len(codes) - 1, "write-refused-with", self._calls)]
            return EffectAnswered(intent=intent, ok=False, code=code, message="try again")
        answer = write(order, intent=intent)
        if self._fault_injector.strikes("write_lost", self._calls):
            return EffectAnswered(intent=intent, ok=False, code=LOST, message="no answer in time")
        return answer
