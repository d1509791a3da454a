"""Writes what a provider keeps on its NodeClass objects: finalizer, annotations, status (A-54, A-56, A-66, A-74)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct, field

from kerf.adapters.kubernetes.objects.cluster_writes import FIELD_MANAGER, NOT_FOUND
from kerf.adapters.kubernetes.objects.nodeclaim_documents import condition_document
from kerf.adapters.kubernetes.session import APPLY, MERGE, Session
from kerf.adapters.kubernetes.watch.watched_kinds import Resource
from kerf.engine.model.karpenter.nodeclaim_objects import Condition
from kerf.engine.record.errors import UNDECODABLE

CONFLICT = 409
_APPLIED = {"fieldManager": FIELD_MANAGER, "force": "true"}
_MANAGED = {"fieldManager": FIELD_MANAGER}
_encode = msgspec.json.Encoder(order="sorted").encode


class _Metadata(Struct):
    finalizers: list[str] = []
    annotations: dict[str, str] = {}
    resource_version: str = field(name="resourceVersion", default="")


class _Parts(Struct):
    metadata: _Metadata = field(default_factory=_Metadata)


_read = msgspec.json.Decoder(_Parts).decode


class NodeClassObjects:
    """Keeps NodeClass objects up to date. `seen` takes a reflector's `raw`.

    The other methods bring one object to what is wanted, and do nothing if it already is. They raise ClusterError and
    Unreachable.
    """

    def __init__(self, session: Session, resource: Resource) -> None:
        self._session, self._resource = session, resource
        self._parts: dict[str, _Metadata] = {}
        self._written: dict[str, bytes] = {}  # the status last applied

    def seen(self, name: str, data: Raw | None) -> None:
        self._parts.pop(name, None)
        if data is None:
            self._written.pop(name, None)
            return
        try:
            self._parts[name] = _read(data).metadata
        except UNDECODABLE:
            return

    def held(self, name: str, finalizer: str) -> bool:
        """Returns whether the object has the finalizer."""
        return name in self._parts and finalizer in self._parts[name].finalizers

    async def mark(self, name: str, finalizer: str, annotations: Mapping[str, str]) -> None:
        """Adds the finalizer and the annotations. If somebody else changed the object, waits for the watch to show
        that.
        """
        there = self._parts.get(name)
        if there is None:
            return
        marked = all(there.annotations.get(key) == value for key, value in annotations.items())
        if finalizer in there.finalizers and marked:
            return
        finalizers = list(dict.fromkeys([*there.finalizers, finalizer]))
        await self._patch(name, there, {"finalizers": finalizers, "annotations": dict(annotations)})

    async def let_go(self, name: str, finalizer: str) -> None:
        """Removes the finalizer, so that the object can go."""
        there = self._parts.get(name)
        if there is not None:
            await self._patch(
                name, there, {"finalizers": [present for present in there.finalizers if present != finalizer]}
            )

    async def write_status(
        self, name: str, generation: int, status: Mapping[str, Any], conditions: Sequence[Condition]
    ) -> None:
        """Writes the status. `status` is everything except the conditions."""
        shown = [condition_document(condition, generation) for condition in conditions]
        whole = {**status, "conditions": shown}
        encoded = _encode(whole)
        if self._written.get(name) == encoded:
            return
        api, kind = self._resource.api.rpartition("/")[0], self._resource.api.rpartition("/")[2]
        body = {"apiVersion": api, "kind": kind, "metadata": {"name": name}, "status": whole}
        path = f"{self._resource.path}/{name}/status"
        answer = await self._session.request("PATCH", path, body=body, content_type=APPLY, query=_APPLIED)
        if answer.status != NOT_FOUND:
            answer.checked(f"apply status of {kind} {name}")
            self._written[name] = encoded

    async def _patch(self, name: str, there: _Metadata, metadata: dict[str, Any]) -> None:
        body = {"metadata": {**metadata, "resourceVersion": there.resource_version}}
        path = f"{self._resource.path}/{name}"
        answer = await self._session.request("PATCH", path, body=body, content_type=MERGE, query=_MANAGED)
        if answer.status not in (NOT_FOUND, CONFLICT):
            answer.checked(f"patch {path}")
