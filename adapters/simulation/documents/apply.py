"""Put Kubernetes documents into the simulated world as objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kerf.adapters.simulation.cluster.apiserver import HELD
from kerf.adapters.simulation.cluster.controllers.workloads import Deployment, StatefulSet
from kerf.adapters.simulation.cluster.controllers.workloads import PodTemplate as Template
from kerf.adapters.simulation.documents.ignored_kinds import is_ignored_kind
from kerf.adapters.simulation.documents.jobs import apply_job, is_job_with_end, let_it_end, pod_of_job, runs_for
from kerf.adapters.simulation.documents.parts import Document, annotations_of, part_of, template_of
from kerf.adapters.simulation.errors import DocumentError
from kerf.adapters.simulation.scheduler.scheduling_gates import other_scheduler_name, scheduling_gates
from kerf.adapters.simulation.simulation import Simulation
from kerf.engine.errors import InputError, KerfError, fault_of
from kerf.engine.model import labels as names
from kerf.engine.model.content_digest import content
from kerf.engine.model.crds.kubelet import kubelet_problem
from kerf.engine.model.karpenter.capacity_buffers import CapacityBuffer
from kerf.engine.model.karpenter.ec2nodeclasses import EC2NodeClass
from kerf.engine.model.karpenter.nodeclass_terms import class_hashes, ec2_terms, recorded
from kerf.engine.model.karpenter.nodeoverlays import NodeOverlay
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.kubernetes.daemonsets import DaemonSet
from kerf.engine.model.kubernetes.devices import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from kerf.engine.model.kubernetes.namespaces import Namespace
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.kubernetes.pod_templates import PodTemplate
from kerf.engine.model.kubernetes.pods import Pod, PodShape
from kerf.engine.model.kubernetes.priority_classes import PriorityClass
from kerf.engine.model.kubernetes.volumes import VolumeClaim
from kerf.engine.model.kubernetes.workloads import Workload
from kerf.engine.model.manifests.decode import KINDS, decode_object, generates_name
from kerf.engine.model.manifests.lists import items_of
from kerf.engine.model.manifests.violations import ManifestError, Violation
from kerf.engine.model.mistyped import mistyped, protects_nothing
from kerf.engine.model.reasons import Reason
from kerf.engine.record.observations import NodeClassSeen

Refused = list[tuple[Document, KerfError]]


def apply_document(simulation: Simulation, document: Document) -> Refused:
    """Do as `kubectl apply`; each item of a list by itself. Return what was refused, with the coded errors. What goes
    wrong with one document never harms another."""
    refused: Refused = []
    for _, item in items_of(document):
        if isinstance(item, InputError):
            refused.append((document, item))
            continue
        try:
            _apply(simulation, item)
        except Exception as error:
            refused.append((item, fault_of(error, identify(item))))
    return refused


def identify(document: Document) -> str:
    """Return kind and name of a document, as far as it has them, for messages."""
    metadata = part_of(document, "metadata")
    namespace = metadata.get("namespace")
    name = metadata.get("name") or f"{generates_name(dict(document))}?"
    return f"{document.get('kind', '?')} {namespace}/{name}" if namespace else f"{document.get('kind', '?')} {name}"


def _apply(simulation: Simulation, document: Document) -> None:
    _check_head(document)
    violations = simulation.check(document) if simulation.check is not None else ()
    if violations:
        raise ManifestError(identify(document), violations)
    if is_ignored_kind(document) and not _is_wanted(simulation, document):
        simulation.ignore(identify(document))
        return
    is_job = is_job_with_end(document)
    decoded = decode_object(pod_of_job(document) if is_job else dict(document))
    typos = (*mistyped(decoded.object, decoded.blobs.values(), simulation.known), *protects_nothing(document))
    for note in (*decoded.notes, *typos):
        simulation.note(identify(document), note)
    item = decoded.object
    if str(document.get("kind", "")).endswith("NodeClass"):
        _apply_node_class(simulation, document, item)
        return
    apply = _apply_job if is_job else _APPLY.get(type(item))
    if apply is None:
        raise DocumentError(
            f"the simulated cluster holds no {document.get('kind')}",
            where=identify(document),
            hint="Leave it out, or apply what its controller would make of it",
        )
    for blob in decoded.blobs.values():
        if isinstance(blob, PodShape):
            simulation.cluster.api.keep_shape(blob)
    apply(simulation, document, item)


def _is_wanted(simulation: Simulation, document: Document) -> bool:
    """Whether it is simulated all the same: a Job that says how long its pods run, or a Service where pods are spread
    by default."""
    spread = bool(simulation.settings.default_spread)
    is_service = (document.get("apiVersion"), document.get("kind")) == ("v1", "Service")
    return (spread and is_service) or is_job_with_end(document)


def _check_head(document: Document) -> None:
    """Raise ManifestError (KERF302) for a document with a kind and no apiVersion, or the other way round."""
    version, kind = document.get("apiVersion"), document.get("kind")
    if bool(version) == bool(kind):
        return
    field = "kind" if version else "apiVersion"
    known = [name.rpartition("/")[0] for name in KINDS if name.rpartition("/")[2] == kind]
    message = f"{field} is missing" + (f": a {kind} has {known[0]}" if known else "")
    raise ManifestError(identify(document), [Violation("KERF302", field, message)])


# ── objects that are kept as they are ───────────────────────────────────────────────────────────────────────


def _apply_namespace(simulation: Simulation, document: Document, item: Namespace) -> None:
    labels = {**item.labels, "kubernetes.io/metadata.name": item.name}
    simulation.cluster.apply(replace(item, labels=labels))


def _apply_pool(simulation: Simulation, document: Document, item: NodePool) -> None:
    simulation.cluster.apply(replace(item, uid=item.uid or simulation.rng.uid("nodepool", item.name)))


def _apply_budget(simulation: Simulation, document: Document, item: PodDisruptionBudget) -> None:
    uid = _uid(simulation, document, "pdb", item.namespace, item.name)
    known = simulation.cluster.api.budgets.get(uid, PodDisruptionBudget(uid, item.namespace, item.name))
    simulation.cluster.apply(
        replace(
            item,
            uid=uid,
            disruptions_allowed=known.disruptions_allowed,
            expected_pods=known.expected_pods,
            desired_healthy=known.desired_healthy,
        )
    )


def _apply_unchanged(simulation: Simulation, document: Document, item: Struct) -> None:
    simulation.cluster.apply(item)


def _apply_gated(simulation: Simulation, document: Document, item: PodTemplate | NodeOverlay) -> None:
    """Apply an object that counts only if a feature gate is on."""
    overlay = isinstance(item, NodeOverlay)
    gate, on = (
        ("NodeOverlay", simulation.settings.node_overlays)
        if overlay
        else ("CapacityBuffer", simulation.settings.capacity_buffers)
    )
    if not on:
        simulation.note(identify(document), Reason("gate-off", {"gate": gate}))
    simulation.cluster.apply(item)


def _apply_buffer(simulation: Simulation, document: Document, item: CapacityBuffer) -> None:
    uid = _uid(simulation, document, "capacitybuffer", item.namespace, item.name)
    if not simulation.settings.capacity_buffers:
        simulation.note(identify(document), Reason("gate-off", {"gate": "CapacityBuffer"}))
    simulation.cluster.apply(replace(item, uid=uid))


def _apply_priority_class(simulation: Simulation, document: Document, item: PriorityClass) -> None:
    simulation.cluster.api.priorities[item.name] = item


def _apply_volume_claim(simulation: Simulation, document: Document, item: VolumeClaim) -> None:
    """Apply a claim. One that is applied again stays bound."""
    known = simulation.cluster.api.claims.get(item.key)
    if known is None:
        simulation.cluster.apply(item)


def _apply_devices(simulation: Simulation, document: Document, item: DeviceClass | ResourceSlice) -> None:
    _note_devices(simulation, document)
    simulation.cluster.apply(item)


def _apply_claim_template(simulation: Simulation, document: Document, item: ResourceClaimTemplate) -> None:
    _note_devices(simulation, document)
    simulation.cluster.api.claim_templates[item.key] = item


def _apply_resource_claim(simulation: Simulation, document: Document, item: ResourceClaim) -> None:
    """Apply a claim. One that is applied again keeps its devices and its spec, which the API does not let change."""
    _note_devices(simulation, document)
    if item.key not in simulation.cluster.api.resource_claims:
        simulation.cluster.apply(item)


def _note_devices(simulation: Simulation, document: Document) -> None:
    if simulation.settings.ignore_dra_requests:
        simulation.note(identify(document), Reason("devices-ignored"))


def _apply_node(simulation: Simulation, document: Document, item: Node) -> None:
    """Apply a Node that kerf does not manage. Without conditions it is ready; without allocatable, all its capacity
    is."""
    now = simulation.clock.now
    if "conditions" not in part_of(document, "status"):
        item = replace(item, ready=True, ready_since=now)
    simulation.cluster.apply(
        replace(
            item,
            uid=item.uid or simulation.rng.uid("node", item.name),
            created=item.created or now,
            labels={names.HOSTNAME: item.name, **item.labels},
            allocatable=item.allocatable or item.capacity,
        )
    )


def _apply_pod(simulation: Simulation, document: Document, item: Pod) -> None:
    """Apply a bare pod. Applied again, only its annotations change, and scheduling gates may go, as in the API."""
    api = simulation.cluster.api
    known = api.pod_named(item.namespace, item.name)
    gates, runs = scheduling_gates(part_of(document, "spec")), runs_for(document)
    if known is not None:
        if known.uid in api.gated and not gates:
            del api.gated[known.uid]
            simulation.cluster.scheduler.look_at(known.uid)
        api.put(replace(known, do_not_disrupt=item.do_not_disrupt, deletion_cost=item.deletion_cost))
        return
    uid = _uid(simulation, document, "pod", item.namespace, item.name)
    shape = api.admit(api.shapes[item.shape])
    came = item.created or simulation.clock.now
    if gates:
        api.gated[uid] = gates
    _note_scheduler(simulation, document, part_of(document, "spec"))
    refused = item.unschedulable and not gates
    # the scheduler comes to each at once
    made = replace(item, uid=uid, shape=shape, created=came, unschedulable=refused, untried=False)
    api.put(made)
    if runs:
        let_it_end(simulation, made, runs)


# ── workloads and NodeClasses ───────────────────────────────────────────────────────────────────────────────


def _apply_workload(simulation: Simulation, document: Document, item: Workload) -> None:
    template = _template(simulation, document, item.shape)
    kind = str(document.get("kind"))
    uid = _uid(simulation, document, kind, item.namespace, item.name)
    workloads = simulation.cluster.workloads
    if kind == "Deployment":
        written, _ = content(template_of(document))
        workloads.apply(Deployment(uid, item.namespace, item.name, item.replicas, template, item.selector, written))
    elif kind == "StatefulSet":
        parallel = part_of(document, "spec").get("podManagementPolicy") == "Parallel"
        claims = item.volume_claims
        _note_rollout(simulation, document, uid)
        workloads.apply(
            StatefulSet(uid, item.namespace, item.name, item.replicas, template, parallel, claims, item.selector)
        )
    else:
        raise DocumentError(
            f"the simulated cluster makes no pods of a {kind}", where=identify(document), hint="Apply its Deployment"
        )


def _apply_job(simulation: Simulation, document: Document, item: Any) -> None:
    uid = _uid(simulation, document, "Job", item.namespace, item.name)
    apply_job(simulation, document, item, _template(simulation, document, item.shape), uid)


def _apply_daemon_set(simulation: Simulation, document: Document, item: DaemonSet) -> None:
    uid = _uid(simulation, document, "daemonset", item.namespace, item.name)
    template = _template(simulation, document, item.shape)
    _note_rollout(simulation, document, uid)
    simulation.cluster.workloads.apply_daemon_set(replace(item, uid=uid), template)


def _template(simulation: Simulation, document: Document, shape: str) -> Template:
    template = template_of(document)
    annotations = annotations_of(template)
    try:
        cost = int(annotations.get(names.POD_DELETION_COST, 0))
    except ValueError:
        cost = 0  # as its controller reads it
    spec = part_of(template, "spec")
    _note_scheduler(simulation, document, spec)
    return Template(
        shape=simulation.cluster.api.shapes[shape],
        do_not_disrupt=str(annotations.get(names.DO_NOT_DISRUPT, "")),
        deletion_cost=cost,
        gates=scheduling_gates(spec),
    )


def _note_rollout(simulation: Simulation, document: Document, uid: str) -> None:
    written, _ = content(template_of(document))
    if simulation.cluster.workloads.renews_template(uid, written):
        simulation.note(identify(document), Reason("not-rolled-out"))


def _note_scheduler(simulation: Simulation, document: Document, spec: Document) -> None:
    name = other_scheduler_name(spec)
    if name:
        simulation.note(identify(document), Reason("other-scheduler", {"scheduler": name}))


def _apply_node_class(simulation: Simulation, document: Document, item: Struct) -> None:
    """Apply a NodeClass. The virtual cloud resolves it at once: it is ready unless its own status says otherwise, or
    nothing can be launched with its kubelet (A-50). Then it is there as not ready, as in a cluster, and ManifestError
    is raised."""
    metadata = part_of(document, "metadata")
    name = str(metadata.get("name", ""))
    conditions = part_of(document, "status").get("conditions") or ()
    unready = [c for c in conditions if c.get("type") == "Ready" and c.get("status") != "True"]
    if isinstance(item, EC2NodeClass) and simulation.resolve is not None:
        item = simulation.resolve(item)
    digest, _ = content(recorded(item))
    problem = kubelet_problem(item.spec.kubelet, item.ami_family) if isinstance(item, EC2NodeClass) else None
    reason = problem.reason if problem is not None else str(unready[0].get("reason", "")) if unready else ""
    seen = NodeClassSeen(
        group=str(document.get("apiVersion", "")).partition("/")[0],
        kind=str(document.get("kind")),
        name=name,
        uid=str(metadata.get("uid", "")) or simulation.rng.uid("nodeclass", name),
        generation=int(metadata.get("generation", 1)),
        ready=not unready and problem is None,
        reason=reason,
        digest=digest,
        terms=ec2_terms(item) if isinstance(item, EC2NodeClass) else None,
        annotations=class_hashes(item.annotations) if isinstance(item, EC2NodeClass) else {},
    )
    simulation.cloud.put_node_class(seen, {digest: item})
    if problem is not None:
        raise ManifestError(f"{document.get('kind')}/{name}", problem.violations)


def _uid(simulation: Simulation, document: Document, kind: str, namespace: str, name: str) -> str:
    given = part_of(document, "metadata").get("uid")
    return str(given) if given else simulation.rng.uid(kind, namespace, name)


_APPLY: dict[type[Struct], Callable[[Simulation, Document, Any], None]] = {
    **{kind.struct: _apply_unchanged for kind in HELD if kind.planned_with is not None},
    Namespace: _apply_namespace,
    NodePool: _apply_pool,
    PodDisruptionBudget: _apply_budget,
    Node: _apply_node,
    Pod: _apply_pod,
    Workload: _apply_workload,
    DaemonSet: _apply_daemon_set,
    VolumeClaim: _apply_volume_claim,
    **dict.fromkeys((DeviceClass, ResourceSlice), _apply_devices),
    ResourceClaimTemplate: _apply_claim_template,
    ResourceClaim: _apply_resource_claim,
    PriorityClass: _apply_priority_class,
    PodTemplate: _apply_gated,
    NodeOverlay: _apply_gated,
    CapacityBuffer: _apply_buffer,
}
