"""Who wrote an object, as far as its managedFields say: the field managers that the API server kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Raw, Struct, field

from kerf.adapters.kubernetes.objects.cluster_writes import FIELD_MANAGER
from kerf.adapters.kubernetes.watch.reflector import Change
from kerf.engine.model.kinds.watched import (
    CAPACITY_BUFFER,
    DAEMONSET,
    NODE,
    NODE_OVERLAY,
    NODEPOOL,
    POD_DISRUPTION_BUDGET,
)
from kerf.engine.record.errors import UNDECODABLE
from kerf.engine.record.observations import ControllerSaid, Observation

CONTROLLERS = frozenset(
    [
        FIELD_MANAGER, "karpenter", "kubelet", "kwok", "kube-controller-manager", "cloud-controller-manager",
        "aws-cloud-controller-manager",
    ]
)  # fmt: skip
"""Field managers that write objects without being asked to."""
NODE_CLASS = "nodeclass"
_ABOUT: dict[str, Callable[[Any], dict[str, Any]]] = {
    NODEPOOL.name: lambda pool: {"node_pools": (pool.name,)},
    NODE_CLASS: lambda node_class: {"node_classes": (node_class.name,)},
    NODE.name: lambda node: {"nodes": (node.name,)},
    NODE_OVERLAY.name: lambda overlay: {"overlays": (overlay.name,)},
    CAPACITY_BUFFER.name: lambda buffer: {"buffers": (buffer.key,)},
    POD_DISRUPTION_BUDGET.name: lambda budget: {"budgets": (budget.key,)},
    DAEMONSET.name: lambda daemons: {"daemonsets": (f"{daemons.namespace}/{daemons.name}",)},
}
"""The kinds that people write, and kerf decides by: what a sentence about an object is about."""
_SPECS = {kind.name: kind.spec for kind in (DAEMONSET, NODE, POD_DISRUPTION_BUDGET)}


class _Entry(Struct):
    manager: str = ""
    time: str = ""
    subresource: str = ""


class _Metadata(Struct, rename="camel"):
    managed_fields: list[_Entry] = []


class _Object(Struct):
    metadata: _Metadata = field(default_factory=_Metadata)


_read = msgspec.json.Decoder(_Object).decode


def presumed_actor(data: Raw) -> tuple[str, str]:
    """Return the field manager that wrote the object's spec or metadata last, controllers left out, and when; "" if
    none is named. It is a program such as kubectl-edit or argocd-controller, and a presumption: managers name
    themselves, and a deletion has none."""
    try:
        entries = _read(data).metadata.managed_fields
    except UNDECODABLE:
        return "", ""
    people = [entry for entry in entries if not entry.subresource and entry.manager not in CONTROLLERS]
    latest = max(people, key=lambda entry: entry.time, default=_Entry())
    return latest.manager, latest.time


class Writers:
    """Tells of the changes of one kind who presumably made them. `seen` is a reflector's `raw`, and `changed` its
    `interpret`: they pass on to `then` and `interpret`, and `changed` adds a sentence that names the presumed actor."""

    def __init__(
        self,
        kind: str,
        then: Callable[[str, Raw | None], None] | None,
        interpret: Callable[[Change], list[Observation]],
    ) -> None:
        self._kind, self._then, self._interpret = kind, then, interpret
        self.listed: Callable[[], bool] = lambda: False
        """Whether the first list is over: what shows later is new."""
        self._latest: dict[str, tuple[str, str]] = {}  # by the object's key: actor and time
        self._told: dict[str, tuple[str, str]] = {}  # as of the change before

    def seen(self, key: str, data: Raw | None) -> None:
        if self._then is not None:
            self._then(key, data)
        if data is None:
            self._latest.pop(key, None)
            self._told.pop(key, None)
            return
        actor = presumed_actor(data)
        if self._kind == NODE.name and key not in self._latest:
            self._told[key] = actor  # controllers change Nodes, too: not all is the work of whom the first list names
        self._latest[key] = actor

    def changed(self, change: Change) -> list[Observation]:
        """Return the observations of a change; after one that a user may have made, a sentence on who it was."""
        observations, latest = self._interpret(change), self._latest.get(change.key, ("", ""))
        if change.new is None or not (
            self._is_created() if change.old is None else self._is_rewritten(change.old, change.new)
        ):
            return observations
        told, self._told[change.key] = self._told.get(change.key), latest
        if not latest[0] or latest == told:
            return observations
        (names,) = (about := _ABOUT[self._kind](change.new)).values()
        done = "created {}" if change.old is None else "wrote {} last"
        text = f"{done.format(f'{type(change.new).__name__} {names[0]}')}: presumed, by its managedFields"
        return [*observations, Observation(ControllerSaid("", "info", text, actor=latest[0], **about))]

    def _is_created(self) -> bool:
        """Return whether an object that was not known is new, and the work of a user. Nodes are the kubelet's."""
        return self._kind != NODE.name and self.listed()

    def _is_rewritten(self, old: Struct, new: Struct) -> bool:
        """Return whether what users write of an object has changed, and not its status alone."""
        fields = ("generation",) if hasattr(new, "generation") else _SPECS.get(self._kind, ())
        return any(getattr(new, name) != getattr(old, name) for name in fields or new.__struct_fields__)


def are_written_by_people(kind: str) -> bool:
    """Return whether people write objects of a kind by which kerf decides."""
    return kind in _ABOUT
