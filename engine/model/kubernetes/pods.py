"""Pods as the engine sees them: one `Pod` per object, one content-addressed `PodShape` per scheduling-relevant spec."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.names import (
    CLAIM_REFERENCES,
    Digest,
    HostIp,
    LabelKey,
    LabelMap,
    LabelValue,
    NamespaceName,
    NodeName,
    ObjectKind,
    Plain,
    PodName,
    PodVolumeName,
    PriorityClassName,
    ResourceName,
    StorageClassName,
    VolumeClaimName,
    WorkloadName,
)

Resources = dict[ResourceName, int]
"""Resource name → exact integer: `cpu` in milli-CPU, everything else in base units (bytes, devices, pods)."""


ASSUMED = (("cpu", 100), ("memory", 200 * 2**20))
"""The amounts that kube-scheduler's scores assume for a pod that does not request them."""


def assumed(requests: Resources) -> Resources:
    """Returns what kube-scheduler's scores assume for a pod beyond these requests."""
    return {name: amount for name, amount in ASSUMED if not requests.get(name)}


def scored(amounts: Resources) -> Resources:
    """Returns the part of these amounts that kube-scheduler's scores look at."""
    return {name: amounts[name] for name, _ in ASSUMED if name in amounts}


class Taint(Struct, frozen=True, omit_defaults=True, order=True):
    key: str
    effect: str
    value: str = ""

    def same(self, other: Taint) -> bool:
        """Returns whether two taints have the same key and effect. Values are ignored (L-102)."""
        return self.key == other.key and self.effect == other.effect


class Toleration(Struct, frozen=True, omit_defaults=True):
    key: str = ""
    operator: str = "Equal"  # Equal, Exists, Lt, Gt (S-38)
    value: str = ""
    effect: str = ""
    seconds: int | None = None


class Expression(Struct, frozen=True, omit_defaults=True):
    """One matchExpression of a node selector or a label selector."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class NodeTerm(Struct, frozen=True, omit_defaults=True):
    expressions: tuple[Expression, ...] = ()
    fields: tuple[Expression, ...] = ()


class PreferredNodeTerm(Struct, frozen=True):
    weight: int
    term: NodeTerm


class Selector(Struct, frozen=True, omit_defaults=True):
    """A label selector. None in a field that holds one means nil: it matches nothing (S-123)."""

    labels: LabelMap = {}
    expressions: tuple[Expression, ...] = ()


class SpreadConstraint(Struct, frozen=True, omit_defaults=True):
    topology_key: LabelKey
    max_skew: int = 1
    when_unsatisfiable: Plain = "DoNotSchedule"
    selector: Selector | None = None
    min_domains: int | None = None
    match_label_keys: tuple[LabelKey, ...] = ()
    node_affinity_policy: Plain = "Honor"
    node_taints_policy: Plain = "Ignore"


class AffinityTerm(Struct, frozen=True, omit_defaults=True):
    """A pod affinity or anti-affinity term; `weight` is 0 for a required one."""

    topology_key: LabelKey
    selector: Selector | None = None
    namespaces: tuple[NamespaceName, ...] = ()
    namespace_selector: Selector | None = None
    weight: int = 0
    match_label_keys: tuple[LabelKey, ...] = ()
    mismatch_label_keys: tuple[LabelKey, ...] = ()


class HostPort(Struct, frozen=True, omit_defaults=True, order=True):
    port: int
    protocol: Plain = "TCP"
    ip: HostIp = "0.0.0.0"


class VolumeRef(Struct, frozen=True, omit_defaults=True):
    """A volume that matters to scheduling (S-152): `claim` names a PVC; for an ephemeral volume it is empty."""

    name: PodVolumeName
    claim: VolumeClaimName = ""
    storage_class: StorageClassName = ""


class PodShape(Struct, frozen=True, omit_defaults=True, dict=True):
    """Everything in a pod that scheduling looks at. Equal shapes share one digest; the record stores each once.

    `requests` are the effective ones (S-30) without the resource `pods`; units as in `Resources`. Each of
    `resource_claims` is the pod's own name of a claim that it needs, with "=" and the object's name, or with "@" and
    the template's name if a claim is made for the pod.
    """

    requests: Resources = {}
    labels: LabelMap = {}
    node_selector: LabelMap = {}
    required_terms: tuple[NodeTerm, ...] = ()
    preferred_terms: tuple[PreferredNodeTerm, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    spread: tuple[SpreadConstraint, ...] = ()
    affinity: tuple[AffinityTerm, ...] = ()
    anti_affinity: tuple[AffinityTerm, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    volumes: tuple[VolumeRef, ...] = ()
    resource_claims: Annotated[tuple[str, ...], CLAIM_REFERENCES] = ()
    priority: int = 0
    priority_class: PriorityClassName = ""
    grace: int | None = None  # terminationGracePeriodSeconds


class Owner(Struct, frozen=True, omit_defaults=True):
    kind: ObjectKind  # with its group and version: "apps/v1/DaemonSet", "v1/Node"
    name: WorkloadName
    uid: Plain = ""
    controller: bool = True


class Pod(Struct, frozen=True, omit_defaults=True):
    """One pod. Times are milliseconds since the epoch, 0 when absent."""

    uid: Plain
    namespace: NamespaceName
    name: PodName
    shape: Digest  # digest of its PodShape
    created: int = 0
    phase: Plain = "Pending"
    node: NodeName = ""  # spec.nodeName
    unschedulable: bool = False  # condition PodScheduled has reason Unschedulable (S-40)
    nominated: NodeName = ""  # status.nominatedNodeName
    ready: bool = False
    started: int = 0
    deleting: int = 0  # deletionTimestamp
    owner: Owner | None = None
    do_not_disrupt: LabelValue = ""  # the annotation's value
    deletion_cost: int = 0
    untried: bool = False  # kube-scheduler, whose pod it is, has said nothing of it yet (no condition PodScheduled)
    arrival: int = 0  # orders pods of one second: its resourceVersion before any scheduler's word; 0 if unknown

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


DAEMONSET = "apps/v1/DaemonSet"
STATEFULSET = "apps/v1/StatefulSet"
NODE_OWNER = "v1/Node"


def with_arrival(old: Pod, new: Pod) -> Pod:
    """Returns the pod with its arrival, which later versions of it do not tell, until it is bound."""
    return replace(new, arrival=old.arrival) if old.arrival and not new.node else new


def is_terminal(pod: Pod) -> bool:
    """Whether a pod has ended: its phase is Failed or Succeeded (D-10)."""
    return pod.phase in ("Failed", "Succeeded")


def is_active(pod: Pod) -> bool:
    """Returns whether a pod is neither terminal nor terminating (D-10)."""
    return not pod.deleting and pod.phase not in ("Failed", "Succeeded")


def owned_by(pod: Pod, kind: str) -> bool:
    return pod.owner is not None and pod.owner.kind == kind


def is_provisionable(pod: Pod) -> bool:
    """Returns whether a pod waits for a node that kerf may give it (S-40)."""
    return pod.unschedulable and _is_homeless(pod)


def is_untried(pod: Pod) -> bool:
    """Returns whether a pod would be provisionable, but the scheduler has not tried it yet."""
    return pod.untried and not pod.unschedulable and not pod.deleting and _is_homeless(pod)


def _is_homeless(pod: Pod) -> bool:
    return not pod.node and not pod.nominated and not owned_by(pod, DAEMONSET) and not owned_by(pod, NODE_OWNER)


def is_reschedulable(pod: Pod) -> bool:
    """Returns whether a bound pod will need another place when its node goes (S-47)."""
    owner = "" if pod.owner is None else pod.owner.kind
    if is_terminal(pod) or owner in (DAEMONSET, NODE_OWNER):
        return False
    return not pod.deleting or owner == STATEFULSET
