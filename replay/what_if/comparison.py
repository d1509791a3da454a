"""Compare what is decided with a change and without it: one line for each node or group of pods that fares otherwise.

The signs are those of a plan: "+" a node or a place that there is only with the change, "-" one that there is only
without it, "~" one that is another.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from msgspec import Struct

from kerf.engine.model.reasons import Reason
from kerf.engine.scheduling.explain.crowding_daemonsets import CrowdingDaemonSets
from kerf.replay.what_if.outcome import LeavingNode, NewNode, Outcome, Waiting

LAUNCHED, NOT_LAUNCHED, OTHER_LAUNCH = "launched", "not-launched", "launched-otherwise"
GOES, STAYS, GOES_OTHERWISE = "goes", "stays", "goes-otherwise"
PLACED, NO_PLACE, MOVED, NOT_PLANNED = "placed", "no-place", "placed-elsewhere", "not-planned"
STILL_NO_PLACE = "still-no-place"
"""Of pods that wait at the moment, and that the decision without the change says nothing of."""
_NOT_REFUSED = Waiting((), ())


class Difference(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of the plan. `what` is a code; `name` is a NodeClaim, "" for pods.

    `old` and `new` are the nodes of both decisions, or the places of the pods. `reasons` say why, where the decision
    says it, and `crowding` which DaemonSets leave pods no type, for each of them.
    """

    sign: str
    what: str
    name: str = ""
    pods: tuple[str, ...] = ()
    old: NewNode | LeavingNode | str = ""
    new: NewNode | LeavingNode | str = ""
    reasons: tuple[Reason, ...] = ()
    crowding: tuple[CrowdingDaemonSets | None, ...] = ()


def differences(old: Outcome, new: Outcome, waited: Collection[str] = ()) -> tuple[Difference, ...]:
    """Return what differs: nodes that are launched, nodes that go, then pods that are there anyway. `waited` are pods
    that wait at the moment, and have no place: a change takes none from them."""
    same_node = dict(_pairs(old.launched, new.launched))
    return (*_launches(old, new, same_node), *_departures(old, new), *_pods(old, new, same_node, waited))


def _pairs(old: Iterable[NewNode], new: Iterable[NewNode]) -> Iterator[tuple[str, str]]:
    """Match launches of both decisions: those for the same pods, then those of one NodePool that share most pods.

    Names do not tell: they follow from the position of the decision.
    """
    left, right = list(old), list(new)
    scored = sorted(
        (
            (-(2 * len(set(one.pods) & set(other.pods)) - len(one.pods)), number, index)
            for number, one in enumerate(left)
            for index, other in enumerate(right)
            if one.node_pool == other.node_pool and (set(one.pods) & set(other.pods) or one.pods == other.pods)
        ),
    )
    taken_left: set[int] = set()
    taken_right: set[int] = set()
    for _, number, index in scored:
        if number not in taken_left and index not in taken_right:
            taken_left.add(number)
            taken_right.add(index)
            yield left[number].name, right[index].name


def _launches(old: Outcome, new: Outcome, same_node: Mapping[str, str]) -> Iterator[Difference]:
    before = {node.name: node for node in old.launched}
    after = {node.name: node for node in new.launched}
    for name, node in before.items():
        if name not in same_node:
            yield Difference(sign="-", what=NOT_LAUNCHED, name=name, pods=node.pods, old=node)
        elif _differ(node, after[same_node[name]]):
            other = after[same_node[name]]
            yield Difference(sign="~", what=OTHER_LAUNCH, name=other.name, pods=other.pods, old=node, new=other)
    matched = set(same_node.values())
    for name, node in after.items():
        if name not in matched:
            yield Difference(sign="+", what=LAUNCHED, name=name, pods=node.pods, new=node)


def _differ(one: NewNode, other: NewNode) -> bool:
    return (one.instance_type, one.capacity_types, one.price, one.pods, one.replaces) != (
        other.instance_type, other.capacity_types, other.price, other.pods, other.replaces
    )  # fmt: skip


def _departures(old: Outcome, new: Outcome) -> Iterator[Difference]:
    before = {node.name: node for node in old.leaving}
    after = {node.name: node for node in new.leaving}
    for name in sorted({*before, *after}):
        gone, going = before.get(name), after.get(name)
        if gone is None and going is not None:
            yield Difference(sign="-", what=GOES, name=name, pods=going.evicted, new=going, reasons=(going.why,))
        elif going is None and gone is not None:
            why = new.stays.get(name)
            reasons = () if why is None else (why,)
            yield Difference(sign="+", what=STAYS, name=name, pods=gone.evicted, old=gone, reasons=reasons)
        elif gone is not None and going is not None and _leave_otherwise(gone, going):
            pods = going.evicted
            yield Difference(
                sign="~", what=GOES_OTHERWISE, name=name, pods=pods, old=gone, new=going, reasons=(going.why,)
            )


def _leave_otherwise(one: LeavingNode, other: LeavingNode) -> bool:
    return (one.why.code, one.evicted) != (other.why.code, other.evicted)


def _pods(old: Outcome, new: Outcome, same_node: Mapping[str, str], waited: Collection[str]) -> Iterator[Difference]:
    """Pods of a node that only one decision launches stand with that node."""
    told = {node.name for node in new.launched} - set(same_node.values())
    told_old = {node.name for node in old.launched} - set(same_node)
    going = {node.name for node in new.leaving}
    staying = {pod for node in old.leaving if node.name not in going for pod in node.evicted}
    refused_old, refused_new = _refused(old.waiting), _refused(new.waiting)
    groups: dict[tuple[str, str, str, tuple[str, ...]], list[str]] = {}
    refused: dict[tuple[str, ...], Waiting] = {}
    for pod in sorted({*old.places, *new.places, *refused_old, *refused_new}):
        was, place = old.places.get(pod, ""), new.places.get(pod, "")
        if same_node.get(was, was) == place and (place or (pod in refused_old) == (pod in refused_new)):
            continue
        if place in told and not was:
            continue
        if not place and pod not in refused_new and (was in told_old or pod in staying):
            continue
        why = refused_new.get(pod, _NOT_REFUSED) if not place else _NOT_REFUSED
        key = tuple(reason.code for reason in why.reasons)
        refused.setdefault(key, why)
        what = _what(was, place, pod in refused_new, pod in waited)
        groups.setdefault((what, was, place, key), []).append(pod)
    for (what, was, place, key), pods in groups.items():
        sign = {PLACED: "+", MOVED: "~", STILL_NO_PLACE: "~"}.get(what, "-")
        why = refused[key]
        yield Difference(
            sign=sign, what=what, pods=tuple(pods), old=was, new=place, reasons=why.reasons, crowding=why.crowding
        )


def _what(was: str, place: str, refused: bool, waited: bool) -> str:
    if place:
        return MOVED if was else PLACED
    if not refused:
        return NOT_PLANNED
    return STILL_NO_PLACE if waited and not was else NO_PLACE


def _refused(waiting: Iterable[Waiting]) -> dict[str, Waiting]:
    return {pod: group for group in waiting for pod in group.pods}
