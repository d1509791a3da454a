"""What EC2 says of an instance type, reduced to what the formulas need, and the committed tables of such
facts.

Pure: no boto3, no moto. `facts_of` reads one entry of a DescribeInstanceTypes answer; `tables()` reads the
files under `data/`, each of which names its source and date (docs/aws-tables.md).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from kerf.adapters.aws.catalogue.regions import ZONES
from kerf.engine.model.labels import DEFAULT_TENANCY, INSTANCE_TYPE, TENANCY, ZONE
from kerf.engine.model.mistyped import CLOSED

_T = TypeVar("_T", bound=Struct)

ARCHITECTURES = {"x86_64": "amd64", "arm64": "arm64"}


class Device(Struct, frozen=True, array_like=True):
    """A GPU, Neuron device or inference accelerator. `memory` in MiB; `cores` are Neuron cores of one
    device."""

    name: str
    manufacturer: str
    count: int
    memory: int = 0
    cores: int = 0


class InstanceTypeFacts(Struct, frozen=True, omit_defaults=True):
    """The facts of one type. `memory` in MiB, `storage` in GB (0: none), bandwidths in Mbps.

    `cards` holds the largest number of network interfaces per network card, by card index; `card` is the
    default card. `ebs_bandwidth` is 0 unless EBS optimisation is on by default (A-160).
    """

    name: str
    arch: str
    vcpus: int
    memory: int
    manufacturer: str = ""
    clock_ghz: float = 0.0
    hypervisor: str = ""
    usage: tuple[str, ...] = ("on-demand", "spot")
    encryption_in_transit: bool = False
    enclaves: bool = False
    nested_virtualization: bool = False
    storage: int = 0
    nvme: bool = True
    ebs_bandwidth: int = 0
    ena: bool = True
    card: int = 0
    cards: tuple[int, ...] = ()
    ipv4_per_interface: int = 0
    efa: int = 0
    gpus: tuple[Device, ...] = ()
    neurons: tuple[Device, ...] = ()
    accelerators: tuple[Device, ...] = ()
    placement: tuple[str, ...] = ()


class Tables(Struct, frozen=True):
    """The committed tables. `sources` says, per table, where its figures come from and as of when."""

    types: dict[str, InstanceTypeFacts]
    branch_interfaces: dict[str, int]
    network_bandwidth: dict[str, int]
    prices: dict[str, float]
    sources: dict[str, str]


def facts_of(entry: Mapping[str, Any]) -> InstanceTypeFacts | None:
    """The facts in one entry of DescribeInstanceTypes; None for a type that Karpenter's filters leave out (A-137).
    Raises KeyError for an entry without what each type has."""
    processor = entry.get("ProcessorInfo", {})
    arch = next((a for a in processor.get("SupportedArchitectures", ()) if a in ARCHITECTURES), None)
    if arch is None or "hvm" not in entry.get("SupportedVirtualizationTypes", ()):
        return None
    network = entry.get("NetworkInfo", {})
    cards = sorted(network.get("NetworkCards", ()), key=lambda card: int(card["NetworkCardIndex"]))
    storage = entry.get("InstanceStorageInfo", {})
    ebs = entry.get("EbsInfo", {})
    bandwidth = ebs.get("EbsOptimizedInfo", {}).get("MaximumBandwidthInMbps", 0)
    return InstanceTypeFacts(
        name=entry["InstanceType"],
        arch=ARCHITECTURES[arch],
        vcpus=entry["VCpuInfo"]["DefaultVCpus"],
        memory=entry["MemoryInfo"]["SizeInMiB"],
        manufacturer=processor.get("Manufacturer", ""),
        clock_ghz=processor.get("SustainedClockSpeedInGhz", 0.0),
        hypervisor=entry.get("Hypervisor", ""),
        usage=tuple(sorted(set(entry.get("SupportedUsageClasses", ())) & {"on-demand", "spot"})),
        encryption_in_transit=network.get("EncryptionInTransitSupported", False),
        enclaves=entry.get("NitroEnclavesSupport") == "supported",
        nested_virtualization="nested-virtualization" in processor.get("SupportedFeatures", ()),
        storage=storage.get("TotalSizeInGB", 0),
        nvme=storage.get("NvmeSupport", "required") != "unsupported",
        ebs_bandwidth=bandwidth if ebs.get("EbsOptimizedSupport") == "default" else 0,
        ena=network.get("EnaSupport", "unsupported") != "unsupported",
        card=network.get("DefaultNetworkCardIndex", 0),
        cards=tuple(card["MaximumNetworkInterfaces"] for card in cards),
        ipv4_per_interface=network.get("Ipv4AddressesPerInterface", 0),
        efa=network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0),
        gpus=tuple(_device(gpu) for gpu in entry.get("GpuInfo", {}).get("Gpus", ())),
        neurons=tuple(_device(device) for device in entry.get("NeuronInfo", {}).get("NeuronDevices", ())),
        accelerators=tuple(
            _device(device) for device in entry.get("InferenceAcceleratorInfo", {}).get("Accelerators", ())
        ),
        placement=tuple(sorted(entry.get("PlacementGroupInfo", {}).get("SupportedStrategies", ()))),
    )


def _device(entry: Mapping[str, Any]) -> Device:
    return Device(
        name=entry.get("Name", ""),
        manufacturer=entry.get("Manufacturer", ""),
        count=entry.get("Count", 0),
        memory=entry.get("MemoryInfo", {}).get("SizeInMiB", 0),
        cores=entry.get("CoreInfo", {}).get("Count", 0),
    )


class _Figures(Struct, frozen=True):
    what: str
    as_of: str
    values: dict[str, float]


class _Types(Struct, frozen=True):
    what: str
    as_of: str
    values: tuple[InstanceTypeFacts, ...]


_PRICED = frozenset({"us-gov-east-1", "us-gov-west-1", "cn-north-1"})
"""Regions of other partitions, whose prices say nothing of us-east-1's."""


@cache
def tables() -> Tables:
    """The committed tables, read once a process; they never change while it runs."""
    types = _read("instance-types", _Types)
    branch = _read("branch-interfaces", _Figures)
    network = _read("network-bandwidth", _Figures)
    prices = _read("on-demand-prices-us-east-1", _Figures)
    return Tables(
        types={facts.name: facts for facts in types.values},
        branch_interfaces={name: int(value) for name, value in branch.values.items()},
        network_bandwidth={name: int(value) for name, value in network.values.items()},
        prices=prices.values,
        sources={
            "types": f"instance type table of {types.as_of}",
            "branch interfaces": f"table of {branch.as_of}",
            "network bandwidth": f"table of {network.as_of}",
            "prices": f"us-east-1 on-demand price table of {prices.as_of}",
        },
    )


@cache
def regional_prices(region: str) -> tuple[Mapping[str, float], str]:
    """The committed on-demand prices of a region that has a table of its own, and what the table is called; else those
    of us-east-1 (A-203). In China they are in CNY."""
    if region not in _PRICED:
        return tables().prices, tables().sources["prices"]
    known = _read(f"on-demand-prices-{region}", _Figures)
    return known.values, f"{region} on-demand price table of {known.as_of}"


def ec2_values() -> dict[str, Collection[str]]:
    """The values that labels have on EC2, as far as these tables tell: types, their families and sizes, zones, and what
    is the same everywhere."""
    names = tables().types
    parts = [name.partition(".") for name in names]
    return {
        **CLOSED,
        INSTANCE_TYPE: names.keys(),
        ZONE: ZONES,
        TENANCY: (DEFAULT_TENANCY,),  # no table has prices of dedicated hardware
        "karpenter.k8s.aws/instance-family": {family for family, _, _ in parts},
        "karpenter.k8s.aws/instance-size": {size for _, _, size in parts},
    }


def _read(name: str, kind: type[_T]) -> _T:
    return msgspec.json.decode(files("kerf.adapters.aws").joinpath(f"data/{name}.json").read_bytes(), type=kind)
