"""Makes kerf's `InstanceType` from the facts of a type and the settings of a NodeClass: labels (A-142…A-167), capacity
(A-168…A-183) and overhead (A-184…A-187).

Pure integer arithmetic, except where the reference computes in floating point and rounds up (A-169, A-186). It gives
the numbers of A-188…A-198 and A-412…A-427; tests/unit/aws/catalogue/test_instance_types.py has them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kerf.adapters.aws.ami_families import FAMILIES, Family
from kerf.adapters.aws.catalogue.facts import Device, InstanceTypeFacts
from kerf.adapters.aws.catalogue.kubelet_expressions import evaluation_problem, settled_kubelet
from kerf.engine.model import labels
from kerf.engine.model.instance_types import InstanceType, Offering
from kerf.engine.model.kubernetes.pods import Resources
from kerf.engine.model.quantities import LARGEST_AMOUNT, parse_quantity

MI, GI = 1 << 20, 1 << 30
_AWS = "karpenter.k8s.aws/"
_NAME = re.compile(r"([a-z]+)(?:-\d+tb)?(\d+)")
POD_ENI = "vpc.amazonaws.com/pod-eni"
EFA = "vpc.amazonaws.com/efa"


class Mapping(Struct, frozen=True):
    """A block device as capacity sees it: `size` in bytes, 0 when unset."""

    device: str
    size: int
    root: bool = False


class Interface(Struct, frozen=True):
    card: int
    device: int
    efa_only: bool = False


class NodeSettings(Struct, frozen=True):
    """What decides the capacity of a node, of its NodeClass and of the process's options; amounts as in `Resources`.

    `pods_per_core` is 0 when unset. `eviction_hard` holds, by signal, percentages as "N%" and quantities as integers.
    `overhead` is the share of memory that the hypervisor keeps (A-7); `seen_memory` the bytes that nodes of a type were
    seen to have (A-170).
    """

    family: str = "AL2023"
    max_pods: int | None = None
    pods_per_core: int = 0
    kube_reserved: Resources = {}
    system_reserved: Resources = {}
    eviction_hard: dict[str, int | str] = {}
    mappings: tuple[Mapping, ...] = ()
    raid0: bool = False
    interfaces: tuple[Interface, ...] = ()
    nested_virtualization: bool = False
    connection_tracking: bool = False
    placement: str = ""  # the placement group's strategy
    placement_id: str = ""
    partitions: int = 0  # of the placement group
    reserved_enis: int = 0
    overhead: float = 0.075
    seen_memory: dict[str, int] = {}
    kubelet: dict[str, Any] = {}  # only if it has expressions: maxPods and the reservations above follow from it


def instance_type(
    facts: InstanceTypeFacts,
    settings: NodeSettings,
    offerings: tuple[Offering, ...],
    *,
    region: str,
    branch_interfaces: int = 0,
    network_bandwidth: int = 0,
) -> InstanceType:
    """The type as the scheduler sees it. `branch_interfaces` and `network_bandwidth` are 0 where none is
    known. Raises CelError for a maxPods that has no value on this type (A-52)."""
    settings = settled(settings, facts)
    return InstanceType(
        name=facts.name,
        capacity=capacity(facts, settings, branch_interfaces),
        overhead=overhead(facts, settings),
        requirements=requirements(facts, settings, offerings, region, network_bandwidth),
        offerings=offerings,
    )


def settled(settings: NodeSettings, facts: InstanceTypeFacts) -> NodeSettings:
    """The settings with what expressions become on a type (A-52)."""
    if not settings.kubelet:
        return settings
    kubelet = kubelet_on(facts, settings)
    return replace(
        settings,
        kubelet={},
        max_pods=kubelet.get("maxPods"),
        kube_reserved=amounts(kubelet.get("kubeReserved", {})),
        system_reserved=amounts(kubelet.get("systemReserved", {})),
    )


def kubelet_on(facts: InstanceTypeFacts, settings: NodeSettings) -> dict[str, Any]:
    """The kubelet of a class with expressions, on a type: its user data has numbers alone (A-257)."""
    return settled_kubelet(settings.kubelet, facts, _pods_by_limit(facts, settings))


def first_problem(settings: NodeSettings, types: Iterable[InstanceTypeFacts]) -> str:
    """What keeps an expression from having a value on some type, "" if each has one on all (A-129): also on those that
    the class cannot launch, since a catalogue names them (A-139)."""
    found = (evaluation_problem(settings.kubelet, facts, _pods_by_limit(facts, settings)) for facts in types)
    return next(filter(None, found), "")


def _pods_by_limit(facts: InstanceTypeFacts, settings: NodeSettings) -> Callable[[int | None], int]:
    """How many pods a type takes, by its maxPods."""
    return lambda limit: pods(facts, replace(settings, max_pods=limit))


def amounts(reserved: dict[str, str]) -> Resources:
    """Quantities in base units."""
    return {resource: parse_quantity(text, resource) for resource, text in sorted(reserved.items())}


def compatible(facts: InstanceTypeFacts, settings: NodeSettings) -> bool:
    """Whether a NodeClass can launch the type at all (A-141)."""
    if settings.interfaces and not _fits_interfaces(facts, settings.interfaces):
        return False
    if settings.family == "AL2023" and facts.name.startswith("a1."):
        return False
    if settings.nested_virtualization and not facts.nested_virtualization:
        return False
    if settings.placement and settings.placement not in facts.placement:
        return False
    return not settings.connection_tracking or facts.hypervisor == "nitro"


def _fits_interfaces(facts: InstanceTypeFacts, interfaces: tuple[Interface, ...]) -> bool:
    if not facts.cards or not facts.ena or sum(i.efa_only for i in interfaces) > facts.efa:
        return False
    return all(i.card < len(facts.cards) and i.device < facts.cards[i.card] for i in interfaces)


# ── capacity ──────────────────────────────────────────────────────────────────────────────────────────────


def capacity(facts: InstanceTypeFacts, settings: NodeSettings, branch_interfaces: int = 0) -> Resources:
    """The capacity of a node, without the resources that the type has none of (A-168…A-183)."""
    amounts = {
        "cpu": facts.vcpus * 1000,
        "memory": memory(facts, settings),
        "ephemeral-storage": ephemeral_storage(facts, settings),
        "pods": pods(facts, settings),
        POD_ENI: branch_interfaces,
        "nvidia.com/gpu": _devices(facts.gpus, "NVIDIA"),
        "amd.com/gpu": _devices(facts.gpus, "AMD"),
        "habana.ai/gaudi": _devices(facts.gpus, "Habana"),
        "aws.amazon.com/neuron": sum(device.count for device in facts.neurons),
        "aws.amazon.com/neuroncore": facts.neurons[0].count * facts.neurons[0].cores if facts.neurons else 0,
        EFA: sum(i.efa_only for i in settings.interfaces) if settings.interfaces else facts.efa,
    }
    if FAMILIES[settings.family].windows_build and facts.arch == "amd64":
        amounts["vpc.amazonaws.com/PrivateIPv4Address"] = facts.ipv4_per_interface - 1
    # `pods` may be 0 and must then be said: a resource that is absent is one that nobody counts.
    return {name: amount for name, amount in amounts.items() if amount or name == "pods"}


def memory(facts: InstanceTypeFacts, settings: NodeSettings) -> int:
    """Memory in bytes: what nodes were seen to have, else an estimate (A-169). Arm types lose 64 MiB before the
    overhead is taken."""
    if facts.name in settings.seen_memory:
        return settings.seen_memory[facts.name]
    mebibytes = facts.memory - (64 if facts.arch == "arm64" else 0)
    return (mebibytes - math.ceil(mebibytes * MI * settings.overhead / MI)) * MI


def ephemeral_storage(facts: InstanceTypeFacts, settings: NodeSettings) -> int:
    """Ephemeral storage in bytes (A-171)."""
    if settings.raid0 and facts.storage:
        return facts.storage * 10**9
    family = FAMILIES[settings.family]
    root = next((m.size for m in settings.mappings if m.root and m.size), 0)
    if root:
        return root
    if settings.mappings and family.name == "Custom":
        return settings.mappings[-1].size or 20 * GI
    data = next((m.size for m in settings.mappings if m.device == family.data_device and m.size), 0)
    return data or _default_storage(family)


def _default_storage(family: Family) -> int:
    return next((size for device, size in family.devices if device == family.data_device), 20 * GI)


def pods(facts: InstanceTypeFacts, settings: NodeSettings) -> int:
    """How many pods a node takes: by `maxPods` or the family, and by `podsPerCore` (A-176)."""
    family = FAMILIES[settings.family]
    default = family.pods or eni_pods(facts, settings, settings.reserved_enis)
    count = default if settings.max_pods is None else settings.max_pods
    if settings.pods_per_core and family.pods_per_core:
        count = min(count, settings.pods_per_core * facts.vcpus)
    return count


def eni_pods(facts: InstanceTypeFacts, settings: NodeSettings, reserved: int) -> int:
    """How many pods the network interfaces have addresses for (A-177): each interface keeps one address for itself, and
    two pods use the host's."""
    if facts.card >= len(facts.cards):
        return 0
    taken = sum(i.efa_only and i.card == 0 for i in settings.interfaces)
    interfaces = max(0, facts.cards[facts.card] - reserved - taken)
    return interfaces * (facts.ipv4_per_interface - 1) + 2 if interfaces else 0


def _devices(devices: tuple[Device, ...], manufacturer: str) -> int:
    return sum(device.count for device in devices if device.manufacturer == manufacturer)


# ── overhead ──────────────────────────────────────────────────────────────────────────────────────────────


def overhead(facts: InstanceTypeFacts, settings: NodeSettings) -> Resources:
    """The sum of kube-reserved, system-reserved and the eviction threshold (A-184…A-187). Like each of them it has an
    upper bound: a record keeps integers of 64 bits, and no node has more to reserve."""
    parts = (kube_reserved(facts, settings), settings.system_reserved, eviction_threshold(facts, settings))
    names = sorted({name for part in parts for name in part})
    totals = {name: sum(part.get(name, 0) for part in parts) for name in names}
    return {name: min(total, LARGEST_AMOUNT) for name, total in totals.items() if total}


def kube_reserved(facts: InstanceTypeFacts, settings: NodeSettings) -> Resources:
    """What the kubelet reserves for itself. A key of the class's own kubeReserved replaces the default (A-184)."""
    by_eni = FAMILIES[settings.family].reserve_by_eni
    counted = eni_pods(facts, settings, 0) if by_eni else pods(facts, settings)
    defaults = {
        "cpu": _reserved_cpu(facts.vcpus),
        "memory": (11 * counted + 255) * MI,
        "ephemeral-storage": GI,
    }
    return defaults | settings.kube_reserved


def _reserved_cpu(cores: int) -> int:
    """Milli-CPU: 6% of the first core, 1% of the second, 0.5% of the next two, 0.25% of the rest, tier by
    tier."""
    return (
        60 * min(cores, 1) + 10 * min(max(cores - 1, 0), 1) + 5 * min(max(cores - 2, 0), 2) + max(cores - 4, 0) * 5 // 2
    )


def eviction_threshold(facts: InstanceTypeFacts, settings: NodeSettings) -> Resources:
    """What the kubelet keeps free before it evicts: 100 MiB of memory, a tenth of the storage (A-186)."""
    storage = ephemeral_storage(facts, settings)
    return {
        "memory": _threshold(settings, "memory.available", memory(facts, settings), 100 * MI),
        "ephemeral-storage": _threshold(settings, "nodefs.available", storage, math.ceil(storage / 10)),
    }


def _threshold(settings: NodeSettings, signal: str, whole: int, default: int) -> int:
    value = settings.eviction_hard.get(signal)
    if value is None:
        return default
    if isinstance(value, int):
        return value
    percent = float(value.removesuffix("%"))
    return 0 if percent == 100 else math.ceil(whole / 100 * percent)


# ── labels ────────────────────────────────────────────────────────────────────────────────────────────────


def requirements(
    facts: InstanceTypeFacts,
    settings: NodeSettings,
    offerings: tuple[Offering, ...],
    region: str,
    network_bandwidth: int,
) -> dict[str, tuple[str, ...]]:
    """The labels of the type with their possible values; () says that the label does not exist (A-142…A-166)."""
    windows = FAMILIES[settings.family].windows_build
    zone_ids = _unique(offering.zone_id for offering in offerings if offering.zone_id)
    found: dict[str, tuple[str, ...]] = {
        labels.INSTANCE_TYPE: (facts.name,),
        labels.ARCH: (facts.arch,),
        labels.OS: (("windows",) if facts.arch == "amd64" else ()) if windows else ("linux",),
        labels.WINDOWS_BUILD: (windows,) if windows else (),
        labels.ZONE: _unique(offering.zone for offering in offerings),
        labels.REGION: (region,),
        labels.CAPACITY_TYPE: _unique(offering.capacity_type for offering in offerings),
        labels.TENANCY: _unique([labels.DEFAULT_TENANCY, *(offering.tenancy for offering in offerings)]),
    }
    if zone_ids:
        found[labels.ZONE_ID] = zone_ids
    described = _described(facts, network_bandwidth) | _reservations(offerings)
    if settings.placement_id:
        described["placement-group-id"] = (settings.placement_id,)
    if settings.partitions:
        described["placement-group-partition"] = tuple(str(number + 1) for number in range(settings.partitions))
    return found | {_AWS + name: values for name, values in described.items()}


def _described(facts: InstanceTypeFacts, network_bandwidth: int) -> dict[str, tuple[str, ...]]:
    family, _, size = facts.name.partition(".")
    name = _NAME.match(family)
    return {
        "instance-category": (name[1],) if name else (),
        "instance-generation": (name[2],) if name else (),
        "instance-family": (family,),
        "instance-size": (size,),
        "instance-capability-flex": (_boolean("-flex" in family),),
        "instance-cpu": (str(facts.vcpus),),
        "instance-memory": (str(facts.memory),),
        "instance-cpu-manufacturer": _text(facts.manufacturer),
        "instance-cpu-sustained-clock-speed-mhz": _number(round(facts.clock_ghz * 1000)),
        "instance-hypervisor": (facts.hypervisor,),
        "instance-encryption-in-transit-supported": (_boolean(facts.encryption_in_transit),),
        "nitro-sandbox": (_boolean(facts.enclaves),),
        "instance-local-nvme": _number(facts.storage if facts.nvme else 0),
        "instance-ebs-bandwidth": _number(facts.ebs_bandwidth),
        "instance-network-bandwidth": _number(network_bandwidth),
        **_gpu(facts),
        **_accelerator(facts),
    }


def _gpu(facts: InstanceTypeFacts) -> dict[str, tuple[str, ...]]:
    """The labels of a type with exactly one kind of GPU (A-163). A fraction of a GPU counts as 0, but has the label."""
    gpu = facts.gpus[0] if len(facts.gpus) == 1 else None
    return {
        "instance-gpu-name": _text(gpu.name) if gpu else (),
        "instance-gpu-manufacturer": _text(gpu.manufacturer) if gpu else (),
        "instance-gpu-count": (str(gpu.count),) if gpu else (),
        "instance-gpu-memory": (str(gpu.memory),) if gpu else (),
    }


def _accelerator(facts: InstanceTypeFacts) -> dict[str, tuple[str, ...]]:
    """The labels of a type's one accelerator: name, manufacturer, count (A-164)."""
    devices = facts.neurons if len(facts.neurons) == 1 else facts.accelerators
    device = devices[0] if len(devices) == 1 else None
    manufacturer = "aws" if facts.neurons else device.manufacturer if device else ""
    return {
        "instance-accelerator-name": _text(device.name) if device else (),
        "instance-accelerator-manufacturer": _text(manufacturer) if device else (),
        "instance-accelerator-count": (str(device.count),) if device else (),
    }


def _reservations(offerings: tuple[Offering, ...]) -> dict[str, tuple[str, ...]]:
    reserved = [offering for offering in offerings if offering.capacity_type == labels.RESERVED]
    return {
        "capacity-reservation-id": _unique(offering.reservation_id for offering in reserved),
        "capacity-reservation-type": _unique(offering.reservation_type for offering in reserved),
        "capacity-reservation-interruptible": _unique(_boolean(offering.interruptible) for offering in reserved),
    }


def _unique(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(values)))


def _text(value: str) -> tuple[str, ...]:
    return (value.lower().replace(" ", "-"),) if value else ()


def _number(value: int) -> tuple[str, ...]:
    return (str(value),) if value else ()


def _boolean(value: bool) -> str:
    return "true" if value else "false"
