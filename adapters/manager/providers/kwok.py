"""The KWOK provider: adapters/kwok on a session with the API server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import Raw, Struct

from kerf.adapters.kubernetes.events import EventRecorder
from kerf.adapters.kubernetes.objects.nodes import NodeObjects
from kerf.adapters.kubernetes.session import Session
from kerf.adapters.kubernetes.thread_bridge import Bridge
from kerf.adapters.kubernetes.watch.watched_kinds import KWOK_NODE_CLASSES, Resource
from kerf.adapters.kwok.catalogue import built_in, read_catalogue_file
from kerf.adapters.kwok.cloud import KwokCloud
from kerf.adapters.manager.providers.provider import ProviderHost
from kerf.adapters.manager.settings import Options
from kerf.engine.model.manifests.karpenter.nodepools import KWOKNodeClass
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.record.observations import Observation
from kerf.engine.runtime.ports import Cloud


class KwokProvider:
    """Its NodeClasses need no answer of a cloud: everything is known at once."""

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

    async def first(self, host: ProviderHost) -> list[Observation]:
        return self._cloud.observe()

    async def run(self, host: ProviderHost) -> None:
        await asyncio.Event().wait()

    def report_to(self, recorder: EventRecorder) -> None:
        pass

    def node_name(self, claim: NodeClaim) -> str:
        return claim.instance


def kwok_provider(session: Session, options: Options, *, clock: Callable[[], int]) -> KwokProvider:
    """The provider with its instance types; `clock` gives ms since the epoch.

    Raises InputError, KERF330 for a file that is not there and KERF352 for one that is wrong.
    """
    nodes = NodeObjects(session, Bridge(asyncio.get_running_loop()))
    file = options.instance_types
    if file is None:
        return KwokProvider(KwokCloud(nodes, built_in(), now=clock))
    return KwokProvider(KwokCloud(nodes, read_catalogue_file(file), now=clock))
