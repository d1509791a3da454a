"""What a plan can tell about how it was made. A tracer is called only when one is given; without it
nothing of this is computed. Results never depend on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from kerf.engine.model.reasons import Reason
from kerf.engine.scheduling.pods.pod_class import PodClass
from kerf.engine.scheduling.problem.problem import PendingPod


class Cut(Struct, frozen=True, omit_defaults=True):
    """One step of a funnel: `types` were ruled out by `what` (taint, requirement, limits, offering, left-out,
    unavailable, resource, host-ports, devices, volumes, topology, min-values); `key` is the label or resource, `wanted`
    what was asked of it, `daemons` what daemons take of a resource besides, at the most."""

    what: str
    types: int
    key: str = ""
    wanted: str = ""
    daemons: int = 0


class NearMiss(Struct, frozen=True, omit_defaults=True):
    """`types` types would do if this one thing were different; `example` is the cheapest of them where and
    as what the pods and the NodePool would then let it be launched.

    For what = requirement, `side` says who would have to change ("pod" or "node-pool") and `values` are
    the label values that it would have to allow; `meant` are those of them that a typing error may stand for.
    For limits and resource, `short` is by how much these types, the nearest, miss it. For topology, `side` is the rule
    (spread, affinity, anti-affinity) and `values` the domains that it would have to allow; none for a rule over
    hostnames that allows no further node.
    """

    what: str
    types: int
    example: str
    key: str = ""
    values: tuple[str, ...] = ()
    short: int = 0
    side: str = ""
    meant: tuple[str, ...] = ()


class Candidate(Struct, frozen=True, array_like=True):
    """A type that is left, with its cheapest available price, USD per hour."""

    instance_type: str
    price: float


class TypeFunnel(Struct, frozen=True, omit_defaults=True):
    """How the types of one NodePool narrowed down to those that can take the first pod of a new claim.
    `cuts` are in the order in which they were applied, each counting only types that were still there;
    those left are cheapest first. `near` are the single changes that would let more types through, most
    types first."""

    node_pool: str
    types: int
    cuts: tuple[Cut, ...] = ()
    left: tuple[Candidate, ...] = ()
    near: tuple[NearMiss, ...] = ()


NearMissesFor = Callable[[PodClass], tuple[NearMiss, ...]]
"""The single changes by which a NodePool that has nothing to launch would have types for the pods of a class."""


class Tracer(Protocol):
    def pool_dropped(self, reason: Reason, funnel: TypeFunnel, near: NearMissesFor) -> None:
        """A NodePool whose requirements leave no instance type (S-66); told before anything about pods."""

    def node_refused(self, pod_class: PodClass, node: str, reason: Reason) -> None:
        """An existing node that this class cannot use."""

    def claim_refused(self, pod_class: PodClass, claim: int, reason: Reason) -> None:
        """A claim opened earlier in the pass, by its index, that this class cannot join."""

    def pool_considered(
        self, pod_class: PodClass, reason: Reason | None, funnel: TypeFunnel, claim: int | None = None
    ) -> None:
        """A new claim of a NodePool: refused for a reason, or opened (None), then with the claim's index."""

    def placed(self, pod: PendingPod, pod_class: PodClass, place: str | int) -> None:
        """A pod has its place: the name of an existing node, or the index of a claim. `pod_class` is the
        class that it was placed as, after whatever it had to give up."""

    def unplaced(self, pod: PendingPod, pod_class: PodClass, reasons: tuple[Reason, ...]) -> None:
        """A pod has no place."""

    def claim_finished(self, claim: int, node_pool: str, left: tuple[Candidate, ...]) -> None:
        """A claim as planned, with the types that it may become: the first one is the cheapest, and so
        chosen."""
