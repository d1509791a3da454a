"""AMI families: what each means for capacity, block devices and images (A-101…A-111, A-172…A-175)."""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.model.karpenter.nodepools import RequirementSpec

GI = 1 << 30
_ACCELERATORS, _GPUS = (f"karpenter.k8s.aws/instance-{kind}-count" for kind in ("accelerator", "gpu"))
VARIANTS: dict[str, tuple[RequirementSpec, ...]] = {
    "standard": (RequirementSpec(_ACCELERATORS, "DoesNotExist"), RequirementSpec(_GPUS, "DoesNotExist")),
    "nvidia": (RequirementSpec(_GPUS, "Exists"),),
    "neuron": (RequirementSpec(_ACCELERATORS, "Exists"),),
}
"""The variants of instance types that an alias has an image for, and what each requires of a node (A-110)."""


class Family(Struct, frozen=True):
    """`devices` are the default mappings (device, bytes); `data_device` is the one that pods' storage lies
    on.

    `pods`: the default number of pods; 0 means that the ENI formula gives it. `reserve_by_eni`: kube-reserved
    memory follows the ENI formula (reserved ENIs ignored), not the resolved number of pods.
    """

    name: str
    data_device: str = ""
    devices: tuple[tuple[str, int], ...] = ()
    pods: int = 0
    reserve_by_eni: bool = False
    pods_per_core: bool = True
    windows_build: str = ""


_XVDA = (("/dev/xvda", 20 * GI),)
_SDA1 = (("/dev/sda1", 50 * GI),)
FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family("AL2", "/dev/xvda", _XVDA, reserve_by_eni=True),
        Family("AL2023", "/dev/xvda", _XVDA, reserve_by_eni=True),
        Family(
            "Bottlerocket",
            "/dev/xvdb",
            (("/dev/xvda", 4 * GI), ("/dev/xvdb", 20 * GI)),
            pods_per_core=False,
        ),
        Family("Windows2019", "/dev/sda1", _SDA1, pods=110, windows_build="10.0.17763"),
        Family("Windows2022", "/dev/sda1", _SDA1, pods=110, windows_build="10.0.20348"),
        Family("Windows2025", "/dev/sda1", _SDA1, pods=110, windows_build="10.0.26100"),
        Family("Custom", reserve_by_eni=True),
    )
}


class ImageQuery(Struct, frozen=True, order=True):
    """One SSM parameter that holds an image id, and the variants of instance types that the image
    serves."""

    parameter: str
    variants: tuple[str, ...]


def unsupported(alias: str, version: str) -> str:
    """Why an alias cannot serve a Kubernetes version; "" if it can (A-109)."""
    family = alias.partition("@")[0].lower()
    minor = int(version.partition(".")[2])
    if family == "al2" and minor >= 33:
        return f"AL2 has no images for Kubernetes {version}"
    if family == "windows2025" and minor < 35:
        return f"Windows 2025 has no images for Kubernetes {version}"
    return ""


def image_queries(alias: str, version: str) -> tuple[ImageQuery, ...]:
    """The SSM parameters of an alias for a Kubernetes version such as "1.32" (A-102…A-108)."""
    family, _, release = alias.partition("@")
    family, latest = family.lower(), release == "latest"
    if family == "al2":
        return _al2(version, release, latest)
    if family == "al2023":
        return _al2023(version, release, latest)
    if family == "bottlerocket":
        return _bottlerocket(version, "latest" if latest else release.removeprefix("v"))
    year = family.removeprefix("windows")
    path = f"/aws/service/ami-windows-latest/Windows_Server-{year}-English-Core-EKS_Optimized-{version}"
    return (ImageQuery(path + "/image_id", ()),)


def _al2(version: str, release: str, latest: bool) -> tuple[ImageQuery, ...]:
    base = f"/aws/service/eks/optimized-ami/{version}"

    def query(folder: str, node: str, variants: tuple[str, ...]) -> ImageQuery:
        leaf = "recommended" if latest else f"amazon-eks-{node}-{version}-{release}"
        return ImageQuery(f"{base}/{folder}/{leaf}/image_id", variants)

    return (
        query("amazon-linux-2", "node", ("standard",)),
        query("amazon-linux-2-arm64", "arm64-node", ("standard",)),
        query("amazon-linux-2-gpu", "gpu-node", ("neuron", "nvidia")),
    )


def _al2023(version: str, release: str, latest: bool) -> tuple[ImageQuery, ...]:
    base = f"/aws/service/eks/optimized-ami/{version}/amazon-linux-2023"
    kinds = (("x86_64", "standard"), ("x86_64", "nvidia"), ("x86_64", "neuron"), ("arm64", "standard"))
    return tuple(
        ImageQuery(
            f"{base}/{arch}/{variant}/"
            + ("recommended" if latest else f"amazon-eks-node-al2023-{arch}-{variant}-{version}-{release}")
            + "/image_id",
            (variant,),
        )
        for arch, variant in (*kinds, ("arm64", "nvidia"))
    )


def _bottlerocket(version: str, release: str) -> tuple[ImageQuery, ...]:
    base = f"/aws/service/bottlerocket/aws-k8s-{version}"
    return (
        ImageQuery(f"{base}/x86_64/{release}/image_id", ("standard", "neuron")),
        ImageQuery(f"{base}/arm64/{release}/image_id", ("standard",)),
        ImageQuery(f"{base}-nvidia/x86_64/{release}/image_id", ("nvidia",)),
        ImageQuery(f"{base}-nvidia/arm64/{release}/image_id", ("nvidia",)),
    )
