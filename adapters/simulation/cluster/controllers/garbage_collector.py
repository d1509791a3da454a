"""Kubernetes' garbage collector, for NodePools only: the NodeClaims of a pool go with it (L-256)."""

from __future__ import annotations

from collections.abc import Callable

from kerf.adapters.simulation.clock import Clock
from kerf.adapters.simulation.cluster.apiserver import ApiServer, Change
from kerf.adapters.simulation.cluster.machine import Machine
from kerf.engine.model.karpenter.nodepools import NodePool

ACTOR = "garbage collector"


class GarbageCollector:
    """Asks for the deletion of the claims of NodePools that are gone or have a deletion timestamp.

    NodeClaim objects are kerf's projection, so a machine that boots for a claim shows that the claim exists.
    """

    def __init__(self, api: ApiServer, clock: Clock, delete: Callable[[str, str], None]) -> None:
        """`delete` asks for the deletion of a claim, on behalf of somebody."""
        self._clock, self._delete = clock, delete
        self._claims: dict[str, dict[str, str]] = {}  # NodePool → instance → claim
        self._going: dict[str, None] = {}  # NodePools that are gone, or being deleted
        api.listen(self._changed)

    def booted(self, machine: Machine) -> None:
        self._claims.setdefault(machine.node_pool, {})[machine.instance] = machine.claim
        if machine.node_pool in self._going:
            self._collect_soon(machine.node_pool)

    def ended(self, instance: str) -> None:
        for claims in self._claims.values():
            claims.pop(instance, None)

    def _changed(self, change: Change) -> None:
        if change.kind != "nodepool":
            return
        if isinstance(change.new, NodePool) and not change.new.deleting:
            self._going.pop(change.key, None)
        elif change.key not in self._going:
            self._going[change.key] = None
            self._collect_soon(change.key)

    def _collect_soon(self, pool: str) -> None:
        self._clock.after(0, "garbage collector", lambda: self._collect(pool))

    def _collect(self, pool: str) -> None:
        """Ask for the deletion of each claim once."""
        for claim in self._claims.pop(pool, {}).values():
            self._delete(claim, ACTOR)
