"""The planner's answer. It holds everything that a NodeClaim needs but the name, which the caller gives."""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.model.karpenter.nodepools import RequirementSpec
from kerf.engine.model.karpenter.requirements import Requirement
from kerf.engine.model.kubernetes.pods import Resources
from kerf.engine.record.decisions import Placement, Unplaced


class OpenedClaim(Struct, frozen=True, omit_defaults=True):
    """A node that the plan opens. The fields are those of `record.decisions.PlannedClaim`, without the name.

    * `pods`: uids, in the order of namespace and name.
    * `instance_types`: cheapest first, at most `Settings.max_instance_types`.
    * `requirements`: as they go into the NodeClaim's spec (S-164, S-166), sorted by key.
    * `labels`: as they go into its metadata (S-165).
    * `price`: of the cheapest available offering, in USD per hour.
    * `constraints`: the claim's requirements when packing ended (S-160), before instance types and capacity types are
      added.
    """

    node_pool: str
    pods: tuple[str, ...]
    instance_types: tuple[str, ...]
    requirements: tuple[RequirementSpec, ...]
    requests: Resources
    price: float
    capacity_types: tuple[str, ...]
    labels: dict[str, str] = {}
    min_values_relaxed: bool = False
    reservations: tuple[str, ...] = ()
    constraints: tuple[Requirement, ...] = ()
    overlaid: tuple[str, ...] = ()
    drivers: tuple[str, ...] = ()


class Plan(Struct, frozen=True, omit_defaults=True):
    """Where the pods of a problem go. Each pod is in exactly one of `claims`, `placements`, `unplaced`, `ignored` and
    `truncated`.

    * `claims`: in the order in which they were opened.
    * `placements`: on existing nodes, by node name.
    * `unplaced`, `ignored` (refused before scheduling, S-42): ordered by their first pod.
    * `truncated`: pods that were not tried again after the last placement, because `Settings.max_steps` was reached.
    * `uneven`: pods that a spread counts were placed before their domain was known; the scheduler may not bind all of
      them.
    * `rated`: whether effort was spent on improving and rating the plan. Only then do the last three fields say
      anything.
    * `first_price`, `lower_bound`: USD per hour that the first plan costs, and that any nodes for these pods cost at
      least (0: not known).
    * `touches`: the effort spent, in touches (see `optimizer.effort`).
    * `unbound`: pods (uids) that the cluster's scheduler would find no place for (see `kube_scheduler`).
    * `too_dear`: the plan was broken off, because a claim could be of none of the types asked for (see `planner.plan`).
    """

    claims: tuple[OpenedClaim, ...] = ()
    placements: tuple[Placement, ...] = ()
    unplaced: tuple[Unplaced, ...] = ()
    ignored: tuple[Unplaced, ...] = ()
    truncated: tuple[str, ...] = ()
    first_price: float = 0.0
    lower_bound: float = 0.0
    unbound: tuple[str, ...] = ()
    rated: bool = False
    uneven: bool = False
    touches: int = 0
    too_dear: bool = False

    @property
    def placed(self) -> frozenset[str]:
        """The pods (uids) that have a place."""
        return frozenset(self.places)

    @property
    def places(self) -> dict[str, str | int]:
        """Where each pod (uid) has its place: on an existing node, by name, or on a claim, by its number."""
        places: dict[str, str | int] = {uid: there.node for there in self.placements for uid in there.pods}
        return places | {uid: number for number, claim in enumerate(self.claims) for uid in claim.pods}

    @property
    def on_new_nodes(self) -> frozenset[str]:
        """The pods (uids) that have a place on a new node."""
        return frozenset([uid for claim in self.claims for uid in claim.pods])
