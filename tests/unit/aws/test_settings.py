"""What the AWS adapter learns of the cluster while kerf runs."""

from __future__ import annotations

from msgspec.structs import replace

from kerf.adapters.aws.settings import AwsSettings, ClusterFacts

KNOWN = ClusterFacts(
    endpoint="https://one", cidr="fd00::/108", dns="fd00::a", kubernetes_version="1.33", arn="arn:aws:eks:r:1:cluster/c"
)


def test_a129_what_nobody_tells_any_more_stays_as_it_was() -> None:
    """A refused DescribeCluster made classes of AL2023 not ready; a kube-dns that could not be read made IPv6 IPv4."""
    settings = AwsSettings(cluster="c", region="r", facts=KNOWN)
    assert not settings.learn(ClusterFacts(endpoint="https://one", kubernetes_version="1.33"))
    assert settings.facts == KNOWN
    assert settings.facts.ipv6


def test_a372_what_is_told_anew_is_learned() -> None:
    settings = AwsSettings(cluster="c", region="r", facts=KNOWN)
    told = replace(KNOWN, kubernetes_version="1.34", cidr="fd01::/108")
    assert settings.learn(told)
    assert settings.facts == told
