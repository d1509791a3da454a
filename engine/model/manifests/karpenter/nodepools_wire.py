"""NodePools, NodeClaims and KWOKNodeClasses as they stand in the API's JSON (karpenter.sh/v1)."""

# ruff: noqa: RUF012  (msgspec copies an empty mutable default for each struct)

from __future__ import annotations

from typing import Any

from msgspec import field

from kerf.engine.model.manifests.wire import (
    ConditionWire,
    Int32,
    NodeClassRefWire,
    ObjectWire,
    Quantities,
    RequirementWire,
    TaintWire,
    Wire,
)


class TemplateMetadataWire(Wire):
    """Absent and empty maps are told apart: the template's hash does (D-129)."""

    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class ClaimTemplateSpecWire(Wire):
    """What a NodePool's template and a NodeClaim have in common."""

    requirements: list[RequirementWire] | None = None
    taints: list[TaintWire] = []
    startup_taints: list[TaintWire] = []
    node_class_ref: NodeClassRefWire | None = None
    expire_after: str | None = None
    termination_grace_period: str | None = None
    kubelet: Any = None  # v1beta1 only (L-109): refused in v1


class ClaimTemplateWire(Wire):
    metadata: TemplateMetadataWire = field(default_factory=TemplateMetadataWire)
    spec: ClaimTemplateSpecWire | None = None


class BudgetWire(Wire):
    nodes: str | None = None
    schedule: str | None = None
    duration: str | None = None
    reasons: list[str] | None = None


class DisruptionWire(Wire):
    consolidation_policy: str | None = None
    consolidate_after: str | None = None
    budgets: list[BudgetWire] | None = None
    expire_after: Any = None  # v1beta1 only (L-107): refused in v1


class NodePoolSpecWire(Wire):
    template: ClaimTemplateWire = field(default_factory=ClaimTemplateWire)
    disruption: DisruptionWire = field(default_factory=DisruptionWire)
    limits: Quantities | None = None
    weight: Int32 | None = None
    replicas: Int32 | None = None


class ConditionsWire(Wire):
    conditions: list[ConditionWire] = []


class NodePoolWire(ObjectWire):
    spec: NodePoolSpecWire = field(default_factory=NodePoolSpecWire)
    status: ConditionsWire = field(default_factory=ConditionsWire)


class ClaimResourcesWire(Wire):
    requests: Quantities = {}


class NodeClaimSpecWire(ClaimTemplateSpecWire):
    resources: ClaimResourcesWire = field(default_factory=ClaimResourcesWire)


class NodeClaimStatusWire(Wire):
    node_name: str = ""
    provider_id: str = field(name="providerID", default="")
    image_id: str = field(name="imageID", default="")
    capacity: Quantities = {}
    allocatable: Quantities = {}
    last_pod_event_time: str | None = None
    conditions: list[ConditionWire] = []


class NodeClaimWire(ObjectWire):
    spec: NodeClaimSpecWire = field(default_factory=NodeClaimSpecWire)
    status: NodeClaimStatusWire = field(default_factory=NodeClaimStatusWire)


class KWOKNodeClassSpecWire(Wire):
    node_registration_delay: str | None = None


class KWOKNodeClassWire(ObjectWire):
    spec: KWOKNodeClassSpecWire = field(default_factory=KWOKNodeClassSpecWire)
    status: ConditionsWire = field(default_factory=ConditionsWire)
