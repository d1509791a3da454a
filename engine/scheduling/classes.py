"""Pod classes: pods that scheduling cannot tell apart share one class, compiled once (S-27…S-37).

Two shapes belong to one class when they differ only in what no rule looks at: priority, grace period, and labels as
long as the same selectors select them. A class that fails is *relaxed* to another class, one step at
a time.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import msgspec
from msgspec.structs import replace

from kerf.engine.model.pods import PodShape
from kerf.engine.scheduling.demands import Demand
from kerf.engine.scheduling.podclass import PodClass
from kerf.engine.scheduling.shapes import relaxed, requirements_of
from kerf.engine.scheduling.topology import Bonds, Topology

RESPECT = "Respect"

_encoder = msgspec.msgpack.Encoder(order="deterministic")


class PodClasses:
    """The classes of one pass, found by namespace and shape digest and by relaxation."""

    def __init__(self, shapes: Mapping[str, PodShape], topology: Topology, policy: str, soft_taints: bool) -> None:
        self._shapes = shapes
        self._topology = topology
        self._respect = policy == RESPECT
        self._soft_taints = soft_taints
        self._by_key: dict[Hashable, PodClass] = {}
        self._by_digest: dict[tuple[str, str], PodClass] = {}
        self._relaxed: dict[int, PodClass | None] = {}
        self._demands: dict[Hashable, Demand] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def of(self, namespace: str, digest: str) -> PodClass:
        found = self._by_digest.get((namespace, digest))
        if found is None:
            shape = self._shapes[digest]
            found = self._by_digest[namespace, digest] = self._intern(namespace, shape, shape)
        return found

    def relaxed(self, wanted: PodClass) -> PodClass | None:
        """The class one step of S-33 further, None at the end."""
        if wanted.number not in self._relaxed:
            shape = relaxed(wanted.shape, self._soft_taints)
            weaker = None if shape is None else self._intern(wanted.namespace, wanted.given, shape)
            self._relaxed[wanted.number] = weaker
        return self._relaxed[wanted.number]

    def _intern(self, namespace: str, given: PodShape, shape: PodShape) -> PodClass:
        bonds = self._topology.bonds(namespace, given, shape)
        rules = tuple(each.number for each in bonds.rules)
        counted = tuple(each.number for each in bonds.counted)
        plain = replace(shape, labels={}, priority=0, priority_class="", grace=None)
        key = _encoder.encode(plain), rules, counted
        found = self._by_key.get(key)
        if found is None:
            demand = self._demand(plain, bonds)
            made = PodClass(len(self._by_key), namespace, given, plain, demand, bonds.counted)
            found = self._by_key[key] = made
        return found

    def _demand(self, shape: PodShape, bonds: Bonds) -> Demand:
        requirements = requirements_of(shape, preferences=self._respect)
        rules = tuple(each.number for each in bonds.rules)
        sought = tuple(each.number for each in bonds.sought)
        key = requirements, shape.tolerations, shape.host_ports, rules, sought
        found = self._demands.get(key)
        if found is None:
            found = self._demands[key] = Demand(
                len(self._demands), requirements, shape.tolerations, shape.host_ports, bonds.rules, bonds.sought
            )
        return found
