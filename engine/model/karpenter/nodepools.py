"""NodePools (karpenter.sh/v1) and what they refer to. v1beta1 documents are converted on decoding (L-127…L-135)."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from kerf.engine.model.kubernetes.pods import Resources, Taint
from kerf.engine.model.names import (
    KeyedHash,
    LabelMap,
    NodeClassGroup,
    NodeClassKind,
    NodeClassName,
    NodePoolName,
    Plain,
)


class NodeClassRef(Struct, frozen=True, order=True):
    group: NodeClassGroup
    kind: NodeClassKind
    name: NodeClassName

    @property
    def key(self) -> str:
        """How facts name it."""
        return f"{self.group}/{self.kind}/{self.name}"

    @property
    def label(self) -> str:
        """The label key that marks a node as made from this kind of NodeClass (L-87)."""
        return f"{self.group}/{self.kind.lower()}"


class RequirementSpec(Struct, frozen=True, omit_defaults=True):
    """One entry of spec.requirements (L-32)."""

    key: str
    operator: str
    values: tuple[str, ...] = ()
    min_values: int | None = None


def single_values(requirements: Iterable[RequirementSpec]) -> dict[str, str]:
    """The labels for which requirements leave one value, with it."""
    return {spec.key: spec.values[0] for spec in requirements if spec.operator == "In" and len(spec.values) == 1}


class Budget(Struct, frozen=True, omit_defaults=True):
    """A disruption budget (L-20…L-24); `duration` in milliseconds."""

    nodes: Plain = "10%"
    schedule: Plain | None = None
    duration: int | None = None
    reasons: tuple[Plain, ...] = ()


class NodePool(Struct, frozen=True, omit_defaults=True, dict=True):
    """Durations in milliseconds; None means Never (expire_after, consolidate_after) or unset (the grace period).

    `hash` is that of the template (see nodepool_hash); `hash_version` what the object's annotation says
    of the hash that stands on it (D-128)."""

    name: NodePoolName
    node_class: NodeClassRef
    uid: Plain = ""
    requirements: tuple[RequirementSpec, ...] = ()
    labels: LabelMap = {}
    annotations: LabelMap = {}
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    expire_after: int | None = 720 * 3_600_000  # L-15
    termination_grace_period: int | None = None
    consolidation_policy: Plain = "WhenEmptyOrUnderutilized"
    consolidate_after: int | None = 0  # L-18
    budgets: tuple[Budget, ...] = (Budget(),)
    limits: Resources | None = None
    weight: int = 0
    replicas: int | None = None
    ready: bool = True  # condition Ready, True when the object carries none (docs/plan.md)
    deleting: int = 0
    generation: int = 0
    hash: KeyedHash = ""
    hash_version: Plain = ""
