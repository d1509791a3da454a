"""Where nodes come from, as `kerf run` needs it: a cloud, and how it hears and tells of its NodeClasses."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Protocol

from msgspec import Raw, Struct

from kerf.adapters.kubernetes.events import EventRecorder
from kerf.adapters.kubernetes.objects.nodes import NodeObjects
from kerf.adapters.kubernetes.session import Session
from kerf.adapters.kubernetes.thread_bridge import Bridge
from kerf.adapters.kubernetes.watch.watched_kinds import KWOK_NODE_CLASSES, Resource
from kerf.adapters.kwok.catalogue import built_in, read_catalogue
from kerf.adapters.kwok.cloud import KwokCloud
from kerf.adapters.manager.settings import Options
from kerf.engine.errors import InputError
from kerf.engine.model.manifests.karpenter.nodepools import KWOKNodeClass
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.record.observations import Observation
from kerf.engine.runtime.ports import Cloud


class World(Protocol):
    """What a provider that works by itself has of the controller."""

    def put(self, observations: Iterable[Observation]) -> None:
        """To be recorded with the next turn."""
        ...

    async def record(self, observations: Iterable[Observation]) -> None:
        """Returns when they are in the record."""
        ...

    async def instances(self) -> dict[str, str]:
        """Those of all claims that stay, and the names of their Nodes, "" where there is none yet."""
        ...

    async def claims_of(self, group: str, node_class: str) -> list[str]:
        """The NodeClaims that name a NodeClass, sorted."""
        ...


class Provider(Protocol):
    """On the loop, all of it; what blocks it does elsewhere."""

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
        """What can be said at once of a NodeClass that was put; what has to be asked for first comes by `run`."""
        ...

    async def first(self) -> list[Observation]:
        """All NodeClasses and their catalogues, when all have been put for the first time."""
        ...

    async def run(self, world: World) -> None:
        """Until cancelled: what the provider does by itself."""
        ...

    def tell_with(self, recorder: EventRecorder) -> None:
        """Where Events about NodeClasses go; in observe mode there are none."""
        ...

    def node_name(self, claim: NodeClaim) -> str:
        """The name that the Node of a launched claim will have, "" if only the Node itself can tell."""
        ...


class KwokProvider:
    """adapters/kwok on a session."""

    node_classes: Resource = KWOK_NODE_CLASSES

    def __init__(self, cloud: KwokCloud) -> None:
        self._cloud = cloud

    @property
    def cloud(self) -> Cloud:
        return self._cloud

    def put(self, node_class: Struct) -> None:
        assert isinstance(node_class, KWOKNodeClass)
        self._cloud.put(node_class)

    def drop(self, name: str) -> None:
        self._cloud.drop(name)

    def seen(self, name: str, data: Raw | None) -> None:
        pass

    def changed(self) -> list[Observation]:
        return self._cloud.observe()

    async def first(self) -> list[Observation]:
        return self._cloud.observe()

    async def run(self, world: World) -> None:
        await asyncio.Event().wait()

    def tell_with(self, recorder: EventRecorder) -> None:
        pass

    def node_name(self, claim: NodeClaim) -> str:
        return claim.instance


def kwok_provider(session: Session, options: Options) -> KwokProvider:
    """Raises InputError KERF330 for a file of instance types that is not there, KERF352 for one that is wrong."""
    nodes = NodeObjects(session, Bridge(asyncio.get_running_loop()))
    file = options.instance_types
    if file is None:
        return KwokProvider(KwokCloud(nodes, built_in()))
    try:
        data = file.read_bytes()
    except OSError as error:
        said = f"cannot read the instance types: {error.strerror}"
        raise InputError(said, where=str(file), hint="Check the path", code="KERF330") from error
    return KwokProvider(KwokCloud(nodes, read_catalogue(data, str(file))))
