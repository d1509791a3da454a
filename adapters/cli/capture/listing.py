"""All objects of a live cluster that kerf decides on, each kind listed once. Nothing is written to the cluster."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from kerf.adapters.kubernetes.errors import ClusterError
from kerf.adapters.kubernetes.session import Session
from kerf.adapters.kubernetes.watch.reflector import Change, Expired, Reflector, as_it_is
from kerf.adapters.kubernetes.watch.watched_kinds import (
    EC2_NODE_CLASSES,
    KWOK_NODE_CLASSES,
    NODECLAIMS,
    Resource,
    observed,
)
from kerf.engine.model.settings import Settings
from kerf.engine.record.observations import Observation

NODE_CLASSES = (EC2_NODE_CLASSES, KWOK_NODE_CLASSES)
UNKNOWN, NOT_FOUND = 401, 404
ALWAYS_SERVED = ("/api/v1/nodes", "/api/v1/pods")
"""What does not serve these is no Kubernetes API: a proxy, say, at another path."""
LISTED_AGAIN = 3
"""So often a list is begun whose version the API server forgot between two pages."""


class Listing(Struct):
    """What was listed: observations in the order of their kinds, and the NodeClasses by the path of their kind.

    `missing` are the paths that the API server does not serve.
    """

    observations: list[Observation]
    node_classes: dict[str, list[Struct]]
    missing: list[str]


async def list_cluster(session: Session, settings: Settings) -> Listing:
    """List all kinds that kerf watches under these settings. Raises ClusterError (KERF601) that names all kinds which
    may not be listed, or that the API server does not know who asks or is none, and Unreachable.
    """
    listing = Listing([], {kind.path: [] for kind in NODE_CLASSES}, [])
    forbidden: list[str] = []
    for kind in (*NODE_CLASSES, *observed(settings), NODECLAIMS):
        try:
            await _list(session, kind, listing)
        except ClusterError as error:
            if error.status == UNKNOWN:
                raise _not_known(error) from error
            if error.forbidden:
                forbidden.append(_named(kind))
            elif error.status == NOT_FOUND:
                listing.missing.append(kind.path)
            else:
                raise
    if forbidden:
        raise _refused(forbidden)
    if set(ALWAYS_SERVED) <= set(listing.missing):
        hint = "Look at the kubeconfig's server: `kubectl get nodes` should list them"
        raise ClusterError(
            "it serves neither nodes nor pods: this is no Kubernetes API", status=404, where=session.host, hint=hint
        )
    return listing


async def _list(session: Session, kind: Resource, listing: Listing) -> None:
    told: list[Observation] = []
    kept = listing.node_classes.get(kind.path)

    def keep(change: Change) -> list[Observation]:
        if kept is not None and change.new is not None:
            kept.append(change.new)
        return []

    for _ in range(LISTED_AGAIN):
        reflector = Reflector(session, kind, told.extend, interpret=as_it_is if kept is None else keep)
        try:
            await reflector.list_all()
        except Expired:
            continue
        listing.observations += told
        return
    raise ClusterError("the API server forgets the list before it is read", status=410, where=f"list {kind.path}")


def _named(kind: Resource) -> str:
    return f"{kind.path.rpartition('/')[2]} ({kind.api.rpartition('/')[0]})"


def _not_known(error: ClusterError) -> ClusterError:
    return ClusterError(
        f"the API server does not know who asks ({error.message})",
        status=error.status,
        where="list",
        hint="The credentials in the kubeconfig may be over: `kubectl get nodes` should work, with the same --context",
    )


def _refused(forbidden: Iterable[str]) -> ClusterError:
    return ClusterError(
        f"these may not be listed: {', '.join(forbidden)}",
        status=403,
        where="list",
        hint="The ClusterRole in docs/capture.md gives the rights; what is not there would be taken for absent",
    )
