"""Launch templates: their content (A-239…A-256), their names, and keeping them in EC2 (A-235…A-238)."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec.structs import replace

from kerf.adapters.aws import tags
from kerf.adapters.aws.ami_families import FAMILIES, GI
from kerf.adapters.aws.catalogue.instance_types import EFA
from kerf.adapters.aws.nodeclass.capacity_reservations import BLOCK, INTERRUPTIBLE
from kerf.adapters.aws.nodeclass.resolved import volume_bytes
from kerf.adapters.aws.session import AwsError, Clients, call, pages
from kerf.adapters.aws.settings import AwsSettings
from kerf.adapters.aws.userdata.boot import Boot
from kerf.adapters.aws.userdata.bottlerocket import binds_folders
from kerf.adapters.aws.userdata.user_data import node_labels, node_taints, user_data
from kerf.engine.model import labels
from kerf.engine.model.crds.kubelet import stated_kubelet
from kerf.engine.model.instance_types import InstanceType
from kerf.engine.model.karpenter.ec2nodeclasses import BlockDevice, EC2NodeClass, EC2NodeClassSpec
from kerf.engine.record.decisions import LaunchInstance

UNUSED = 60_000
"""How long a template is kept without use, in milliseconds (A-237)."""
_EXISTS = "InvalidLaunchTemplateName.AlreadyExistsException"
ENCLAVES = "eks.amazonaws.com/nitro-sandbox"
"""The resource that asks for an enclave (A-71, A-245)."""
_ISOLATED = frozenset({
    "us-iso-east-1", "us-iso-west-1", "us-isob-east-1", "us-isob-west-1", "us-isof-south-1", "us-isof-east-1",
})  # fmt: skip
"""Regions whose metadata service has no IPv6 (A-243)."""
PAGE = 200  # launch templates
MOST_NAMES = 1_000
"""Names of templates that are remembered by what they are made from."""
_encode = msgspec.msgpack.Encoder(order="deterministic").encode


def template_data(
    order: LaunchInstance,
    node_class: EC2NodeClass,
    settings: AwsSettings,
    kind: InstanceType,
    image: str,
    placement_group: str = "",
) -> dict[str, Any]:
    """The LaunchTemplateData for the types that boot `image` with as many pods as `kind`. Raises
    `InputError`."""
    spec = node_class.spec
    efas = kind.capacity.get(EFA, 0) if order.requests.get(EFA) else 0
    own = tags.launch_tags(settings.cluster, node_class.name, order.node_pool, spec.tags)
    kinds = ["network-interface", *(["spot-instances-request"] if order.capacity_type == labels.SPOT else [])]
    data: dict[str, Any] = {
        "ImageId": image,
        "UserData": user_data(_boot(order, node_class, settings, kind)),
        "IamInstanceProfile": {"Name": node_class.status.instance_profile},
        "Monitoring": {"Enabled": bool(spec.detailed_monitoring)},
        "MetadataOptions": metadata_options(spec, settings.region),
        "Placement": {"Tenancy": order.tenancy, **_group(order, kind, placement_group)},
        "NetworkInterfaces": _interfaces(node_class, settings, efas),
        "TagSpecifications": tags.specifications(kinds, own),
    }
    if order.requests.get(ENCLAVES):
        data["EnclaveOptions"] = {"Enabled": True}
    if settings.reserved_capacity:
        data["CapacityReservationSpecification"] = _reservation(order)
    if spec.cpu_options is not None and spec.cpu_options.nested_virtualization:
        data["CpuOptions"] = {"NestedVirtualization": spec.cpu_options.nested_virtualization}
    if (market := reservation_kind(order, node_class)) in (BLOCK, INTERRUPTIBLE):
        data["InstanceMarketOptions"] = {"MarketType": market}
    if mappings := block_devices(spec, node_class.ami_family):
        data["BlockDeviceMappings"] = mappings
    return data


def _group(order: LaunchInstance, kind: InstanceType, placement_group: str) -> dict[str, Any]:
    """The placement group, and the partition where the claim is for one (A-246)."""
    if not placement_group:
        return {}
    partition = order.labels.get(labels.PARTITION, "")
    targeted = partition in kind.requirements.get(labels.PARTITION, ())
    return {"GroupId": placement_group, **({"PartitionNumber": int(partition)} if targeted else {})}


def reservation_kind(order: LaunchInstance, node_class: EC2NodeClass) -> str:
    """The kind of the reservation that a launch uses: default, capacity-block or interruptible; "" without one."""
    if order.capacity_type != labels.RESERVED:
        return ""
    held = next((held for held in node_class.status.capacity_reservations if held.id == order.reservation), None)
    if held is None:
        return "default"
    return INTERRUPTIBLE if held.interruptible and held.reservation_type != BLOCK else held.reservation_type


def template_name(data: Mapping[str, Any]) -> str:
    """A name that follows from the content, so that claims share templates and a retry finds its own (A-235)."""
    text = json.dumps(data, sort_keys=True)
    return f"karpenter.k8s.aws/{int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), 'big')}"


def _boot(order: LaunchInstance, node_class: EC2NodeClass, settings: AwsSettings, kind: InstanceType) -> Boot:
    family, spec = node_class.ami_family, node_class.spec
    return Boot(
        family=family,
        cluster=settings.cluster,
        endpoint=settings.facts.endpoint,
        ca_bundle=settings.facts.ca_bundle,
        cidr=settings.facts.cidr,
        dns=settings.facts.dns,
        max_pods=kind.capacity["pods"],
        kubelet=stated_kubelet(spec.kubelet),
        labels=node_labels(order.labels, order.capacity_type, family),
        taints=node_taints(order.taints),
        custom=spec.user_data,
        raid0=spec.instance_store_policy == "RAID0",
        bind_folders=family == "Bottlerocket" and binds_folders(node_class),
    )


def metadata_options(spec: EC2NodeClassSpec, region: str) -> dict[str, Any]:
    """The options of the instance metadata service, with the CRD's defaults field by field (A-42, A-243)."""
    options = spec.metadata_options
    return {
        "HttpEndpoint": options.http_endpoint,
        **({} if region in _ISOLATED else {"HttpProtocolIpv6": options.http_protocol_ipv6}),
        "HttpPutResponseHopLimit": options.http_put_response_hop_limit,
        "HttpTokens": options.http_tokens,
        "InstanceMetadataTags": "disabled",
    }


def block_devices(spec: EC2NodeClassSpec, family: str) -> list[dict[str, Any]]:
    """The class's own mappings, else its family's; a mapping without a volume is left out (A-242)."""
    if not spec.block_device_mappings:
        defaults = FAMILIES[family].devices
        return [
            {
                "DeviceName": device,
                "Ebs": {"Encrypted": True, "VolumeType": "gp3", "VolumeSize": size // GI},
            }
            for device, size in defaults
        ]
    return [
        {"DeviceName": mapping.device_name, "Ebs": _ebs(mapping.ebs)}
        for mapping in spec.block_device_mappings
        if mapping.ebs
    ]


def _ebs(ebs: BlockDevice) -> dict[str, Any]:
    """A volume's settings. Unset fields and zeros are left out; sizes are whole GiB, rounded up (A-426)."""
    values = {
        "DeleteOnTermination": ebs.delete_on_termination,
        "Encrypted": ebs.encrypted,
        "Iops": ebs.iops or None,
        "KmsKeyId": ebs.kms_key_id or None,
        "SnapshotId": ebs.snapshot_id or None,
        "Throughput": ebs.throughput or None,
        "VolumeInitializationRate": ebs.volume_initialization_rate or None,
        "VolumeSize": -(-volume_bytes(ebs) // GI) or None,
        "VolumeType": ebs.volume_type or None,
    }
    return {name: value for name, value in values.items() if value is not None}


def _reservation(order: LaunchInstance) -> dict[str, Any]:
    """Which reservation a launch may use. One without a reservation uses up no open one, unless the gate
    ReservedCapacity is closed (A-247)."""
    if order.capacity_type != labels.RESERVED:
        return {"CapacityReservationPreference": "none"}
    return {
        "CapacityReservationPreference": "capacity-reservations-only",
        "CapacityReservationTarget": {"CapacityReservationId": order.reservation},
    }


def _interfaces(node_class: EC2NodeClass, settings: AwsSettings, efas: int) -> list[dict[str, Any]]:
    """The class's own network interfaces, else one for each EFA asked for, else one. The fleet adds the subnets
    (A-253…A-255)."""
    groups = {"Groups": [group.id for group in node_class.status.security_groups]}
    whole = groups | _addressing(node_class.spec, settings)
    own = node_class.spec.network_interfaces
    if own:
        return [
            {
                "NetworkCardIndex": interface.network_card_index or 0,
                "DeviceIndex": interface.device_index or 0,
                "InterfaceType": interface.interface_type,
                **(whole if interface.interface_type == "interface" else groups),
            }
            for interface in own
        ]
    if efas:
        return [
            {"NetworkCardIndex": card, "DeviceIndex": min(card, 1), "InterfaceType": "efa", **whole}
            for card in range(efas)
        ]
    return [{"DeviceIndex": 0, **whole}]


def _addressing(spec: EC2NodeClassSpec, settings: AwsSettings) -> dict[str, Any]:
    """What an interface with addresses has beside its groups (A-255, A-256)."""
    addressing: dict[str, Any] = {}
    if spec.associate_public_ip_address is not None:
        addressing["AssociatePublicIpAddress"] = spec.associate_public_ip_address
    if spec.ip_prefix_count:
        addressing["Ipv6PrefixCount" if settings.facts.ipv6 else "Ipv4PrefixCount"] = spec.ip_prefix_count
    if settings.facts.ipv6:
        addressing |= {"PrimaryIpv6": True, "Ipv6AddressCount": 1}
    if tracking := spec.connection_tracking:
        limits = {
            "TcpEstablishedTimeout": tracking.tcp_established_timeout,
            "UdpStreamTimeout": tracking.udp_stream_timeout,
            "UdpTimeout": tracking.udp_timeout,
        }
        addressing["ConnectionTrackingSpecification"] = {n: limit for n, limit in limits.items() if limit is not None}
    return addressing


class LaunchTemplates:
    """The launch templates in EC2. `sweep` deletes those that were not used for a minute, also those of an earlier
    process."""

    def __init__(self, clients: Clients, settings: AwsSettings, clock: Callable[[], int]) -> None:
        self._clients = clients
        self._settings = settings
        self._clock = clock
        self._used: dict[str, int] = {}
        self._names: dict[bytes, str] = {}  # of templates, by a digest of what they are made from
        self._adopted = False
        self._making = threading.Lock()  # launches at one time want the same template

    def of(
        self, order: LaunchInstance, node_class: EC2NodeClass, kind: InstanceType, image: str, placement_group: str
    ) -> str:
        """The name of the template for a launch (`template_data`); makes it if it is missing. The content is written
        once for all claims that it serves. Raises `AwsError` and `InputError`."""
        alike = replace(order, claim="", offers=(), again="", look=False, user_data="")
        partitions = kind.requirements.get(labels.PARTITION, ())
        made_from = (alike, node_class, self._settings, kind.capacity, partitions, image, placement_group)
        key = blake2b(_encode(made_from), digest_size=16).digest()
        name = self._names.get(key, "")
        if not self._taken(name):
            data = template_data(order, node_class, self._settings, kind, image, placement_group)
            if len(self._names) >= MOST_NAMES:
                self._names.clear()
            self._names[key] = name = self.ensure(data, node_class, order.node_pool)
        return name

    def _taken(self, name: str) -> bool:
        with self._making:
            known = name in self._used
            if known:
                self._used[name] = self._clock()
        return known

    def ensure(self, data: Mapping[str, Any], node_class: EC2NodeClass, node_pool: str) -> str:
        """The name of a template with this content; makes it if it is missing. Raises `AwsError`."""
        name = template_name(data)
        with self._making:
            if name not in self._used:
                self._create(name, data, node_class, node_pool)
            self._used[name] = self._clock()
        return name

    def forget(self) -> None:
        """Stop assuming that templates exist: EC2 did not find one (A-284). The next sweep looks which are there."""
        self._used.clear()
        self._adopted = False

    def sweep(self) -> bool:
        """Delete unused templates (A-237), and return whether there were any. One that is gone already is no error; one
        that EC2 does not let go is tried again a minute later, and keeps no other. Raises `AwsError` for the first of
        these."""
        now = self._clock()
        if not self._adopted:
            owned = self._owned({tags.CLUSTER: self._settings.cluster})
            with self._making:
                self._used = dict.fromkeys(owned, now) | self._used
            self._adopted = True
        unused = [name for name, used in list(self._used.items()) if used + UNUSED < now]
        self._delete_all(unused, unused_at=now)
        return bool(unused)

    def release(self, node_class: str) -> None:
        """Delete all templates of a class that is being deleted (A-238). Raises `AwsError`, once all others are
        deleted."""
        self._delete_all(self._owned({tags.CLUSTER: self._settings.cluster, tags.NODECLASS: node_class}))

    def _delete_all(self, names: Iterable[str], unused_at: int | None = None) -> None:
        """Delete templates; with `unused_at` only what nobody has taken or forgotten since."""
        refused: list[AwsError] = []
        for name in sorted(names):
            with self._making:
                if unused_at is not None and self._used.get(name, unused_at) + UNUSED >= unused_at:
                    continue
                try:
                    self._delete(name)
                except AwsError as error:
                    refused.append(error)
                    self._used[name] = self._clock()
        if refused:
            raise refused[0]

    def _delete(self, name: str) -> None:
        try:
            call(self._clients.ec2.delete_launch_template, LaunchTemplateName=name)
        except AwsError as error:
            if not error.not_found:
                raise
        self._used.pop(name, None)

    def _owned(self, own: Mapping[str, str]) -> list[str]:
        conditions = [{"Name": f"tag:{key}", "Values": [value]} for key, value in own.items()]
        ask = self._clients.ec2.describe_launch_templates
        listed = pages(ask, "LaunchTemplates", Filters=conditions, MaxResults=PAGE)
        return sorted(template["LaunchTemplateName"] for template in listed)

    def _create(self, name: str, data: Mapping[str, Any], node_class: EC2NodeClass, node_pool: str) -> None:
        """Make a template. One that is there has this content: its name follows from it (A-235). So EC2 is not asked
        first, as A-236 has it."""
        own = tags.launch_tags(self._settings.cluster, node_class.name, node_pool, node_class.spec.tags)
        try:
            call(
                self._clients.ec2.create_launch_template,
                LaunchTemplateName=name,
                LaunchTemplateData=data,
                TagSpecifications=tags.specifications(["launch-template"], own),
            )
        except AwsError as error:
            if error.aws_code != _EXISTS:
                raise
