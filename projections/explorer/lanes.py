"""Fold the lane of each NodeClaim: in which state it was, and since when."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, field

from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.nodeclaim.state_table import ABSENT, TERMINATED, next_state, remembered_state
from kerf.engine.record import claim_events as ev
from kerf.engine.record.entries import Entry

_CLAIM_EVENTS = frozenset(ev.CLAIM_EVENTS)


class Span(Struct, frozen=True):
    """A claim is in `state` from the time `at` (ms since the epoch) on, since the entry at `position`."""

    state: str
    at: int
    position: int


class Lane(Struct, kw_only=True):
    """One NodeClaim. `price` is in USD per hour, the planned one until it is launched; `cpu` is what its Node has for
    pods, in millicores. `why` says why it goes or went, "" while it stays. The last span of a claim that is over is
    `terminated`; `end` is then its time, else 0."""

    claim: str
    node_pool: str = ""
    node: str = ""
    instance: str = ""
    instance_type: str = ""
    capacity_type: str = ""
    zone: str = ""
    price: float = 0.0
    cpu: int = 0
    why: str = ""
    end: int = 0
    spans: list[Span] = field(default_factory=list)

    @property
    def start(self) -> int:
        return self.spans[0].at


class LanesFold:
    """Folds all lanes, in the order in which their claims were first met. Give it entries with `apply`."""

    def __init__(self) -> None:
        self.lanes: dict[str, Lane] = {}
        self._before: dict[str, str] = {}  # what a tainted claim goes back to
        self._claims: dict[str, str] = {}  # by "instance/ID" and "node/NAME", the latest
        self._cpu: dict[str, int] = {}  # of Nodes

    def apply(self, entry: Entry) -> None:
        event = entry.payload
        if type(event) is Node:
            self._joined(event)
        if type(event) not in _CLAIM_EVENTS:
            return
        name: str = event.claim
        lane = self.lanes.get(name)
        if lane is None:
            lane = self.lanes[name] = Lane(claim=name)
        _describe(lane, event)
        lane.cpu = lane.cpu or self._cpu.get(lane.node, 0)
        self._claims[f"instance/{lane.instance}"] = self._claims[f"node/{lane.node}"] = name
        was = lane.spans[-1].state if lane.spans else ABSENT
        before = self._before.get(name, "")
        state = next_state(was, event, before=before, position=entry.position)
        self._before[name] = remembered_state(was, event, state, before)
        if state != was:
            lane.spans.append(Span(state, entry.at, entry.position))
        if state == TERMINATED:
            lane.end = entry.at

    def _joined(self, node: Node) -> None:
        self._cpu[node.name] = node.allocatable.get("cpu", 0)
        lane = self.lanes.get(self._claims.get(f"node/{node.name}", ""))
        if lane is not None:
            lane.cpu = self._cpu[node.name] or lane.cpu

    def claims(self, subjects: Iterable[str]) -> tuple[str, ...]:
        """Return the NodeClaims that subjects with their kind stand for: their own names, nodes and instances."""
        named = (self._claims.get(subject, subject.removeprefix("nodeclaim/")) for subject in subjects)
        return tuple(name for name in dict.fromkeys(named) if name in self.lanes)


def _describe(lane: Lane, event: Struct) -> None:
    if isinstance(event, ev.Requested):
        lane.node_pool, lane.price = event.node_pool, event.price
    elif isinstance(event, ev.Launched | ev.Adopted):
        lane.instance_type, lane.capacity_type = event.instance_type, event.capacity_type
        lane.zone, lane.price, lane.instance = event.zone, event.price, event.instance
        if isinstance(event, ev.Adopted):
            lane.node_pool, lane.node, lane.why = event.node_pool, event.node, event.why
    elif isinstance(event, ev.Registered):
        lane.node = event.node
    elif isinstance(event, ev.Tainted | ev.ReasonRaised):
        lane.why = event.why
    elif isinstance(event, ev.Untainted):
        lane.why = ""
    elif isinstance(event, ev.InstanceVanished):
        lane.why = lane.why or event.status
    elif isinstance(event, ev.LaunchFailed):
        lane.why = event.code
