"""What kerf has to know of the account and the cluster before it launches anything (A-3, A-16, A-372)."""

from __future__ import annotations

import os

import boto3
from botocore.utils import InstanceMetadataRegionFetcher
from msgspec import Struct

from kerf.adapters.aws.session import AwsError, Clients, call
from kerf.engine.errors import InputError


class NoRegion(InputError):
    """Neither the environment, nor the SDK's configuration, nor the instance's own metadata names a region."""

    code = "KERF344"


class EksCluster(Struct, frozen=True):
    """What EKS says of a cluster; `version` is the minor one ("1.34"), `cidr` that of its services."""

    endpoint: str = ""
    cidr: str = ""
    version: str = ""
    arn: str = ""


def region() -> str:
    """The region: AWS_REGION, else the SDK's configuration, else the metadata of the instance that kerf runs on (A-16).
    Raises NoRegion (KERF344)."""
    name = os.environ.get("AWS_REGION") or boto3.Session().region_name
    if not name and os.environ.get("AWS_EC2_METADATA_DISABLED", "").lower() != "true":
        name = InstanceMetadataRegionFetcher(timeout=2, num_attempts=2).retrieve_region()
    if not name:
        raise NoRegion("no AWS region", where="AWS_REGION", hint="Set AWS_REGION to the cluster's region")
    return str(name)


def probe(clients: Clients) -> None:
    """Check that EC2 can be reached and lets kerf in (A-16). Raises `AwsError`."""
    try:
        call(clients.ec2.describe_instance_types, DryRun=True)
    except AwsError as error:
        if error.aws_code != "DryRunOperation":
            raise


def eks_cluster(clients: Clients, name: str) -> EksCluster:
    """What EKS says of a cluster. Raises `AwsError`."""
    cluster = call(clients.eks.describe_cluster, name=name)["cluster"]
    network = cluster.get("kubernetesNetworkConfig", {})
    cidr = network.get("serviceIpv4Cidr") or network.get("serviceIpv6Cidr") or ""
    return EksCluster(cluster.get("endpoint", ""), cidr, cluster.get("version", ""), cluster.get("arn", ""))
