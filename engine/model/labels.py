"""Label keys, their aliases, and which are well known or restricted (S-5, S-21, S-25, L-30, L-89, A-19, A-68)."""

from __future__ import annotations

NODEPOOL = "karpenter.sh/nodepool"
CAPACITY_TYPE = "karpenter.sh/capacity-type"
REGISTERED = "karpenter.sh/registered"
INITIALIZED = "karpenter.sh/initialized"
ZONE = "topology.kubernetes.io/zone"
ZONE_ID = "topology.k8s.aws/zone-id"
REGION = "topology.kubernetes.io/region"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
ARCH = "kubernetes.io/arch"
OS = "kubernetes.io/os"
HOSTNAME = "kubernetes.io/hostname"
WINDOWS_BUILD = "node.kubernetes.io/windows-build"
EC2NODECLASS = "karpenter.k8s.aws/ec2nodeclass"
KWOKNODECLASS = "karpenter.kwok.sh/kwoknodeclass"
PLACEMENT_GROUP = "karpenter.k8s.aws/placement-group-id"
PARTITION = "karpenter.k8s.aws/placement-group-partition"
TENANCY = "karpenter.k8s.aws/instance-tenancy"
EXCLUDE_FROM_LB = "node.kubernetes.io/exclude-from-external-load-balancers"
DO_NOT_SYNC_TAINTS = "karpenter.sh/do-not-sync-taints"

RESERVATION_ID = "karpenter.k8s.aws/capacity-reservation-id"
RESERVATION_TYPE = "karpenter.k8s.aws/capacity-reservation-type"
RESERVATION_INTERRUPTIBLE = "karpenter.k8s.aws/capacity-reservation-interruptible"
OF_RESERVATIONS = (RESERVATION_ID, RESERVATION_TYPE, RESERVATION_INTERRUPTIBLE)

DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
NODEPOOL_HASH = "karpenter.sh/nodepool-hash"
NODEPOOL_HASH_VERSION = "karpenter.sh/nodepool-hash-version"
TERMINATION_TIMESTAMP = "karpenter.sh/nodeclaim-termination-timestamp"
DRA_DRIVERS = "karpenter.sh/requested-dra-drivers"
MIN_VALUES_RELAXED = "karpenter.sh/nodeclaim-min-values-relaxed"
PRICE_OVERLAY_APPLIED = "karpenter.sh/price-overlay-applied"
POD_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
TERMINATION_FINALIZER = "karpenter.sh/termination"

DISRUPTED_TAINT = "karpenter.sh/disrupted"
UNREGISTERED_TAINT = "karpenter.sh/unregistered"
PROPOSED_TAINT = "kerf.dev/disruption-proposed"

ON_DEMAND = "on-demand"
SPOT = "spot"
RESERVED = "reserved"

DEFAULT_TENANCY = "default"
DEDICATED = "dedicated"

ALIASES: dict[str, str] = {
    "failure-domain.beta.kubernetes.io/zone": ZONE,
    "failure-domain.beta.kubernetes.io/region": REGION,
    "topology.ebs.csi.aws.com/zone": ZONE,
    "beta.kubernetes.io/arch": ARCH,
    "beta.kubernetes.io/os": OS,
    "beta.kubernetes.io/instance-type": INSTANCE_TYPE,
}
"""Deprecated keys and their stable forms, which replace them wherever a requirement or a label is read (S-5, A-19)."""

_AWS = "karpenter.k8s.aws/"
AWS_WELL_KNOWN: frozenset[str] = frozenset(
    [
        _AWS + name
        for name in (
            "capacity-reservation-id", "capacity-reservation-type", "capacity-reservation-interruptible",
            "instance-hypervisor", "instance-encryption-in-transit-supported", "nitro-sandbox", "instance-category",
            "instance-capability-flex", "instance-family", "instance-generation", "instance-size",
            "instance-local-nvme", "instance-cpu", "instance-cpu-manufacturer",
            "instance-cpu-sustained-clock-speed-mhz", "instance-memory", "instance-ebs-bandwidth",
            "instance-network-bandwidth", "instance-gpu-name", "instance-gpu-manufacturer", "instance-gpu-count",
            "instance-gpu-memory", "instance-accelerator-name", "instance-accelerator-manufacturer",
            "instance-accelerator-count", "instance-tenancy", "placement-group-id", "placement-group-partition",
        )
    ]
    + [ZONE_ID, WINDOWS_BUILD]
)  # fmt: skip
"""Well-known keys of the AWS provider (A-68)."""

KWOK_WELL_KNOWN: frozenset[str] = frozenset(
    f"karpenter.kwok.sh/instance-{name}" for name in ("size", "family", "cpu", "memory")
)
"""Well-known keys of the KWOK provider (L-469)."""

WELL_KNOWN: frozenset[str] = (
    frozenset([NODEPOOL, ZONE, REGION, INSTANCE_TYPE, ARCH, OS, CAPACITY_TYPE, WINDOWS_BUILD])
    | AWS_WELL_KNOWN
    | KWOK_WELL_KNOWN
)
"""Well-known keys, those of providers included (S-21). Left undefined, such a key denies no requirement (S-20)."""

RESTRICTED_DOMAINS: tuple[str, ...] = ("karpenter.k8s.aws", "karpenter.kwok.sh", "karpenter.sh")


def normalise(key: str) -> str:
    """Returns the stable form of a label key (S-5)."""
    return ALIASES.get(key, key)


def is_restricted(key: str) -> bool:
    """Returns whether pods and NodePools must not select on this key (S-25, A-69)."""
    if key in WELL_KNOWN:
        return False
    if key == HOSTNAME:
        return True
    domain = key.partition("/")[0] if "/" in key else key
    return any(domain == d or domain.endswith("." + d) for d in RESTRICTED_DOMAINS)
