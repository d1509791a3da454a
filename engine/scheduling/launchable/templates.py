"""Templates: what a NodePool can launch, compiled for one pass (S-61…S-70, S-102…S-108).

A `NarrowedTemplate` is a template under further requirements. Equal ones are the same object, and each remembers where
further requirements lead. So the label work for a pod class is done once per narrowed template, not once per pod or
claim.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Any

from msgspec import Struct

from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.karpenter.nodepools import NodePool, RequirementSpec
from kerf.engine.model.karpenter.requirements import Conflict, Requirement, Requirements
from kerf.engine.model.kubernetes.pods import HostPort, Resources
from kerf.engine.model.labels import (
    CAPACITY_TYPE,
    INITIALIZED,
    NODEPOOL,
    REGISTERED,
    RESERVATION_ID,
    RESERVATION_INTERRUPTIBLE,
    RESERVATION_TYPE,
    RESERVED,
    WELL_KNOWN,
    ZONE,
    ZONE_ID,
)
from kerf.engine.scheduling.launchable.compiled_catalogue import (
    CompiledCatalogue,
    PricedNumber,
    PricedPart,
    admitted_slots,
    compiled_catalogue,
    in_parts,
)
from kerf.engine.scheduling.launchable.daemons import Daemon, daemon_groups
from kerf.engine.scheduling.launchable.open_labels import NOTHING_KNOWN, OpenLabels, open_labels
from kerf.engine.scheduling.launchable.withheld import withheld_among
from kerf.engine.scheduling.matching.host_ports import port_conflicts
from kerf.engine.scheduling.matching.resources import added
from kerf.engine.scheduling.problem.problem import PoolInput, Problem

PLANNING_ONLY_LABELS = (REGISTERED, INITIALIZED)
"""S-65: keys that a claim has while it is planned and that never reach its spec."""

SLOT_LABELS = {
    ZONE: "zone",
    CAPACITY_TYPE: "capacity_type",
    ZONE_ID: "zone_id",
    RESERVATION_ID: "reservation_id",
    RESERVATION_TYPE: "reservation_type",
    RESERVATION_INTERRUPTIBLE: "interruptible",
}
"""The labels whose values come from offerings."""

NODES_LIMIT = "nodes"

MAX_NARROWED = 2_000
"""A template that was narrowed in more ways than this is not kept on."""


class NarrowedTemplate:
    """A template under some requirements: the types that meet them and are on offer, and the usable offering slots."""

    __slots__ = ("domains", "min_values", "pins", "requirements", "reservable", "slots", "steps", "viable")

    def __init__(self, requirements: Requirements, slots: tuple[int, ...], viable: int, reservable: bool) -> None:
        self.requirements = requirements
        self.slots = slots  # numbers of usable slots, ascending
        self.viable = viable  # types that are compatible (S-103) and have an available usable offering (S-105)
        self.reservable = reservable  # some usable slot is reserved capacity
        self.min_values = requirements.min_values
        self.steps: dict[Requirements, NarrowedTemplate | tuple[Conflict, ...]] = {}
        self.domains: dict[str, tuple[str, ...]] = {}  # by key
        self.pins: dict[tuple[str, tuple[str, ...]], NarrowedTemplate] = {}  # by key and values

    def settled(self, key: str) -> str | None:
        """The value of a label, if only one is left."""
        requirement = self.requirements.find(key)
        return next(iter(requirement.values)) if requirement is not None and requirement.single else None


class Template:
    """One NodePool in one pass. `types`: those that its requirements leave (S-66); 0 if there are none. `remaining`:
    what its limits leave (S-68); it shrinks as claims are opened.

    `worked_out` keeps what others work out of a narrowed template."""

    def __init__(
        self,
        pool: NodePool,
        usage: Resources,
        catalogue: CompiledCatalogue,
        unavailable: frozenset[tuple[str, str, str]],
        daemons: Sequence[Daemon],
        strict: bool,
        withheld: tuple[RequirementSpec, ...] = (),
        left_open: OpenLabels = (),
    ) -> None:
        """`strict`: minValues must be met (policy Strict); `withheld`: see `PoolInput`."""
        self.pool = pool
        self._left_open = dict(left_open)
        self._variant = 0
        self._withheld = withheld
        self.name = pool.name
        self.catalogue = catalogue
        self.labels = {**pool.labels, NODEPOOL: pool.name, pool.node_class.label: pool.node_class.name}
        self.slots = catalogue.slots
        self._on_offer, self._left_out = _on_offer(catalogue, unavailable)
        self.available = tuple([types & ~self._left_out for types in self._on_offer])
        self._slot_requirements = tuple(slot.requirements() for slot in self.slots)
        self._states: dict[Requirements, NarrowedTemplate] = {}
        self._orders: dict[tuple[int, ...], tuple[PricedNumber, ...]] = {}
        self._parts: dict[tuple[int, ...], list[PricedPart]] = {}
        self.worked_out: dict[Hashable, Any] = {}
        self.remaining = _remaining(pool.limits, usage)
        simulated = dict.fromkeys(PLANNING_ONLY_LABELS, "true")
        requirements = Requirements.of_specs(pool.requirements).merged(
            [*Requirements.of_labels(self.labels), *Requirements.of_labels(simulated)]
        )
        self.base = self.at(requirements)
        self.types = self.base.viable
        if strict and not self.meets_min_values(self.base.min_values, self.types):
            self.types = 0
        self.groups = daemon_groups(daemons, pool.taints, requirements, catalogue, self.types)

    def anew(self, pool: NodePool, usage: Resources, variant: int) -> Template:
        """The template for another pass, of the same NodePool but for its limits. Both share all that is worked out:
        that does not depend on the `variant` (see `Problem`)."""
        twin = Template.__new__(Template)
        twin.__dict__ |= self.__dict__
        twin.pool = pool
        twin._variant = variant
        twin.remaining = _remaining(pool.limits, usage)
        return twin

    @property
    def crowded(self) -> bool:
        """Whether it was narrowed in so many ways that it is better made afresh."""
        return max(len(self._states), len(self.worked_out)) > MAX_NARROWED

    # ── requirements ──────────────────────────────────────

    def at(self, requirements: Requirements) -> NarrowedTemplate:
        """The template narrowed to these requirements."""
        state = self._states.get(requirements)
        if state is None:
            state = self._states[requirements] = self._evaluate(requirements)
        return state

    def step(self, narrowed: NarrowedTemplate, requirements: Requirements) -> NarrowedTemplate | tuple[Conflict, ...]:
        """The narrowed template that a pod's requirements lead to; or the conflicts, if they cannot hold there (S-99
        step 2)."""
        following = narrowed.steps.get(requirements)
        if following is None:
            following = narrowed.requirements.incompatibilities(requirements, WELL_KNOWN) or self.at(
                narrowed.requirements.merged(requirements)
            )
            narrowed.steps[requirements] = following
        return following

    def domains(self, narrowed: NarrowedTemplate, key: str) -> tuple[str, ...]:
        """The values of a label that nodes of this narrowed template can have, sorted: those of offerings that can be
        launched; else of types that can; else those that the requirements list, or that are known of a label which the
        NodePool leaves open (S-126, but only what can be launched)."""
        values = narrowed.domains.get(key)
        if values is None:
            values = narrowed.domains[key] = tuple(sorted(self.domains_of(narrowed, key, narrowed.viable)))
        return values

    def domains_of(self, narrowed: NarrowedTemplate, key: str, types: int) -> set[str]:
        """The values of a label that nodes of these types can have."""
        requirement = narrowed.requirements.get(key)
        attribute = SLOT_LABELS.get(key)
        if attribute is not None:
            offered = {getattr(self.slots[n], attribute) for n in narrowed.slots if self.available[n] & types}
            return {value for value in offered if value and requirement.has(value)}
        index = self.catalogue.labels.get(key)
        if index is not None and index.known & types:
            return {value for value, there in index.values.items() if there & types and requirement.has(value)}
        if not types:
            return set()
        known = self._left_open.get(key, NOTHING_KNOWN)
        values = (*known.listed, *known.of_nodes) if requirement.complement else requirement.values
        return {value for value in values if requirement.has(value)}

    def known_by_nodes(self, key: str) -> tuple[str, ...]:
        """Those of the `domains` of a label that the NodePool leaves open which are known because nodes have them."""
        return self._left_open.get(key, NOTHING_KNOWN).of_nodes

    def leaves_open(self, narrowed: NarrowedTemplate, key: str) -> bool:
        """Whether nodes of this narrowed template may have values of a label besides its `domains`."""
        return key in self._left_open and narrowed.requirements.get(key).complement

    def lacks(self, narrowed: NarrowedTemplate, key: str) -> bool:
        """Whether nodes of this narrowed template will not have a label, because nothing that they are launched by
        mentions it. Well-known labels they will have."""
        requirement, index = narrowed.requirements.find(key), self.catalogue.labels.get(key)
        if requirement is not None and (requirement.complement or requirement.values):
            return False
        return key not in WELL_KNOWN and (index is None or not index.known & narrowed.viable & ~index.absent)

    def pin(self, state: NarrowedTemplate, key: str, values: tuple[str, ...]) -> NarrowedTemplate:
        """The narrowed template with only these values of a label."""
        pinned = state.pins.get((key, values))
        if pinned is None:
            narrowed = state.requirements.merged([Requirement(key, False, frozenset(values))])
            pinned = state.pins[key, values] = self.at(narrowed)
        return pinned

    def cheapest(self, narrowed: NarrowedTemplate, types: int) -> float:
        """The lowest price of these types, USD per hour; infinity for none."""
        return next((price for price, _ in self.cheapest_first(narrowed, types)), float("inf"))

    def cheapest_first(self, narrowed: NarrowedTemplate, types: int) -> Iterator[PricedNumber]:
        """These types in the order of `by_price`. A part of the order that holds none of them is passed over whole."""
        parts = self._parts.get(narrowed.slots)
        if parts is None:
            parts = self._parts[narrowed.slots] = in_parts(self.by_price(narrowed))
        for there, part in parts:
            if there & types:
                for priced in part:
                    if types >> priced[1] & 1:
                        yield priced

    def precedence(self, claim: int, narrowed: NarrowedTemplate, types: int) -> float:
        """A number by which domains of equal rank are ordered, the least first: the price (S-140); in another variant,
        a number that has nothing to do with the price, nor with names, but is the same for the same claim."""
        if not self._variant:
            return self.cheapest(narrowed, types)
        domains = [
            self._place(narrowed, requirement.key) for requirement in narrowed.requirements if requirement.single
        ]
        mixed = blake2b(f"{self._variant}/{claim}/{domains}".encode(), digest_size=4).digest()  # a CRC repeats itself
        return float(int.from_bytes(mixed, "big"))

    def _place(self, narrowed: NarrowedTemplate, key: str) -> int:
        """The place of the one value that is left of a label among those that the template can have; -1 for others."""
        value, values = narrowed.settled(key), self.domains(self.base, key)
        return values.index(value) if value in values else -1

    def usable_slots(self, requirements: Requirements) -> tuple[int, ...]:
        """The slots whose offerings a claim with these requirements may use (S-105)."""
        return admitted_slots(self.slots, self._slot_requirements, requirements)

    def _evaluate(self, requirements: Requirements) -> NarrowedTemplate:
        """Work out a narrowed template. Types are checked for an offering here and for room elsewhere (`survivors`):
        unlike in S-106, reasons tell the two apart."""
        slots = self.usable_slots(requirements)
        viable = 0
        for number in slots:
            viable |= self.available[number]
        viable &= self.catalogue.admitting_all(requirements)
        if self._withheld and self.withheld(requirements):
            viable = 0
        reservable = any(self.slots[number].capacity_type == RESERVED for number in slots)
        return NarrowedTemplate(requirements, slots, viable, reservable)

    def withheld(self, requirements: Requirements) -> tuple[Requirement, ...]:
        """Of these requirements, those that nothing is launched for, because launches did not give them."""
        return withheld_among(requirements, self._withheld)

    # ── types ──────────────────────────────────────

    def survivors(
        self, candidates: int, requests: Resources, ports: Iterable[HostPort], taken: Sequence[HostPort]
    ) -> int:
        """The candidate types with room for the requests beside their daemons (S-102). `ports`: the pod's host ports;
        `taken`: those of the claim's other pods."""
        pod_ports = tuple(ports)
        left = 0
        for group in self.groups:
            members = candidates & group.types
            if not members or (pod_ports and port_conflicts(pod_ports, (*group.ports, *taken))):
                continue
            left |= members & self.catalogue.fitting(added(requests, group.requests) if group.requests else requests)
        return left

    def meets_min_values(self, min_values: tuple[tuple[str, int], ...], types: int) -> bool:
        """Whether the types have the distinct values that minValues asks for (S-108). No types at all count as meeting
        it."""
        return not types or all(self.catalogue.distinct_values(key, types) >= least for key, least in min_values)

    def unmet_min_values(self, min_values: tuple[tuple[str, int], ...], types: int) -> dict[str, int]:
        """The keys with too few distinct values, and how many there are (S-107)."""
        counts = {key: (self.catalogue.distinct_values(key, types), least) for key, least in min_values}
        return {key: count for key, (count, least) in counts.items() if count < least}

    def by_price(self, narrowed: NarrowedTemplate) -> tuple[PricedNumber, ...]:
        """All types as (price, number): the cheapest usable available offering first, then by name (S-204). A type
        without one comes last, at infinity. Types that the question leaves out of itself have their prices, so that
        one order serves all questions that leave out others."""
        order = self._orders.get(narrowed.slots)
        if order is None:
            offers = tuple([(number, self._on_offer[number]) for number in narrowed.slots])
            order = self._orders[narrowed.slots] = self.catalogue.by_price(offers)
        return order

    # ── limits ──────────────────────────────────────

    def left_out(self) -> int:
        """The types that the question leaves out of itself in all zones and capacity types (`Problem.unavailable`)."""
        return self._left_out

    def restart(self, usage: Resources) -> None:
        """Set what the limits leave beside this usage, before any claim is opened."""
        self.remaining = _remaining(self.pool.limits, usage)

    @property
    def node_limit_reached(self) -> bool:
        """Whether the limit on `nodes` leaves exactly none (S-69)."""
        return self.remaining.get(NODES_LIMIT) == 0

    def within_limits(self, candidates: int) -> int:
        """The candidates whose capacity the limits still allow (S-69). Each counts as 1 of the resource `nodes`."""
        for name, amount in self.remaining.items():
            if name == NODES_LIMIT:
                candidates = candidates if amount >= 1 else 0
                continue
            levels = self.catalogue.capacity.get(name)
            if levels is not None:
                candidates &= levels.at_most(amount)
            elif amount < 0:
                return 0
        return candidates

    def spend(self, types: int) -> None:
        """Count a new claim of these types against the limits, by its largest possible type, and as one of `nodes`
        (unlike in S-70)."""
        for name in self.remaining:
            levels = self.catalogue.capacity.get(name)
            if name == NODES_LIMIT:
                self.remaining[name] -= 1
            elif levels is not None:
                self.remaining[name] -= levels.highest(types)


def available_types(catalogue: CompiledCatalogue, unavailable: frozenset[tuple[str, str, str]]) -> tuple[int, ...]:
    """For each slot, the types with an available offering, without those known to lack capacity (capacity type,
    instance type, zone)."""
    gone: dict[tuple[str, str], int] = {}
    for capacity_type, name, zone in unavailable:
        number = catalogue.numbers.get(name)
        if number is not None or not name:
            types = catalogue.everything if number is None else 1 << number
            gone[capacity_type, zone] = gone.get((capacity_type, zone), 0) | types
    masks = []
    for slot in catalogue.slots:
        mask = slot.types
        for (capacity_type, zone), types in gone.items():
            if capacity_type in ("", slot.capacity_type) and zone in ("", slot.zone):
                mask &= ~types
        masks.append(mask)
    return tuple(masks)


def _on_offer(
    catalogue: CompiledCatalogue, unavailable: frozenset[tuple[str, str, str]]
) -> tuple[tuple[int, ...], int]:
    """For each slot, the types with an available offering; and the types that are left out in all zones and capacity
    types, which the first may still have."""
    left_out, lacking = 0, []
    for offering in unavailable:
        capacity_type, name, zone = offering
        if capacity_type or zone or name not in catalogue.numbers:
            lacking.append(offering)
        else:
            left_out |= 1 << catalogue.numbers[name]
    return available_types(catalogue, frozenset(lacking)), left_out


def _remaining(limits: Resources | None, usage: Resources) -> Resources:
    """What the limits leave, for the resources that are limited (S-68)."""
    return {name: limit - usage.get(name, 0) for name, limit in sorted((limits or {}).items())}


_NO_CATALOGUE = Catalogue(types=())


def template_of(
    pool_input: PoolInput, problem: Problem, daemons: Sequence[Daemon], *, strict: bool, variant: int = 0
) -> Template:
    """The template of a problem's NodePool. Without a catalogue it has no types (S-64).

    It is kept with the catalogue, by what it was made of."""
    pool, carried, unavailable = pool_input.pool, tuple(daemons), problem.unavailable_to(pool_input)
    catalogue = problem.catalogues[pool_input.catalogue] if pool_input.catalogue else _NO_CATALOGUE
    kinds = compiled_catalogue(pool_input.catalogue, catalogue)
    labels, left_open = tuple(pool.labels.items()), open_labels(pool, problem)
    asked = (
        pool.name, pool.requirements, labels, pool.taints, pool.node_class, unavailable, strict,
        len(carried), pool_input.withheld, left_open,
    )  # fmt: skip

    def make() -> Template:
        return Template(pool, {}, kinds, unavailable, carried, strict, pool_input.withheld, left_open)

    kept = kinds.once((Template, asked), lambda: _Kept(carried, make()))
    if kept.daemons != carried or kept.template.crowded:
        kept.daemons, kept.template = carried, make()
    return kept.template.anew(pool, pool_input.usage, variant)


class _Kept(Struct):
    """A template, and the daemons that it counts on."""

    daemons: tuple[Daemon, ...]
    template: Template
