"""Capacity buffers (S-177…S-181): the room that each asks for, as virtual pods, and what a plan says of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.content_digest import content
from kerf.engine.model.karpenter.capacity_buffers import ACTIVE, CapacityBuffer, virtual_name
from kerf.engine.model.kubernetes.pod_templates import PodTemplate
from kerf.engine.model.kubernetes.pods import Pod, PodShape, Resources
from kerf.engine.model.kubernetes.workloads import SCALABLE, Workload
from kerf.engine.record.decisions import ProvisionResult
from kerf.engine.scheduling.plan import Plan


class BufferReadiness(StrEnum):
    """Reasons of the condition ReadyForProvisioning (L-60). The condition is True for the first one alone."""

    RESOLVED = "Resolved"
    POD_TEMPLATE_NOT_FOUND = "PodTemplateNotFound"
    SCALABLE_REF_NOT_FOUND = "ScalableRefNotFound"
    RESOLUTION_FAILED = "ResolutionFailed"


class BufferProvisioning(StrEnum):
    """Reasons of the condition Provisioning (L-61). The condition is True for the last one alone."""

    NOT_READY = "NotReadyForProvisioning"
    EMPTY = "BufferEmpty"
    REQUIRES_NEW = "RequiresNewCapacity"
    FITS = "FitsExistingCapacity"


class ResolvedBuffer(Struct, frozen=True):
    """How many pods of which shape a buffer stands for. `shape`: None if the buffer is not ready."""

    reason: BufferReadiness
    replicas: int = 0
    shape: PodShape | None = None


class BufferSources(Struct, frozen=True):
    """What buffers refer to, by key; `shape` finds a shape by its digest."""

    templates: Mapping[str, PodTemplate]
    workloads: Mapping[str, Workload]
    shape: Callable[[str], PodShape]


def resolve_buffer(buffer: CapacityBuffer, sources: BufferSources) -> ResolvedBuffer:
    """Work out what a buffer stands for (S-177, S-178). Strategies other than active capacity are other controllers'
    business."""
    if buffer.strategy != ACTIVE:
        return ResolvedBuffer(BufferReadiness.RESOLUTION_FAILED)
    scale = None
    if buffer.template:
        template = sources.templates.get(f"{buffer.namespace}/{buffer.template}")
        if template is None:
            return ResolvedBuffer(BufferReadiness.POD_TEMPLATE_NOT_FOUND)
        digest = template.shape
    elif buffer.kind in SCALABLE:
        workload = sources.workloads.get(f"{buffer.kind}/{buffer.namespace}/{buffer.workload}")
        if workload is None:
            return ResolvedBuffer(BufferReadiness.SCALABLE_REF_NOT_FOUND)
        digest, scale = workload.shape, workload.replicas
    else:
        return ResolvedBuffer(BufferReadiness.RESOLUTION_FAILED)
    shape = replace(sources.shape(digest), volumes=())  # S-179: nobody will make these volumes
    return ResolvedBuffer(BufferReadiness.RESOLVED, desired_replicas(buffer, scale, shape.requests), shape)


def desired_replicas(buffer: CapacityBuffer, scale: int | None, requests: Resources) -> int:
    """How many pods a buffer stands for (S-178): the larger of `replicas` and the percentage of the workload's scale,
    cut to the limits; with neither, as many as the limits hold. (The API's text says the smaller one. The reference's
    code takes the larger, and every buffer in use relies on that.)"""
    asked = [] if buffer.replicas is None else [buffer.replicas]
    if scale and buffer.percentage is not None:
        asked.append(-(-scale * buffer.percentage // 100))  # rounded up: any part of a pod is one
    held = [limit // requests[name] for name, limit in (buffer.limits or {}).items() if requests.get(name, 0) > 0]
    if not asked:
        return min(held, default=0)
    return min(max(asked), *held) if held else max(asked)


def virtual_pods(buffers: Iterable[CapacityBuffer], sources: BufferSources) -> tuple[list[Pod], dict[str, PodShape]]:
    """The pods that buffers stand for (S-179), ordered by namespace and name of the buffer, and their shapes by
    digest."""
    pods: list[Pod] = []
    shapes: dict[str, PodShape] = {}
    for buffer in sorted(buffers, key=lambda each: (each.namespace, each.name)):
        resolved = resolve_buffer(buffer, sources)
        if resolved.shape is None:
            continue
        digest, _ = content(resolved.shape)
        shapes[digest] = resolved.shape
        pods += [
            Pod(f"{buffer.uid}-{number}", buffer.namespace, virtual_name(buffer, number), digest)
            for number in range(1, resolved.replicas + 1)
        ]
    return pods, shapes


def buffer_provisioning(
    buffer: CapacityBuffer, resolved: ResolvedBuffer, planned: Plan | ProvisionResult
) -> BufferProvisioning | None:
    """What the pass means for a buffer (S-181); None if it did not look at all pods of the buffer."""
    if resolved.reason is not BufferReadiness.RESOLVED:
        return BufferProvisioning.NOT_READY
    if not resolved.replicas:
        return BufferProvisioning.EMPTY
    uids = {f"{buffer.uid}-{number}" for number in range(1, resolved.replicas + 1)}
    there = uids & {uid for placement in planned.placements for uid in placement.pods}
    lacking = {uid for claim in planned.claims for uid in claim.pods}
    lacking |= {uid for group in (*planned.unplaced, *planned.ignored) for uid in group.pods}
    if lacking & uids:
        return BufferProvisioning.REQUIRES_NEW
    return BufferProvisioning.FITS if there == uids else None
