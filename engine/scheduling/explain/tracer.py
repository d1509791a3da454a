"""What a plan can tell about how it was made: the calls of a `Tracer`, and what they carry.

Without a tracer none of it is computed. Results never depend on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from kerf.engine.model.reasons import Reason
from kerf.engine.scheduling.pods.pod_class import PodClass
from kerf.engine.scheduling.problem.problem import PendingPod


class Cut(Struct, frozen=True, omit_defaults=True):
    """One step of a funnel: `types` were ruled out by a filter of kind `what` (`type_filters.FilterKind`). `key`: the
    label or resource; `wanted`: what was asked of it; `daemons`: the most that daemons take of a resource besides;
    `tolerated`: what the pods tolerate of a taint's key, or of one that is nearly spelt so."""

    what: str
    types: int
    key: str = ""
    wanted: str = ""
    daemons: int = 0
    tolerated: tuple[str, ...] = ()


class NearMiss(Struct, frozen=True, omit_defaults=True):
    """`types` types would do if one thing were different. `example`: the cheapest of them, as the pods and the NodePool
    would then let it be launched. `what`: the kind of the filter.

    * Requirement: `side` says who would have to change ("pod" or "node-pool"); `values` are the label values that it
      would have to allow, and `meant` those of them that a typing error may stand for.
    * Limits and resource: `short` says by how much these types, the nearest ones, miss it.
    * Topology: `side` is the rule (spread, affinity, anti-affinity); `values` are the domains that it would have to
      allow. There are none for a rule over hostnames that allows no further node.
    """

    what: str
    types: int
    example: str
    key: str = ""
    values: tuple[str, ...] = ()
    short: int = 0
    side: str = ""
    meant: tuple[str, ...] = ()


class PricedType(Struct, frozen=True, array_like=True):
    """A type that is left, and its cheapest available price in USD per hour."""

    instance_type: str
    price: float


class TypeFunnel(Struct, frozen=True, omit_defaults=True):
    """How the types of one NodePool narrow down to those that can take the first pod of a new claim.

    * `cuts`: in the order in which they were applied; each counts only types that were still there.
    * `left`: the remaining types, cheapest first.
    * `near`: the single changes that would let more types through, the one for most types first.
    * `weight`: the NodePool's; those of more weight are asked first (S-63).
    """

    node_pool: str
    types: int
    cuts: tuple[Cut, ...] = ()
    left: tuple[PricedType, ...] = ()
    near: tuple[NearMiss, ...] = ()
    weight: int = 0


NearMissesFor = Callable[[PodClass], tuple[NearMiss, ...]]
"""The single changes by which a NodePool that has nothing to launch would have types for the pods of a class."""


class Tracer(Protocol):
    """Is called while a plan is made."""

    def pool_dropped(self, reason: Reason, funnel: TypeFunnel, near: NearMissesFor) -> None:
        """A NodePool's requirements leave no instance type (S-66). Called before anything about pods."""

    def node_refused(self, pod_class: PodClass, node: str, reason: Reason) -> None:
        """An existing node cannot take this class."""

    def claim_refused(self, pod_class: PodClass, claim: int, reason: Reason) -> None:
        """A claim opened earlier in the pass, given by its index, cannot take this class."""

    def pool_considered(
        self, pod_class: PodClass, reason: Reason | None, funnel: TypeFunnel, claim: int | None = None
    ) -> None:
        """A new claim of a NodePool was refused for a reason, or opened (no reason, and the claim's index)."""

    def placed(self, pod: PendingPod, pod_class: PodClass, place: str | int) -> None:
        """A pod has a place: an existing node by name, or a claim by index. `pod_class`: the class that it was placed
        as, after what it had to give up."""

    def unplaced(self, pod: PendingPod, pod_class: PodClass, reasons: tuple[Reason, ...]) -> None:
        """A pod has no place."""

    def claim_finished(self, claim: int, node_pool: str, left: tuple[PricedType, ...]) -> None:
        """A claim as planned, with the types that it can become. The first is the cheapest, and so the chosen one."""
