"""What a verdict on drift follows from, and what a check may find."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from msgspec import Struct

from kerf.engine.model.karpenter.nodeclaim_templates import Difference, Template
from kerf.engine.model.karpenter.nodepool_hash import VERSION
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.reasons import Reason
from kerf.engine.record.observations import NodeClassSeen
from kerf.engine.state.indexes import Blobs


class Drift(Struct, frozen=True):
    """The claim has drifted, in these fields as far as they are known."""

    reason: Reason
    differences: tuple[Difference, ...] = ()


class Unknown(Struct, frozen=True):
    """The check that finds `code` cannot be made now."""

    code: str


@dataclass(frozen=True, slots=True)
class Facts:
    """`node_class` is the NodePool's present one (A-332), `catalogue` the digest of its instance types; `old_enough`:
    the claim is an hour old; `off_selection`: the cloud says that it runs on a reservation that is not selected any
    more. `templates` and `blobs` only say what hashes and digests stand for."""

    pool: NodePool
    node_class: NodeClassSeen | None
    catalogue: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    class_hash: str
    old_enough: bool
    off_selection: bool
    templates: Mapping[str, Template]
    blobs: Blobs
    hash_version: str = VERSION

    @property
    def inputs(self) -> tuple[object, ...]:
        return (
            self.pool, self.node_class, self.catalogue, self.labels, self.annotations, self.class_hash, self.old_enough,
            self.off_selection,
        )  # fmt: skip
