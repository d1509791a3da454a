"""Which fields of the record's types hold names, and of what. A field with text and no rule here stops the export."""

from __future__ import annotations

from msgspec import Struct

from kerf.adapters.store.pseudonyms.replacements import (
    BLOB,
    Keyed,
    Rule,
    StructRule,
    blank,
    bound_devices,
    claim_references,
    difference,
    keep,
    key,
    key_map,
    keyed_value,
    keyed_values,
    kind,
    last_part,
    object_gone,
    params,
    pod_key,
    priority_class,
    request_names,
    template,
    words,
)
from kerf.engine.model import instance_types as instances
from kerf.engine.model import reasons, settings
from kerf.engine.model.karpenter import capacity_buffers as buffers
from kerf.engine.model.karpenter import nodeclaim_objects as claims
from kerf.engine.model.karpenter import nodeclaim_templates as templates
from kerf.engine.model.karpenter import nodeclass_terms
from kerf.engine.model.karpenter import nodeoverlays as overlays
from kerf.engine.model.karpenter import nodepools as pools
from kerf.engine.model.kubernetes import (
    daemonsets,
    devices,
    namespaces,
    nodes,
    pod_disruption_budgets,
    pod_templates,
    pods,
    services,
    volumes,
    workloads,
)
from kerf.engine.record import claim_events as claim
from kerf.engine.record import decisions, observations

_CLAIM, _NODE, _POOL, _NAMESPACE, _POD = (
    kind("claim"), kind("node"), kind("nodepool"), kind("namespace"), kind("pod"),
)  # fmt: skip
_INSTANCE, _PROVIDER, _NODECLASS_KEY = kind("instance"), last_part("instance"), last_part("nodeclass")
_VOLUME, _VOLUME_CLAIM, _STORAGE_CLASS = kind("volume"), kind("volume-claim"), kind("storage-class")
_LAUNCH: dict[str, Rule] = {
    "claim": _CLAIM, "instance": _INSTANCE, "provider_id": _PROVIDER, "instance_type": keep, "zone": keep,
    "capacity_type": keep,
}  # fmt: skip
_SPEC: dict[str, Rule] = {"labels": key_map, "annotations": key_map}
_ON_NODE: dict[str, Rule] = {"claim": _CLAIM, "node": _NODE}
_ON_POD: dict[str, Rule] = {"uid": keep, "namespace": _NAMESPACE, "name": _POD}
_REQUEST: dict[str, Rule] = {"instance_types": keep, "requests": keep, "pods": keep}

FIELDS: dict[type[Struct], dict[str, Rule] | StructRule] = {
    # model
    pods.Pod: _ON_POD | {
        "shape": BLOB, "phase": keep, "node": _NODE, "nominated": _NODE, "do_not_disrupt": keep,
    },
    pods.Owner: {"kind": keep, "name": kind("workload"), "uid": keep},
    pods.PodShape: {
        "requests": keep, "labels": key_map, "node_selector": key_map, "resource_claims": claim_references,
        "priority_class": priority_class,
    },
    pods.Expression: keyed_values,
    pods.Taint: keyed_value,
    pods.Toleration: keyed_value,
    pods.Selector: {"labels": key_map},
    pods.SpreadConstraint: {
        "topology_key": key, "when_unsatisfiable": keep, "match_label_keys": key, "node_affinity_policy": keep,
        "node_taints_policy": keep,
    },
    pods.AffinityTerm: {
        "topology_key": key, "namespaces": _NAMESPACE, "match_label_keys": key, "mismatch_label_keys": key,
    },
    pods.HostPort: {"protocol": keep, "ip": keep},
    pods.VolumeRef: {"name": kind("pod-volume"), "claim": _VOLUME_CLAIM, "storage_class": _STORAGE_CLASS},
    nodes.Node: _SPEC | {
        "name": _NODE, "uid": keep, "provider_id": _PROVIDER, "capacity": keep, "allocatable": keep,
    },
    nodes.NodeCondition: {"type": keep, "status": keep},
    daemonsets.DaemonSet: {"uid": keep, "namespace": _NAMESPACE, "name": kind("workload"), "shape": BLOB},
    services.Service: {"namespace": _NAMESPACE, "name": kind("service"), "selector": key_map},
    workloads.Workload: {
        "kind": keep, "namespace": _NAMESPACE, "name": kind("workload"), "shape": BLOB, "uid": keep, "labels": key_map,
        "template_labels": key_map, "template_annotations": key_map,
    },
    pod_templates.PodTemplate: {"namespace": _NAMESPACE, "name": kind("pod-template"), "shape": BLOB},
    buffers.CapacityBuffer: {
        "uid": keep, "namespace": _NAMESPACE, "name": kind("buffer"), "template": kind("pod-template"), "kind": keep,
        "workload": kind("workload"), "limits": keep, "strategy": keep,
    },
    overlays.NodeOverlay: {"name": kind("overlay"), "uid": keep, "capacity": keep},
    pod_disruption_budgets.PodDisruptionBudget: {
        "uid": keep, "namespace": _NAMESPACE, "name": kind("pdb"), "max_unavailable": keep, "min_available": keep,
    },
    namespaces.Namespace: {"name": _NAMESPACE, "labels": key_map},
    volumes.VolumeClaim: {
        "namespace": _NAMESPACE, "name": _VOLUME_CLAIM, "volume": _VOLUME, "storage_class": _STORAGE_CLASS,
        "phase": keep,
    },
    volumes.Volume: {"name": _VOLUME, "driver": keep},
    volumes.StorageClass: {"name": _STORAGE_CLASS, "driver": keep},
    volumes.CSINode: {"name": _NODE, "limits": keep},
    volumes.VolumeAttachment: {"name": kind("attachment"), "node": _NODE, "volume": _VOLUME},
    claims.NodeClaimObject: _SPEC | {
        "name": _CLAIM, "uid": keep, "provider_id": _PROVIDER, "node": _NODE, "image": kind("image"), "requests": keep,
        "capacity": keep, "allocatable": keep,
    },
    claims.Condition: {"type": keep, "status": keep, "reason": keep, "message": blank},
    pools.NodePool: _SPEC | {
        "name": _POOL, "uid": keep, "consolidation_policy": keep, "limits": keep, "hash": keep, "hash_version": keep,
    },
    pools.Budget: {"nodes": keep, "schedule": keep, "reasons": keep},
    pools.NodeClassRef: {"group": keep, "kind": keep, "name": kind("nodeclass")},
    pools.RequirementSpec: keyed_values,
    instances.Catalogue: {"source": keep},
    instances.InstanceType: {
        "name": keep, "capacity": keep, "overhead": keep, "requirements": key_map, "overlaid": keep,
    },
    devices.ResourceSlice: {
        "name": kind("resource-slice"), "driver": keep, "pool": kind("device-pool"), "node": _NODE, "owner": _NODE,
    },
    devices.Device: {"name": keep, "attributes": keep, "capacity": keep, "node": _NODE},
    devices.AttributeBinding: {"attribute": keep, "devices": bound_devices},
    devices.DeviceClass: {"name": kind("device-class"), "selectors": keep},
    devices.ResourceClaim: {
        "namespace": _NAMESPACE, "name": kind("resource-claim"), "pods": keep, "made_for": keep,
        "own_name": kind("resource-claim"),
    },
    devices.DeviceRequest: {
        "name": request_names, "device_class": kind("device-class"), "selectors": keep, "mode": keep, "capacity": keep,
        "unsupported": keep,
    },
    devices.DeviceConstraint: {"match": keep, "requests": request_names},
    devices.AllocatedDevice: {"driver": keep, "pool": kind("device-pool"), "device": keep, "consumed": keep},
    devices.Version: {"version": keep},
    devices.CounterUse: {"counter_set": keep, "counters": keep},
    instances.Offering: {
        "zone": keep, "capacity_type": keep, "zone_id": keep, "reservation_id": kind("reservation"),
        "reservation_type": keep,
    },
    templates.Difference: difference,
    nodeclass_terms.NodeClassTerms: {
        "hash": keep, "static": template, "subnets": kind("subnet"), "security_groups": kind("security-group"),
        "reservations": kind("reservation"), "placement_group": kind("placement-group"),
    },
    nodeclass_terms.Image: {"id": kind("image")},
    reasons.Reason: {"code": keep, "params": params},
    settings.Settings: {
        "cluster_name": kind("cluster"), "cluster": kind("cluster"),
        "preference_policy": keep, "min_values_policy": keep, "node_classes": keep,
    },
    # observations
    observations.RecordStarted: {"record": keep, "engine": keep},
    observations.RecordCut: {"chain": keep, "state": keep, "history": keep, "before": keep},
    observations.OfficeTaken: {"holder": kind("holder")},
    observations.ObjectGone: object_gone,
    observations.NodeClassSeen: {
        "group": keep, "kind": keep, "name": kind("nodeclass"), "uid": keep, "reason": words, "digest": BLOB,
        "annotations": key_map,
    },
    observations.CatalogueSeen: {"node_class": _NODECLASS_KEY, "digest": BLOB},
    observations.ReservationsSeen: {"node_class": _NODECLASS_KEY, "left": Keyed(kind("reservation"))},
    observations.NodeClaimDeletionSeen: {"claim": _CLAIM, "actor": kind("actor")},
    observations.LaunchError: {
        "code": keep, "message": blank, "instance_type": keep, "zone": keep, "capacity_type": keep,
    },
    observations.LaunchAnswered: _LAUNCH | {
        "intent": keep, "zone_id": keep, "image": kind("image"), "kind": keep, "code": keep, "message": blank,
        "class_hash": keep, "subnet": kind("subnet"), "security_groups": kind("security-group"),
    },
    observations.InstanceSeen: {"instance": _INSTANCE, "status": keep, "claim": _CLAIM},
    observations.TaggedInstance: {"instance": _INSTANCE, "claim": _CLAIM, "capacity_type": keep},
    observations.InstancesListed: {"missing": _INSTANCE, "demoted": _INSTANCE},
    observations.EffectAnswered: {"intent": keep, "code": keep, "message": blank},
    observations.InterruptionSeen: {"message": kind("message"), "kind": keep, "instance": _INSTANCE},
    observations.InputRefused: {
        "code": keep, "source": keep, "object": kind("object"), "field": keep, "message": blank,
    },
    observations.WatchGap: {"kind": keep, "since": keep, "until": keep},
    # claim events
    claim.Requested: _SPEC | _REQUEST | {"claim": _CLAIM, "node_pool": _POOL},
    claim.Launched: _LAUNCH | {
        "capacity": keep, "allocatable": keep, "labels": key_map, "image": kind("image"), "class_hash": keep,
        "subnet": kind("subnet"), "security_groups": kind("security-group"),
    },
    claim.LaunchFailed: {"claim": _CLAIM, "kind": keep, "code": keep, "message": blank},
    claim.LaunchTimedOut: {"claim": _CLAIM, "message": blank},
    claim.Cancelled: {"claim": _CLAIM, "actor": kind("actor")},
    claim.Adopted: _LAUNCH | {
        "state": keep, "node_pool": _POOL, "node": _NODE, "requests": keep, "capacity": keep, "allocatable": keep,
        "labels": key_map, "annotations": key_map, "image": kind("image"), "why": keep,
    },
    claim.Registered: _ON_NODE,
    claim.Initialized: _ON_NODE,
    claim.Tainted: {"claim": _CLAIM, "why": keep, "detail": words},
    claim.ReasonRaised: {"claim": _CLAIM, "why": keep, "was": keep, "detail": words},
    claim.Untainted: {"claim": _CLAIM, "why": keep},
    claim.DrainStarted: _ON_NODE,
    claim.PodEvicted: {"claim": _CLAIM, "uid": keep, "pod": pod_key},
    claim.PodForced: {"claim": _CLAIM, "uid": keep, "pod": pod_key},
    claim.Drained: {"claim": _CLAIM},
    claim.VolumesDetached: {"claim": _CLAIM, "left": _VOLUME},
    claim.InstanceVanished: {"claim": _CLAIM, "instance": _INSTANCE, "status": keep},
    claim.Terminated: {"claim": _CLAIM, "why": keep},
    # decisions
    decisions.Decision: {"decider": keep, "settings": BLOB},
    decisions.Offer: {"instance_type": keep, "zone": keep},
    decisions.LaunchInstance: {
        "claim": _CLAIM, "node_pool": _POOL, "capacity_type": keep, "requests": keep, "labels": key_map,
        "tenancy": keep, "reservation": kind("reservation"), "again": keep,
    },
    decisions.FindInstance: {"claim": _CLAIM},
    decisions.RegisterNode: _ON_NODE | _SPEC | {"without": key},
    decisions.InitializeNode: _ON_NODE,
    decisions.TaintNode: _ON_NODE,
    decisions.UntaintNode: _ON_NODE,
    decisions.EvictPod: _ON_NODE | _ON_POD,
    decisions.DeletePod: _ON_NODE | _ON_POD,
    decisions.TerminateInstance: {"claim": _CLAIM, "instance": _INSTANCE},
    decisions.DeleteNode: _ON_NODE,
    decisions.PlannedClaim: _REQUEST | {
        "drivers": keep,
        "name": _CLAIM, "node_pool": _POOL, "capacity_types": keep, "labels": key_map, "overlaid": keep,
    },
    decisions.Placement: _ON_NODE | {"pods": keep},
    decisions.Unplaced: {"pods": keep},
    decisions.ProvisionResult: {"truncated": keep},
    decisions.Score: {"node_pool": _POOL},
    decisions.Move: {"why": keep, "claims": _CLAIM},
    decisions.MoveResult: {"move": keep, "step": keep},
    decisions.Verdict: {"claim": _CLAIM, "method": keep, "action": keep},
    decisions.LifecycleResult: {"claim": _CLAIM},
    decisions.StaticResult: {"node_pool": _POOL, "removed": _CLAIM},
}  # fmt: skip
