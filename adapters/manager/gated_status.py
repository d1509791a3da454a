"""Writes the status of NodeOverlays and CapacityBuffers, where their feature gates are on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from kerf.adapters.kubernetes.objects.status import Commented, StatusWriter
from kerf.adapters.kubernetes.session import Session
from kerf.engine.model.karpenter.capacity_buffers import CapacityBuffer
from kerf.engine.model.karpenter.nodeoverlays import NodeOverlay
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.kubernetes.pod_templates import PodTemplate
from kerf.engine.model.kubernetes.workloads import Workload
from kerf.engine.record.decisions import Decision
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import CatalogueSeen, ObjectGone, OfficeTaken
from kerf.engine.state.state import State
from kerf.projections.status.overlays_and_buffers import (
    BufferStatus,
    BufferStatuses,
    OverlayStatus,
    StatusCondition,
    overlay_statuses,
)

EVERY = 1.0  # seconds between two looks
_OVERLAYS = (NodeOverlay, NodePool, CatalogueSeen, ObjectGone, OfficeTaken)
_BUFFERS = (CapacityBuffer, PodTemplate, Workload, Decision, ObjectGone, OfficeTaken)


class GatedStatus:
    """Called with each turn's entries; `run` until cancelled."""

    def __init__(self, session: Session, state: State) -> None:
        self._writer, self._state = StatusWriter(session), state
        self._buffers = BufferStatuses()
        self._overlays_changed = self._buffers_changed = False
        self._news = asyncio.Event()

    @property
    def wanted(self) -> bool:
        settings = self._state.facts.settings
        return settings.node_overlays or settings.capacity_buffers

    def __call__(self, entries: Sequence[Entry]) -> None:
        if not self.wanted:
            return
        for entry in entries:
            self._buffers.apply(entry)
        self._overlays_changed |= any(isinstance(entry.payload, _OVERLAYS) for entry in entries)
        self._buffers_changed |= any(isinstance(entry.payload, _BUFFERS) for entry in entries)
        if self._overlays_changed or self._buffers_changed:
            self._news.set()

    async def run(self, between_turns: asyncio.Lock) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            overlays: list[OverlayStatus] = []
            buffers: list[BufferStatus] = []
            async with between_turns:
                if self._overlays_changed:
                    overlays = await asyncio.to_thread(overlay_statuses, self._state)
                if self._buffers_changed:
                    buffers = self._buffers.statuses(self._state)
                self._overlays_changed = self._buffers_changed = False
            for overlay in overlays:
                about = Commented("karpenter.sh/v1alpha1", "NodeOverlay", "nodeoverlays", overlay.name)
                await self._writer.write(about, {}, _plain(overlay.conditions), overlay.generation)
            for buffer in buffers:
                version = "autoscaling.x-k8s.io/v1beta1"
                about = Commented(version, "CapacityBuffer", "capacitybuffers", buffer.name, buffer.namespace)
                await self._writer.write(about, _buffer(buffer), _plain(buffer.conditions), buffer.generation)
            await asyncio.sleep(EVERY)


def _plain(conditions: Sequence[StatusCondition]) -> list[tuple[str, bool, str, str]]:
    return [(condition.type, condition.true, condition.reason, condition.message) for condition in conditions]


def _buffer(status: BufferStatus) -> dict[str, Any]:
    """The status of a CapacityBuffer as a document (L-58)."""
    document: dict[str, Any] = {"provisioningStrategy": status.strategy}
    if status.template:
        document["podTemplateRef"] = {"name": status.template}
    if status.template_generation is not None:
        document["podTemplateGeneration"] = status.template_generation
    if status.replicas is not None:
        document["replicas"] = status.replicas
    return document
