"""What IAM is asked when kerf calls AWS: one call is one or more actions on resources.

EC2 User Guide, "Example policies to control access to the EC2 API" and "Grant permission to tag resources during
creation"; EC2 Fleet, "Prerequisites": CreateFleet asks for itself, for RunInstances with what the launch template
holds, for CreateTags of all that it tags, and for PassRole of the profile's role. IAM asks for TagInstanceProfile when
a profile is made with tags.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tests.support.aws.boundary import Call
from tests.support.aws.iam.account import Account, Profile, Tags
from tests.support.aws.iam.policy import Asked
from tests.support.aws.service_model import operation_model

_PUBLIC = ("image", "snapshot")
"""Kinds of EC2 whose names have no account."""


class Authorizations:
    """Of the calls in one account."""

    def __init__(self, account: Account) -> None:
        self._account = account

    def of(self, call: Call) -> list[Asked]:
        """Each authorization of a call. A thing that does not exist is asked for by its name alone."""
        ask = getattr(self, f"_{call.method}", None)
        if ask is not None:
            return [*ask(call.parameters)]
        model = operation_model(call.method)
        return [self._asked(f"{model.service_model.service_name}:{model.name}", "*")]

    # ── EC2 ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _create_launch_template(self, parameters: Mapping[str, Any]) -> Iterator[Asked]:
        own = _specified(parameters)
        yield self._made("CreateLaunchTemplate", "launch-template", own)
        yield from self._tagged("CreateLaunchTemplate", own)

    def _create_fleet(self, parameters: Mapping[str, Any]) -> Iterator[Asked]:
        own = _specified(parameters)
        yield self._made("CreateFleet", "fleet", own)
        for config in parameters["LaunchTemplateConfigs"]:
            found = self._account.template(config["LaunchTemplateSpecification"]["LaunchTemplateName"])
            if found is None:
                continue
            for override in config.get("Overrides", ()):
                yield from (self._made("CreateFleet", kind, own) for kind in ("instance", "volume"))
                yield self._named("CreateFleet", "image", override["ImageId"])
                yield self._named("CreateFleet", "subnet", override["SubnetId"])
                yield self._named("CreateFleet", "launch-template", found.id, found.tags)
                if group := found.data.get("Placement", {}).get("GroupId"):
                    yield self._named("CreateFleet", "placement-group", group)
                launched = {**found.data, "ImageId": override["ImageId"], "SubnetId": override["SubnetId"]}
                yield self._named("RunInstances", "launch-template", found.id, found.tags)
                yield from self._launched(launched, {**_specified(found.data), **own})
        yield from self._tagged("CreateFleet", own)

    def _run_instances(self, parameters: Mapping[str, Any]) -> Iterator[Asked]:
        (interface, *_) = parameters["NetworkInterfaces"]
        if "LaunchTemplate" not in parameters:
            launched = {**parameters, "SubnetId": interface["SubnetId"]}
            yield from self._launched(launched, _specified(parameters))
            return
        found = self._account.template(parameters["LaunchTemplate"]["LaunchTemplateName"])
        assert found is not None
        own = {**_specified(found.data), **_specified(parameters)}
        launched = {**found.data, "SubnetId": interface["SubnetId"]}
        yield self._named("RunInstances", "launch-template", found.id, found.tags)
        yield from self._launched(launched, own)

    def _launched(self, launched: Mapping[str, Any], own: Mapping[str, Tags]) -> Iterator[Asked]:
        """What RunInstances asks for the instance that it makes."""
        yield self._named("RunInstances", "image", launched["ImageId"])
        yield self._named("RunInstances", "subnet", launched["SubnetId"])
        for interface in launched["NetworkInterfaces"]:
            yield from (self._named("RunInstances", "security-group", group) for group in interface["Groups"])
        target = launched.get("CapacityReservationSpecification", {}).get("CapacityReservationTarget", {})
        if reservation := target.get("CapacityReservationId"):
            yield self._named("RunInstances", "capacity-reservation", reservation)
        if group := launched.get("Placement", {}).get("GroupId"):
            yield self._named("RunInstances", "placement-group", group)
        for mapping in launched.get("BlockDeviceMappings", ()):
            if snapshot := mapping["Ebs"].get("SnapshotId"):
                yield self._named("RunInstances", "snapshot", snapshot)
        made = ["instance", "volume", "network-interface"]
        made += [kind for kind in own if kind == "spot-instances-request"]
        yield from (self._made("RunInstances", kind, own) for kind in made)
        yield from self._tagged("RunInstances", {kind: own[kind] for kind in made if kind in own})
        if profile := launched.get("IamInstanceProfile", {}).get("Name"):
            yield from (self._passed(role) for role in (self._account.profile(profile) or Profile()).roles)

    def _create_tags(self, parameters: Mapping[str, Any]) -> Iterator[Asked]:
        for instance in parameters["Resources"]:
            own = _requested({tag["Key"]: tag["Value"] for tag in parameters["Tags"]})
            of_instance = self._account.instance_tags(instance)
            yield self._named("CreateTags", "instance", instance, of_instance, own)

    def _terminate_instances(self, parameters: Mapping[str, Any]) -> Iterator[Asked]:
        for instance in parameters["InstanceIds"]:
            if own := self._account.instance_tags(instance):
                yield self._named("TerminateInstances", "instance", instance, own)

    def _delete_launch_template(self, parameters: Mapping[str, Any]) -> Iterator[Asked]:
        if found := self._account.template(parameters["LaunchTemplateName"]):
            yield self._named("DeleteLaunchTemplate", "launch-template", found.id, found.tags)

    def _named(
        self, action: str, kind: str, name: str, own: Tags | None = None, more: Mapping[str, Any] | None = None
    ) -> Asked:
        """An action of EC2 on what is there already."""
        return self._asked(f"ec2:{action}", self._arn("ec2", kind, name), _of_resource(own or {}), more or {})

    def _made(self, action: str, kind: str, own: Mapping[str, Tags]) -> Asked:
        """An action of EC2 that makes something with the tags that the request has for its kind."""
        return self._asked(f"ec2:{action}", self._arn("ec2", kind, "*"), _requested(own.get(kind, {})))

    def _tagged(self, action: str, own: Mapping[str, Tags]) -> Iterator[Asked]:
        """The tagging of what an action of EC2 makes."""
        for kind, its in own.items():
            context = _requested(its) | {"ec2:CreateAction": action}
            yield self._asked("ec2:CreateTags", self._arn("ec2", kind, "*"), context)

    # ── IAM ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _create_instance_profile(self, parameters: Mapping[str, Any]) -> Iterator[Asked]:
        own = {tag["Key"]: tag["Value"] for tag in parameters["Tags"]}
        made = Profile(parameters["Path"], own)
        name = parameters["InstanceProfileName"]
        yield self._profile("CreateInstanceProfile", name, Profile(made.path), _requested(own))
        yield self._profile("TagInstanceProfile", name, made, _requested(own))

    def _add_role_to_instance_profile(self, parameters: Mapping[str, Any]) -> Iterator[Asked]:
        yield from self._of_profile("AddRoleToInstanceProfile", parameters)
        yield self._passed(parameters["RoleName"])

    def _remove_role_from_instance_profile(self, parameters: Mapping[str, Any]) -> Iterator[Asked]:
        yield from self._of_profile("RemoveRoleFromInstanceProfile", parameters)

    def _delete_instance_profile(self, parameters: Mapping[str, Any]) -> Iterator[Asked]:
        yield from self._of_profile("DeleteInstanceProfile", parameters)

    def _get_instance_profile(self, parameters: Mapping[str, Any]) -> Iterator[Asked]:
        name = parameters["InstanceProfileName"]
        yield self._profile("GetInstanceProfile", name, self._account.profile(name) or Profile())

    def _of_profile(self, action: str, parameters: Mapping[str, Any]) -> Iterator[Asked]:
        name = parameters["InstanceProfileName"]
        if found := self._account.profile(name):
            yield self._profile(action, name, found)

    def _profile(self, action: str, name: str, profile: Profile, more: Mapping[str, Any] | None = None) -> Asked:
        resource = self._arn("iam", "instance-profile", profile.path.removeprefix("/") + name)
        return self._asked(f"iam:{action}", resource, _of_resource(profile.tags), more or {})

    def _passed(self, role: str) -> Asked:
        return self._asked("iam:PassRole", self._arn("iam", "role", role), {"iam:PassedToService": "ec2.amazonaws.com"})

    # ── the other services ─────────────────────────────────────────────────────────────────────────────────────────

    def _describe_cluster(self, parameters: Mapping[str, Any]) -> Iterator[Asked]:
        yield self._asked("eks:DescribeCluster", self._arn("eks", "cluster", parameters["name"]))

    def _get_managed_resource(self, parameters: Mapping[str, Any]) -> Iterator[Asked]:
        context = {"arc-zonal-shift:ResourceIdentifier": parameters["resourceIdentifier"]}
        yield self._asked("arc-zonal-shift:GetManagedResource", "*", context)

    def _get_parameter(self, parameters: Mapping[str, Any]) -> Iterator[Asked]:
        public = "" if parameters["Name"].startswith("/aws/service/") else self._account.number
        resource = f"arn:aws:ssm:{self._account.region}:{public}:parameter{parameters['Name']}"
        yield self._asked("ssm:GetParameter", resource)

    def _get_queue_url(self, parameters: Mapping[str, Any]) -> Iterator[Asked]:
        yield self._queue("GetQueueUrl", parameters["QueueName"])

    def _receive_message(self, parameters: Mapping[str, Any]) -> Iterator[Asked]:
        yield self._queue("ReceiveMessage", parameters["QueueUrl"])

    def _delete_message_batch(self, parameters: Mapping[str, Any]) -> Iterator[Asked]:
        yield self._queue("DeleteMessage", parameters["QueueUrl"])

    def _queue(self, action: str, queue: str) -> Asked:
        name = queue.rpartition("/")[2]
        return self._asked(f"sqs:{action}", f"arn:aws:sqs:{self._account.region}:{self._account.number}:{name}")

    def _arn(self, service: str, kind: str, name: str) -> str:
        region = "" if service == "iam" else self._account.region
        number = "" if kind in _PUBLIC else self._account.number
        return f"arn:aws:{service}:{region}:{number}:{kind}/{name}"

    def _asked(self, action: str, resource: str, *context: Mapping[str, Any]) -> Asked:
        found: dict[str, Any] = {"aws:RequestedRegion": self._account.region}
        for part in context:
            found |= part
        return Asked(action, resource, found)


def _specified(parameters: Mapping[str, Any]) -> dict[str, Tags]:
    """The tags of a request by kind of resource."""
    listed: Iterable[Mapping[str, Any]] = parameters.get("TagSpecifications", ())
    return {entry["ResourceType"]: {tag["Key"]: tag["Value"] for tag in _listed(entry)} for entry in listed}


def _listed(entry: Mapping[str, Any]) -> Sequence[Mapping[str, str]]:
    tags: Sequence[Mapping[str, str]] = entry.get("Tags", entry.get("Tag", ()))
    return tags


def _requested(tags: Tags) -> dict[str, Any]:
    """The condition keys of tags in a request. One without tags has none."""
    return {f"aws:RequestTag/{key}": value for key, value in tags.items()} | (
        {"aws:TagKeys": tuple(sorted(tags))} if tags else {}
    )


def _of_resource(tags: Tags) -> dict[str, Any]:
    return {f"aws:ResourceTag/{key}": value for key, value in tags.items()}
