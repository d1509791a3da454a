"""What the controller needs of a provider: the cloud, its NodeClasses, and the work it does by itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from msgspec import Raw, Struct

from kerf.adapters.kubernetes.events import EventRecorder
from kerf.adapters.kubernetes.watch.watched_kinds import Resource
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.record.observations import Observation
from kerf.engine.runtime.ports import Cloud


class ProviderHost(Protocol):
    """What a provider may ask of the controller that runs it."""

    def put(self, observations: Iterable[Observation]) -> None:
        """Record them with the next turn."""
        ...

    async def record(self, observations: Iterable[Observation]) -> None:
        """Record them, and return when they are in the record."""
        ...

    async def instances(self) -> dict[str, str]:
        """The instances of all claims that stay, and the names of their Nodes ("" where there is none yet)."""
        ...

    async def own(self, instances: Iterable[str]) -> set[str]:
        """Those of the instances that claims have, also claims on their way out."""
        ...

    async def awaited(self, instances: Iterable[str]) -> set[str]:
        """Those of the instances whose NodeClaims are found, and become claims within a minute."""
        ...

    async def joined(self) -> list[tuple[NodeClaim, Node]]:
        """The claims whose Nodes have registered, with their Nodes."""
        ...

    async def node_pools(self, group: str) -> list[NodePool]:
        """The NodePools whose NodeClass is of this group, from the first list on."""
        ...

    async def claims_of(self, group: str, node_class: str) -> list[str]:
        """The NodeClaims that name a NodeClass, sorted."""
        ...


class Provider(Protocol):
    """A cloud with its NodeClasses. All methods are called on the event loop: what would block runs in a thread."""

    @property
    def cloud(self) -> Cloud: ...
    @property
    def node_classes(self) -> Resource: ...
    def put(self, node_class: Struct) -> None: ...
    def drop(self, name: str) -> None: ...
    def seen(self, name: str, data: Raw | None) -> None:
        """Each NodeClass as it is on the API server, before `put` and `drop`."""
        ...

    def changed(self) -> list[Observation]:
        """What is known at once of a NodeClass that was put. What the cloud has to be asked for comes by `run`."""
        ...

    async def first(self, host: ProviderHost) -> list[Observation]:
        """All NodeClasses with their catalogues, once all have been put for the first time."""
        ...

    async def run(self, host: ProviderHost) -> None:
        """What the provider does by itself, until cancelled."""
        ...

    def report_to(self, recorder: EventRecorder) -> None:
        """Where Events about NodeClasses go. Not called in observe mode."""
        ...

    def node_name(self, claim: NodeClaim) -> str:
        """The name that the Node of a launched claim will have; "" if that is not known before the Node is there."""
        ...
