"""What kerf may do in the account, tried without changing anything, and what stops working without it (A-384 to A-400).

EC2 answers dry runs. The other services are asked for what is not there: a profile of no class, a message that nobody
sent. They refuse such a call for a missing right first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from kerf.adapters.aws import tags
from kerf.adapters.aws.ami_families import image_queries
from kerf.adapters.aws.catalogue.pricing import pricing_region
from kerf.adapters.aws.session import AwsError, AwsWriteRefused, Client, Clients, call
from kerf.adapters.cli.doctor.finding import BAD, NOTE, OK, Finding
from kerf.engine.errors import REPORT

STOPS = {
    "ec2:DescribeCapacityReservations": (NOTE, "capacity reservations are not used"),
    "ec2:DescribeImages": (BAD, "no EC2NodeClass becomes ready"),
    "ec2:DescribeInstanceStatus": (NOTE, "instances that EC2 calls impaired stay"),
    "ec2:DescribeInstanceTypeOfferings": (BAD, "kerf plans with the types that it was built with"),
    "ec2:DescribeInstanceTypes": (BAD, "kerf plans with the types that it was built with"),
    "ec2:DescribeInstances": (BAD, "kerf sees no instances: it ends none, and finds none after a restart"),
    "ec2:DescribeLaunchTemplates": (BAD, "nothing is launched, and unused launch templates stay"),
    "ec2:DescribePlacementGroups": (NOTE, "EC2NodeClasses with a placement group do not become ready"),
    "ec2:DescribeSecurityGroups": (BAD, "no EC2NodeClass becomes ready"),
    "ec2:DescribeSpotPriceHistory": (NOTE, "spot prices are estimates"),
    "ec2:DescribeSubnets": (BAD, "no EC2NodeClass becomes ready"),
    "ec2:CreateLaunchTemplate": (BAD, "nothing is launched"),
    "ec2:RunInstances": (BAD, "nothing is launched"),
    "ec2:CreateFleet": (BAD, "nothing is launched"),
    "iam:PassRole": (BAD, "nothing is launched with this role"),
    "ec2:TerminateInstances": (BAD, "nodes are drained, and their instances stay and cost money"),
    "ec2:CreateTags": (NOTE, "instances do not get their Nodes' names"),
    "ec2:DeleteLaunchTemplate": (NOTE, "unused launch templates stay"),
    "iam:GetInstanceProfile": (BAD, "EC2NodeClasses with spec.role do not become ready"),
    "iam:ListInstanceProfiles": (NOTE, "unused instance profiles stay, and EC2NodeClasses that are deleted"),
    "ssm:GetParameter": (BAD, "EC2NodeClasses with an alias of images do not become ready"),
    "pricing:GetProducts": (NOTE, "kerf plans with the prices that it was built with"),
    "arc-zonal-shift:GetManagedResource": (NOTE, "zonal shifts are not followed"),
    "sqs:GetQueueUrl": (BAD, "kerf does not hear of interruptions"),
    "sqs:ReceiveMessage": (BAD, "kerf does not hear of interruptions"),
    "sqs:DeleteMessage": (BAD, "each interruption is told again and again"),
}
"""By action: how bad it is to lack it, and what stops working."""
DENIED = frozenset({"UnauthorizedOperation", "AccessDenied", "AccessDeniedException", "AuthorizationError"})
POLICY = "docs/install.md has the policy that kerf's role needs"
_NONE = "kerf-doctor"
_USUAL = {"arm64": "m6g.large"}
_HARMLESS = ("ReceiveMessage", "DeleteMessageBatch")
"""One message is received and at once visible again; what is deleted was never sent."""


class TryingClients(Clients):
    """Clients that read and make dry runs, and change nothing. Raises `AwsWriteRefused` (KERF503)."""

    def _client(self, service: str, **options: str) -> Client:
        client = super()._client(service, **options)
        client.meta.events.register_first("before-call", _changes_nothing)
        return client


def _changes_nothing(model: Any, params: Mapping[str, Any], **_: Any) -> None:
    body = params.get("body")
    dry = isinstance(body, Mapping) and str(body.get("DryRun", "")).lower() == "true"
    if not (dry or model.name in _HARMLESS or model.name.startswith(("Describe", "Get", "List"))):
        where = f"{model.service_model.service_name} {model.name}"
        raise AwsWriteRefused("doctor changes nothing", where=where, hint=REPORT)


class Launchable(Struct, frozen=True):
    """An EC2NodeClass as far as a launch is tried with it: all of it is in its status."""

    name: str
    image: str
    instance_type: str
    subnet: str
    groups: tuple[str, ...]
    profile: str


def launchable(document: Mapping[str, Any]) -> Launchable | None:
    """What can be tried of an EC2NodeClass; None before it is resolved."""
    status = document.get("status", {})
    images, subnets = status.get("amis"), status.get("subnets")
    if not (images and subnets and status.get("instanceProfile")):
        return None
    needs = {need["key"]: need.get("values", ()) for need in images[0].get("requirements", ())}
    arch = next(iter(needs.get("kubernetes.io/arch", ())), "")
    groups = tuple(group["id"] for group in status.get("securityGroups", ()))
    kind = _USUAL.get(arch, "m5.large")
    name = document["metadata"]["name"]
    return Launchable(name, images[0]["id"], kind, subnets[0]["id"], groups, status["instanceProfile"])


def tried(action: str, operation: Callable[..., Any], **parameters: Any) -> Finding | None:
    """What is wrong with a right; None if kerf has it. That AWS does not know what was asked for says that kerf may ask
    for it."""
    level, stops = STOPS[action]
    try:
        call(operation, **parameters)
    except AwsError as error:
        if error.aws_code in DENIED:
            return Finding("aws rights", level, f"not allowed: {action}", f"Without it {stops}. {POLICY}")
        if error.aws_code != "DryRunOperation" and not error.not_found:
            return Finding("aws rights", NOTE, f"{action} could not be tried: {error}", f"Without it {stops}")
    return None


# ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def descriptions(clients: Clients, kinds: Sequence[str]) -> Iterator[Finding]:
    """Whether each kind may be described in EC2 (A-390)."""
    found = [
        tried("ec2:Describe" + kind.title().replace("_", ""), getattr(clients.ec2, f"describe_{kind}"), DryRun=True)
        for kind in kinds
    ]
    yield from _all(found, f"all {len(kinds)} kinds that kerf looks at in EC2 may be described")


def images(clients: Clients, version: str) -> Iterator[Finding]:
    """Whether the parameters may be read that name the images of aliases (A-397)."""
    query = next(iter(image_queries("al2023@latest", version)))
    yield from _all([tried("ssm:GetParameter", clients.ssm.get_parameter, Name=query.parameter)], "images are known")


def prices(clients: Clients) -> Iterator[Finding]:
    """Whether prices may be read (A-398), where the Pricing API has some (A-205)."""
    if not pricing_region(clients.region):
        yield Finding(
            "aws rights", OK, f"the Pricing API has no prices of {clients.region}: those of kerf's table count"
        )
        return
    asked = tried("pricing:GetProducts", clients.pricing.get_products, ServiceCode="AmazonEC2", MaxResults=1)
    yield from _all([asked], "prices are known")


def profiles(clients: Clients) -> Iterator[Finding]:
    """Whether instance profiles may be looked for (A-395). That they may be made cannot be tried without making one."""
    found = [
        tried("iam:GetInstanceProfile", clients.iam.get_instance_profile, InstanceProfileName=_NONE),
        tried("iam:ListInstanceProfiles", clients.iam.list_instance_profiles, PathPrefix=f"/{_NONE}/"),
    ]
    yield from _all(found, "instance profiles may be looked for; a class's InstanceProfileReady says if one was made")


def zonal_shifts(clients: Clients, cluster: str) -> Iterator[Finding]:
    """Whether the zonal shifts of the cluster, named by its ARN, may be read (A-400)."""
    operation = clients.arc_zonal_shift.get_managed_resource
    found = tried("arc-zonal-shift:GetManagedResource", operation, resourceIdentifier=cluster)
    yield from _all([found], "zonal shifts are known")


def queue(clients: Clients, name: str) -> Iterator[Finding]:
    """Whether the queue is there and may be read and emptied (A-399)."""
    try:
        url = call(clients.sqs.get_queue_url, QueueName=name)["QueueUrl"]
    except AwsError as error:
        denied = error.aws_code in DENIED
        text = "not allowed: sqs:GetQueueUrl" if denied else str(error)
        hint = POLICY if denied else "docs/eks.md says how to make it"
        yield Finding("queue", BAD, f"{name}: {text}", f"Without it {STOPS['sqs:GetQueueUrl'][1]}. {hint}")
        return
    one = {"MaxNumberOfMessages": 1, "VisibilityTimeout": 0, "WaitTimeSeconds": 0}
    never = [{"Id": "0", "ReceiptHandle": _NONE}]
    found = [tried("sqs:ReceiveMessage", clients.sqs.receive_message, QueueUrl=url, **one)]
    if (deleted := _deletion(clients, url, never)) is not None:
        found.append(deleted)
    yield from _all(found, f"{name} is there, and may be read and emptied", "queue")


def _deletion(clients: Clients, url: str, entries: list[dict[str, str]]) -> Finding | None:
    """SQS calls the handle of a message that was never sent invalid, if the message might be deleted."""
    try:
        call(clients.sqs.delete_message_batch, QueueUrl=url, Entries=entries)
    except AwsError as error:
        if error.aws_code in DENIED:
            level, stops = STOPS["sqs:DeleteMessage"]
            return Finding("aws rights", level, "not allowed: sqs:DeleteMessage", f"Without it {stops}. {POLICY}")
    return None


# ── changing, by dry runs ───────────────────────────────────────────────────────────────────────────────────────────


def launches(clients: Clients, cluster: str, classes: Sequence[Launchable]) -> Iterator[Finding]:
    """Whether EC2 would let kerf launch for each class (A-384 to A-387, A-391)."""
    for node_class in classes:
        found = list(_launch(clients, cluster, node_class))
        yield from _all(found, f"EC2 would let kerf launch for EC2NodeClass/{node_class.name}")
    if not classes:
        text = "launches and iam:PassRole cannot be tried before an EC2NodeClass is resolved"
        yield Finding("aws rights", NOTE, text)


def _launch(clients: Clients, cluster: str, node_class: Launchable) -> Iterator[Finding | None]:
    ec2, own = clients.ec2, tags.launch_tags(cluster, node_class.name, _NONE, {})
    yield tried(
        "ec2:CreateLaunchTemplate",
        ec2.create_launch_template,
        LaunchTemplateName=_NONE,
        LaunchTemplateData={"ImageId": node_class.image},
        TagSpecifications=tags.specifications(["launch-template"], own),
        DryRun=True,
    )
    request = {
        "MinCount": 1,
        "MaxCount": 1,
        "ImageId": node_class.image,
        "InstanceType": node_class.instance_type,
        "NetworkInterfaces": [{"DeviceIndex": 0, "SubnetId": node_class.subnet, "Groups": list(node_class.groups)}],
        "TagSpecifications": tags.specifications(["instance", "volume", "network-interface"], own),
        "DryRun": True,
    }
    without = tried("ec2:RunInstances", ec2.run_instances, **request)
    yield without
    if without is None:  # else the profile would be blamed for it
        yield tried("iam:PassRole", ec2.run_instances, IamInstanceProfile={"Name": node_class.profile}, **request)


def ends(clients: Clients, cluster: str) -> Iterator[Finding]:
    """Whether EC2 would let kerf use, name and end what is its own (A-385, A-388, A-389). That is tried with one launch
    template and one instance of the cluster."""
    ec2, own = clients.ec2, [{"Name": f"tag:{tags.CLUSTER}", "Values": [cluster]}]
    found: list[Finding | None] = []
    template = _first(ec2.describe_launch_templates, "LaunchTemplates", own)
    if template is not None:
        named = {"LaunchTemplateName": template["LaunchTemplateName"]}
        found.append(tried("ec2:CreateFleet", ec2.create_fleet, **_fleet(cluster, named), DryRun=True))
        found.append(tried("ec2:DeleteLaunchTemplate", ec2.delete_launch_template, **named, DryRun=True))
    alive = [*own, {"Name": "instance-state-name", "Values": ["pending", "running"]}]
    reservation = _first(ec2.describe_instances, "Reservations", alive)
    if reservation is not None:
        instance = reservation["Instances"][0]["InstanceId"]
        name = [{"Key": "Name", "Value": _NONE}]
        found.append(tried("ec2:TerminateInstances", ec2.terminate_instances, InstanceIds=[instance], DryRun=True))
        found.append(tried("ec2:CreateTags", ec2.create_tags, Resources=[instance], Tags=name, DryRun=True))
    missing = [what for what, it in (("launch template", template), ("instance", reservation)) if it is None]
    yield from _all(found, "EC2 would let kerf use, name and end what is its own" if found else "")
    if missing:
        yield Finding("aws rights", NOTE, f"{' and '.join(missing)}: the cluster has none yet to try its end with")


def _first(operation: Callable[..., Any], key: str, filters: list[dict[str, Any]]) -> dict[str, Any] | None:
    try:
        listed: list[dict[str, Any]] = call(operation, Filters=filters, MaxResults=5).get(key, [])
    except AwsError:  # that it may not be described is a finding already
        return None
    return listed[0] if listed else None


def _fleet(cluster: str, named: Mapping[str, str]) -> dict[str, Any]:
    own = tags.launch_tags(cluster, _NONE, _NONE, {})
    return {
        "Type": "instant",
        "LaunchTemplateConfigs": [{"LaunchTemplateSpecification": {**named, "Version": "$Latest"}}],
        "TargetCapacitySpecification": {"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "on-demand"},
        "TagSpecifications": tags.specifications(["instance", "volume", "fleet"], own),
    }


def _all(found: Sequence[Finding | None], well: str, what: str = "aws rights") -> Iterator[Finding]:
    """What is wrong; if nothing is, that it is well."""
    wrong = [finding for finding in found if finding is not None]
    yield from wrong
    if not wrong and well:
        yield Finding(what, OK, well)
