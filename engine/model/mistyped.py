"""Finds labels, values and kinds of NodeClass that are spelt nearly like a known one, or that nothing is sold with, and
lives of nodes, limits and requests that can hardly be meant.

The author only gets a note; nothing is decided by it. An unknown label is legal (nodes may have any), and a type may
exist that kerf's tables do not have yet.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from kerf.engine.model import labels as lbl
from kerf.engine.model.did_you_mean import did_you_mean
from kerf.engine.model.durations import format_duration, protected_for
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.karpenter.nodeoverlays import FIXED_RESOURCES
from kerf.engine.model.karpenter.nodepools import NodeClassRef, NodePool
from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.model.reasons import Reason

LABEL_SIMILARITY, VALUE_SIMILARITY = 0.9, 0.75
"""How similar a key, or a value, must be to a known one (`did_you_mean`). Less for a value, because values are
shorter.
"""

Known = Mapping[str, Collection[str]]
"""Label key → all values that it has."""

CLOSED: Known = {
    lbl.CAPACITY_TYPE: (lbl.ON_DEMAND, lbl.SPOT, lbl.RESERVED),
    lbl.ARCH: ("amd64", "arm64"),
    lbl.OS: ("linux", "windows"),
}
"""Labels whose values are the same everywhere."""
_ZONE = re.compile(r"([a-z]+(?:-[a-z]+)+-[0-9]+)[a-z]")
_OF_REGION = re.compile(r"[a-z]|-[a-z0-9-]+")
"""What follows the region in the name of a zone, also of a local zone."""
NODE_CLASSES = ("karpenter.k8s.aws/EC2NodeClass", "karpenter.kwok.sh/KWOKNodeClass")
"""The kinds of NodeClass for which kerf launches nodes, as group/Kind."""
_MARKS = (lbl.EC2NODECLASS, lbl.KWOKNODECLASS)
_KNOWN_LABELS = lbl.WELL_KNOWN | {*lbl.ALIASES, *_MARKS, lbl.HOSTNAME}

NOTES: dict[str, str] = {
    "mistyped-label": "{path}: {given} is no label that kerf knows. Is it {near}?",
    "mistyped-value": "{path}: {given} is no {key} that kerf knows. Is it {near}?",
    "mistyped-node-class": "{path}: {given} is no kind of NodeClass that kerf knows. Is it {near}?",
    "unknown-node-class": "{path}: kerf launches nothing for {given}, but for {known}",
    "no-dedicated-price": (
        "{path}: no instance type has a price on dedicated hardware here, and without a price kerf launches nothing. "
        "kerf run asks AWS for these prices (pricing:GetProducts)"
    ),
    "short-lived-nodes": (
        "{path}: a node goes {given} after it is asked for, and takes a minute or more until pods run on it: nodes are "
        "launched again and again"
    ),
    "limits-nothing": (
        "{path}: nodes have no resource {given}, so it limits nothing. There are cpu, memory, ephemeral-storage, pods, "
        "nodes, and resources of a domain, such as nvidia.com/gpu"
    ),
    "protects-nothing": "{path}: {given} protects nothing, since it is neither {known}",
    "tiny-memory": (
        "requests: {given} B of memory are less than any process takes. Is a unit missing, such as Mi? An m stands for "
        "thousandths: 512m is one byte"
    ),
}
"""The closed list of these notes, and their sentences."""
_TEMPLATE = "spec.template"
_ON_NODES = {"Node": "", "NodePool": _TEMPLATE}
_ON_PODS = {
    "Pod": "", "PodTemplate": "template", "CronJob": "spec.jobTemplate.spec.template",
    **dict.fromkeys(("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job"), _TEMPLATE),
}  # fmt: skip
"""Where the metadata of nodes and pods stands, by the kind of a manifest."""
OFF = "false"
"""A do-not-disrupt that counts for nothing, as it says."""
_LIMITED = frozenset({*FIXED_RESOURCES, "nodes"})
"""The resources without a domain that limits may name, beside huge pages."""
SHORT_LIFE = 300_000
"""An expireAfter (ms) below it is noted: an age counts from the request, so that the launch is part of it (L-240)."""
TINY_MEMORY = 2**20
"""A request (bytes) below it is noted."""


def values_of(catalogue: Catalogue) -> Known:
    """Returns all values that a catalogue's types have for each label, and the closed sets."""
    found: dict[str, set[str]] = {}
    for kind in catalogue.types:
        for key, values in kind.requirements.items():
            found.setdefault(key, set()).update(values)
        found.setdefault(lbl.INSTANCE_TYPE, set()).add(kind.name)
    return {**found, **CLOSED}


def values_given(pools: Iterable[NodePool]) -> Known:
    """Returns the values that NodePools give for labels of their own, and the NodePools' names.

    Without a label that a NodePool allows any value of: it gives what a pod asks for.
    """
    given: dict[str, set[str]] = {lbl.NODEPOOL: set()}
    anything: set[str] = set()
    for pool in pools:
        own: list[tuple[str, Collection[str]]] = [(lbl.normalise(key), {value}) for key, value in pool.labels.items()]
        own += [(lbl.normalise(spec.key), spec.values) for spec in pool.requirements if spec.operator == "In"]
        for key, values in ((lbl.NODEPOOL, (pool.name,)), *own):
            given.setdefault(key, set()).update(values)
        anything |= {lbl.normalise(spec.key) for spec in pool.requirements} - {key for key, _ in own}
    others = {key: values for key, values in given.items() if key not in lbl.WELL_KNOWN | anything}
    return {**others, lbl.NODEPOOL: given[lbl.NODEPOOL]}


def suggestion(key: str, undefined: frozenset[str], own: Iterable[str]) -> str | None:
    """Returns the known label that an unknown one may be meant to be (S-22).

    A label with the same ending comes before one that contains the key; among equals the least comes first. If there is
    neither, one with a similar spelling.
    """
    ending = key.partition("/")[2] if "/" in key else key
    known = sorted(undefined), sorted(own)
    for candidates in known:
        matches = [candidate for candidate in candidates if key in candidate or candidate.endswith(ending)]
        if matches:
            return min(matches, key=lambda each: (not each.endswith(ending), each))
    return next(iter(did_you_mean(key, [*known[0], *known[1]], similarity=LABEL_SIMILARITY)), None)


def protects_nothing(document: Mapping[str, Any]) -> Iterator[Reason]:
    """Notes a do-not-disrupt that does not do what its author may expect: of pods that is any text but `true` and a
    duration above zero, an empty one, too (D-12); of nodes any text but `true` (D-30)."""
    kind = str(document.get("kind", ""))
    place = _ON_NODES.get(kind, _ON_PODS.get(kind))
    if place is None:
        return
    path = [*filter(None, place.split(".")), "metadata", "annotations", lbl.DO_NOT_DISRUPT]
    found: Any = document
    for step in path:
        found = found.get(step) if isinstance(found, Mapping) else None
    if isinstance(found, str) and found not in ("true", OFF) and (kind in _ON_NODES or not protected_for(found)):
        known = "true nor false" if kind in _ON_NODES else "true nor a duration above zero, such as 30m"
        where = f"{'.'.join(path[:-1])}[{path[-1]}]"
        yield Reason("protects-nothing", {"path": where, "given": found or "an empty text", "known": known})


def near_value(value: str, known: Collection[str]) -> str:
    """Returns the known value that an unknown one may be meant to be; "" if there is none.

    There is none for a known value, a number, or another zone of a known region.
    """
    if value in known or value.isdigit() or any(_beside(value, other) for other in known):
        return ""
    return next(iter(did_you_mean(value, known, similarity=VALUE_SIMILARITY)), "")


def _beside(value: str, known: str) -> bool:
    """Returns whether it is a zone in the region of a known zone: us-west-2d or us-west-2-lax-1a beside us-west-2a."""
    region = _ZONE.fullmatch(known)
    return region is not None and _OF_REGION.fullmatch(value.removeprefix(region[1])) is not None


def near_node_class(ref: NodeClassRef) -> str:
    """Returns the group/Kind that a reference to an unknown kind of NodeClass may be meant to be.

    Returns "" if the kind is known, or if none is similar.
    """
    given = f"{ref.group}/{ref.kind}"
    if given in NODE_CLASSES:
        return ""
    same_kind = [known for known in NODE_CLASSES if known.rpartition("/")[2] == ref.kind]
    return next(iter(same_kind or did_you_mean(given, NODE_CLASSES, similarity=VALUE_SIMILARITY)), "")


def mistyped(item: Struct, shapes: Iterable[Struct] = (), known: Known = CLOSED) -> Iterator[Reason]:
    """Yields notes on what may be mistyped in an object.

    Looks at a NodePool's labels, requirements and NodeClass, and at what pods of these shapes ask of nodes (the
    object's own shape, or its template's).
    """
    if isinstance(item, NodePool):
        yield from _of_pool(item, known)
    for shape in shapes:
        if isinstance(shape, PodShape):
            yield from _of_shape(shape, known)


def _of_pool(pool: NodePool, known: Known) -> Iterator[Reason]:
    for key, value in sorted(pool.labels.items()):
        path = f"{_TEMPLATE}.metadata.labels[{key}]"
        yield from _label(path, key)
        yield from _values(path, key, (value,), known)
    for index, requirement in enumerate(pool.requirements):
        path = f"{_TEMPLATE}.spec.requirements[{index}]"
        yield from _label(f"{path}.key", requirement.key)
        yield from _values(f"{path}.values", requirement.key, requirement.values, known)
    if pool.expire_after is not None and pool.expire_after < SHORT_LIFE:
        given = format_duration(pool.expire_after)
        yield Reason("short-lived-nodes", {"path": f"{_TEMPLATE}.spec.expireAfter", "given": given})
    for name in sorted(pool.limits or {}):
        if "/" not in name and name not in _LIMITED and not name.startswith("hugepages-"):
            yield Reason("limits-nothing", {"path": f"spec.limits[{name}]", "given": name})
    ref = pool.node_class
    given, near = f"{ref.group}/{ref.kind}", near_node_class(ref)
    path = f"{_TEMPLATE}.spec.nodeClassRef"
    if near:
        yield Reason("mistyped-node-class", {"path": path, "given": given, "near": near})
    elif given not in NODE_CLASSES:
        yield Reason("unknown-node-class", {"path": path, "given": given, "known": list(NODE_CLASSES)})


def _of_shape(shape: PodShape, known: Known) -> Iterator[Reason]:
    memory = shape.requests.get("memory", 0)
    if 0 < memory < TINY_MEMORY:
        yield Reason("tiny-memory", {"given": str(memory)})
    for key, value in sorted(shape.node_selector.items()):
        yield from _asked("nodeSelector", key, (value,), known)
    terms = (*shape.required_terms, *(preferred_term.term for preferred_term in shape.preferred_terms))
    for expression in (match_expression for term in terms for match_expression in term.expressions):
        yield from _asked("nodeAffinity", expression.key, expression.values, known)


def _asked(path: str, key: str, values: Collection[str], known: Known) -> Iterator[Reason]:
    yield from _label(path, key)
    yield from _values(path, key, values, known)


def _label(path: str, key: str) -> Iterator[Reason]:
    near = did_you_mean(key, _KNOWN_LABELS, similarity=LABEL_SIMILARITY)
    if near and key not in _KNOWN_LABELS:
        yield Reason("mistyped-label", {"path": path, "given": key, "near": near[0]})


def _values(path: str, key: str, values: Collection[str], known: Known) -> Iterator[Reason]:
    stable = lbl.normalise(key)
    dedicated = stable == lbl.TENANCY and lbl.DEDICATED in values and lbl.DEFAULT_TENANCY not in values
    if dedicated and lbl.DEDICATED not in known.get(stable, (lbl.DEDICATED,)):
        yield Reason("no-dedicated-price", {"path": path})
    for value in values:
        near = near_value(value, known.get(stable, ()))
        if near:
            yield Reason("mistyped-value", {"path": path, "key": stable, "given": value, "near": near})
