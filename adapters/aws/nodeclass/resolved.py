"""Reads a resolved EC2NodeClass: readiness (A-55, A-56), zones, the image that a type boots (A-115), capacity
settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from kerf.adapters.aws.catalogue.instance_types import Interface, NodeSettings, amounts
from kerf.adapters.aws.catalogue.instance_types import Mapping as DeviceMapping
from kerf.adapters.aws.settings import ClusterFacts
from kerf.engine.model.crds.kubelet import expressions_of, kubelet_problem, stated_kubelet
from kerf.engine.model.instance_types import InstanceType
from kerf.engine.model.karpenter.ec2nodeclasses import BlockDevice, EC2NodeClass, EC2NodeClassStatus, ResolvedAMI
from kerf.engine.model.karpenter.nodeclaim_objects import Condition
from kerf.engine.model.karpenter.nodeclass_terms import boots
from kerf.engine.model.manifests.violations import ManifestError
from kerf.engine.model.quantities import parse_quantity

RESERVATIONS = "CapacityReservationsReady"
"""The one that a class has only while the gate ReservedCapacity is open."""
DEPENDENTS = (
    "AMIsReady",
    RESERVATIONS,
    "InstanceProfileReady",
    "PlacementGroupReady",
    "SecurityGroupsReady",
    "SubnetsReady",
    "ValidationSucceeded",
)
"""The conditions that Ready depends on (A-55)."""


def serves(image: ResolvedAMI, kind: InstanceType) -> bool:
    """Whether instances of this type can boot the image (A-110…A-115)."""
    return boots(image.requirements, kind)


def condition(status: EC2NodeClassStatus, kind: str) -> Condition | None:
    return next((found for found in status.conditions if found.type == kind), None)


def with_condition(status: EC2NodeClassStatus, new: Condition, now: int) -> EC2NodeClassStatus:
    """The conditions with one more or another one, in order of their types. `since` moves only when the status does
    (A-56)."""
    old = condition(status, new.type)
    since = old.since if old is not None and old.status == new.status else now
    others = [found for found in status.conditions if found.type != new.type]
    ordered = sorted([*others, replace(new, since=since)], key=lambda found: found.type)
    return replace(status, conditions=tuple(ordered))


def without_reservations(status: EC2NodeClassStatus) -> EC2NodeClassStatus:
    """The status as it is while the gate ReservedCapacity is closed (A-55, A-74)."""
    kept = tuple(known for known in status.conditions if known.type != RESERVATIONS)
    return replace(status, capacity_reservations=(), conditions=kept)


def ready(kind: str) -> Condition:
    """A condition that is True. Its reason is its type (A-56)."""
    return Condition(kind, "True", kind)


def readiness(status: EC2NodeClassStatus) -> Condition:
    """The condition Ready: False beats Unknown beats True. The message names the conditions that are not True
    (A-56)."""
    known = {kind: found for kind in DEPENDENTS if (found := condition(status, kind)) or kind != RESERVATIONS}
    states = {kind: found.status if found is not None else "Unknown" for kind, found in known.items()}
    message = ", ".join(
        f"{kind}={states[kind]} ({found.reason}: {found.message})" if found is not None else f"{kind}=Unknown"
        for kind, found in known.items()
        if states[kind] != "True"
    )
    if "False" in states.values():
        return Condition("Ready", "False", "UnhealthyDependents", message)
    if "Unknown" in states.values():
        return Condition("Ready", "Unknown", "ReconcilingDependents", message)
    return ready("Ready")


def lacks_cidr(node_class: EC2NodeClass, facts: ClusterFacts) -> bool:
    """Whether the class's nodes cannot boot because nobody knows the CIDR of the cluster's services (A-129)."""
    return node_class.ami_family == "AL2023" and not facts.cidr


def zones(status: EC2NodeClassStatus) -> dict[str, str]:
    """The zones of the class's subnets, as zone → zone id."""
    return {subnet.zone: subnet.zone_id for subnet in status.subnets}


def node_settings(
    node_class: EC2NodeClass, *, reserved_enis: int = 0, overhead: float = 0.075, expressions: bool = False
) -> NodeSettings:
    """What the capacity formulas need of a class; `expressions`: with the gate NodeClassCEL. Raises `ManifestError` for
    a kubelet that the controller refuses (A-50…A-52)."""
    if problem := kubelet_problem(node_class.spec.kubelet, node_class.ami_family, expressions=expressions):
        raise ManifestError(f"EC2NodeClass/{node_class.name}", problem.violations)
    spec, kubelet = node_class.spec, stated_kubelet(node_class.spec.kubelet)
    if expressions_of(kubelet):  # on each type something else
        plain = node_settings(
            replace(node_class, spec=replace(spec, kubelet=_plain(kubelet))),
            reserved_enis=reserved_enis,
            overhead=overhead,
        )
        return replace(plain, kubelet=kubelet)
    return NodeSettings(
        family=node_class.ami_family,
        max_pods=kubelet.get("maxPods"),
        pods_per_core=kubelet.get("podsPerCore", 0),
        kube_reserved=amounts(kubelet.get("kubeReserved", {})),
        system_reserved=amounts(kubelet.get("systemReserved", {})),
        eviction_hard={
            signal: text if text.endswith("%") else parse_quantity(text, signal)
            for signal, text in sorted(kubelet.get("evictionHard", {}).items())
        },
        mappings=tuple(
            DeviceMapping(mapping.device_name, volume_bytes(mapping.ebs), mapping.root_volume)
            for mapping in spec.block_device_mappings
        ),
        raid0=spec.instance_store_policy == "RAID0",
        interfaces=tuple(
            Interface(
                interface.network_card_index or 0,
                interface.device_index or 0,
                interface.interface_type == "efa-only",
            )
            for interface in spec.network_interfaces
        ),
        nested_virtualization=spec.cpu_options is not None and spec.cpu_options.nested_virtualization == "enabled",
        connection_tracking=spec.connection_tracking is not None,
        reserved_enis=reserved_enis,
        overhead=overhead,
    )


def volume_bytes(ebs: BlockDevice | None) -> int:
    """The size of a volume in bytes, 0 when it has none of its own."""
    return parse_quantity(ebs.volume_size, "storage") if ebs is not None and ebs.volume_size else 0


def with_kubelet(node_class: EC2NodeClass, kubelet: Mapping[str, Any] | None) -> EC2NodeClass:
    """The class with another kubelet in its spec; as it is for None."""
    if kubelet is None:
        return node_class
    return replace(node_class, spec=replace(node_class.spec, kubelet=dict(kubelet)))


def _plain(kubelet: Mapping[str, Any]) -> dict[str, Any]:
    """A kubelet without its expressions."""
    plain = dict(kubelet)
    for field, key in expressions_of(kubelet):
        if key:
            plain[field] = {name: value for name, value in plain[field].items() if name != key}
        else:
            del plain[field]
    return plain


def image_of(images: Sequence[ResolvedAMI], kind: InstanceType) -> str:
    """The first image that the type boots, "" for none (A-115)."""
    return next((image.id for image in images if serves(image, kind)), "")
