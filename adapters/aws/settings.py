"""The options of the AWS adapter (A-1…A-14), and what it has to know of the cluster."""

from __future__ import annotations

from ipaddress import IPv4Address

from msgspec import Struct


class AwsSettings(Struct, frozen=True, kw_only=True):
    """`kubernetes_version` is the minor version ("1.32", A-372); `dns` the cluster IP of kube-dns, "" if
    unknown."""

    cluster: str
    region: str
    endpoint: str
    ca_bundle: str = ""
    cidr: str = ""
    dns: str = ""
    kubernetes_version: str
    isolated_vpc: bool = False
    reserved_enis: int = 0
    memory_overhead: float = 0.075
    interruption_queue: str = ""
    ami_refresh: int = 60_000  # milliseconds
    subnet_refresh: int = 60_000
    dry_run: bool = False  # whether EC2 is asked what it would let kerf launch

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
