"""From a pod spec to its `PodShape`: everything that scheduling looks at, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from kerf.engine.model.crds.shared_fields import EFFECTS
from kerf.engine.model.kubernetes.pods import (
    AffinityTerm,
    Expression,
    HostPort,
    NodeTerm,
    PodShape,
    PreferredNodeTerm,
    Selector,
    SpreadConstraint,
    Toleration,
    VolumeRef,
)
from kerf.engine.model.manifests.kubernetes.pod_requests import effective_requests
from kerf.engine.model.manifests.kubernetes.pods_wire import (
    AffinityWire,
    ContainerWire,
    ExpressionWire,
    LabelSelectorWire,
    NodeAffinityWire,
    NodeTermWire,
    PodAffinityTermWire,
    PodAffinityWire,
    PodSpecWire,
    PodStatusWire,
    ResourceClaimWire,
    SpreadWire,
    TolerationWire,
    VolumeWire,
)
from kerf.engine.model.manifests.violations import Report

_LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_NODE_OPERATORS = (*_LABEL_OPERATORS, "Gt", "Lt", "Gte", "Lte")  # S-26
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_NO_STATUS = PodStatusWire()


def shape_of(
    report: Report,
    path: str,
    spec: PodSpecWire,
    labels: dict[str, str],
    status: PodStatusWire = _NO_STATUS,
) -> PodShape:
    """The shape of a pod, or of a template (no status), whose spec stands at `path`."""
    affinity = spec.affinity or AffinityWire()
    where = f"{path}.affinity"
    required, preferred = _node_affinity(report, f"{where}.nodeAffinity", affinity.node_affinity)
    return PodShape(
        requests=effective_requests(report, path, spec, status),
        labels=labels,
        node_selector=spec.node_selector,
        required_terms=required,
        preferred_terms=preferred,
        tolerations=_tolerations(report, f"{path}.tolerations", spec.tolerations),
        spread=_spread(report, f"{path}.topologySpreadConstraints", spec.topology_spread_constraints),
        affinity=_pod_affinity(report, f"{where}.podAffinity", affinity.pod_affinity),
        anti_affinity=_pod_affinity(report, f"{where}.podAntiAffinity", affinity.pod_anti_affinity),
        host_ports=_host_ports(report, f"{path}.containers", spec.containers),
        volumes=_volumes(spec.volumes),
        resource_claims=_resource_claims(spec, status),
        priority=spec.priority or 0,
        priority_class=spec.priority_class_name,
        grace=spec.termination_grace_period_seconds,
    )


def _resource_claims(spec: PodSpecWire, status: PodStatusWire) -> tuple[str, ...]:
    """The pod's ResourceClaims; a status without a name says that no claim is needed (S-195)."""
    needless = {
        claim_status.name
        for claim_status in status.resource_claim_statuses or ()
        if not claim_status.resource_claim_name
    }
    return tuple(
        _claim_reference(resource_claim)
        for resource_claim in spec.resource_claims
        if resource_claim.name not in needless
    )


def _claim_reference(wire: ResourceClaimWire) -> str:
    if wire.resource_claim_name:
        return f"{wire.name}={wire.resource_claim_name}"
    return f"{wire.name}@{wire.resource_claim_template_name}" if wire.resource_claim_template_name else wire.name


def _expressions(
    report: Report, path: str, wires: Sequence[ExpressionWire], operators: tuple[str, ...]
) -> tuple[Expression, ...]:
    for index, wire in enumerate(wires):
        report.one_of(f"{path}[{index}].operator", wire.operator, operators)
        if not wire.key:
            report.add("KERF304", f"{path}[{index}].key", "An expression needs a key")
    return tuple(Expression(wire.key, wire.operator, tuple(wire.values or ())) for wire in wires)


def read_selector(report: Report, path: str, wire: LabelSelectorWire | None) -> Selector | None:
    """A label selector; None stays None and matches nothing (S-123)."""
    if wire is None:
        return None
    expressions = _expressions(report, f"{path}.matchExpressions", wire.match_expressions, _LABEL_OPERATORS)
    return Selector(wire.match_labels, expressions)


def _node_term(report: Report, path: str, wire: NodeTermWire) -> NodeTerm:
    return NodeTerm(
        _expressions(report, f"{path}.matchExpressions", wire.match_expressions, _NODE_OPERATORS),
        _expressions(report, f"{path}.matchFields", wire.match_fields, _NODE_OPERATORS),
    )


def _node_affinity(
    report: Report, path: str, wire: NodeAffinityWire | None
) -> tuple[tuple[NodeTerm, ...], tuple[PreferredNodeTerm, ...]]:
    if wire is None:
        return (), ()
    terms = wire.required.node_selector_terms if wire.required else []
    required = tuple(
        _node_term(report, f"{path}.{_REQUIRED}.nodeSelectorTerms[{index}]", term) for index, term in enumerate(terms)
    )
    preferred = tuple(
        PreferredNodeTerm(item.weight, _node_term(report, f"{path}.{_PREFERRED}[{index}].preference", item.preference))
        for index, item in enumerate(wire.preferred)
        if item.preference is not None
    )
    return required, preferred


def _pod_affinity(report: Report, path: str, wire: PodAffinityWire | None) -> tuple[AffinityTerm, ...]:
    """Required terms first, then preferred ones with their weights, each in the order given."""
    if wire is None:
        return ()
    required = [
        _affinity_term(report, f"{path}.{_REQUIRED}[{index}]", term, 0) for index, term in enumerate(wire.required)
    ]
    for index, item in enumerate(wire.preferred):
        if item.weight < 1:
            where = f"{path}.{_PREFERRED}[{index}].weight"
            report.add("KERF309", where, f"A weight is 1 to 100, not {item.weight}")
    preferred = [
        _affinity_term(report, f"{path}.{_PREFERRED}[{index}].podAffinityTerm", item.pod_affinity_term, item.weight)
        for index, item in enumerate(wire.preferred)
        if item.pod_affinity_term is not None
    ]
    return (*required, *preferred)


def _affinity_term(report: Report, path: str, wire: PodAffinityTermWire, weight: int) -> AffinityTerm:
    if not wire.topology_key:
        report.add("KERF304", f"{path}.topologyKey", "A pod affinity term needs a topologyKey")
    return AffinityTerm(
        topology_key=wire.topology_key,
        selector=read_selector(report, f"{path}.labelSelector", wire.label_selector),
        namespaces=tuple(wire.namespaces),
        namespace_selector=read_selector(report, f"{path}.namespaceSelector", wire.namespace_selector),
        weight=weight,
        match_label_keys=tuple(wire.match_label_keys),
        mismatch_label_keys=tuple(wire.mismatch_label_keys),
    )


def _spread(report: Report, path: str, wires: Sequence[SpreadWire]) -> tuple[SpreadConstraint, ...]:
    return tuple(_constraint(report, f"{path}[{index}]", wire) for index, wire in enumerate(wires))


def _constraint(report: Report, path: str, wire: SpreadWire) -> SpreadConstraint:
    affinity_policy = wire.node_affinity_policy or "Honor"
    taints_policy = wire.node_taints_policy or "Ignore"
    if not wire.topology_key:
        report.add("KERF304", f"{path}.topologyKey", "A topology spread constraint needs a topologyKey")
    if wire.max_skew < 1:
        report.add("KERF309", f"{path}.maxSkew", f"maxSkew is at least 1, not {wire.max_skew}")
    report.one_of(f"{path}.whenUnsatisfiable", wire.when_unsatisfiable, ("DoNotSchedule", "ScheduleAnyway"))
    report.one_of(f"{path}.nodeAffinityPolicy", affinity_policy, ("Honor", "Ignore"))
    report.one_of(f"{path}.nodeTaintsPolicy", taints_policy, ("Honor", "Ignore"))
    return SpreadConstraint(
        topology_key=wire.topology_key,
        max_skew=wire.max_skew,
        when_unsatisfiable=wire.when_unsatisfiable,
        selector=read_selector(report, f"{path}.labelSelector", wire.label_selector),
        min_domains=wire.min_domains,
        match_label_keys=tuple(wire.match_label_keys),
        node_affinity_policy=affinity_policy,
        node_taints_policy=taints_policy,
    )


def _tolerations(report: Report, path: str, wires: Sequence[TolerationWire]) -> tuple[Toleration, ...]:
    for index, wire in enumerate(wires):
        report.one_of(f"{path}[{index}].operator", wire.operator, ("", "Equal", "Exists", "Lt", "Gt"))  # S-38
        report.one_of(f"{path}[{index}].effect", wire.effect, ("", *EFFECTS))
    return tuple(
        Toleration(wire.key, wire.operator or "Equal", wire.value, wire.effect, wire.toleration_seconds)
        for wire in wires
    )


def _host_ports(report: Report, path: str, containers: Sequence[ContainerWire]) -> tuple[HostPort, ...]:
    """Host ports, of the regular containers only, sorted (S-97)."""
    ports = []
    for index, container in enumerate(containers):
        for at, port in enumerate(container.ports):
            if port.host_port:
                protocol = port.protocol or "TCP"
                report.one_of(f"{path}[{index}].ports[{at}].protocol", protocol, ("TCP", "UDP", "SCTP"))
                ports.append(HostPort(port.host_port, protocol, port.host_ip or "0.0.0.0"))
    return tuple(sorted(ports))


def _volumes(wires: Sequence[VolumeWire]) -> tuple[VolumeRef, ...]:
    """Volumes backed by a PersistentVolumeClaim, named or made for the pod (S-152)."""
    volumes = []
    for wire in wires:
        if wire.persistent_volume_claim is not None:
            volumes.append(VolumeRef(wire.name, claim=wire.persistent_volume_claim.claim_name))
        elif wire.ephemeral is not None:
            template = wire.ephemeral.volume_claim_template
            storage_class = template.spec.storage_class_name if template and template.spec else None
            volumes.append(VolumeRef(wire.name, storage_class=storage_class or ""))
    return tuple(volumes)
