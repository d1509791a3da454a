"""Read what only some clusters have: default topology spread, node overlays, capacity buffers.

A scenario has no feature gates: what it names is switched on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.karpenter.capacity_buffers import CapacityBuffer
from kerf.engine.model.karpenter.nodeoverlays import NodeOverlay
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.kubernetes.pod_templates import PodTemplate
from kerf.engine.model.kubernetes.pods import Pod, PodShape, SpreadConstraint
from kerf.engine.model.kubernetes.services import Service
from kerf.engine.model.kubernetes.workloads import Workload
from kerf.engine.scheduling.launchable.node_overlays import OverlayCondition, overlaid_catalogues, overlay_conditions
from kerf.engine.scheduling.plan import Plan
from kerf.engine.scheduling.problem.capacity_buffers import (
    BufferReadiness,
    BufferSources,
    buffer_provisioning,
    resolve_buffer,
    virtual_pods,
)
from kerf.engine.scheduling.problem.default_spread import SelectorSources, with_default_spread
from kerf.engine.scheduling.problem.scheduler_config import default_constraints

List = Callable[[str], list[dict[str, Any]]]
Read = Callable[[dict[str, Any], str, str, type[Any]], Any]

_BUFFERS = "autoscaling.x-k8s.io/v1beta1"
_OVERLAYS = "karpenter.sh/v1alpha1"


class OptionalFeatures(Struct, frozen=True):
    """The optional parts of one scenario. New pod shapes that come of them are added to `shapes`."""

    shapes: dict[str, PodShape]
    constraints: tuple[SpreadConstraint, ...] = ()
    kinship: SelectorSources = SelectorSources()
    overlays: tuple[NodeOverlay, ...] = ()
    buffers: tuple[CapacityBuffer, ...] = ()
    templates: Mapping[str, PodTemplate] = {}

    def spread(self, pods: list[Pod]) -> list[Pod]:
        """Give the pods the default topology spread constraints (S-150)."""
        if not self.constraints:
            return pods
        spread_pods, shapes = with_default_spread(pods, self.shapes, self.constraints, self.kinship)
        self.shapes.update(shapes)
        return spread_pods

    def virtual_pods(self) -> list[Pod]:
        """The pods that the CapacityBuffers stand for (S-179)."""
        pods, shapes = virtual_pods(self.buffers, self._sources())
        self.shapes.update(shapes)
        return pods

    def catalogues(self, pools: list[tuple[NodePool, str, Catalogue]]) -> dict[str, tuple[str, Catalogue]]:
        """Map each NodePool whose catalogue an overlay changes to the changed catalogue and its digest."""
        return overlaid_catalogues(self.overlays, pools) if self.overlays else {}

    def results(self, pools: list[tuple[NodePool, Catalogue]], planned: Plan) -> dict[str, Any]:
        """Say what became of overlays and buffers, for the scenario's result."""
        results: dict[str, Any] = {}
        if self.overlays:
            conditions = overlay_conditions(self.overlays, pools)
            results["overlays"] = {name: str(conditions[name]) for name in sorted(conditions)}
        if self.buffers:
            results["buffers"] = [
                self._of_buffer(buffer, planned) for buffer in sorted(self.buffers, key=lambda b: b.key)
            ]
        return results

    def _of_buffer(self, buffer: CapacityBuffer, planned: Plan) -> dict[str, Any]:
        resolution = resolve_buffer(buffer, self._sources())
        result: dict[str, Any] = {"name": buffer.key, "readyForProvisioning": str(resolution.reason)}
        if resolution.reason is BufferReadiness.RESOLVED:
            result["replicas"] = resolution.replicas
        condition = buffer_provisioning(buffer, resolution, planned)
        return result | ({"provisioning": str(condition)} if condition is not None else {})

    def _sources(self) -> BufferSources:
        return BufferSources(self.templates, self.kinship.workloads, self.shapes.__getitem__)


def read_optional_features(
    scenario: Mapping[str, Any], listed: List, read: Read, shapes: dict[str, PodShape]
) -> OptionalFeatures:
    """Read the optional parts. `read` decodes a document, given its version, kind and type, and keeps pod shapes.
    Raises KerfError for malformed documents."""
    workloads = [
        read(document, "apps/v1", str(document.get("kind") or "ReplicaSet"), Workload)
        for document in listed("workloads")
    ]
    services = [read(document, "v1", "Service", Service) for document in listed("services")]
    templates = [read(document, "v1", "PodTemplate", PodTemplate) for document in listed("podTemplates")]
    return OptionalFeatures(
        shapes=shapes,
        constraints=default_constraints(scenario.get("schedulerConfig")),
        kinship=SelectorSources(tuple(services), {workload.key: workload for workload in workloads}),
        overlays=tuple(read(document, _OVERLAYS, "NodeOverlay", NodeOverlay) for document in listed("nodeOverlays")),
        buffers=tuple(
            read(document, _BUFFERS, "CapacityBuffer", CapacityBuffer) for document in listed("capacityBuffers")
        ),
        templates={template.key: template for template in templates},
    )


def problems_in_words(results: Mapping[str, Any]) -> list[str]:
    """Say in words which overlays are not applied and which buffers are not ready."""
    lines = [
        f"NodeOverlay {name} is not applied: {condition}"
        for name, condition in results.get("overlays", {}).items()
        if condition != OverlayCondition.SUCCEEDED
    ]
    return lines + [
        f"CapacityBuffer {buffer['name']} is not ready: {buffer['readyForProvisioning']}"
        for buffer in results.get("buffers", ())
        if buffer["readyForProvisioning"] != BufferReadiness.RESOLVED
    ]
