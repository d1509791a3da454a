"""Limits of requests that AWS documents in prose and no service model has. Each names where it stands."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

_TAG_KEY, _TAG_VALUE, _TAGS = 128, 256, 50
"""EC2 User Guide, "Tag restrictions"; IAM User Guide, "Rules for tagging"."""
_USER_DATA = 16_384
"""EC2 User Guide, "Run commands on your Linux instance at launch": bytes before base64."""
_TOKEN = 64
"""EC2 API reference, "Ensuring idempotency": ASCII characters of a client token."""
_NAME = re.compile(r"[a-zA-Z0-9().\-/_]{3,128}")
"""EC2 API reference, shape LaunchTemplateName; the model leaves it out of CreateLaunchTemplate."""
_BATCH, _ID_LENGTH = 10, 80
"""SQS API reference, DeleteMessageBatch: entries of a batch, characters of their ids."""
_IDS = 1_000
"""EC2 API reference, DescribeInstances and TerminateInstances: ids of one call."""
_LISTS = frozenset({
    "describe_capacity_reservations", "describe_images", "describe_instance_status",
    "describe_instance_type_offerings", "describe_instance_types", "describe_instances", "describe_launch_templates",
    "describe_security_groups", "describe_spot_price_history", "describe_subnets",
})  # fmt: skip
"""Lists that EC2 gives by pages. EC2 API reference, "Pagination": ask for pages, or a long list may time out."""
_ASKED_BY_NAME = ("InstanceIds", "CapacityReservationIds", "LaunchTemplateNames", "DryRun")


def documented_problems(method: str, parameters: Mapping[str, Any]) -> list[str]:
    """What AWS would find wrong with a request, by its documentation."""
    found = [problem for look in _LOOKS for problem in look(parameters)]
    if method in _LISTS and "MaxResults" not in parameters and not any(n in parameters for n in _ASKED_BY_NAME):
        found.append(".MaxResults: a list is not asked for by pages")
    if "InstanceIds" in parameters and "MaxResults" in parameters:
        found.append(".MaxResults: EC2 refuses it beside InstanceIds")
    return found


def _token(parameters: Mapping[str, Any]) -> Iterator[str]:
    token = parameters.get("ClientToken", "x")
    if not (token and token.isascii() and len(token) <= _TOKEN):
        yield f".ClientToken: {token!r} is empty, longer than {_TOKEN} or no ASCII"


def _tags(parameters: Mapping[str, Any]) -> Iterator[str]:
    data = parameters.get("LaunchTemplateData", {})
    specified = [*parameters.get("TagSpecifications", ()), *data.get("TagSpecifications", ())]
    for tags in [parameters.get("Tags", ()), *(specification["Tags"] for specification in specified)]:
        keys = [tag["Key"] for tag in tags]
        if len(set(keys)) != len(keys) or len(keys) > _TAGS:
            yield f".Tags: {len(keys)} tags, {len(set(keys))} keys"
        for tag in tags:
            key, value = tag["Key"], tag["Value"]
            if not 0 < len(key) <= _TAG_KEY or len(value) > _TAG_VALUE or key.lower().startswith("aws:"):
                yield f".Tags: {key!r}={value!r} is no tag"
    kinds = [specification["ResourceType"] for specification in parameters.get("TagSpecifications", ())]
    if len(set(kinds)) != len(kinds):
        yield f".TagSpecifications: {kinds} names a kind twice"


def _fleet(parameters: Mapping[str, Any]) -> Iterator[str]:
    configs = parameters.get("LaunchTemplateConfigs", ())
    overrides = [override for config in configs for override in config.get("Overrides", ())]
    pools = [(override.get("InstanceType"), override.get("SubnetId")) for override in overrides]
    if len(set(pools)) != len(pools):
        yield ".LaunchTemplateConfigs: two overrides have one type and one subnet"
    named = [config["LaunchTemplateSpecification"]["LaunchTemplateName"] for config in configs]
    if len(set(named)) != len(named):
        yield ".LaunchTemplateConfigs: a launch template stands in two configurations"
    if parameters.get("Type") == "instant" and "TerminateInstancesWithExpiration" in parameters:
        yield ".TerminateInstancesWithExpiration: not for fleets of type instant"


def _template(parameters: Mapping[str, Any]) -> Iterator[str]:
    data, name = parameters.get("LaunchTemplateData", {}), parameters.get("LaunchTemplateName", "none")
    if not _NAME.fullmatch(name):
        yield f".LaunchTemplateName: {name!r} is no name"
    if len(base64.b64decode(data.get("UserData", ""), validate=True)) > _USER_DATA:
        yield f".LaunchTemplateData.UserData: over {_USER_DATA} bytes"
    if data.get("NetworkInterfaces") and data.get("SecurityGroupIds"):
        yield ".LaunchTemplateData.SecurityGroupIds: they belong to the interfaces"


def _batches(parameters: Mapping[str, Any]) -> Iterator[str]:
    entries = parameters.get("Entries", ())
    ids = [entry["Id"] for entry in entries]
    if len(ids) > _BATCH or len(set(ids)) != len(ids) or any(len(one) > _ID_LENGTH for one in ids):
        yield f".Entries: {ids} are no {_BATCH} different ids"
    for name in ("InstanceIds", "LaunchTemplateNames", "CapacityReservationIds"):
        if name in parameters and not 0 < len(parameters[name]) <= _IDS:
            yield f".{name}: {len(parameters[name])} ids"


_LOOKS: tuple[Callable[[Mapping[str, Any]], Iterator[str]], ...] = (_token, _tags, _fleet, _template, _batches)
