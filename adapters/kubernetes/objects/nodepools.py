"""Reads the conditions of NodePool objects, and writes their annotations and status where they differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw, Struct, field

from kerf.adapters.kubernetes.errors import ClusterError, Unreachable
from kerf.adapters.kubernetes.objects.cluster_writes import FIELD_MANAGER, NOT_FOUND
from kerf.adapters.kubernetes.objects.nodeclaim_documents import condition_document, quantities
from kerf.adapters.kubernetes.session import APPLY, MERGE, Session
from kerf.engine.errors import KerfError
from kerf.engine.model.durations import parse_time
from kerf.engine.model.karpenter.nodeclaim_objects import Condition
from kerf.engine.model.kubernetes.pods import Resources
from kerf.engine.model.manifests.wire import ConditionWire
from kerf.engine.record.errors import UNDECODABLE

NODE_POOLS = "/apis/karpenter.sh/v1/nodepools"
_QUERY = {"fieldManager": FIELD_MANAGER, "force": "true"}
_encode = msgspec.json.Encoder(order="sorted").encode


class _Metadata(Struct):
    annotations: dict[str, str] = {}


class _Status(Struct):
    conditions: list[ConditionWire] = []


class _Parts(Struct):
    metadata: _Metadata = field(default_factory=_Metadata)
    status: _Status = field(default_factory=_Status)


_read = msgspec.json.Decoder(_Parts).decode


class PoolObjects:
    """Keeps NodePool objects up to date. `seen` takes a reflector's `raw`; `write` brings one object to what is
    wanted.
    """

    def __init__(self, session: Session) -> None:
        self.errors: dict[str, KerfError] = {}  # by the NodePool whose latest write was refused
        self._session = session
        self._parts: dict[str, _Parts] = {}
        self._written: dict[str, bytes] = {}  # the status last applied

    def seen(self, name: str, data: Raw | None) -> None:
        self._parts.pop(name, None)
        if data is None:
            self._written.pop(name, None)
            self.errors.pop(name, None)
            return
        try:
            self._parts[name] = _read(data)
        except UNDECODABLE:
            return

    def conditions(self, name: str) -> tuple[Condition, ...]:
        """Returns the conditions that the object has. A time that cannot be read is 0."""
        wires = self._parts[name].status.conditions if name in self._parts else []
        return tuple(Condition(c.type, c.status, c.reason, c.message, _time(c.last_transition_time)) for c in wires)

    async def write(self, name: str, annotations: Mapping[str, str], status: Mapping[str, Any]) -> None:
        """Writes one object. A refusal stays in `errors` until a write of the same object is accepted."""
        try:
            await self._annotate(name, annotations)
            await self._apply(name, status)
            self.errors.pop(name, None)
        except (ClusterError, Unreachable) as error:
            self.errors[name] = error

    async def _annotate(self, name: str, annotations: Mapping[str, str]) -> None:
        there = self._parts[name].metadata.annotations if name in self._parts else {}
        if all(there.get(key) == value for key, value in annotations.items()):
            return
        body = {"metadata": {"annotations": dict(annotations)}}
        path = f"{NODE_POOLS}/{name}"
        answer = await self._session.request("PATCH", path, body=body, content_type=MERGE, query=_MANAGED)
        if answer.status != NOT_FOUND:
            answer.checked(f"annotate NodePool {name}")

    async def _apply(self, name: str, status: Mapping[str, Any]) -> None:
        encoded = _encode(status)
        if self._written.get(name) == encoded:
            return
        body = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "status": status}
        path = f"{NODE_POOLS}/{name}/status"
        answer = await self._session.request("PATCH", path, body=body, content_type=APPLY, query=_QUERY)
        if answer.status != NOT_FOUND:
            answer.checked(f"apply status of NodePool {name}")
        self._written[name] = encoded


_MANAGED = {"fieldManager": FIELD_MANAGER}


def pool_status(
    conditions: tuple[Condition, ...], resources: Resources, nodes: int, node_class_generation: int, generation: int = 0
) -> dict[str, Any]:
    """Returns a NodePool's status as karpenter.sh/v1 has it (L-36…L-39). `generation` is that of the object that was
    looked at (L-67).
    """
    return {
        "conditions": [condition_document(condition, generation) for condition in conditions],
        "resources": quantities({name: amount for name, amount in resources.items() if name != "nodes"})
        | {"nodes": str(nodes)},
        "nodes": nodes,
        "nodeClassObservedGeneration": node_class_generation,
    }


def _time(text: str | None) -> int:
    try:
        return parse_time(text) if text else 0
    except KerfError:
        return 0
