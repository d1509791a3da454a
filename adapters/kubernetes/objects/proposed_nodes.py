"""Taints the Nodes whose disruption is proposed, so that kube-scheduler puts new pods elsewhere.

kerf.engine.runtime.proposed_taints says which Nodes get the taint and which lose it.
"""

from __future__ import annotations

import asyncio
from functools import partial

from kerf.adapters.kubernetes.errors import Unreachable
from kerf.adapters.kubernetes.objects.cluster_writes import KubernetesCluster
from kerf.engine.runtime.proposed_taints import ProposedTaints
from kerf.engine.state.state import State

MAX_REQUESTS_UNDER_WAY = 8


class ProposedNodes:
    """Writes these taints: call `project` after each turn. A write that fails is due again with the next turn."""

    def __init__(self, cluster: KubernetesCluster) -> None:
        self._cluster, self._taints = cluster, ProposedTaints()
        self._latest: dict[str, asyncio.Task[None]] = {}  # the write under way for each Node, by name
        self._gate = asyncio.Semaphore(MAX_REQUESTS_UNDER_WAY)

    def project(self, state: State) -> None:
        """Writes what is new. Call it on the loop, between turns."""
        for node, on in self._taints.due(state):
            task = asyncio.create_task(self._write(node, on, self._latest.get(node)), name=f"taint {node}")
            self._latest[node] = task
            task.add_done_callback(partial(self._forget, node))

    async def close(self) -> None:
        tasks = list(self._latest.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _forget(self, node: str, done: asyncio.Task[None]) -> None:
        if self._latest.get(node) is done:
            del self._latest[node]

    async def _write(self, node: str, on: bool, before: asyncio.Task[None] | None) -> None:
        """Writes after the write before it of the same Node."""
        if before is not None:
            await asyncio.wait([before])
        async with self._gate:
            try:
                written = await self._cluster.taint_proposed(node, on=on)
            except Unreachable:
                written = False
        if not written:
            self._taints.failed(node, on=on)
