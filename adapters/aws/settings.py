"""The options of the AWS adapter (A-1…A-14), and what it has to know of the cluster."""

from __future__ import annotations

from ipaddress import IPv4Address

from msgspec import Struct
from msgspec.structs import replace


class ClusterFacts(Struct, frozen=True, kw_only=True):
    """What may change of the cluster while kerf runs. `kubernetes_version` is the minor version ("1.32", A-372);
    `ca_bundle` is PEM in base64; `dns` the cluster IP of kube-dns, `arn` the cluster's, "" if unknown."""

    endpoint: str
    ca_bundle: str = ""
    cidr: str = ""
    dns: str = ""
    kubernetes_version: str
    arn: str = ""

    @property
    def ipv6(self) -> bool:
        """Whether pods have IPv6 addresses: only if the address of kube-dns is known and is no IPv4 address (A-17)."""
        if not self.dns:
            return False
        try:
            IPv4Address(self.dns)
        except ValueError:
            return True
        return False


class AwsSettings(Struct, kw_only=True):
    """The options, and the facts as they were last learned: read them when they are needed, and keep no copy."""

    cluster: str
    region: str
    facts: ClusterFacts
    isolated_vpc: bool = False
    reserved_enis: int = 0
    memory_overhead: float = 0.075
    interruption_queue: str = ""
    zonal_shift: bool = False
    ami_refresh: int = 60_000  # milliseconds
    subnet_refresh: int = 60_000
    node_class_cel: bool = False  # gate NodeClassCEL: spec.kubelet may have expressions
    reserved_capacity: bool = True  # gate ReservedCapacity
    dry_run: bool = False  # whether EC2 is asked what it would let kerf launch

    def learn(self, facts: ClusterFacts) -> bool:
        """Take in the cluster's facts; returns whether any changed. A cluster keeps its service CIDR, DNS and ARN: what
        nobody tells any more stays as it was (A-17, A-129)."""
        known = self.facts
        told = replace(facts, cidr=facts.cidr or known.cidr, dns=facts.dns or known.dns, arn=facts.arn or known.arn)
        self.facts = told
        return told != known
