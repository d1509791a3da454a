"""What labels, taints, selectors and volumes say of a node, for the judge of plans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec import Struct

from kerf.engine.model import labels as lbl
from kerf.engine.model.instance_types import Offering
from kerf.engine.model.kubernetes.pods import Expression, NodeTerm, PodShape, Selector, Taint
from kerf.engine.model.kubernetes.volumes import VolumeFacts

Labels = Mapping[str, str]
Kind = tuple[str, str]
"""Pods that are alike: namespace and digest of the shape."""


class Host(Struct, eq=False):
    """A node: the label sets that it may come to have (one, unless it is still to be launched), and its pods."""

    name: str
    labels: list[dict[str, str]]
    taints: tuple[Taint, ...]
    bound: Counter[Kind]
    planned: Counter[Kind]
    existing: bool
    leaving: bool = False

    def values(self, key: str) -> frozenset[str | None]:
        return frozenset(label.get(lbl.normalise(key)) for label in self.labels)

    def domain(self, key: str) -> str | None:
        """The value that it certainly has."""
        found = self.values(key)
        return next(iter(found)) if len(found) == 1 else None


# ── what labels, taints and selectors say ──────────────────────────────────────


def expression_holds(expression: Expression, labels: Labels) -> bool:
    value = labels.get(lbl.normalise(expression.key))
    if expression.operator in ("NotIn", "DoesNotExist"):
        return value is None or (expression.operator == "NotIn" and value not in expression.values)
    if value is None:
        return False
    if expression.operator == "In":
        return value in expression.values
    if expression.operator == "Exists":
        return True
    try:
        have, bound = int(value), int(expression.values[0])
    except ValueError:
        return False
    return {"Gt": have > bound, "Gte": have >= bound, "Lt": have < bound, "Lte": have <= bound}[expression.operator]


def wants_node(shape: PodShape, labels: Labels, unknown: frozenset[str] = frozenset()) -> bool:
    """nodeSelector and required node affinity. Labels in `unknown` may be missing from what is known of the node."""
    missing = unknown - labels.keys()
    own = [Expression(key, "In", (value,)) for key, value in shape.node_selector.items()]
    terms = shape.required_terms or (NodeTerm(),)
    return any(
        all(lbl.normalise(e.key) in missing or expression_holds(e, labels) for e in (*own, *term.expressions))
        for term in terms
    )


def tolerated(taint: Taint, shape: PodShape) -> bool:
    for toleration in shape.tolerations:
        if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
            continue
        if toleration.operator == "Exists" or (
            toleration.operator in ("", "Equal") and toleration.value == taint.value
        ):
            return True
        if toleration.operator in ("Lt", "Gt") and taint.value.isdigit() and toleration.value.isdigit():
            less = int(taint.value) < int(toleration.value)
            if less if toleration.operator == "Lt" else int(taint.value) > int(toleration.value):
                return True
    return False


def tolerates(shape: PodShape, taints: Iterable[Taint]) -> bool:
    return all(taint.effect == "PreferNoSchedule" or tolerated(taint, shape) for taint in taints)


def selected(selector: Selector | None, labels: Labels, more: Iterable[Expression] = ()) -> bool:
    """A label selector; labels of pods have no aliases, and neither have these."""
    if selector is None:
        return False
    for expression in (*selector.expressions, *more):
        value = labels.get(expression.key)
        holds = {
            "In": value in expression.values,
            "NotIn": value not in expression.values,
            "Exists": value is not None,
            "DoesNotExist": value is None,
        }[expression.operator]
        if not holds:
            return False
    return all(labels.get(key) == value for key, value in selector.labels.items())


def reaches(facts: VolumeFacts, name: str, labels: Labels) -> bool:
    """Whether a volume can be on a node with these labels. The host of a local one is not asked for: its node is gone,
    and its owner has to make another (S-154)."""
    claim = facts.claims.get(name)
    volume = facts.volumes.get(claim.volume) if claim is not None else None
    given = facts.classes.get(claim.storage_class) if claim is not None and not claim.volume else None
    terms = volume.terms if volume is not None else given.topologies if given is not None else ()
    local = volume is not None and volume.local
    return not terms or any(
        all(
            (local and lbl.normalise(expression.key) == lbl.HOSTNAME) or expression_holds(expression, labels)
            for expression in term.expressions
        )
        for term in terms
        if term.expressions
    )


def of_offer(offer: Offering) -> dict[str, str]:
    labels = {lbl.ZONE: offer.zone, lbl.CAPACITY_TYPE: offer.capacity_type}
    optional = {
        lbl.ZONE_ID: offer.zone_id,
        lbl.RESERVATION_ID: offer.reservation_id,
        lbl.RESERVATION_TYPE: offer.reservation_type,
        lbl.RESERVATION_INTERRUPTIBLE: str(offer.interruptible).lower() if offer.capacity_type == lbl.RESERVED else "",
    }
    return labels | {key: value for key, value in optional.items() if value}
