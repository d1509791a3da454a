"""`kerf.engine.runtime.ports.Cloud` without a cloud: an instance is a Node object that KWOK keeps alive.

A launch makes the Node. Its name is derived from the launch's token, so a repeated launch never makes a second one.
Ending an instance deletes the Node. Where the reference draws a random number (which of equal prices, the name), the
order and the token decide here.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from typing import Any, Protocol

from kerf.adapters.kwok.catalogue import GROUP
from kerf.adapters.kwok.nodes import NodeOrder, node_document
from kerf.engine.errors import KerfError
from kerf.engine.model import labels
from kerf.engine.model.content_digest import content
from kerf.engine.model.durations import parse_time
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.manifests.karpenter.nodepools import KWOKNodeClass
from kerf.engine.record.decisions import LaunchInstance
from kerf.engine.record.observations import (
    CatalogueSeen,
    EffectAnswered,
    InstanceSeen,
    LaunchAnswered,
    NodeClassSeen,
    Observation,
    TaggedInstance,
)

KIND = "KWOKNodeClass"
SCHEME = "kwok://"
CONFLICT, NOT_FOUND = 409, 404
CLAIM_LABEL = f"{GROUP}/nodeclaim"
ENDED = f"{GROUP}/ended"
"""The annotation that says that kerf has ended the instance. A Node that somebody else deletes runs on while it is
drained.
"""
_WORDS = (
    "amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath", "islet", "jetty", "knoll", "larch",
    "maple", "north", "ocean", "pearl", "quartz", "ridge", "slate", "tidal", "umber", "vale", "wharf", "yarrow",
)  # fmt: skip


class Nodes(Protocol):
    """Node objects on an API server. Each call returns an HTTP status, and the object if there is one."""

    def create(self, document: dict[str, Any]) -> tuple[int, dict[str, Any]]: ...
    def get(self, name: str) -> tuple[int, dict[str, Any]]: ...
    def annotate(self, name: str, annotations: dict[str, str]) -> tuple[int, dict[str, Any]]: ...
    def delete(self, name: str) -> tuple[int, dict[str, Any]]: ...
    def labelled(self, label: str, value: str = "") -> tuple[int, list[dict[str, Any]]]: ...


class KwokCloud:
    """Launches Nodes instead of instances. Threads may share it.

    `put` and `drop` say which NodeClasses there are; `observe` returns them with their catalogues.
    """

    def __init__(
        self,
        nodes: Nodes,
        catalogue: Catalogue,
        *,
        now: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        later: Callable[[float, Callable[[], None]], None] | None = None,
    ) -> None:
        self._nodes, self._catalogue, self._now = nodes, catalogue, now
        self._later = later if later is not None else _in_a_thread
        self._types = {instance_type.name: instance_type for instance_type in catalogue.types}
        self._classes: dict[str, KWOKNodeClass] = {}
        self._untold: dict[str, None] = {}
        self._coming: dict[str, str] = {}  # instance whose Node is to be made after a delay → its claim
        self._lock = threading.Lock()

    # ── NodeClasses ─────────────────────────────────────────────────────────────────────────────────────────

    def put(self, node_class: KWOKNodeClass) -> None:
        with self._lock:
            if self._classes.get(node_class.name) != node_class:
                self._classes[node_class.name] = node_class
                self._untold[node_class.name] = None

    def drop(self, name: str) -> None:
        with self._lock:
            self._classes.pop(name, None)
            self._untold.pop(name, None)

    def observe(self) -> list[Observation]:
        with self._lock:
            classes = [self._classes[name] for name in sorted(self._untold)]
            self._untold.clear()
        return [seen for node_class in classes for seen in class_observations(node_class, self._catalogue)]

    # ── ports.Cloud ─────────────────────────────────────────────────────────────────────────────────────────

    def launch(self, order: LaunchInstance, *, intent: str, token: str) -> LaunchAnswered:
        node_class = self._classes.get(order.node_class.name)
        if node_class is None or (order.node_class.group, order.node_class.kind) != (GROUP, KIND):  # L-159
            return _nothing(order, intent, "insufficient-capacity", f"no {KIND} {order.node_class.name}")
        if not node_class.ready or node_class.deleting:
            return _nothing(order, intent, "nodeclass-not-ready", f"{KIND} {node_class.name} is not ready")
        offer = next((offer for offer in order.offers if offer.instance_type in self._types), None)
        if offer is None:
            return _nothing(order, intent, "insufficient-capacity", "none of the instance types is in the catalogue")
        name = node_name(order.claim, token)
        document = node_document(NodeOrder(name, order, self._types[offer.instance_type], offer, CLAIM_LABEL))
        if not node_class.registration_delay:
            return self._create(order, document, intent, token)
        self._coming[name] = order.claim
        self._later(node_class.registration_delay / 1000, lambda: self._join(name, document))
        return self._answer(order, intent, document, adopted=False)

    def _join(self, name: str, document: dict[str, Any]) -> None:
        """Makes the Node of an instance that takes its time. If that fails, the claim's registration times out."""
        if self._coming.get(name) is not None:
            self._nodes.create(document)
            self._coming.pop(name, None)

    def _create(self, order: LaunchInstance, document: dict[str, Any], intent: str, token: str) -> LaunchAnswered:
        status, node = self._nodes.create(document)
        if status == CONFLICT:
            again = self.find(order, intent=intent, token=token)
            if again is not None:
                return again
        if status >= 300:
            message = str(node.get("message", ""))
            return LaunchAnswered(intent, order.claim, kind="error", code=str(status), message=message)
        return self._answer(order, intent, document, adopted=False)

    def find(self, order: LaunchInstance, *, intent: str, token: str) -> LaunchAnswered | None:
        status, node = self._nodes.get(node_name(order.claim, token))
        if status == NOT_FOUND:
            return self._of_claim(order, intent)
        if status >= 300:
            raise NodesRefused(f"{status}: {node.get('message', '')}", where=f"claim {order.claim}")
        return None if _gone(node) else self._answer(order, intent, node, adopted=True)

    def _of_claim(self, order: LaunchInstance, intent: str) -> LaunchAnswered | None:
        """Returns the claim's Node, even if another record's token made it."""
        status, nodes = self._nodes.labelled(CLAIM_LABEL, order.claim)
        if status >= 300:
            raise NodesRefused(f"{status}", where=f"nodes of claim {order.claim}")
        there = next((node for node in nodes if not _gone(node)), None)
        return None if there is None else self._answer(order, intent, there, adopted=True)

    def terminate(self, instance: str, *, intent: str) -> EffectAnswered:
        self._coming.pop(instance, None)
        status, node = self._nodes.annotate(instance, {ENDED: "true"})
        if status < 300:
            status, node = self._nodes.delete(instance)
        ok = status < 300 or status == NOT_FOUND
        return EffectAnswered(intent, ok, "200" if ok else str(status), "" if ok else str(node.get("message", "")))

    def describe(self, instances: Sequence[str]) -> list[InstanceSeen]:
        return [self._described(instance) for instance in instances]

    def listing(self) -> list[TaggedInstance]:
        """Lists the instances. Unlike L-238 it includes Nodes of lost records' claims, which would otherwise stay for
        ever.
        """
        status, nodes = self._nodes.labelled(CLAIM_LABEL)
        if status >= 300:
            raise NodesRefused(f"{status}", where="nodes of claims")
        there = {str(node["metadata"]["name"]): node for node in nodes if not _gone(node)}
        coming = [
            TaggedInstance(name, claim, self._now()) for name, claim in list(self._coming.items()) if name not in there
        ]
        return [*coming, *(_tagged(name, node) for name, node in there.items())]

    def _described(self, instance: str) -> InstanceSeen:
        """Describes an instance (L-475): a Node that is missing or being deleted is an instance that is gone.

        The exception is a ready Node that kerf has not ended: it still has to be drained (L-194), and its finalizer
        keeps it.
        """
        coming = self._coming.get(instance)
        if coming is not None:
            return InstanceSeen(instance, "pending", coming)
        status, node = self._nodes.get(instance)
        if status == NOT_FOUND or (status < 300 and _gone(node)):
            return InstanceSeen(instance, "gone")
        if status >= 300:
            raise NodesRefused(f"{status}: {node.get('message', '')}", where=f"node {instance}")
        claim = str(_labels(node).get(CLAIM_LABEL, ""))
        return InstanceSeen(instance, "running" if _ready(node) else "pending", claim)

    def _answer(self, order: LaunchInstance, intent: str, node: dict[str, Any], *, adopted: bool) -> LaunchAnswered:
        marks = _labels(node)
        name = str(node["metadata"]["name"])
        return LaunchAnswered(
            intent=intent,
            claim=order.claim,
            instance=name,
            provider_id=f"{SCHEME}{name}",
            instance_type=str(marks.get(labels.INSTANCE_TYPE, "")),
            zone=str(marks.get(labels.ZONE, "")),
            capacity_type=str(marks.get(labels.CAPACITY_TYPE, "")),
            launched=self._now(),
            adopted=adopted,
        )  # fmt: skip


class NodesRefused(KerfError):
    """The API server refused to show a Node that stands for an instance."""

    code = "KERF530"


def class_observations(node_class: KWOKNodeClass, catalogue: Catalogue) -> list[Observation]:
    """Returns what the record says of a NodeClass that sells these types."""
    digest, sold = content(node_class)[0], content(catalogue)[0]
    ready = node_class.ready and not node_class.deleting
    reason = "Deleting" if node_class.deleting else node_class.reason
    seen = NodeClassSeen(
        GROUP, KIND, node_class.name, node_class.uid, node_class.generation, ready, reason, digest=digest
    )  # fmt: skip
    offered = CatalogueSeen(f"{GROUP}/{KIND}/{node_class.name}", sold)
    return [Observation(seen, {digest: node_class}), Observation(offered, {sold: catalogue})]


def node_name(claim: str, token: str) -> str:
    """Returns the Node's name, `kwok-<claim>-<random name>-<uint32>`, derived from the token (L-473)."""
    digest = blake2b(token.encode(), digest_size=8).digest()
    word = _WORDS[digest[0] % len(_WORDS)]
    return f"kwok-{claim}-{word}-{int.from_bytes(digest[4:])}"


def _in_a_thread(seconds: float, work: Callable[[], None]) -> None:
    timer = threading.Timer(seconds, work)
    timer.daemon = True
    timer.start()


def _nothing(order: LaunchInstance, intent: str, kind: str, message: str) -> LaunchAnswered:
    return LaunchAnswered(intent=intent, claim=order.claim, kind=kind, message=message)


def _tagged(name: str, node: dict[str, Any]) -> TaggedInstance:
    created = node["metadata"].get("creationTimestamp")
    return TaggedInstance(name, str(_labels(node).get(CLAIM_LABEL, "")), parse_time(created) if created else 0)


def _labels(node: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = node.get("metadata", {}).get("labels") or {}
    return found


def _gone(node: dict[str, Any]) -> bool:
    metadata = node.get("metadata", {})
    ended = ENDED in (metadata.get("annotations") or {})
    return bool(metadata.get("deletionTimestamp")) and (ended or not _ready(node))


def _ready(node: dict[str, Any]) -> bool:
    conditions: Iterable[dict[str, Any]] = node.get("status", {}).get("conditions") or ()
    return any(condition.get("type") == "Ready" and condition.get("status") == "True" for condition in conditions)
