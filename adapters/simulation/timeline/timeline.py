"""Timeline documents: what happens to the simulated world, and when. The schema is in docs/simulation.md.

`kind: Timeline`, `apiVersion: kerf.dev/v1alpha1`. `spec.actions` is a list of objects, each with `at` (a duration
since the start) and `action` (its kind). Each action is read by itself: a bad one is refused with its field path, the
others stand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, get_args

import msgspec
from msgspec import Struct

from kerf.adapters.simulation.errors import TimelineError
from kerf.engine.errors import InputError
from kerf.engine.model.did_you_mean import did_you_mean, is_it
from kerf.engine.model.durations import parse_duration_with_days
from kerf.engine.model.kubernetes.nodes import REPAIRED
from kerf.engine.model.labels import ON_DEMAND, RESERVED, SPOT

API_VERSION = "kerf.dev/v1alpha1"
KIND = "Timeline"
DELETABLE = (
    "CapacityBuffer", "DaemonSet", "Deployment", "Job", "Node", "NodeClaim", "NodeClass", "NodeOverlay", "NodePool",
    "PersistentVolumeClaim", "Pod", "PodDisruptionBudget", "PodTemplate", "Service", "StatefulSet",
)  # fmt: skip
"""The kinds that `delete` takes."""
CAPACITY_TYPES = (ON_DEMAND, SPOT, RESERVED)


class _Action(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel", tag_field="action"):
    at: str


class Scale(_Action, frozen=True, kw_only=True, tag="scale"):
    """Set the replicas of a Deployment or StatefulSet."""

    name: str
    replicas: int
    namespace: str = "default"
    kind: str = "Deployment"


class Apply(_Action, frozen=True, kw_only=True, tag="apply"):
    """`kubectl apply` of a document."""

    object: dict[str, Any]


class _OnInstances(_Action, frozen=True, kw_only=True):
    """Selects the oldest `count` (0 for all) of the living instances that match every field that is set."""

    node: str = ""
    claim: str = ""
    node_pool: str = ""
    instance_type: str = ""
    zone: str = ""
    capacity_type: str = ""
    count: int = 1


class Delete(_OnInstances, frozen=True, kw_only=True, tag="delete"):
    """`kubectl delete`. `grace` in seconds is for pods; `actor` is who asks for the end of a Node or NodeClaim. A
    NodeClaim may be selected by its instance, since its name is not known beforehand."""

    kind: str
    name: str = ""
    namespace: str = "default"
    grace: int | None = None
    actor: str = "kubectl"


class Interrupt(_OnInstances, frozen=True, kw_only=True, tag="interrupt"):
    """A spot interruption warning; the instance ends two minutes later."""


class Rebalance(_OnInstances, frozen=True, kw_only=True, tag="rebalance"):
    """A rebalance recommendation."""


class Maintenance(_OnInstances, frozen=True, kw_only=True, tag="maintenance"):
    """A scheduled change announced by AWS Health."""


class Reclaim(_OnInstances, frozen=True, kw_only=True, tag="reclaim"):
    """The cloud ends the instance at once, and says so."""


class Vanish(_OnInstances, frozen=True, kw_only=True, tag="vanish"):
    """The instance is gone at once, and nobody says so."""


class EndReservation(_OnInstances, frozen=True, kw_only=True, tag="end-reservation"):
    """End the capacity reservation of the instance: all its instances run on as on-demand."""


class Cordon(_OnInstances, frozen=True, kw_only=True, tag="cordon"):
    """`kubectl cordon` of the instance's node."""


class Uncordon(_OnInstances, frozen=True, kw_only=True, tag="uncordon"):
    """`kubectl uncordon` of the instance's node."""


class NodeNotReady(_OnInstances, frozen=True, kw_only=True, tag="node-notready"):
    """The kubelet stops answering, for as long as `for` says, or for good."""

    duration: str = msgspec.field(name="for", default="")


class NodeCondition(_OnInstances, frozen=True, kw_only=True, tag="node-condition"):
    """Set a condition of the node, for as long as `for` says, or for good: what a monitoring agent reports
    ("StorageReady"). The kubelet's own condition, Ready, is changed by `node-notready`."""

    condition: str
    status: Literal["True", "False", "Unknown"] = "False"
    duration: str = msgspec.field(name="for", default="")


class _OnOfferings(_Action, frozen=True, kw_only=True):
    """Selects the offerings that match every field that is set."""

    instance_type: str = ""
    zone: str = ""
    capacity_type: str = ""


class Capacity(_OnOfferings, frozen=True, kw_only=True, tag="capacity"):
    """No capacity from now on."""


class RestoreCapacity(_OnOfferings, frozen=True, kw_only=True, tag="restore-capacity"):
    """Ends every lack of capacity within these offerings."""


class Price(_OnOfferings, frozen=True, kw_only=True, tag="price"):
    """A new price in USD per hour, or the old one times a factor."""

    price: float | None = None
    factor: float | None = None


class NodeClassReady(_Action, frozen=True, kw_only=True, tag="nodeclass-ready"):
    """A NodeClass becomes ready, or ceases to be."""

    name: str
    ready: bool = True
    reason: str = ""


class Throttle(_Action, frozen=True, kw_only=True, tag="throttle"):
    """The cloud refuses every call for as long as `for` says."""

    duration: str = msgspec.field(name="for")


class LoseAnswer(_Action, frozen=True, kw_only=True, tag="lose-answer"):
    """The next launch that succeeds happens without an answer."""


class BadMessage(_Action, frozen=True, kw_only=True, tag="bad-message"):
    """A message in the interruption queue that nobody can read."""

    body: str = ""


class ClockStep(_Action, frozen=True, kw_only=True, tag="clock-step"):
    """The wall clock of the controller's machine is set `by` so much (Go duration, negative for back). Without `by` it
    is set right, and drifts no more."""

    by: str = ""


class ClockDrift(_Action, frozen=True, kw_only=True, tag="clock-drift"):
    """The wall clock of the controller's machine gains as much as `by` says within as long as `for` says."""

    by: str
    duration: str = msgspec.field(name="for")


class Suspend(_Action, frozen=True, kw_only=True, tag="suspend"):
    """The controller's machine sleeps for as long as `for` says."""

    duration: str = msgspec.field(name="for")


OnInstances = (
    Delete
    | Interrupt
    | Rebalance
    | Maintenance
    | Reclaim
    | Vanish
    | EndReservation
    | Cordon
    | Uncordon
    | NodeNotReady
    | NodeCondition
)
OnOfferings = Capacity | RestoreCapacity | Price
OnClocks = ClockStep | ClockDrift | Suspend
Action = Scale | Apply | OnInstances | OnOfferings | NodeClassReady | Throttle | LoseAnswer | BadMessage | OnClocks


_UNKNOWN_FIELD = re.compile("Object contains unknown field `(.*)`")


class Scheduled(NamedTuple):
    """An action with its time (milliseconds since the start) and its field path in the document."""

    after: int
    path: str
    action: Action


def is_timeline(document: Mapping[str, Any]) -> bool:
    return document.get("kind") == KIND


def decode_timeline(document: Mapping[str, Any]) -> tuple[list[Scheduled], list[TimelineError]]:
    """Return the actions of a Timeline by time, then by their order in the document, and the errors of the rest.

    Never raises for bad input: every error has the code KERF810, and `where` is the field path.
    """
    if document.get("apiVersion") != API_VERSION:
        found = document.get("apiVersion")
        return [], [TimelineError(f"unknown apiVersion {found!r}", where="apiVersion", hint=f"Write {API_VERSION}")]
    spec = document.get("spec")
    actions = spec.get("actions") if isinstance(spec, dict) else None
    if not isinstance(actions, list):
        return [], [TimelineError("a Timeline needs a list of actions", where="spec.actions")]
    scheduled, errors = [], []
    for index, raw in enumerate(actions):
        try:
            scheduled.append(_decode(raw, f"spec.actions[{index}]"))
        except TimelineError as error:
            errors.append(error)
    return sorted(scheduled, key=lambda s: s.after), errors


def _decode(raw: object, path: str) -> Scheduled:
    try:
        action = msgspec.convert(raw, Action)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `$")
        hint = _known(raw) if place.startswith(".action") else _known_field(raw, message)
        raise TimelineError(message, where=path + place.rstrip("`"), hint=hint) from None
    after = duration(action.at, f"{path}.at")
    if after < 0:
        raise TimelineError("an action cannot be before the start", where=f"{path}.at")
    for check in (_check_selected, *_CHECKS.get(type(action), ())):
        check(action, path)
    return Scheduled(after, path, action)


def _known(raw: object) -> str:
    """Name the action that may be meant by an unknown one, or all actions."""
    names = sorted(str(kind.__struct_config__.tag) for kind in get_args(Action))
    near = did_you_mean(str(raw.get("action")), names) if isinstance(raw, dict) else []
    return is_it(near) or f"Actions are {', '.join(names)}"


def _known_field(raw: object, message: str) -> str:
    """Name the field that may be meant by an unknown one, or all fields of the action."""
    unknown = _UNKNOWN_FIELD.fullmatch(message)
    if unknown is None or not isinstance(raw, dict):
        return ""
    fields = {kind.__struct_config__.tag: kind.__struct_encode_fields__ for kind in get_args(Action)}
    there = [field for field in fields.get(raw.get("action"), ()) if field != "at"]
    near = is_it(did_you_mean(unknown[1], ["at", *there]))
    return near or f"Fields of {raw.get('action')} are {', '.join(['at', *there])}"


def duration(text: str, where: str) -> int:
    """Return the milliseconds of a duration. Raises `TimelineError` (KERF810)."""
    try:
        return parse_duration_with_days(text)
    except InputError as error:
        raise TimelineError(error.message, where=where, hint=error.hint) from None


def _check_selected(action: Any, path: str) -> None:
    """Check what instances and offerings are selected by."""
    capacity_type, count = getattr(action, "capacity_type", ""), getattr(action, "count", 0)
    if capacity_type and capacity_type not in CAPACITY_TYPES:
        hint = is_it(did_you_mean(capacity_type, CAPACITY_TYPES)) or f"One of {', '.join(CAPACITY_TYPES)}"
        raise TimelineError(f"{capacity_type!r} is no capacity type", where=f"{path}.capacityType", hint=hint)
    if count < 0:
        raise TimelineError(f"count is at least 0, not {count}", where=f"{path}.count", hint="0 stands for all")


def _check_scale(action: Any, path: str) -> None:
    if action.replicas < 0:
        raise TimelineError(f"replicas is at least 0, not {action.replicas}", where=f"{path}.replicas")
    if action.kind not in ("Deployment", "StatefulSet"):
        raise TimelineError(f"cannot scale a {action.kind}", where=f"{path}.kind", hint="Deployment or StatefulSet")


def _check_delete(action: Any, path: str) -> None:
    if action.kind not in DELETABLE:
        hint = is_it(did_you_mean(action.kind, DELETABLE)) or f"Kinds: {', '.join(DELETABLE)}"
        raise TimelineError(f"cannot delete a {action.kind}", where=f"{path}.kind", hint=hint)
    if action.kind == "NodeClaim":
        return
    chosen = (action.node, action.claim, action.node_pool, action.instance_type, action.zone, action.capacity_type)
    if any(chosen) or action.count != 1:
        raise TimelineError(f"a {action.kind} is not chosen by its instance", where=path, hint="Give its name")
    if not action.name:
        raise TimelineError(f"which {action.kind} is to be deleted?", where=f"{path}.name", hint="Give its name")


def _check_price(action: Any, path: str) -> None:
    if (action.price is None) == (action.factor is None):
        raise TimelineError("give either price or factor", where=path)
    for name in ("price", "factor"):
        value = getattr(action, name)
        if value is not None and not 0 <= value < float("inf"):
            raise TimelineError(f"{name} is a number from 0, not {value}", where=f"{path}.{name}")


def _check_for(action: Any, path: str) -> None:
    if action.duration and duration(action.duration, f"{path}.for") <= 0:
        raise TimelineError("a duration is more than nothing", where=f"{path}.for")


def _check_by(action: Any, path: str) -> None:
    if action.by and duration(action.by, f"{path}.by") == 0:
        raise TimelineError("a clock that is moved by nothing stays right", where=f"{path}.by")


def _check_condition(action: Any, path: str) -> None:
    if action.condition not in REPAIRED:
        hint = f"One of {', '.join(REPAIRED)}; for Ready write node-notready"
        raise TimelineError(f"nothing looks at condition {action.condition!r}", where=f"{path}.condition", hint=hint)


_CHECKS: dict[type[Struct], tuple[Callable[[Any, str], None], ...]] = {
    Scale: (_check_scale,),
    Delete: (_check_delete,),
    Price: (_check_price,),
    NodeNotReady: (_check_for,),
    NodeCondition: (_check_condition, _check_for),
    Throttle: (_check_for,),
    ClockStep: (_check_by,),
    ClockDrift: (_check_by, _check_for),
    Suspend: (_check_for,),
}
