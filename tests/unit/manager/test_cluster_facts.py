"""What the AWS provider asks of EKS and of the API server before it launches anything (A-2 to A-6, A-16, A-17)."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from kerf.adapters.aws.session import AwsError, Clients
from kerf.adapters.aws.settings import AwsSettings
from kerf.adapters.kubernetes.session import Answer, Session
from kerf.adapters.manager.flags import Flags
from kerf.adapters.manager.providers.cluster_facts import DNS, discover
from kerf.adapters.manager.settings import SettingError, read_settings
from tests.support.aws.boundary import watched

ENDPOINT = "https://0123.gr7.us-west-2.eks.amazonaws.com"
ARN = "arn:aws:eks:us-west-2:123456789012:cluster/demo"
CLUSTER = {
    "endpoint": ENDPOINT,
    "version": "1.35",
    "arn": ARN,
    "kubernetesNetworkConfig": {"serviceIpv4Cidr": "10.100.0.0/16"},
}
GIVEN = {"CLUSTER_NAME": "demo"}
OWN = {**GIVEN, "CLUSTER_ENDPOINT": "https://10.0.0.1"}


def refusal(code: str, status: int = 400) -> ClientError:
    answer: Any = {"Error": {"Code": code, "Message": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "AWS")


class Account:
    """An account in which EKS and the dry run of DescribeInstanceTypes answer so."""

    region = "us-west-2"

    def __init__(self, cluster: dict[str, Any] | Exception, probe: str = "DryRunOperation") -> None:
        self.eks, self.ec2 = self, self
        self._cluster, self._probe = cluster, probe

    def describe_cluster(self, name: str) -> dict[str, Any]:
        if isinstance(self._cluster, Exception):
            raise self._cluster
        return {"cluster": {**self._cluster, "name": name}}

    def describe_instance_types(self, DryRun: bool) -> dict[str, Any]:  # noqa: N803
        assert DryRun
        raise refusal(self._probe)


class ApiServer:
    """An API server of Kubernetes 1.34, whose kube-dns has an address or is not there."""

    def __init__(self, dns: str = "10.100.0.10") -> None:
        self._answers = {
            "/version": Answer(200, b'{"major": "1", "minor": "34+"}'),
            DNS: Answer(200, json.dumps({"spec": {"clusterIP": dns}}).encode()) if dns else Answer(404, b"{}"),
        }

    def certificate(self) -> bytes:
        return b"PEM"

    async def request(self, method: str, path: str) -> Answer:
        assert method == "GET"
        return self._answers[path]


async def found(
    given: dict[str, str], cluster: dict[str, Any] | Exception = CLUSTER, probe: str = "DryRunOperation", **served: str
) -> AwsSettings:
    account, options = cast(Clients, Account(cluster, probe)), read_settings(Flags(), given).aws
    with watched() as made:
        settings = await discover(cast(Session, ApiServer(**served)), account, options)
    assert made.problems == []
    return settings


@pytest.mark.asyncio(loop_scope="function")
async def test_a2_a_cluster_without_a_name_is_not_begun_with() -> None:
    with pytest.raises(SettingError, match="CLUSTER_NAME"):
        await found({})


@pytest.mark.asyncio(loop_scope="function")
async def test_a3_a4_a6_what_is_not_given_is_asked_for() -> None:
    facts = (await found(GIVEN)).facts
    assert (facts.endpoint, facts.cidr, facts.arn) == (ENDPOINT, "10.100.0.0/16", ARN)
    assert (facts.ca_bundle, facts.dns, facts.kubernetes_version) == ("UEVN", "10.100.0.10", "1.34")
    given = {**OWN, "CLUSTER_CA_BUNDLE": "TUlJ", "EKS_CONTROL_PLANE": "true"}
    facts = (await found(given)).facts
    assert (facts.endpoint, facts.ca_bundle, facts.kubernetes_version) == ("https://10.0.0.1", "TUlJ", "1.35")


@pytest.mark.asyncio(loop_scope="function")
@pytest.mark.parametrize(
    "failure",
    [
        refusal("AccessDeniedException"),
        EndpointConnectionError(endpoint_url="https://eks"),
        refusal("Unavailable", 503),
    ],
    ids=["refused", "unreachable", "unavailable"],
)
async def test_a3_without_eks_kerf_begins_only_where_the_endpoint_is_given(failure: Exception) -> None:
    """An isolated VPC need not reach EKS: only AL2023 needs more of it, and its classes say so (A-129). A version that
    EKS is to tell is not the API server's for as long as EKS is silent: nodes would drift to its images (A-6)."""
    for given in (GIVEN, {**OWN, "EKS_CONTROL_PLANE": "true"}):
        with pytest.raises(AwsError):
            await found(given, failure)
    facts = (await found(OWN, failure)).facts
    assert (facts.endpoint, facts.cidr, facts.kubernetes_version) == ("https://10.0.0.1", "", "1.34")


@pytest.mark.asyncio(loop_scope="function")
async def test_a11_a16_zonal_shifts_need_the_arn_of_the_cluster() -> None:
    given = {**OWN, "ENABLE_ZONAL_SHIFT": "true"}
    assert (await found(given)).zonal_shift
    with pytest.raises(SettingError, match="ENABLE_ZONAL_SHIFT"):
        await found(given, refusal("AccessDeniedException"))


@pytest.mark.asyncio(loop_scope="function")
async def test_a16_an_ec2_that_does_not_let_kerf_in_ends_the_start() -> None:
    with pytest.raises(AwsError, match="UnauthorizedOperation"):
        await found(GIVEN, probe="UnauthorizedOperation")


@pytest.mark.asyncio(loop_scope="function")
@pytest.mark.parametrize(("dns", "ipv6"), [("10.100.0.10", False), ("fd12::a", True), ("", False)])
async def test_a16_a17_kube_dns_tells_the_ip_family_and_need_not_be_there(dns: str, ipv6: bool) -> None:
    facts = (await found(GIVEN, dns=dns)).facts
    assert (facts.dns, facts.ipv6) == (dns, ipv6)


@pytest.mark.asyncio(loop_scope="function")
async def test_a5_a7_to_a13_options_reach_the_adapter() -> None:
    settings = await found(
        {
            **GIVEN, "ISOLATED_VPC": "true", "VM_MEMORY_OVERHEAD_PERCENT": "0.05", "INTERRUPTION_QUEUE": "events",
            "RESERVED_ENIS": "1", "DISABLE_DRY_RUN": "true", "ENABLE_ZONAL_SHIFT": "true",
            "AMI_REFRESH_INTERVAL": "10m", "SUBNET_REFRESH_INTERVAL": "2m",
        }
    )  # fmt: skip
    assert (settings.isolated_vpc, settings.memory_overhead, settings.reserved_enis) == (True, 0.05, 1)
    assert (settings.interruption_queue, settings.zonal_shift, settings.dry_run) == ("events", True, False)
    assert (settings.ami_refresh, settings.subnet_refresh) == (600_000, 120_000)
    plain = await found(GIVEN)
    assert (plain.interruption_queue, plain.zonal_shift, plain.dry_run) == ("", False, True)
    assert (plain.ami_refresh, plain.subnet_refresh) == (60_000, 60_000)
