"""What the AWS provider has to know of the cluster: asked of EKS and of the API server at the start, and from then on
every five minutes (A-2, A-3, A-16, A-17, A-372)."""

from __future__ import annotations

import asyncio
import base64
import re

from kerf.adapters.aws.account import EksCluster, eks_cluster, probe
from kerf.adapters.aws.session import AwsError, Clients
from kerf.adapters.aws.settings import AwsSettings, ClusterFacts
from kerf.adapters.kubernetes.session import Session
from kerf.adapters.manager.settings import AwsOptions, SettingError
from kerf.engine.errors import KerfError

DNS = "/api/v1/namespaces/kube-system/services/kube-dns"
MINORS = range(26, 37)
"""The minor versions of Kubernetes 1 whose nodes kerf knows how to boot (A-372)."""


class UnknownVersion(KerfError):
    """The cluster's Kubernetes version is none that kerf knows. It is used all the same (A-372)."""

    code = "KERF504"


async def discover(session: Session, clients: Clients, options: AwsOptions) -> AwsSettings:
    """The adapter's settings; what is not given is asked of EKS and of the API server. Raises SettingError (KERF340)
    without a cluster's name, `AwsError` when EC2 does not let kerf in, and what `cluster_facts` does."""
    if not options.cluster:
        hint = "Give the cluster's name: it is in the tags of all that kerf makes"
        raise SettingError("the AWS provider needs it", where="CLUSTER_NAME", hint=hint)
    await asyncio.to_thread(probe, clients)
    facts = await cluster_facts(session, clients, options)
    if options.zonal_shift and not facts.arn:
        hint = "Allow eks:DescribeCluster, which tells the cluster's ARN"
        raise SettingError("zonal shifts are those of an EKS cluster", where="ENABLE_ZONAL_SHIFT", hint=hint)
    return AwsSettings(
        cluster=options.cluster,
        region=clients.region,
        facts=facts,
        isolated_vpc=options.isolated_vpc,
        reserved_enis=options.reserved_enis,
        memory_overhead=options.memory_overhead,
        interruption_queue=options.interruption_queue,
        ami_refresh=options.ami_refresh,
        subnet_refresh=options.subnet_refresh,
        dry_run=options.dry_run,
        node_class_cel=options.node_class_cel,
        zonal_shift=options.zonal_shift,
        reserved_capacity=options.reserved_capacity,
    )


async def cluster_facts(session: Session, clients: Clients, options: AwsOptions) -> ClusterFacts:
    """The cluster as it is now. Raises `AwsError` when EKS does not tell the endpoint or the version, where nobody else
    does, and KerfError when the API server does not answer."""
    known = await _asked_of_eks(clients, options)
    version = known.version if options.eks_control_plane else await _version(session)
    return ClusterFacts(
        endpoint=options.endpoint or known.endpoint,
        ca_bundle=options.ca_bundle or base64.b64encode(session.certificate()).decode(),
        cidr=known.cidr,
        dns=await _dns(session),
        kubernetes_version=version,
        arn=known.arn,
    )


def unknown_version(version: str) -> KerfError | None:
    """The complaint about a version such as "1.40"; None for one that kerf knows."""
    if version in {f"1.{minor}" for minor in MINORS}:
        return None
    known = f"1.{MINORS.start} to 1.{MINORS[-1]}"
    return UnknownVersion(
        f"Kubernetes {version} is none of {known}", where="cluster", hint="Nodes are launched for it all the same"
    )


async def _asked_of_eks(clients: Clients, options: AwsOptions) -> EksCluster:
    """What EKS says of the cluster. If an endpoint is given, and the version is the API server's, EKS may refuse or be
    out of reach: then only AL2023 lacks something, and its classes say so (A-129)."""
    try:
        return await asyncio.to_thread(eks_cluster, clients, options.cluster)
    except AwsError:
        if options.endpoint and not options.eks_control_plane:
            return EksCluster()
        raise


async def _version(session: Session) -> str:
    """The API server's minor version, such as 1.33 (A-372)."""
    version = (await session.request("GET", "/version")).checked("version of the API server").json()
    major, minor = (re.sub(r"\D", "", str(version.get(part, ""))) for part in ("major", "minor"))
    return f"{major}.{minor}"


async def _dns(session: Session) -> str:
    """The cluster IP of kube-dns, "" where there is none."""
    answer = await session.request("GET", DNS)
    return str(answer.json().get("spec", {}).get("clusterIP", "")) if answer.ok else ""
