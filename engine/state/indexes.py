"""Indexes over the state: derived, never stored, rebuilt when a snapshot is loaded.

Anything that a decider takes from here it sorts first: insertion order differs between a fold from zero and one from a
snapshot, and no decision may show that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import msgspec
from msgspec import Struct

from kerf.engine.model.instance_types import Catalogue, InstanceType
from kerf.engine.model.karpenter.ec2nodeclasses import EC2NodeClass
from kerf.engine.model.kubernetes.pods import PodShape, Resources
from kerf.engine.record.errors import BlobMissing
from kerf.engine.state.claim_timers import ClaimTimers

_MAX_EXTREMES_KEPT = 1_000
_SPARE_SHAPES, _SPARE_CATALOGUES = 10_000, 4
BlobSource = Callable[[str], bytes]
"""Content by digest: the store's, or a dict's in tests."""


class Blobs:
    """Decoded content by digest. A pure cache: what a digest stands for never changes. Each Job has a shape of its own,
    and each change of a price a catalogue (10 MB of EC2's), so the runtime trims it."""

    def __init__(self, source: BlobSource) -> None:
        self.source = source
        self._shapes: dict[str, PodShape] = {}
        self._catalogues: dict[str, Catalogue] = {}
        self._types: dict[str, dict[str, InstanceType]] = {}
        self._over_types: dict[tuple[str, tuple[str, ...], bool], Resources] = {}
        self._most_shapes, self._most_catalogues = _SPARE_SHAPES, _SPARE_CATALOGUES

    def offer(self, digest: str, value: Struct) -> None:
        """Content that arrived with an observation and may not be stored yet."""
        if isinstance(value, PodShape):
            self._shapes[digest] = value
        elif isinstance(value, Catalogue):
            self._catalogues[digest] = value

    @property
    def many(self) -> bool:
        """Whether it is time to `trim`."""
        return len(self._shapes) > self._most_shapes or len(self._catalogues) > self._most_catalogues

    def trim(self, shapes: Collection[str], catalogues: Collection[str]) -> None:
        """Forgets what is neither of these, which the facts name. Called when all that was offered is stored, or is
        offered again before it is asked for (what deciders make themselves)."""
        self._shapes = {digest: found for digest, found in self._shapes.items() if digest in shapes}
        self._catalogues = {digest: found for digest, found in self._catalogues.items() if digest in catalogues}
        self._types = {digest: found for digest, found in self._types.items() if digest in catalogues}
        self._most_shapes = 2 * len(self._shapes) + _SPARE_SHAPES
        self._most_catalogues = 2 * len(self._catalogues) + _SPARE_CATALOGUES

    def shape(self, digest: str) -> PodShape:
        found = self._shapes.get(digest)
        if found is None:
            found = self._shapes[digest] = msgspec.msgpack.decode(self.source(digest), type=PodShape)
        return found

    def node_class(self, digest: str) -> EC2NodeClass | None:
        """An EC2NodeClass as it was recorded; None for a NodeClass of another provider, or one that is not kept. Read
        again each time: nothing but texts for people asks for it."""
        try:
            return msgspec.msgpack.decode(self.source(digest), type=EC2NodeClass)
        except (BlobMissing, msgspec.DecodeError):
            return None

    def catalogue(self, digest: str) -> Catalogue:
        found = self._catalogues.get(digest)
        if found is None:
            found = self._catalogues[digest] = msgspec.msgpack.decode(self.source(digest), type=Catalogue)
        return found

    def has_catalogue(self, digest: str) -> bool:
        """Whether it was offered or asked for, and is not forgotten."""
        return digest in self._catalogues

    def instance_type(self, digest: str, name: str) -> InstanceType | None:
        """One type of a catalogue, by name."""
        types = self._types.get(digest)
        if types is None:
            types = self._types[digest] = {t.name: t for t in self.catalogue(digest).types}
        return types.get(name)

    def over_types(self, digest: str, names: tuple[str, ...], *, largest: bool) -> Resources:
        """Per resource, the largest capacity or the smallest allocatable over the named types that the catalogue has.
        The claims of one plan mostly name the same types."""
        key = (digest, names, largest)
        known = self._over_types.get(key)
        if known is None:
            found = [t for name in names if (t := self.instance_type(digest, name)) is not None]
            amounts = [t.capacity if largest else t.allocatable() for t in found]
            resources = dict.fromkeys(resource for amount in amounts for resource in amount)
            pick = max if largest else min
            known = {resource: pick(amount.get(resource, 0) for amount in amounts) for resource in resources}
            if len(self._over_types) >= _MAX_EXTREMES_KEPT:
                self._over_types.clear()
            self._over_types[key] = known
        return dict(known)


class Indexes:
    """`pods_by_node`: node name → uids. `pending`: uids of provisionable pods (S-40). `touched`: claims about which
    something changed since they were last looked at → the position of the latest change."""

    def __init__(self, blobs: Blobs) -> None:
        self.blobs = blobs
        self.pods_by_node: dict[str, dict[str, None]] = {}
        self.pending: dict[str, None] = {}
        self.rest: frozenset[str] = frozenset()  # `Facts.rest`, to look a pod up in
        self.attachments_by_node: dict[str, dict[str, None]] = {}
        self.made_claims: dict[tuple[str, str], dict[str, None]] = {}  # pod, what it calls it → ResourceClaim (S-195)
        self.slices_by_node: dict[str, dict[str, None]] = {}  # ResourceSlices that are a node's own (L-175)
        self.nodes_by_provider: dict[str, dict[str, None]] = {}  # one node, unless somebody made another (L-161)
        self.deleted_nodes: dict[str, None] = {}  # whose deletion somebody has asked for
        self.claim_by_provider: dict[str, str] = {}
        self.claim_by_node: dict[str, str] = {}
        self.claim_by_instance: dict[str, str] = {}
        self.going: dict[str, None] = {}  # claims on their way out
        self.waiting_for: dict[str, dict[str, None]] = {}  # claim → pods planned onto it that are not there yet
        self.held_back: dict[str, None] = {}  # claims whose repair waits for other nodes (D-135)
        self.move_of: dict[str, str] = {}  # candidates and replacements of moves that have started
        self.touched: dict[str, int] = {}
        self.messages_by_age: list[tuple[int, str]] = []  # a heap: when it was seen, interruption message
        self.static: dict[str, None] = {}  # static NodePools whose size is to be looked at
        self.due = ClaimTimers()
        # position → NodePool → use of its budgets
        self.budget_uses: tuple[int, dict[str, Any]] = (0, {})
        self.health: tuple[int, dict[str, tuple[int, int]]] = (0, {})  # position → NodePool → unhealthy nodes of all
        # In observe mode: claim → the state of its object when nothing followed from it.
        self.unchanged_objects: dict[str, tuple[int, str, bool]] = {}
        self.on_nodes: dict[str, Any] = {}  # node → the sums over its pods (pods.on_node.PodsOnNode)
        self.node_inputs: dict[str, Any] = {}  # by name: the nodes of the latest problem
        self.cluster_nodes: dict[str, Any] = {}  # by name: those of the latest `Cluster`
        self.drift_inputs: dict[str, Any] = {}  # claim → what its latest verdict on drift followed from
