"""The memory that nodes were seen to have, in place of the estimate of A-169 (A-90, A-170).

EC2 says how much memory an instance type has, but not how much of it the hypervisor and the image keep. A pod of 7 GiB
may so fit the estimate, and not the node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from kerf.adapters.aws.nodeclass.resolved import image_of
from kerf.engine.model.instance_types import InstanceType
from kerf.engine.model.karpenter.ec2nodeclasses import ResolvedAMI

KEPT = 60 * 24 * 3_600_000
"""How long (ms) what no node shows any more is kept (A-90)."""
Images = tuple[ResolvedAMI, ...]


class JoinedNode(Struct, frozen=True, order=True):
    """A registered Node of one of kerf's claims: its instance type, its image, and its memory in bytes."""

    instance_type: str
    image: str
    memory: int


class NodeMemory:
    """The least memory that a Node of each instance type was seen to have, with the images of the time."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, Images], tuple[int, int]] = {}  # → bytes, until when

    def learn(self, joined: Iterable[JoinedNode], types: Mapping[str, InstanceType], images: Images, now: int) -> None:
        """Take in Nodes that run the image which a class with these types and images would boot today (A-170)."""
        for node in sorted(joined):
            kind = types.get(node.instance_type)
            if kind is None or image_of(images, kind) != node.image:
                continue
            known, _ = self._seen.get((node.instance_type, images), (node.memory, 0))
            if node.memory <= known:
                self._seen[node.instance_type, images] = node.memory, now + KEPT

    def of(self, images: Images, now: int) -> dict[str, int]:
        """Bytes by instance type, for a class with these images."""
        self._seen = {key: value for key, value in self._seen.items() if value[1] > now}
        found = {name: memory for (name, those), (memory, _) in self._seen.items() if those == images}
        return dict(sorted(found.items()))
