"""What an instance is told at boot, before it is written in the format of its family (A-257)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from kerf.engine.model.kubernetes.pods import Taint


class Boot(Struct, frozen=True, kw_only=True):
    """All that user data is made from (A-257). `kubelet` is spec.kubelet as written; `taints` those of
    A-259."""

    family: str
    cluster: str
    endpoint: str
    ca_bundle: str
    cidr: str = ""
    dns: str = ""
    max_pods: int
    kubelet: Mapping[str, Any] = {}
    labels: Mapping[str, str] = {}
    taints: tuple[Taint, ...] = ()
    custom: str = ""
    raid0: bool = False
    bind_folders: bool = True  # Bottlerocket: whether the folders for instance storage have to be named


def cluster_dns(boot: Boot) -> str:
    """The cluster's DNS address: the user's, else that of the cluster; "" if unknown."""
    addresses = boot.kubelet.get("clusterDNS")
    return str(addresses[0]) if addresses else boot.dns
