"""Launch claims that no pods were planned for.

They come straight from the template of a static NodePool (S-191, S-192), or from a NodeClaim object that somebody made
by hand (L-145).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct

from kerf.engine.model.karpenter.nodepools import NodeClassRef, NodePool
from kerf.engine.model.karpenter.requirements import Requirements
from kerf.engine.model.kubernetes.pods import Resources
from kerf.engine.model.labels import NODEPOOL
from kerf.engine.record.decisions import LaunchInstance, PlannedClaim, draw_of
from kerf.engine.scheduling.launchable.compiled_catalogue import bits, compiled_catalogue
from kerf.engine.scheduling.launchable.launch_offers import LaunchChoice, choose_offers
from kerf.engine.scheduling.launchable.pool_catalogues import catalogue_of_launch
from kerf.engine.scheduling.launchable.remaining_reservations import with_launches_taken
from kerf.engine.scheduling.packing.finished_claims import claim_labels, partition_label
from kerf.engine.state.nodeclaims.unavailable import unavailable, unavailable_to
from kerf.engine.state.state import State

NONE_TAKEN: Mapping[str, int] = MappingProxyType({})


class ClaimWithoutPods(Struct, frozen=True):
    """What a claim without pods asks for, and what it can be launched as now."""

    requirements: Requirements
    labels: dict[str, str]
    requests: Resources
    choice: LaunchChoice
    overlaid: tuple[str, ...] = ()  # what NodeOverlays have changed of some of its types (S-164)

    @property
    def instance_types(self) -> tuple[str, ...]:
        """The types that its launch may draw from, cheapest first."""
        return tuple(dict.fromkeys(offer.instance_type for offer in self.choice.offers))

    @property
    def price(self) -> float:
        return self.choice.offers[0].price if self.choice.offers else 0.0


def claim_from_template(
    pool: NodePool, state: State, now: int, taken: Mapping[str, int] = NONE_TAKEN
) -> ClaimWithoutPods:
    """A claim of a static NodePool (S-192): the template's requirements without instance types, no requests, and its
    custom labels (S-165). `taken`: for each reservation, how many launches beside this one use it."""
    own = {**pool.labels, NODEPOOL: pool.name, pool.node_class.label: pool.node_class.name}
    requirements = Requirements.of_specs(pool.requirements).merged(Requirements.of_labels(own))
    return claim_without_pods(requirements, claim_labels(own, requirements), {}, pool.node_class, state, now, taken)


def claim_without_pods(
    requirements: Requirements,
    labels: Mapping[str, str],
    requests: Resources,
    node_class: NodeClassRef,
    state: State,
    now: int,
    taken: Mapping[str, int] = NONE_TAKEN,
) -> ClaimWithoutPods:
    """What claims with these requirements can be launched as. There are no offers while the NodeClass has no
    catalogue."""
    digest = catalogue_of_launch(state, labels.get(NODEPOOL, ""), node_class.key)
    choice, partition, overlaid = LaunchChoice("", ()), {}, set[str]()
    if digest:
        catalogue = state.indexes.blobs.catalogue(digest)
        types = compiled_catalogue(digest, catalogue)
        left = types.fitting(requests) & types.admitting_all(requirements)
        partition = partition_label(requirements, types)
        names = tuple(types.names[number] for number in bits(left))
        most = state.facts.settings.max_launch_types
        left_over = with_launches_taken(catalogue, taken)
        lacking = unavailable(state.facts, now) | unavailable_to(state.facts, node_class.key, now)
        choice = choose_offers(left_over, names, requirements, lacking, max_types=most)
        offered = {types.numbers[offer.instance_type] for offer in choice.offers}
        overlaid = {what for number in offered for what in types.types[number].overlaid}
    return ClaimWithoutPods(requirements, {**labels, **partition}, requests, choice, tuple(sorted(overlaid)))


def planned_without_pods(name: str, pool: str, claim: ClaimWithoutPods) -> PlannedClaim:
    return PlannedClaim(
        name=name,
        node_pool=pool,
        pods=(),
        instance_types=claim.instance_types,
        requirements=tuple(spec for requirement in claim.requirements for spec in requirement.specs()),
        requests=claim.requests,
        price=claim.price,
        capacity_types=(claim.choice.capacity_type,),
        labels=claim.labels,
        overlaid=claim.overlaid,
    )


def launch_order(name: str, pool: NodePool, claim: ClaimWithoutPods) -> LaunchInstance:
    return LaunchInstance(
        claim=name,
        node_pool=pool.name,
        node_class=pool.node_class,
        capacity_type=claim.choice.capacity_type,
        offers=claim.choice.offers,
        reservation=claim.choice.reservation,
        tenancy=claim.choice.tenancy,
        requests=claim.requests,
        labels=claim.labels,
        taints=(*pool.taints, *pool.startup_taints),
        draw=draw_of(by_price="price" in claim.overlaid, relaxed=False),
    )
