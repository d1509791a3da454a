"""Write pods, and what scheduling looks at in them, as manifests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kerf.engine.model.durations import format_time
from kerf.engine.model.kubernetes.pods import (
    AffinityTerm,
    Expression,
    NodeTerm,
    Pod,
    PodShape,
    Selector,
    SpreadConstraint,
)
from kerf.engine.model.labels import DO_NOT_DISRUPT, POD_DELETION_COST
from kerf.engine.model.quantities import format_quantity

Document = dict[str, Any]
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def quantities(resources: dict[str, int]) -> dict[str, str]:
    """Write amounts as Kubernetes does."""
    return {name: format_quantity(amount, name) for name, amount in resources.items()}


def without_empty(fields: Document) -> Document:
    """Leave out what is not set."""
    unset: tuple[Any, ...] = (None, "", [], {}, 0)
    return {name: value for name, value in fields.items() if value not in unset}


def pod_document(pod: Pod, shape: PodShape, name: str) -> Document:
    """Write a pod under this name, as its status was."""
    conditions = []
    if pod.node:
        conditions = [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": str(pod.ready)}]
    elif pod.unschedulable:
        conditions = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
    annotations = without_empty({DO_NOT_DISRUPT: pod.do_not_disrupt})
    if pod.deletion_cost:
        annotations[POD_DELETION_COST] = str(pod.deletion_cost)
    metadata: Document = {
        "name": name,
        "namespace": pod.namespace,
        "uid": pod.uid,
        "labels": shape.labels,
        "annotations": annotations,
        "creationTimestamp": time(pod.created),
        "deletionTimestamp": time(pod.deleting),
        "ownerReferences": _owner(pod),
    }
    status = {
        "phase": pod.phase,
        "conditions": conditions,
        "startTime": time(pod.started),
        "nominatedNodeName": pod.nominated,
    }
    spec = {"nodeName": pod.node, **spec_document(shape)}
    return {"metadata": without_empty(metadata), "spec": without_empty(spec), "status": without_empty(status)}


def time(milliseconds: int) -> str:
    """Write a time; "" for none."""
    return format_time(milliseconds) if milliseconds else ""


def _owner(pod: Pod) -> list[Document]:
    if pod.owner is None:
        return []
    version, _, kind = pod.owner.kind.rpartition("/")
    owner = {"apiVersion": version, "kind": kind, "name": pod.owner.name, "uid": pod.owner.uid}
    return [{**owner, "controller": pod.owner.controller}]


def spec_document(shape: PodShape) -> Document:
    """Write the spec of a pod of this shape: one container asks for all."""
    container: Document = {"name": "pod", "image": "pod", "resources": {"requests": quantities(shape.requests)}}
    ports = [
        {"containerPort": p.port, "hostPort": p.port, "protocol": p.protocol, "hostIP": p.ip} for p in shape.host_ports
    ]
    if ports:
        container["ports"] = ports
    spec: Document = {
        "containers": [container],
        "nodeSelector": shape.node_selector,
        "affinity": _affinity(shape),
        "tolerations": [
            without_empty({"key": t.key, "operator": t.operator, "value": t.value, "effect": t.effect})
            | ({"tolerationSeconds": t.seconds} if t.seconds is not None else {})
            for t in shape.tolerations
        ],
        "topologySpreadConstraints": [_spread(constraint) for constraint in shape.spread],
        "volumes": [_volume(ref.name, ref.claim, ref.storage_class) for ref in shape.volumes],
        "priority": shape.priority,
        "priorityClassName": shape.priority_class,
    }
    grace = {} if shape.grace is None else {"terminationGracePeriodSeconds": shape.grace}
    return without_empty(spec) | grace


def _volume(name: str, claim: str, storage_class: str) -> Document:
    if claim:
        return {"name": name, "persistentVolumeClaim": {"claimName": claim}}
    spec = without_empty({"storageClassName": storage_class})
    return {"name": name, "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}


def _affinity(shape: PodShape) -> Document:
    node: Document = {}
    if shape.required_terms:
        node[_REQUIRED] = {"nodeSelectorTerms": [node_term(term) for term in shape.required_terms]}
    if shape.preferred_terms:
        node[_PREFERRED] = [{"weight": p.weight, "preference": node_term(p.term)} for p in shape.preferred_terms]
    parts = {
        "nodeAffinity": node,
        "podAffinity": _terms(shape.affinity),
        "podAntiAffinity": _terms(shape.anti_affinity),
    }
    return without_empty(parts)


def _terms(terms: Iterable[AffinityTerm]) -> Document:
    given = tuple(terms)
    required = [_term(term) for term in given if not term.weight]
    preferred = [{"weight": term.weight, "podAffinityTerm": _term(term)} for term in given if term.weight]
    return without_empty({_REQUIRED: required, _PREFERRED: preferred})


def _term(term: AffinityTerm) -> Document:
    fields = {
        "topologyKey": term.topology_key,
        "namespaces": list(term.namespaces),
        "matchLabelKeys": list(term.match_label_keys),
        "mismatchLabelKeys": list(term.mismatch_label_keys),
    }
    selectors = {"labelSelector": term.selector, "namespaceSelector": term.namespace_selector}
    return without_empty(fields) | _selectors(selectors)


def _spread(constraint: SpreadConstraint) -> Document:
    fields = {
        "topologyKey": constraint.topology_key,
        "maxSkew": constraint.max_skew,
        "whenUnsatisfiable": constraint.when_unsatisfiable,
        "minDomains": constraint.min_domains,
        "matchLabelKeys": list(constraint.match_label_keys),
        "nodeAffinityPolicy": constraint.node_affinity_policy,
        "nodeTaintsPolicy": constraint.node_taints_policy,
    }
    return without_empty(fields) | _selectors({"labelSelector": constraint.selector})


def _selectors(given: dict[str, Selector | None]) -> Document:
    """Write selectors. An empty one selects everything, and one that is missing nothing."""
    return {name: selector_document(selector) for name, selector in given.items() if selector is not None}


def selector_document(selector: Selector) -> Document:
    """Write a label selector."""
    fields = {"matchLabels": selector.labels, "matchExpressions": [_expression(e) for e in selector.expressions]}
    return without_empty(fields)


def node_term(term: NodeTerm) -> Document:
    """Write one term of a node selector."""
    fields = {
        "matchExpressions": [_expression(expression) for expression in term.expressions],
        "matchFields": [_expression(expression) for expression in term.fields],
    }
    return without_empty(fields)


def _expression(expression: Expression) -> Document:
    return without_empty({"key": expression.key, "operator": expression.operator, "values": list(expression.values)})
