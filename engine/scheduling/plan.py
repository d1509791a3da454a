"""What the planner answers. The caller names the claims; everything else of a NodeClaim is here."""

from __future__ import annotations

from msgspec import Struct

from kerf.engine.model.karpenter.nodepools import RequirementSpec
from kerf.engine.model.kubernetes.pods import Resources
from kerf.engine.record.decisions import Placement, Unplaced
from kerf.engine.scheduling.matching.requirements import Requirement


class OpenedClaim(Struct, frozen=True, omit_defaults=True):
    """A node that the plan opens; fields as in `record.decisions.PlannedClaim`, less the name.

    `pods` are uids in the order of namespace and name; `instance_types` cheapest first, at most
    `Settings.max_instance_types`; `requirements` as they go into the NodeClaim's spec (S-164, S-166),
    sorted by key; `labels` as its metadata gets them (S-165); `price` is that of the cheapest available
    offering, USD per hour. `constraints` are the claim's requirements when packing ended (S-160), before
    types and capacity types were added.
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
    """`claims` in the order of opening; `placements` by node name; `unplaced` and `ignored` (refused
    before scheduling, S-42) by their first pod. `truncated`: pods not looked at since the last placement, because
    `Settings.max_steps` was reached. Every pod of the problem is in exactly one of them. `uneven`: pods that a spread
    counts were placed before it was known in which domain, and the scheduler may not bind all of it.

    `rated` says whether effort was spent on improving and rating it; then `first_price` is what the first plan would
    cost, `lower_bound` what any nodes for the pods on claims cost at least (both USD per hour; 0 bounds nothing), and
    `unbound` are the pods (uids) that the cluster's scheduler would find no place for (see `rating`)."""

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

    @property
    def placed(self) -> frozenset[str]:
        """The pods (uids) that have a place."""
        on_new = {uid for claim in self.claims for uid in claim.pods}
        return frozenset(on_new.union(uid for each in self.placements for uid in each.pods))
