"""Compute the status of NodeOverlay and CapacityBuffer objects (L-54, L-58 to L-61).

It comes from the state; whether a buffer's room is there, from the latest plan. Whoever writes a condition gives it its
time, and keeps that time while the status stays.
"""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.record.decisions import Decision, ProvisionResult
from kerf.engine.record.entries import Entry
from kerf.engine.scheduling.launchable.node_overlays import OverlayCondition, overlay_conditions
from kerf.engine.scheduling.problem.capacity_buffers import (
    BufferProvisioning,
    BufferReadiness,
    BufferSources,
    buffer_provisioning,
    resolve_buffer,
)
from kerf.engine.state.state import State

UNHEALTHY = "UnhealthyDependents"


class StatusCondition(Struct, frozen=True):
    """A condition without its time."""

    type: str
    true: bool
    reason: str
    message: str = ""


class OverlayStatus(Struct, frozen=True):
    """The conditions of a NodeOverlay, of this `generation` of it (L-67)."""

    name: str
    conditions: tuple[StatusCondition, ...]
    generation: int


class BufferStatus(Struct, frozen=True):
    """The status of a CapacityBuffer.

    `generation` is the buffer's that was looked at (L-67). `template` names a PodTemplate and is empty for a workload's
    pods; `template_generation` is that of the object that was read. `replicas` is None if nothing says how many.
    """

    namespace: str
    name: str
    strategy: str
    conditions: tuple[StatusCondition, ...]
    generation: int
    template: str = ""
    replicas: int | None = None
    template_generation: int | None = None


def overlay_statuses(state: State) -> list[OverlayStatus]:
    """Return the status of each NodeOverlay by name; none where the feature gate is off."""
    facts, blobs = state.facts, state.indexes.blobs
    if not facts.settings.node_overlays:
        return []
    digests = [(pool, facts.catalogues.get(pool.node_class.key, "")) for _, pool in sorted(facts.pools.items())]
    pools = [(pool, blobs.catalogue(digest)) for pool, digest in digests if digest]
    conditions = overlay_conditions(facts.overlays.values(), pools)
    return [
        OverlayStatus(name, _overlay(conditions[name]), facts.overlays[name].generation) for name in sorted(conditions)
    ]


def _overlay(reason: OverlayCondition) -> tuple[StatusCondition, ...]:
    good = reason is OverlayCondition.SUCCEEDED
    said = "" if good else "ValidationSucceeded=False"
    ready = StatusCondition("Ready", good, "Ready" if good else UNHEALTHY, said)
    return StatusCondition("ValidationSucceeded", good, reason.value), ready


class BufferStatuses:
    """Knows from the latest plan which buffers have their room. `apply` each entry. Before the first plan of this
    process, it says nothing about that."""

    def __init__(self) -> None:
        self._plan = ProvisionResult()

    def apply(self, entry: Entry) -> None:
        result = entry.payload.result if isinstance(entry.payload, Decision) else None
        if isinstance(result, ProvisionResult) and not result.repeats:
            self._plan = result

    def statuses(self, state: State) -> list[BufferStatus]:
        """Return the status of each CapacityBuffer by key; none where the feature gate is off."""
        facts = state.facts
        if not facts.settings.capacity_buffers:
            return []
        sources = BufferSources(facts.pod_templates, facts.workloads, state.indexes.blobs.shape)
        buffer_statuses = []
        for _, buffer in sorted(facts.buffers.items()):
            resolution = resolve_buffer(buffer, sources)
            ready = resolution.reason is BufferReadiness.RESOLVED
            conditions = [StatusCondition("ReadyForProvisioning", ready, resolution.reason.value)]
            room = buffer_provisioning(buffer, resolution, self._plan)
            if room is not None:
                conditions.append(StatusCondition("Provisioning", room is BufferProvisioning.FITS, room.value))
            template = facts.pod_templates.get(f"{buffer.namespace}/{buffer.template}") if ready else None
            buffer_statuses.append(
                BufferStatus(
                    buffer.namespace, buffer.name, buffer.strategy, tuple(conditions), buffer.generation,
                    template=template.name if template is not None else "",
                    replicas=resolution.replicas if ready else None,
                    template_generation=template.generation if template is not None else None,
                )
            )  # fmt: skip
        return buffer_statuses
