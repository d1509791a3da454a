"""Make timeline events of claim events, one for one."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from kerf.engine.record import claim_events as ev
from kerf.engine.record.entries import Entry
from kerf.engine.record.entry_types import NAME_OF
from kerf.projections.timeline.event import DEBUG, INFO, WARNING, Event, Parameter

_LEVELS: dict[type[Struct], str] = {
    ev.LaunchFailed: WARNING,
    ev.LaunchTimedOut: WARNING,
    ev.PodForced: WARNING,
    ev.InstanceVanished: WARNING,
    ev.VolumesDetached: DEBUG,
}

_FIELDS: dict[type[Struct], tuple[str, ...]] = {
    ev.Launched: ("instance_type", "capacity_type", "zone", "price", "took"),
    ev.LaunchTimedOut: ("waited",),
    ev.Cancelled: ("actor",),
    ev.Adopted: ("state",),
    ev.Registered: ("node", "took"),
    ev.Initialized: ("node", "took"),
    ev.ReasonRaised: ("why", "was"),
    ev.Untainted: ("why",),
    ev.DrainStarted: ("pods",),
    ev.PodEvicted: ("pod",),
    ev.PodForced: ("pod", "grace"),
    ev.Drained: ("took",),
    ev.InstanceVanished: ("status", "lifetime", "cost"),
    ev.Terminated: ("why", "lifetime", "cost"),
}


def claim_event(payload: Any, entry: Entry) -> Event | None:
    """Return the event of a claim event; None for any other payload."""
    if type(payload) not in _KINDS:
        return None
    return Event(
        position=entry.position,
        turn=entry.turn,
        at=entry.at,
        code=NAME_OF[type(payload)].replace(".", "-"),
        level=_LEVELS.get(type(payload), INFO),
        subject=f"nodeclaim/{payload.claim}",
        related=_related(payload),
        params=_known(payload),
        cause=entry.cause,
    )


_KINDS = frozenset(ev.CLAIM_EVENTS)


_UNKNOWN_IF_EMPTY = ("instance_type", "capacity_type", "zone", "node", "price", "took", "lifetime", "cost")


def _known(payload: Any) -> dict[str, Parameter]:
    """The parameters without what an imported record does not know: a price or a time of 0 is none (F-94)."""
    params = _params(payload)
    if isinstance(payload, ev.Requested) and not payload.decision and not payload.pods:
        unknown = ("pods", "price") if payload.instance_types else ("pods", "price", "types")
        return {name: value for name, value in params.items() if name not in unknown}
    if isinstance(payload, ev.Adopted) and not payload.provider_id and not payload.node:
        return {}  # only that there is one
    if not isinstance(payload, ev.Launched | ev.Registered | ev.Initialized | ev.Terminated):
        return params
    return {name: value for name, value in params.items() if value or name not in _UNKNOWN_IF_EMPTY}


def _params(payload: Any) -> dict[str, Parameter]:
    if isinstance(payload, ev.Requested):
        types = list(payload.instance_types)
        shown = types[0] if len(types) == 1 else f"{types[0]} or {len(types) - 1} more" if types else "no type"
        return {"pods": len(payload.pods), "types": shown, "price": payload.price, "node_pool": payload.node_pool}
    if isinstance(payload, ev.LaunchFailed):
        return {"error": payload.message or payload.code or payload.kind, "tried": payload.tried}
    if isinstance(payload, ev.Tainted):
        return {"why": f"{payload.why} ({payload.detail})" if payload.detail else payload.why, "age": payload.age}
    if isinstance(payload, ev.VolumesDetached):
        left = ", ".join(payload.left)
        return {"took": payload.took, "outcome": f"no longer awaited ({left})" if left else "detached"}
    return {name: getattr(payload, name) for name in _FIELDS[type(payload)]}


def _related(payload: Any) -> tuple[str, ...]:
    if isinstance(payload, ev.PodEvicted | ev.PodForced):
        return (f"pod/{payload.pod}",) if payload.pod else ()
    node, instance = getattr(payload, "node", ""), getattr(payload, "instance", "")
    return tuple(f"{kind}/{name}" for kind, name in (("node", node), ("instance", instance)) if name)
