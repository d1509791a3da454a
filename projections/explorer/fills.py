"""Fold how full each node is: what its pods ask for, as a share of what it has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import Pod, PodShape, is_terminal
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import ObjectGone
from kerf.projections.explorer.steps import Steps

ShapeOf = Callable[[str], PodShape]
_WHOLE = 100


class _Asked(Struct, frozen=True):
    """What a pod asks for on its node: millicores, bytes."""

    node: str
    cpu: int
    memory: int


class _Sum:
    """What the pods of a node ask for, and what it has, in millicores and bytes."""

    def __init__(self) -> None:
        self.cpu = self.memory = self.all_cpu = self.all_memory = 0

    def share(self) -> int:
        """Return the larger share, in percent."""
        shares = ((self.cpu, self.all_cpu), (self.memory, self.all_memory))
        return max((round(_WHOLE * asked / room) for asked, room in shares if room), default=0)


class FillsFold:
    """Folds `fills`: the percentage of each Node that is asked for, the larger one of CPU and memory. `shape_of` tells
    what a pod's shape asks for."""

    reads: frozenset[type[Struct]] = frozenset({Node, Pod, ObjectGone})

    def __init__(self, shape_of: ShapeOf) -> None:
        self.fills: dict[str, Steps] = {}
        self._shape_of = shape_of
        self._pods: dict[str, _Asked] = {}  # by uid
        self._sums: dict[str, _Sum] = {}

    def apply(self, entry: Entry) -> None:
        payload: Any = entry.payload
        kind = type(payload)
        if kind is Pod:
            known = self._pods.get(payload.uid)
            if payload.node and not is_terminal(payload):
                if known is None:
                    self._come(payload, entry.at)
            elif known is not None:
                self._leave(payload.uid, entry.at)
        elif kind is ObjectGone:
            if payload.kind == "pod" and payload.key in self._pods:
                self._leave(payload.key, entry.at)
        elif kind is Node:
            total = self._sums.setdefault(payload.name, _Sum())
            total.all_cpu, total.all_memory = payload.allocatable.get("cpu", 0), payload.allocatable.get("memory", 0)
            self._note(payload.name, total, entry.at)

    def _come(self, pod: Pod, at: int) -> None:
        requests = self._shape_of(pod.shape).requests
        asked = self._pods[pod.uid] = _Asked(pod.node, requests.get("cpu", 0), requests.get("memory", 0))
        self._add(asked, 1, at)

    def _leave(self, uid: str, at: int) -> None:
        self._add(self._pods.pop(uid), -1, at)

    def _add(self, asked: _Asked, sign: int, at: int) -> None:
        total = self._sums.setdefault(asked.node, _Sum())
        total.cpu += sign * asked.cpu
        total.memory += sign * asked.memory
        self._note(asked.node, total, at)

    def _note(self, node: str, total: _Sum, at: int) -> None:
        share, steps = total.share(), self.fills.get(node)
        if steps is None:
            steps = self.fills[node] = Steps()
        if not steps.values or steps.values[-1] != share:
            steps.become(at, share)
