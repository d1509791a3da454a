"""Pod classes: pods that scheduling cannot tell apart share one class, compiled once (S-27…S-37).

Two shapes belong to one class when they differ only in what no rule looks at: labels (as long as nothing
selects on them), priority and grace period. A class that fails is *relaxed* to another class, one step at
a time.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from kerf.engine.model.pods import AffinityTerm, PodShape, SpreadConstraint
from kerf.engine.scheduling.requirements import Requirements
from kerf.engine.scheduling.taints import SOFT

RESPECT = "Respect"
HARD_SPREAD = "DoNotSchedule"
SPREAD = "topology spread constraints"
AFFINITY = "pod affinity"
ANTI_AFFINITY = "pod anti-affinity"
VOLUMES = "volumes"
RESOURCE_CLAIMS = "resource claims"

_encoder = msgspec.msgpack.Encoder(order="deterministic")


def requirements_of(shape: PodShape, preferences: bool = True) -> Requirements:
    """What a pod asks of a node's labels: its nodeSelector, the first required term and, with
    `preferences`, the heaviest preferred one (S-27, S-28)."""
    parts = [*Requirements.of_labels(shape.node_selector)]
    if preferences and shape.preferred_terms:
        heaviest = max(shape.preferred_terms, key=lambda each: each.weight)  # the first of equals
        parts += Requirements.of_expressions(heaviest.term.expressions)
    if shape.required_terms:
        parts += Requirements.of_expressions(shape.required_terms[0].expressions)
    return Requirements(parts)


def _without_heaviest(terms: tuple[AffinityTerm, ...]) -> tuple[AffinityTerm, ...]:
    """Less the heaviest preferred term; all of them if none is preferred (a required one has weight 0)."""
    heaviest = max(terms, key=lambda each: each.weight, default=None)
    if heaviest is None or heaviest.weight == 0:
        return terms
    index = terms.index(heaviest)
    return terms[:index] + terms[index + 1 :]


def _without_soft_spread(spread: tuple[SpreadConstraint, ...]) -> tuple[SpreadConstraint, ...]:
    """Less the first ScheduleAnyway constraint, whose slot the last of the list takes (S-34)."""
    for index, constraint in enumerate(spread):
        if constraint.when_unsatisfiable != HARD_SPREAD:
            rest = list(spread)
            last = rest.pop()
            if index < len(rest):
                rest[index] = last
            return tuple(rest)
    return spread


def relaxed(shape: PodShape, soft_taints: bool) -> PodShape | None:
    """The shape after the first step of S-33 that changes something, None if nothing is left to give up.

    `soft_taints`: some NodePool carries a PreferNoSchedule taint, so tolerating those is a step too.
    """
    if len(shape.required_terms) > 1:
        return replace(shape, required_terms=shape.required_terms[1:])
    affinity = _without_heaviest(shape.affinity)
    if affinity != shape.affinity:
        return replace(shape, affinity=affinity)
    anti_affinity = _without_heaviest(shape.anti_affinity)
    if anti_affinity != shape.anti_affinity:
        return replace(shape, anti_affinity=anti_affinity)
    if shape.preferred_terms:
        heaviest = max(range(len(shape.preferred_terms)), key=lambda i: (shape.preferred_terms[i].weight, -i))
        kept = tuple(each for i, each in enumerate(shape.preferred_terms) if i != heaviest)
        return replace(shape, preferred_terms=kept)
    spread = _without_soft_spread(shape.spread)
    if spread != shape.spread:
        return replace(shape, spread=spread)
    if soft_taints and SOFT not in shape.tolerations:
        return replace(shape, tolerations=(*shape.tolerations, SOFT))
    return None


def unsupported(shape: PodShape, respect: bool) -> tuple[str, ...]:
    """What a pod carries that this version cannot honour. Preferences count as long as they are respected
    (S-36); under policy Ignore they form no topology groups (S-37)."""
    found = []
    if any(respect or each.when_unsatisfiable == HARD_SPREAD for each in shape.spread):
        found.append(SPREAD)
    if any(respect or each.weight == 0 for each in shape.affinity):
        found.append(AFFINITY)
    if any(respect or each.weight == 0 for each in shape.anti_affinity):
        found.append(ANTI_AFFINITY)
    if shape.volumes:
        found.append(VOLUMES)
    if shape.resource_claims:
        found.append(RESOURCE_CLAIMS)
    return tuple(found)


class PodClass:
    """One class, compiled. `requests` include the resource `pods`; `number` counts classes in order of
    appearance."""

    __slots__ = (
        "cpu",
        "memory",
        "number",
        "ports",
        "requests",
        "requirements",
        "shape",
        "tolerations",
        "unsupported",
    )

    def __init__(self, number: int, shape: PodShape, respect: bool) -> None:
        self.number = number
        self.shape = shape
        self.requests = {**dict(sorted(shape.requests.items())), "pods": 1}
        self.cpu = shape.requests.get("cpu", 0)
        self.memory = shape.requests.get("memory", 0)
        self.requirements = requirements_of(shape, preferences=respect)
        self.tolerations = shape.tolerations
        self.ports = shape.host_ports
        self.unsupported = unsupported(shape, respect)

    def __repr__(self) -> str:
        return f"PodClass({self.number}, {self.requests}, {self.requirements})"


class PodClasses:
    """The classes of one pass, found by shape digest and by relaxation."""

    def __init__(self, shapes: Mapping[str, PodShape], policy: str, soft_taints: bool) -> None:
        self._shapes = shapes
        self._respect = policy == RESPECT
        self._soft_taints = soft_taints
        self._by_key: dict[bytes, PodClass] = {}
        self._by_digest: dict[str, PodClass] = {}
        self._relaxed: dict[int, PodClass | None] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def of(self, digest: str) -> PodClass:
        found = self._by_digest.get(digest)
        if found is None:
            found = self._by_digest[digest] = self._intern(self._shapes[digest])
        return found

    def relaxed(self, given: PodClass) -> PodClass | None:
        """The class one step of S-33 further, None at the end."""
        if given.number not in self._relaxed:
            shape = relaxed(given.shape, self._soft_taints)
            self._relaxed[given.number] = None if shape is None else self._intern(shape)
        return self._relaxed[given.number]

    def _intern(self, shape: PodShape) -> PodClass:
        plain = replace(shape, labels={}, priority=0, priority_class="", grace=None)
        key = _encoder.encode(plain)
        found = self._by_key.get(key)
        if found is None:
            found = self._by_key[key] = PodClass(len(self._by_key), plain, self._respect)
        return found
