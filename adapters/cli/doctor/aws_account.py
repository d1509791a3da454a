"""What `kerf doctor --provider aws` checks in the account. It changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from botocore.exceptions import BotoCoreError

from kerf.adapters.aws.account import EksCluster, NoRegion, eks_cluster, probe, region
from kerf.adapters.aws.session import AwsError, Clients
from kerf.adapters.cli.doctor import aws_rights
from kerf.adapters.cli.doctor.aws_rights import TryingClients, launchable
from kerf.adapters.cli.doctor.finding import BAD, NOTE, OK, Finding
from kerf.adapters.manager.settings import AwsOptions

OBSERVED = (
    "capacity_reservations", "instance_status", "instance_type_offerings", "instance_types", "instances",
    "placement_groups", "spot_price_history",
)  # fmt: skip
READS = tuple(sorted((*OBSERVED, "images", "launch_templates", "security_groups", "subnets")))
"""What kerf describes in EC2 (A-390), in observe mode and else."""
_VERSION = "1.34"
"""Whose images are asked for while nobody knows the cluster's version: it is the right that is tried."""


def check_account(options: AwsOptions, node_classes: Sequence[Mapping[str, Any]], *, observe: bool) -> list[Finding]:
    """The findings of the account; `node_classes` are the EC2NodeClass objects. Blocks while AWS answers."""
    if not options.cluster:
        return [Finding("aws", BAD, "CLUSTER_NAME is not set", "It is in the tags of all that kerf makes")]
    try:
        where = region()
        clients = TryingClients(where)
        probe(clients)
    except NoRegion as error:
        return [Finding("aws", BAD, str(error))]
    except (AwsError, BotoCoreError) as error:
        hint = "Its credentials come from the pod's service account, the environment, or ~/.aws"
        return [Finding("aws", BAD, f"EC2 does not let kerf in: {error}", hint)]
    answers = Finding("aws", OK, f"EC2 answers in {where}")
    return [answers, *check_rights(clients, options, node_classes, observe=observe)]


def check_rights(
    clients: Clients, options: AwsOptions, node_classes: Sequence[Mapping[str, Any]], *, observe: bool
) -> Iterator[Finding]:
    """What kerf may do in the account, and what stops working without it."""
    yield from aws_rights.descriptions(clients, OBSERVED if observe else READS)
    known, told = _cluster(clients, options)
    yield told
    if not options.isolated_vpc:
        yield from aws_rights.prices(clients)
    if options.zonal_shift and known.arn:
        yield from aws_rights.zonal_shifts(clients, known.arn)
    if observe:
        return
    yield from aws_rights.images(clients, known.version or _VERSION)
    if not options.isolated_vpc:
        yield from aws_rights.profiles(clients)
    found = [one for one in map(launchable, node_classes) if one is not None]
    yield from aws_rights.launches(clients, options.cluster, found)
    yield from aws_rights.ends(clients, options.cluster)
    if options.interruption_queue:
        yield from aws_rights.queue(clients, options.interruption_queue)
    else:
        yield Finding("queue", NOTE, "INTERRUPTION_QUEUE is not set: kerf does not hear of interruptions")


def _cluster(clients: Clients, options: AwsOptions) -> tuple[EksCluster, Finding]:
    try:
        known = eks_cluster(clients, options.cluster)
    except AwsError as error:
        text = f"EKS does not tell of {options.cluster}: {error}"
        if options.endpoint and not options.eks_control_plane:
            hint = "Classes of AL2023 are not ready without the services' CIDR"
            return EksCluster(), Finding("eks", NOTE, text, hint)
        without = "leave out EKS_CONTROL_PLANE" if options.endpoint else "give CLUSTER_ENDPOINT"
        return EksCluster(), Finding("eks", BAD, text, f"Allow eks:DescribeCluster, or {without}")
    text = f"{options.cluster} {known.version} at {options.endpoint or known.endpoint}"
    return known, Finding("eks", OK, text)
