"""Tell of a node which taints it got and lost, and that it was cordoned."""

from __future__ import annotations

from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import Taint
from kerf.engine.record.entries import Entry
from kerf.projections.cordons import is_cordon, is_cordoned
from kerf.projections.timeline.entry_events import make_event
from kerf.projections.timeline.event import DEBUG, INFO, Event

_OF_MACHINERY = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "karpenter.sh/")
"""How the keys of taints begin that come and go with the state of a node. Another one that comes later is from people,
or from programs of theirs."""


def taint_events(old: Node, node: Node, entry: Entry) -> list[Event]:
    """Return what changed in the taints of a node: a cordon as such, the others by name."""
    subject = f"node/{node.name}"
    events = []
    if is_cordoned(node) != is_cordoned(old):
        code = "node-cordoned" if is_cordoned(node) else "node-uncordoned"
        events.append(make_event(entry, code, INFO, subject))
    came, left = _others(node, old), _others(old, node)
    if came:
        level = INFO if any(not taint.key.startswith(_OF_MACHINERY) for taint in came) else DEBUG
        events.append(make_event(entry, "node-tainted", level, subject, taints=_names(came)))
    if left:
        events.append(make_event(entry, "node-untainted", DEBUG, subject, taints=_names(left)))
    return events


def _others(node: Node, than: Node) -> list[Taint]:
    return sorted(taint for taint in set(node.taints) - set(than.taints) if not is_cordon(taint))


def _names(taints: list[Taint]) -> list[str]:
    return [f"{taint.key}:{taint.effect}" for taint in taints]
