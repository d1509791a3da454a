"""The devices of one pass: which ones the ResourceClaims of pods would get, on existing nodes and on new ones
(S-195…S-203).

A pod class that asks for devices has a `DeviceWant`. Every other class has None, and never comes here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.cel.errors import CelError
from kerf.engine.model.instance_types import InstanceType
from kerf.engine.model.karpenter.requirements import Requirements
from kerf.engine.model.kubernetes.devices import Allocation, AttributeBinding, DeviceFacts, ResourceClaim, ResourceSlice
from kerf.engine.model.labels import WELL_KNOWN
from kerf.engine.model.reasons import Reason
from kerf.engine.scheduling.devices.matching import Matcher
from kerf.engine.scheduling.devices.pools import (
    DeviceKey,
    DeviceOffer,
    OwnDevices,
    PublishedPools,
    device_offer,
    own_devices,
    pools_of,
)
from kerf.engine.scheduling.devices.refusals import refusal
from kerf.engine.scheduling.devices.search import Matching, Search, Solution
from kerf.engine.scheduling.devices.usage import DeviceGrant, GrantedClaim, Host, Ledger, freed
from kerf.engine.scheduling.launchable.templates import NarrowedTemplate, Template

Publishes = tuple[tuple[ResourceSlice, ...], tuple[AttributeBinding, ...]]
"""The slice templates of an instance type, and its attribute bindings."""


_NEW_CLAIM = -1
"""The index of a claim that is not open."""
_encode = msgspec.msgpack.Encoder(order="deterministic").encode


class NodeDevices(Struct, frozen=True, eq=False):
    """The devices of an existing node. `groups`: what it will publish, for each instance type that it may be; one empty
    group once its drivers have published. `taken`: those of these devices that somebody has."""

    name: str
    labels: Requirements
    groups: tuple[OwnDevices, ...] = (OwnDevices(),)
    taken: frozenset[DeviceKey] = frozenset()


class _AllocatedClaim(Struct, frozen=True, eq=False):
    """Where an allocated claim can be used. `hosts`: the only places; None if there are others. `requirements`: what it
    asks of each place."""

    hosts: frozenset[Host] | None
    requirements: Requirements


def _allocated_claim(allocation: Allocation) -> _AllocatedClaim:
    """Where an allocation can be used, by all of its terms together (S-199). Devices of one node name this node in a
    field."""
    requirements = Requirements.of_expressions(
        expression for term in allocation.terms for expression in term.expressions
    )
    named = [
        frozenset[Host](expression.values)
        for term in allocation.terms
        for expression in term.fields
        if expression.operator == "In"
    ]
    return _AllocatedClaim(frozenset.intersection(*named) if named else None, requirements)


class Devices:
    """All devices of a pass: which there are, who has them, and what is asked for."""

    def __init__(self, facts: DeviceFacts, initialized: Iterable[str], asked: Iterable[str] = ()) -> None:
        """`initialized`: the names of existing nodes whose own slices count (S-196). `asked`: the claims
        (namespace/name) of pods of this pass; none of them counts as released."""
        self._facts = facts
        there = frozenset(initialized)
        slices = [facts.slices[name] for name in sorted(facts.slices)]
        self._published = PublishedPools(
            pools_of(
                resource_slice for resource_slice in slices if not resource_slice.owner or resource_slice.owner in there
            )
        )
        self.matcher = Matcher(facts.classes)
        self.ledger = Ledger(facts, pools_of(slices), frozenset(asked))
        self._settled: dict[str, _AllocatedClaim] = {}
        self._wants: dict[tuple[str, ...], DeviceWant] = {}
        self._groups: dict[int, tuple[tuple[int, OwnDevices], ...]] = {}
        self._offers: dict[tuple[int, int], DeviceOffer] = {}
        self._sites: dict[str, tuple[DeviceOffer, ...]] = {}
        self.refused: dict[bytes, set[str]] = {}  # what is asked → nodes that cannot give it; they only fill up
        self.version = 0

    def want(self, names: tuple[str, ...]) -> DeviceWant:
        """What pods with these claims (namespace/name) ask for. All of the claims must exist."""
        device_want = self._wants.get(names)
        if device_want is None:
            claims = tuple(self._facts.claims[name] for name in names)
            device_want = self._wants[names] = DeviceWant(self, claims)
        return device_want

    def problem(self, names: Iterable[str]) -> tuple[str, str] | None:
        """The first claim that is missing (S-195) or that nothing can meet, and why; None if there is none."""
        for name in names:
            claim = self._facts.claims.get(name)
            if claim is None:
                return name, "there is no such ResourceClaim"
            why = "" if self.allocated(claim) else self.matcher.problem(claim)
            if why:
                return name, why
        return None

    def allocated(self, claim: ResourceClaim) -> bool:
        return claim.allocation is not None and not freed(claim, self._facts.leaving)

    def settled(self, claim: ResourceClaim) -> _AllocatedClaim | None:
        """Where a claim can be used, if it has its devices already (S-199)."""
        if claim.allocation is not None and self.allocated(claim):
            return _allocated_claim(claim.allocation)
        return self._settled.get(claim.key)

    def give(self, grant: DeviceGrant) -> None:
        self.ledger.give(grant)
        local: set[str] = set()
        asked: dict[str, Requirements] = {}
        for _, solution in grant.by_types:
            for allotted_device in solution.allotted:
                asked[allotted_device.claim] = asked.get(allotted_device.claim, Requirements()).merged(
                    allotted_device.offered.requirements
                )
                if allotted_device.offered.local:
                    local.add(allotted_device.claim)
        for name, requirements in asked.items():
            self._settled[name] = _AllocatedClaim(frozenset([grant.host]) if name in local else None, requirements)
        self.version += 1

    # ── what a place has ──────────────────────────────────────

    def groups(self, types: Sequence[InstanceType]) -> tuple[tuple[int, OwnDevices], ...]:
        """The types, as bitsets, grouped by what they will publish, in the order of their first type."""
        type_groups = self._groups.get(id(types))
        if type_groups is None:
            split: list[tuple[Publishes, int]] = []
            for number, instance_type in enumerate(types):
                publishes = instance_type.slices, instance_type.bindings
                known = next((i for i, (other, _) in enumerate(split) if other == publishes), None)
                if known is None:
                    split.append((publishes, 1 << number))
                else:
                    split[known] = (publishes, split[known][1] | 1 << number)
            type_groups = self._groups[id(types)] = tuple((mask, own_devices(*publishes)) for publishes, mask in split)
        return type_groups

    def drivers(self, host: Host) -> tuple[str, ...]:
        """The drivers of devices that come with the host and were given away on it (S-160)."""
        solutions = (solution for grant in self.ledger.given(host) for solution in grant.solutions())
        local = {
            allotted_device.offered.driver
            for solution in solutions
            for allotted_device in solution.allotted
            if allotted_device.offered.local
        }
        return tuple(sorted(local))

    def offer_on(self, node_devices: NodeDevices) -> tuple[DeviceOffer, ...]:
        offers = self._sites.get(node_devices.name)
        if offers is None:
            near = self._published.near(node_devices.name)
            offers = tuple(
                device_offer(near, group, node_devices.name, node_devices.labels) for group in node_devices.groups
            )
            self._sites[node_devices.name] = offers
        return offers

    def offer_of(self, publishes: OwnDevices, narrowed: NarrowedTemplate) -> DeviceOffer:
        """The devices for a claim of this narrowed template."""
        key = id(publishes), id(narrowed)
        device_offers = self._offers.get(key)
        if device_offers is None:
            device_offers = self._offers[key] = device_offer(
                self._published.near(""), publishes, "", narrowed.requirements
            )
        return device_offers


def _request_key(claims: Sequence[ResourceClaim]) -> bytes:
    """A key that is equal for claims that ask for the same."""
    return _encode([(claim.requests, claim.constraints) for claim in claims])


class DeviceWant:
    """The devices that the pods of one class ask for."""

    def __init__(self, devices: Devices, claims: tuple[ResourceClaim, ...]) -> None:
        self._devices = devices
        self._claims = claims
        self.names = tuple(claim.key for claim in claims)
        self._on_sites: dict[str, tuple[int, tuple[tuple[int, Solution], ...]]] = {}
        self._on_claims: dict[tuple[int, int], tuple[tuple[int, Solution], ...]] = {}
        self._narrowed: dict[tuple[int, int, int, int], NarrowedTemplate | None] = {}
        self._given: dict[int, int] = {}  # by claim: the types that its devices were found for

    # ── existing nodes ──────────────────────────────────────

    def on_site(self, node_devices: NodeDevices) -> bool:
        """Whether the devices of an existing node satisfy the claims; if so, the next step uses them (S-94, step 6)."""
        before = self._before(node_devices.name, node_devices.labels)
        if before is None:
            return False
        left = self._unsettled()
        refused = self._devices.refused.setdefault(_request_key(left), set()) if left else set()
        if node_devices.name in refused:
            return False
        solutions: list[tuple[int, Solution]] = []
        for number, offered in enumerate(self._devices.offer_on(node_devices) if left else ()):
            solution = self._solved(offered, node_devices.name, number, node_devices.labels, left, node_devices.taken)
            if solution is None:
                refused.add(node_devices.name)
                return False  # whatever the node becomes, the pod is to run there
            solutions.append((1 << number, solution))
        self._on_sites[node_devices.name] = self._devices.version, tuple(solutions)
        return True

    def take_site(self, name: str) -> None:
        """Give the pod the devices that the latest `on_site` found."""
        version, solutions = self._on_sites[name]
        assert version == self._devices.version
        if solutions:
            self._devices.give(DeviceGrant(name, None, solutions))

    # ── claims ──────────────────────────────────────

    def narrowed(
        self, claim: int, template: Template, narrowed: NarrowedTemplate, types: int
    ) -> NarrowedTemplate | None:
        """The narrowed template that a claim comes to by taking the pod (S-99 step 4, S-202); None if it cannot.
        `types`: those that it can still become; `capable` says which of them have the devices."""
        key = claim, id(narrowed), types, self._devices.version
        if key not in self._narrowed:
            self._narrowed[key] = self._narrow(claim, template, narrowed, types)
        return self._narrowed[key]

    def _narrow(
        self, claim: int, template: Template, narrowed: NarrowedTemplate, types: int
    ) -> NarrowedTemplate | None:
        before = self._before(claim, narrowed.requirements)
        if before is None:
            return None
        left = self._unsettled()
        solutions: list[tuple[int, Solution]] = []
        labels = narrowed.requirements.merged(before)
        asked = before
        if left:
            for mask, publishes in self._devices.groups(template.catalogue.types):
                if not mask & types:
                    continue
                group = (mask & -mask).bit_length() - 1
                solution = self._solved(self._devices.offer_of(publishes, narrowed), claim, group, labels, left)
                if solution is not None:
                    solutions.append((mask, solution))
                    labels, asked = labels.merged(solution.requirements), asked.merged(solution.requirements)
            if not solutions:
                return None
        following = template.step(narrowed, asked) if len(asked) else narrowed
        if not isinstance(following, NarrowedTemplate) or not following.viable:
            return None
        self._on_claims[claim, id(following)] = tuple(solutions)
        return following

    def suiting(self, template: Template) -> int:
        """The types that have the pod's devices on a new node, whatever else it asks for."""
        everything = template.catalogue.everything
        state = self._narrow(_NEW_CLAIM, template, template.base, everything)
        return self.capable(_NEW_CLAIM, state, everything) if state is not None else 0

    def capable(self, claim: int, narrowed: NarrowedTemplate, types: int) -> int:
        """Those of these types that have the devices, as the latest `narrowed` to this template found."""
        types &= self._given.get(claim, types)
        solutions = self._on_claims.get((claim, id(narrowed)), ())
        return types & sum(mask for mask, _ in solutions) if solutions else types

    def take_claim(self, claim: int, narrowed: NarrowedTemplate, place: GrantedClaim) -> None:
        """Give the pod the devices that the latest `narrowed` to this template found."""
        if self._unsettled():
            solutions = self._on_claims[claim, id(narrowed)]
            self._given[claim] = sum(mask for mask, _ in solutions)
            self._devices.give(DeviceGrant(claim, place, solutions))

    # ── inside ──────────────────────────────────────

    def _unsettled(self) -> list[ResourceClaim]:
        return [claim for claim in self._claims if self._devices.settled(claim) is None]

    def _before(self, host: Host, labels: Requirements) -> Requirements | None:
        """What the claims that have their devices ask of the place (S-199); None if the place does not meet it."""
        asked = Requirements()
        for claim in self._claims:
            settled = self._devices.settled(claim)
            if settled is None:
                continue
            if settled.hosts is not None and host not in settled.hosts:
                return None
            if not labels.merged(asked).compatible(settled.requirements, WELL_KNOWN):
                return None
            asked = asked.merged(settled.requirements)
        return asked

    def _solved(
        self,
        offered: DeviceOffer,
        host: Host,
        group: int,
        labels: Requirements,
        claims: Sequence[ResourceClaim],
        taken: frozenset[DeviceKey] = frozenset(),
    ) -> Solution | None:
        try:
            matching = Matching(self._devices.matcher.matching(offered, claims))
        except CelError:
            return None
        usage = self._devices.ledger.usage(host, group, offered.pools)
        if taken:
            usage = replace(usage, taken=usage.taken | taken)
        return Search(offered, matching, usage, labels).solve(claims)

    # ── reasons ──────────────────────────────────────

    def refusal_on(self, node_devices: NodeDevices) -> Reason | None:
        """Why a node cannot give the devices; None if it can."""
        if self._before(node_devices.name, node_devices.labels) is None:
            return refusal(self._devices.matcher, None, self._claims, {})
        left = self._unsettled()
        for number, offered in enumerate(self._devices.offer_on(node_devices) if left else ()):
            if self._solved(offered, node_devices.name, number, node_devices.labels, left, node_devices.taken) is None:
                taken = self._devices.ledger.usage(node_devices.name, number, offered.pools).taken | node_devices.taken
                return refusal(self._devices.matcher, offered, left, {}, taken)
        return None

    def refusal_of(self, claim: int, template: Template, narrowed: NarrowedTemplate, types: int) -> Reason | None:
        """Why a claim cannot have the devices, whichever type it becomes; None if it can."""
        if self._narrow(claim, template, narrowed, types) is not None:
            return None
        about = {"node_pool": template.name}
        if self._before(claim, narrowed.requirements) is None:
            return refusal(self._devices.matcher, None, self._claims, about)
        offers = [
            (self._devices.offer_of(publishes, narrowed), (mask & -mask).bit_length() - 1)
            for mask, publishes in self._devices.groups(template.catalogue.types)
            if mask & types
        ]
        offered, group = max(offers, key=lambda each: len(each[0].devices))
        taken = self._devices.ledger.usage(claim, group, offered.pools).taken
        return refusal(self._devices.matcher, offered, self._unsettled(), about, taken)
