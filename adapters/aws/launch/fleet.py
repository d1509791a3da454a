"""One CreateFleet of type instant for one claim: its request (A-273…A-282) and its answer (A-283…A-298). Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from kerf.adapters.aws import tags
from kerf.adapters.aws.launch.fleet_errors import SPREAD_LIMIT, refusal, says_used_up
from kerf.adapters.aws.launch.launch_template import reservation_kind
from kerf.adapters.aws.nodeclass.capacity_reservations import BLOCK, INTERRUPTIBLE
from kerf.adapters.aws.nodeclass.resolved import image_of
from kerf.adapters.aws.settings import AwsSettings
from kerf.engine.model import labels
from kerf.engine.model.instance_types import InstanceType
from kerf.engine.model.karpenter.ec2nodeclasses import EC2NodeClass, ResolvedAMI
from kerf.engine.model.karpenter.launch_reasons import NO_ADDRESSES
from kerf.engine.record.decisions import LaunchInstance, Offer
from kerf.engine.record.observations import LaunchAnswered, LaunchError

_TARGETS = {BLOCK: BLOCK, INTERRUPTIBLE: "reserved-capacity"}
"""DefaultTargetCapacityType by the kind of reservation (A-274)."""


class Group(Struct, frozen=True):
    """Offers that one launch template serves: their types boot the same image and take equally many pods (A-234)."""

    kind: InstanceType  # the first of them
    image: str
    offers: tuple[Offer, ...]
    kubelet: Mapping[str, Any] | None = None  # what the class's became on these types, where it has expressions


def groups(
    order: LaunchInstance,
    types: Mapping[str, InstanceType],
    images: Sequence[ResolvedAMI],
    kubelet_on: Callable[[str], Mapping[str, Any]] | None = None,
) -> tuple[Group, ...]:
    """The offers by launch template. Offers of unknown types, and of types that no image boots, are left out
    (A-115). `kubelet_on`: the kubelet of a class with expressions, on a type (A-257)."""
    offers_by_template: dict[tuple[str, int, int, bytes], list[Offer]] = {}
    for offer in order.offers:
        kind = types.get(offer.instance_type)
        image = image_of(images, kind) if kind is not None else ""
        if kind is not None and image:
            efas = kind.capacity.get("vpc.amazonaws.com/efa", 0)
            efas = efas if order.requests.get("vpc.amazonaws.com/efa") else 0
            kubelet = msgspec.json.encode(kubelet_on(kind.name), order="sorted") if kubelet_on is not None else b""
            offers_by_template.setdefault((image, kind.capacity["pods"], efas, kubelet), []).append(offer)
    return tuple(
        Group(types[offers[0].instance_type], image, tuple(offers), msgspec.json.decode(kubelet) if kubelet else None)
        for (image, _, _, kubelet), offers in sorted(offers_by_template.items())
    )


def least_pods(chosen: Iterable[Group]) -> dict[str, int]:
    """The fewest pods that a node may take, by zone: so many addresses a launch will use at least (A-233)."""
    least: dict[str, int] = {}
    for group in chosen:
        pods = group.kind.capacity["pods"]
        for offer in group.offers:
            least[offer.zone] = min(pods, least.get(offer.zone, pods))
    return least


def fleet_request(
    order: LaunchInstance,
    node_class: EC2NodeClass,
    settings: AwsSettings,
    templates: Sequence[tuple[str, Group]],
    subnets: Mapping[str, Sequence[str]],
    token: str,
) -> dict[str, Any]:
    """The parameters of CreateFleet; `subnets` has those to try in each zone. Empty if no offer's zone has one."""
    configs = [
        {
            "LaunchTemplateSpecification": {"LaunchTemplateName": name, "Version": "$Latest"},
            "Overrides": overrides,
        }
        for name, group in templates
        if (overrides := _overrides(group, subnets))
    ]
    if not configs:
        return {}
    spec = node_class.spec
    own = tags.launch_tags(settings.cluster, node_class.name, order.node_pool, spec.tags, order.claim)
    spot, market = order.capacity_type == labels.SPOT, reservation_kind(order, node_class)
    request: dict[str, Any] = {
        "Type": "instant",
        "ClientToken": token,
        "TargetCapacitySpecification": {
            "TotalTargetCapacity": 1,
            "DefaultTargetCapacityType": _TARGETS.get(market, "spot" if spot else "on-demand"),
        },
        "LaunchTemplateConfigs": configs,
        "TagSpecifications": tags.specifications(["instance", "volume", "fleet"], own),
    }
    if spot:
        strategy = "capacity-optimized-prioritized" if order.by_price else "price-capacity-optimized"
        request["SpotOptions"] = {"AllocationStrategy": strategy}
    elif market == INTERRUPTIBLE:
        request["ReservedCapacityOptions"] = {"ReservationTypes": [INTERRUPTIBLE]}
    elif market != BLOCK:
        request["OnDemandOptions"] = {"AllocationStrategy": "prioritized" if order.by_price else "lowest-price"}
    if spec.context and not order.relaxed:
        request["Context"] = spec.context
    return request


def _overrides(group: Group, subnets: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    """One override for each subnet to try of each (type, zone), the offer's price as its priority (A-279)."""
    return [
        {
            "InstanceType": offer.instance_type,
            "SubnetId": subnet,
            "ImageId": group.image,
            "AvailabilityZone": offer.zone,
            "Priority": offer.price,
        }
        for offer in group.offers
        for subnet in subnets.get(offer.zone, ())
    ]


def answered(
    answer: Mapping[str, Any],
    request: Mapping[str, Any],
    order: LaunchInstance,
    zone_ids: Mapping[str, str],
    *,
    placement_group: str,
    intent: str,
    now: int,
) -> LaunchAnswered:
    """What the answer of CreateFleet means. Errors beside an instance are kept: their offers lack capacity (A-446).
    `placement_group`: the id of the one that was launched into."""
    zones = {o["SubnetId"]: o["AvailabilityZone"] for c in request["LaunchTemplateConfigs"] for o in c["Overrides"]}
    errors = tuple(_error(entry, order, zones, zone_ids, placement_group) for entry in answer.get("Errors", ()))
    started = next((entry for entry in answer.get("Instances", ()) if entry.get("InstanceIds")), None)
    if started is None:
        return refusal(intent, order.claim, errors)
    override = started.get("LaunchTemplateAndOverrides", {}).get("Overrides", {})
    zone = override.get("AvailabilityZone") or zones.get(override.get("SubnetId", ""), "")
    instance = started["InstanceIds"][0]
    return LaunchAnswered(
        intent=intent,
        claim=order.claim,
        instance=instance,
        provider_id=f"aws:///{zone}/{instance}",
        instance_type=started.get("InstanceType") or override.get("InstanceType", ""),
        zone=zone,
        zone_id=zone_ids.get(zone, ""),
        capacity_type=order.capacity_type,
        image=override.get("ImageId", ""),
        subnet=override.get("SubnetId", ""),
        launched=now,
        errors=errors,
    )


def _error(
    entry: Mapping[str, Any],
    order: LaunchInstance,
    zones: Mapping[str, str],
    zone_ids: Mapping[str, str],
    group: str,
) -> LaunchError:
    """The offer that an error is about; an error may come without it (A-292)."""
    override = (entry.get("LaunchTemplateAndOverrides") or {}).get("Overrides") or {}
    code, message, subnet = entry.get("ErrorCode", ""), entry.get("ErrorMessage", ""), override.get("SubnetId", "")
    zone = override.get("AvailabilityZone") or zones.get(subnet, "")
    return LaunchError(
        code=code,
        message=message,
        instance_type=override.get("InstanceType", ""),
        zone=zone,
        zone_id=zone_ids.get(zone, ""),
        capacity_type=order.capacity_type,
        subnet=subnet if code == NO_ADDRESSES else "",
        placement_group=group,
        full=SPREAD_LIMIT in message,
        reservation=order.reservation if says_used_up(code, message) else "",
    )
