"""The schema of EC2NodeClass (karpenter.k8s.aws/v1): A-23 to A-54, L-64. Its rules are in ec2nodeclass_rules."""

from __future__ import annotations

from typing import Any

from kerf.engine.model.crds import ec2nodeclass_rules as rules
from kerf.engine.model.crds.schema import Schema, flag, integer, list_of, map_of, object_of, text
from kerf.engine.model.crds.shared_fields import conditions
from kerf.engine.model.karpenter.ec2nodeclasses import AMI_FAMILIES

FAMILIES = (*AMI_FAMILIES.values(), "Custom")
VOLUME_TYPES = ("standard", "io1", "io2", "gp2", "sc1", "st1", "gp3")
SWITCH = ("enabled", "disabled")
TOKENS = ("required", "optional")
MOST_TERMS = 30

VOLUME_SIZE = (
    r"^(([1-9][0-9]{0,3}|[1-4][0-9]{4}|5[0-8][0-9]{3}|59000)Gi"
    r"|([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-3][0-9]{3}|64000)G"
    r"|([1-9]|[1-5][0-7]|58)?Ti|([1-9]|[1-5][0-9]|6[0-4])?T)$"
)
"""The pattern of volume sizes (A-37). Like the reference's it lets a bare "Ti" pass, which the controller then
refuses.
"""


def _terms(fields: dict[str, Schema], description: str, **keywords: Any) -> Schema:
    tags = map_of(text(), 'Tags that it must have, "*" for any value', max_properties=20, rules=(rules.FILLED_TAGS,))
    return list_of(object_of({"tags": tags, **fields}), description, max_items=MOST_TERMS, **keywords)


def _id(pattern: str, example: str) -> Schema:
    return text("Its id", pattern=pattern, what="such an id", hint=f'Write "{example}"')


_SPEC = {
    "subnetSelectorTerms": _terms(
        {"id": _id("subnet-[0-9a-z]+", "subnet-0123")},
        "The subnets to launch in: those that any term selects",
        min_items=1,
        rules=(rules.selects("tags", "id"), rules.not_all_with("id", "tags")),
    ),
    "securityGroupSelectorTerms": _terms(
        {"id": _id("sg-[0-9a-z]+", "sg-0123"), "name": text("The group's name (not its tag Name)")},
        "The security groups of the instances: those that any term selects",
        min_items=1,
        rules=(
            rules.selects("tags", "id", "name"),
            rules.not_all_with("id", "tags", "name"),
            rules.not_all_with("name", "tags", "id"),
        ),
    ),
    "capacityReservationSelectorTerms": _terms(
        {
            "id": _id("^cr-[0-9a-z]+$", "cr-0123"),
            "ownerID": text("The account that it belongs to", pattern="^[0-9]{12}$", what="an account of 12 digits"),
            "instanceMatchCriteria": text("What instances it takes", enum=("open", "targeted")),
        },
        "The capacity reservations to use: those that any term selects",
        rules=(
            rules.selects("tags", "id", "instanceMatchCriteria"),
            rules.not_all_with("id", "tags", "ownerID", "instanceMatchCriteria"),
        ),
    ),
    "placementGroupSelector": object_of(
        {"name": text("Its name", min_length=1), "id": _id("^pg-[0-9a-z]+$", "pg-0123")},
        "The placement group to launch in",
        rules=(rules.ONE_PLACEMENT_GROUP,),
    ),
    "amiSelectorTerms": _terms(
        {
            "id": _id("ami-[0-9a-z]+", "ami-0123"),
            "name": text("The image's name (not its tag Name)"),
            "owner": text('An account id, "self" or "amazon"'),
            "alias": text(
                "An image of EKS: family@version", max_length=30, pattern="^[a-zA-Z0-9]+@.+$", what="an alias",
                hint='Write family@version: "al2023@latest"', rules=(rules.ALIAS_FAMILY, rules.WINDOWS_VERSION),
            ),
            "ssmParameter": text("The parameter of SSM that names the image"),
        },
        "The images to run: the newest that any term selects",
        min_items=1,
        rules=(
            rules.selects("tags", "id", "name", "alias", "ssmParameter"),
            rules.ID_ALONE,
            rules.ALIAS_ALONE,
            rules.ALIAS_ONLY_TERM,
        ),
        missing='Write [{alias: "al2023@latest"}] for the newest EKS image',
    ),
    "amiFamily": text("How user data is written, and what devices images have", enum=FAMILIES),
    "userData": text("What instances run when they start, besides what makes them nodes"),
    "role": text("The role of the instances", rules=(rules.not_empty("role"),)),
    "instanceProfile": text("The instance profile, instead of a role", rules=(rules.not_empty("instanceProfile"),)),
    "tags": map_of(text(), "Tags of all that is made in EC2", rules=rules.TAGS),
    "kubelet": Schema(type="object", description="The kubelet's configuration, as it is (A-49 to A-52)", open=True),
    "blockDeviceMappings": list_of(
        object_of(
            {
                "deviceName": text("The device, such as /dev/xvda"),
                "rootVolume": flag("Whether the kubelet's files lie here"),
                "ebs": object_of(
                    {
                        "deleteOnTermination": flag("Whether it goes with the instance"),
                        "encrypted": flag("Whether it is encrypted"),
                        "iops": integer("Operations a second", format="int64"),
                        "kmsKeyID": text("The key that it is encrypted with"),
                        "snapshotID": text("The snapshot that it begins as"),
                        "throughput": integer("MiB a second", format="int64"),
                        "volumeInitializationRate": integer(
                            "MiB a second, from the snapshot", format="int32", minimum=100, maximum=300
                        ),
                        "volumeSize": text(
                            "Its size", pattern=VOLUME_SIZE, what="a volume size", code="KERF306",
                            hint="Write 1Gi to 59000Gi, or the same in G, Ti or T",
                        ),
                        "volumeType": text("Its type", enum=VOLUME_TYPES),
                    },
                    "The EBS volume",
                    rules=(rules.SIZED, rules.INITIALISED),
                ),
            }
        ),
        "The disks of the instances",
        max_items=50,
        rules=(rules.ONE_ROOT,),
    ),
    "instanceStorePolicy": text("What is made of the instance's own disks", enum=("RAID0",)),
    "networkInterfaces": list_of(
        object_of(
            {
                "networkCardIndex": integer("The network card", format="int32", minimum=0),
                "deviceIndex": integer("The place on the card", format="int32", minimum=0),
                "interfaceType": text("What it is", enum=("interface", "efa-only")),
            },
            required=("networkCardIndex", "deviceIndex", "interfaceType"),
        ),
        "The network interfaces of the instances",
        max_items=150,
        rules=(rules.PRIMARY_INTERFACE, rules.ONE_PER_PLACE, rules.ONE_EFA_PER_CARD),
    ),
    "detailedMonitoring": flag("Whether CloudWatch looks each minute"),
    "associatePublicIPAddress": flag("Whether instances get a public address"),
    "ipPrefixCount": integer("So many /28 prefixes for the first interface", format="int32", minimum=0),
    "metadataOptions": object_of(
        {
            "httpEndpoint": text("Whether there is IMDS", enum=SWITCH, default="enabled"),
            "httpProtocolIPv6": text("Whether IMDS has an IPv6 address", enum=SWITCH, default="disabled"),
            "httpPutResponseHopLimit": integer(
                "How far answers may go", format="int64", minimum=1, maximum=64, default=1
            ),
            "httpTokens": text("Whether IMDSv2 is a must", enum=TOKENS, default="required"),
        },
        "The instance metadata service",
        default={
            "httpEndpoint": "enabled",
            "httpProtocolIPv6": "disabled",
            "httpPutResponseHopLimit": 1,
            "httpTokens": "required",
        },
    ),
    "connectionTracking": object_of(
        {
            "tcpEstablishedTimeout": integer("Seconds", format="int32", minimum=60, maximum=432_000),
            "udpStreamTimeout": integer("Seconds", format="int32", minimum=60, maximum=180),
            "udpTimeout": integer("Seconds", format="int32", minimum=30, maximum=60),
        },
        "After how long idle connections are forgotten",
        rules=(rules.ONE_TIMEOUT,),
    ),
    "context": text("A reserved field of EC2's CreateFleet"),
    "cpuOptions": object_of(
        {"nestedVirtualization": text("Whether instances may run virtual machines", enum=SWITCH)},
        "What the processors do",
    ),
}  # fmt: skip

_REQUIREMENT = object_of(
    {"key": text(), "operator": text(), "values": list_of(text(), list_type="atomic")}, required=("key", "operator")
)

_STATUS = {
    "subnets": list_of(
        object_of({"id": text(), "zone": text(), "zoneID": text()}, required=("id", "zone")), "Subnets that were found"
    ),
    "securityGroups": list_of(
        object_of({"id": text(), "name": text()}, required=("id",)), "Security groups that were found"
    ),
    "amis": list_of(
        object_of(
            {"id": text(), "name": text(), "deprecated": flag(), "requirements": list_of(_REQUIREMENT)},
            required=("id", "requirements"),
        ),
        "Images that were found",
    ),
    "instanceProfile": text("The instance profile of the role"),
    "capacityReservations": list_of(
        object_of(
            {
                "availabilityZone": text(),
                "endTime": text(format="date-time"),
                "id": text(pattern="^cr-[0-9a-z]+$"),
                "instanceMatchCriteria": text(enum=("open", "targeted")),
                "instanceType": text(),
                "ownerID": text(pattern="^[0-9]{12}$"),
                "reservationType": text(enum=("default", "capacity-block"), default="default"),
                "interruptible": flag(),
                "state": text(enum=("active", "expiring"), default="active"),
            },
            required=("availabilityZone", "id", "instanceMatchCriteria", "instanceType", "ownerID"),
        ),
        "Capacity reservations that were found",
    ),
    "conditions": conditions(),
}

EC2_NODE_CLASS = object_of(
    {
        "spec": object_of(
            _SPEC,
            "How instances are launched",
            required=("subnetSelectorTerms", "securityGroupSelectorTerms", "amiSelectorTerms"),
            rules=(rules.ROLE_OR_PROFILE, rules.FAMILY_OR_ALIAS, rules.FAMILY_OF_ALIAS),
        ),
        "status": object_of(_STATUS, "What the controllers have found"),
    },
    "How EC2 instances are launched",
)
