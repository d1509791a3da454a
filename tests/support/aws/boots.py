"""What a node of the cluster `shop` boots with."""

from __future__ import annotations

from kerf.adapters.aws.userdata.boot import Boot
from kerf.adapters.aws.userdata.user_data import UNREGISTERED
from kerf.engine.model.kubernetes.pods import Taint

SHOP = Boot(
    family="",
    cluster="shop",
    endpoint="https://0123456789ABCDEF.gr7.us-west-2.eks.amazonaws.com",
    ca_bundle="Y2VydGlmaWNhdGU=",
    cidr="10.100.0.0/16",
    dns="10.100.0.10",
    max_pods=29,
    labels={"karpenter.sh/capacity-type": "spot", "karpenter.sh/nodepool": "default", "team": "web"},
    taints=(Taint("dedicated", "NoSchedule", "web"), Taint("cold", "PreferNoSchedule"), UNREGISTERED),
)
