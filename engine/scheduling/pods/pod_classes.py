"""Pod classes: pods that scheduling cannot tell apart share one class, compiled once (S-27…S-37).

Two shapes belong to one class if they differ only in what no rule looks at: priority, grace period, and labels, as long
as the same selectors match them. A class that finds no place is *relaxed* to another class, one step at a time.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from copy import copy

import msgspec
from msgspec.structs import replace

from kerf.engine.model.karpenter.requirements import NO_REQUIREMENTS, Requirements
from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.model.kubernetes.volumes import VolumeFacts
from kerf.engine.scheduling.devices.allocation import Devices, DeviceWant
from kerf.engine.scheduling.made_once import once
from kerf.engine.scheduling.pods.demand import Demand
from kerf.engine.scheduling.pods.pod_class import PodClass
from kerf.engine.scheduling.pods.pod_requirements import (
    contradictions,
    relaxed_shape,
    required_terms_again,
    requirements_of,
)
from kerf.engine.scheduling.pods.pod_volumes import PodVolumes, volumes_of_claims
from kerf.engine.scheduling.topology.topology import ClassTopology, Topology

RESPECT = "Respect"

_encoder = msgspec.msgpack.Encoder(order="deterministic")


class PodClasses:
    """The classes of one pass. They are found by namespace and shape digest, and from each class by relaxation."""

    def __init__(
        self,
        shapes: Mapping[str, PodShape],
        topology: Topology,
        policy: str,
        soft_taints: bool,
        facts: VolumeFacts | None = None,
        devices: Devices | None = None,
    ) -> None:
        self._shapes = shapes
        self._topology = topology
        self._facts = facts
        self._devices = devices
        self._respect = policy == RESPECT
        self._soft_taints = soft_taints
        self._by_key: dict[Hashable, PodClass] = {}
        self._by_digest: dict[Hashable, PodClass] = {}
        self._relaxed: dict[int, PodClass | None] = {}
        self._demands: dict[Hashable, Demand] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def of(
        self,
        namespace: str,
        digest: str,
        claims: tuple[str, ...] = (),
        devices: tuple[str, ...] | None = None,
        of_new_nodes: Requirements = NO_REQUIREMENTS,
    ) -> PodClass:
        """The class of a pod. `claims`: the claims of its volumes, as namespace/name; `devices`: all its ResourceClaims
        in order, None if they are not looked at; `of_new_nodes`: see `PendingPod`."""
        plain = not claims and devices is None and not of_new_nodes
        key = (namespace, digest) if plain else (namespace, digest, claims, devices, of_new_nodes)
        pod_class = self._by_digest.get(key)
        if pod_class is None:
            original_shape = self._shapes[digest]
            shape = self._consistent(original_shape, original_shape) or original_shape
            volumes = volumes_of_claims(self._facts, claims) if self._facts is not None else None
            want = self._devices.want(devices) if self._devices is not None and devices is not None else None
            pod_class = self._by_digest[key] = self._intern(
                namespace, original_shape, shape, volumes, want, of_new_nodes
            )
        return pod_class

    def relaxed(self, pod_class: PodClass) -> PodClass | None:
        """The class after one more step of S-33; None when nothing is left to give up."""
        if pod_class.number not in self._relaxed:
            shape = self._consistent(pod_class.original_shape, self._next(pod_class.original_shape, pod_class.shape))
            weaker = None if shape is None else self._like(pod_class, shape, pod_class.of_new_nodes)
            self._relaxed[pod_class.number] = weaker
        return self._relaxed[pod_class.number]

    def _next(self, original_shape: PodShape, shape: PodShape) -> PodShape | None:
        """The shape after one more step. Required terms are given up first (S-33). Unlike there, the terms that were
        given up are tried again without preferences at the end, because kube-scheduler would bind the pod by any of
        them."""
        soft = self._soft_taints
        weaker = once(shape, ("relaxed", soft), lambda: relaxed_shape(shape, soft))
        return weaker or required_terms_again(original_shape, shape)

    def _consistent(self, original_shape: PodShape, shape: PodShape | None) -> PodShape | None:
        """The shape, relaxed until it does not contradict itself; None if it always does. No node could take a pod that
        does."""
        while shape is not None and self._contradictions(shape):
            shape = self._next(original_shape, shape)
        return shape

    def _contradictions(self, shape: PodShape) -> tuple[str, ...]:
        return once(shape, ("contradictions", self._respect), lambda: contradictions(shape, self._respect))

    def for_any_new_node(self, pod_class: PodClass) -> PodClass:
        """The class, by its number, without what it asks of new nodes besides its shape. It is there for reasons: its
        spreads may count none of the pods placed so far."""
        anywhere = copy(self._like(pod_class, pod_class.shape, NO_REQUIREMENTS))
        anywhere.number = pod_class.number
        return anywhere

    def _like(self, pod_class: PodClass, shape: PodShape, of_new_nodes: Requirements) -> PodClass:
        original_shape, volumes, devices = pod_class.original_shape, pod_class.volumes, pod_class.devices
        return self._intern(pod_class.namespace, original_shape, shape, volumes, devices, of_new_nodes)

    def _intern(
        self,
        namespace: str,
        original_shape: PodShape,
        shape: PodShape,
        volumes: PodVolumes | None,
        devices: DeviceWant | None,
        of_new_nodes: Requirements,
    ) -> PodClass:
        class_topology = self._topology.of_class(namespace, original_shape, shape, of_new_nodes)
        rules = tuple(rule.number for rule in class_topology.rules)
        counted = tuple(count.number for count in class_topology.counted)
        plain = _plain(shape)
        may_go_back = len(original_shape.required_terms) > 1
        terms = _encoded(_plain(original_shape)) if may_go_back else b""
        key = _encoded(plain), terms, rules, counted, volumes, devices, of_new_nodes
        pod_class = self._by_key.get(key)
        if pod_class is None:
            demand = self._demand(plain, class_topology, volumes, devices, of_new_nodes)
            made = PodClass(
                len(self._by_key), namespace, original_shape, plain, demand, class_topology.counted, volumes, devices
            )
            made.of_new_nodes = of_new_nodes
            made.contradictions = self._contradictions(plain)
            pod_class = self._by_key[key] = made
        return pod_class

    def _demand(
        self,
        shape: PodShape,
        class_topology: ClassTopology,
        volumes: PodVolumes | None,
        devices: DeviceWant | None,
        of_new_nodes: Requirements,
    ) -> Demand:
        """The demand of a shape: with its heaviest preference by policy Respect, without preferences by Ignore (S-29).
        Pods that ask for devices share no demand: that one of them is refused says nothing of the next."""
        respect = self._respect
        requirements = once(shape, ("requirements", respect), lambda: requirements_of(shape, preferences=respect))
        rules = tuple(rule.number for rule in class_topology.rules)
        sought = tuple(count.number for count in class_topology.sought)
        alternatives = volumes.alternatives if volumes is not None else ()
        key = requirements, of_new_nodes, alternatives, shape.tolerations, shape.host_ports, rules, sought, devices
        demand = self._demands.get(key)
        if demand is None:
            demand = self._demands[key] = Demand(
                len(self._demands),
                requirements,
                of_new_nodes,
                alternatives,
                shape.tolerations,
                shape.host_ports,
                class_topology.rules,
                class_topology.sought,
            )
        return demand


def _plain(shape: PodShape) -> PodShape:
    """The shape without what no rule looks at once its labels have been matched."""
    return once(shape, "plain", lambda: replace(shape, labels={}, priority=0, priority_class="", grace=None))


def _encoded(shape: PodShape) -> bytes:
    return once(shape, "encoded", lambda: _encoder.encode(shape))
