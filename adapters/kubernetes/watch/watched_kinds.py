"""Declares what is listed and watched: each resource's path, how its objects are read, and what the record
calls them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any

from msgspec import Struct

from kerf.engine.model.kinds.kind import ServedKind, WatchedKind
from kerf.engine.model.kinds.watched import NODE, NODECLAIM, NODEPOOL, POD, WATCHED
from kerf.engine.model.settings import Settings
from kerf.engine.state.state import Facts

Key = Callable[[Struct], str]
Known = Callable[[Facts], Mapping[str, Struct]]


class Resource(Struct, frozen=True):
    """One resource of the API. `kind` is as in ObjectGone, `api` a key of kerf.engine.model.manifests.decode.KINDS.

    `known` is what the record holds of it, key → object.
    """

    kind: str
    api: str
    path: str
    key: Key
    known: Known
    trim: Callable[[Any], Struct] | None = None  # to what goes into the record
    keep: Callable[[Any, Any], Struct] | None = None  # the new object, with what stays of the old one
    page: int = 500
    optional: bool = False  # an API server that does not serve it has none


def resources(kind: WatchedKind) -> list[Resource]:
    """Returns the resources to watch for the objects of one kind."""
    return [
        Resource(
            kind.name, served.api, served.path, attrgetter(kind.key), _known(kind, served), kind.trim,
            kind.keep, optional=kind.optional,
        )
        for served in kind.served
    ]  # fmt: skip


def _known(kind: WatchedKind, served: ServedKind) -> Known:
    """Returns the known objects of this resource, for a kind that has several."""
    if not kind.facts:
        return lambda facts: {}
    table = attrgetter(kind.facts)
    if len(kind.served) == 1:
        return table
    return lambda facts: {key: item for key, item in table(facts).items() if item.kind == served.api}


def _node_classes(api: str, plural: str) -> Resource:
    group, kind = api.split("/", maxsplit=1)[0], api.rpartition("/")[2]

    def known(facts: Facts) -> Mapping[str, Struct]:
        return {
            node_class.name: node_class
            for node_class in facts.node_classes.values()
            if (node_class.group, node_class.kind) == (group, kind)
        }

    return Resource("nodeclass", api, f"/apis/{api.rpartition('/')[0]}/{plural}", attrgetter("name"), known)


KWOK_NODE_CLASSES = _node_classes("karpenter.kwok.sh/v1alpha1/KWOKNodeClass", "kwoknodeclasses")
EC2_NODE_CLASSES = _node_classes("karpenter.k8s.aws/v1/EC2NodeClass", "ec2nodeclasses")
(PODS,) = resources(POD)
(NODES,) = resources(NODE)
(NODEPOOLS,) = resources(NODEPOOL)
(NODECLAIMS,) = resources(NODECLAIM)
NODE_CLAIMS = NODECLAIMS.path


def observed(settings: Settings, kinds: Iterable[WatchedKind] = WATCHED) -> list[Resource]:
    """Returns the resources to watch under these settings whose objects are observations themselves.

    Their order is that in which the first lists are reported.
    """
    return [resource for kind in kinds if kind.facts and kind.watched_with(settings) for resource in resources(kind)]
