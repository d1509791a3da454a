"""An audit log as a history: what happened to each object, and who asked for it (F-122…F-143).

An object is told as an adapter would have seen it, by the same decoders. One whose spec the log leaves out is not made
up: what was done to it is told as a sentence with its actor.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter

from msgspec import Struct
from msgspec.structs import replace

from kerf.adapters.importers.audit.documents import (
    Document,
    Nameless,
    created_at,
    merged,
    metadata_of,
    spec_of,
    told_name,
    wanted_replicas,
    with_known_times,
)
from kerf.adapters.importers.audit.events import REFUSED_BY_BUDGET, AuditEvent, audit_event, events_in, is_complete
from kerf.adapters.importers.history import Applied, History
from kerf.adapters.importers.objects import SERVED, gone, observed
from kerf.adapters.importers.untrusted import name_of, object_of, text_of, time_of
from kerf.adapters.importers.wrapped_lines import Line
from kerf.engine.errors import InputError
from kerf.engine.model.durations import format_time
from kerf.engine.model.karpenter.nodeclaim_objects import Condition, NodeClaimObject
from kerf.engine.model.karpenter.nodepools import NodeClassRef
from kerf.engine.model.kinds.kind import ServedKind, WatchedKind
from kerf.engine.model.kinds.watched import NODE, NODECLAIM, POD, WORKLOAD
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.model.missing_knowledge import Missing
from kerf.engine.record import observations as seen

SOURCE = "audit-log"
LACKS = (
    Missing.BEGINNING, Missing.BINDINGS, Missing.CATALOGUE, Missing.CAUSES, Missing.DECISIONS, Missing.EVICTIONS,
    Missing.KEPT,
    Missing.PODS, Missing.POLICY, Missing.PRICES,
)  # fmt: skip
"""What an audit log does not tell (F-143). Pods and bindings are there if the level includes their bodies, evictions if
requests about pods are logged at all."""
_WORKERS = {"deployments", "statefulsets", "daemonsets", "replicasets", "jobs", "cronjobs"}
_OF_WORKLOADS = {
    ("apps", "deployments"): ("apps/v1", "Deployment"),
    ("apps", "statefulsets"): ("apps/v1", "StatefulSet"),
    ("apps", "daemonsets"): ("apps/v1", "DaemonSet"),
    ("batch", "jobs"): ("batch/v1", "Job"),
    ("policy", "poddisruptionbudgets"): ("policy/v1", "PodDisruptionBudget"),
}
"""Group and resource of objects that users apply → their apiVersion and kind."""
Key = tuple[str, str, str, str]  # group, resource, namespace, name


def read_audit(lines: Iterable[Line]) -> History:
    """The history that the lines of an audit log tell."""
    history = History(SOURCE, LACKS)
    reader = _Reader(history)
    for event in sorted(_events(lines, history), key=attrgetter("order")):
        reader.take(event)
    told = {Missing.PODS: reader.pods, Missing.BINDINGS: reader.bound, Missing.EVICTIONS: reader.asked_of_pods}
    history.lacks = tuple(missing for missing in LACKS if not told.get(missing))
    return history


def _events(lines: Iterable[Line], history: History) -> Iterator[AuditEvent]:
    told: set[str] = set()
    number = 0
    for line in lines:
        fields = object_of(line.text)
        if fields is None:
            history.not_read(line.number, "it is no JSON object: the event is lost", line.text)
            continue
        for event in events_in(fields):
            number += 1
            known = audit_event(event, number) if is_complete(event) else None
            if known is None or text_of(event.get("auditID")) in told:
                history.other += 1
                continue
            told.add(text_of(event.get("auditID")))
            yield known


class _Reader:
    """Takes the events in their order, and tells the history."""

    def __init__(self, history: History) -> None:
        self.pods = self.bound = self.asked_of_pods = False
        self._history = history
        self._documents: dict[Key, Document] = {}
        self._nameless = Nameless()
        self._shown: dict[Key, Struct] = {}
        self._made = 0

    def take(self, event: AuditEvent) -> None:
        told = len(self._history.told)
        if event.resource in _WORKERS or (event.group, event.resource) in SERVED:
            key = _key(event, event.name or told_name(event.response or {}))
            before = self._documents.get(key)
            _VERBS.get(event.subresource, _Reader._object)(self, event)
            self._applied(key, event, before)
        if len(self._history.told) > told:
            self._history.read += 1
        else:
            self._history.other += 1

    def _applied(self, key: Key, event: AuditEvent, before: Document | None) -> None:
        """Keep a workload's object as it is applied, once its spec is known whole, and that it is deleted."""
        api, now = _OF_WORKLOADS.get(key[:2]), self._documents.get(key)
        if api is None or now is before or not (whole := now or before or {}).get("spec"):
            return
        going = now is None or bool(metadata_of(now).get("deletionTimestamp"))
        metadata = {**metadata_of(whole), "name": key[3], "namespace": key[2]}
        document = {**whole, "apiVersion": api[0], "kind": api[1], "metadata": metadata}
        self._history.applied.append(Applied(event.at, document, gone=going))

    # ── what was asked for ─────────────────────────────────────────────────────────────────────────────────────

    def _object(self, event: AuditEvent) -> None:
        if event.verb == "deletecollection":
            self._say(event, f"deletes all {event.resource}{_within(event)}")
        elif event.verb == "delete":
            self._delete(event)
        elif event.verb == "create" or event.code == 201:  # a patch answered 201 created it (F-122)
            self._create(event)
        else:
            self._change(event)

    def _create(self, event: AuditEvent) -> None:
        document = event.response or (event.request if isinstance(event.request, dict) else None) or {}
        name = event.name or told_name(document)
        if not name:
            self._nameless.add(event.resource, event.namespace, created_at(document, event.at))
            return
        key = _key(event, name)
        self._documents[key] = created_at(document, event.at)
        self._workload(event, name, f"creates {{}}{_replicas(document)}")
        self._show(key, event)

    def _change(self, event: AuditEvent) -> None:
        key = _key(event, event.name)
        known = self._known(key)
        before = wanted_replicas(known)
        if event.response is not None and not event.subresource:
            known = with_known_times(known, event.response)
        elif isinstance(event.request, dict) and event.verb == "update" and not event.subresource:
            known = with_known_times(known, event.request)
        elif isinstance(event.request, dict):
            known = merged(known, event.request)
        elif event.resource == NODECLAIM.served[0].plural:
            pass  # its name is news
        else:
            return
        self._documents[key] = known
        if before is not None and wanted_replicas(known) not in (before, None):
            self._workload(event, event.name, f"scales {{}} from {before} to {wanted_replicas(known)}")
        if self._is_over(known):
            self._gone(key, event)
        else:
            self._show(key, event)

    def _scale(self, event: AuditEvent) -> None:
        key = _key(event, event.name)
        asked = event.response or event.request
        wanted = wanted_replicas(asked) if isinstance(asked, dict) else None
        if wanted is None:
            self._workload(event, event.name, "scales {}: to how many is not told")
            return
        before = wanted_replicas(self._documents.get(key, {}))
        self._workload(event, event.name, f"scales {{}}{'' if before is None else f' from {before}'} to {wanted}")
        if key in self._documents:
            self._documents[key] = merged(self._documents[key], {"spec": {"replicas": wanted}})
            self._show(key, event)

    def _bind(self, event: AuditEvent) -> None:
        self.asked_of_pods = True  # a policy that logs bindings logs evictions: both are subresources of pods
        key, asked = _key(event, event.name), event.request if isinstance(event.request, dict) else {}
        target, uid = name_of(asked.get("target")), text_of(metadata_of(asked).get("uid"))
        known = self._known(key)
        known = merged(known, {"metadata": {"uid": uid}}) if uid and not metadata_of(known).get("uid") else known
        self._documents[key] = merged(known, {"spec": {"nodeName": target}}) if target else known
        self.bound |= bool(target)
        self._show(key, event)

    def _evict(self, event: AuditEvent) -> None:
        self.asked_of_pods = True
        pod, key = f"{event.namespace}/{event.name}", _key(event, event.name)
        if event.code == REFUSED_BY_BUDGET:
            text = f"may not evict pod {pod}: a PodDisruptionBudget forbids it"
            self._say(event, text, pods=(pod,), level="warning", eviction="refused", uid=self._uid(key))
            return
        self._say(event, f"evicts pod {pod}", pods=(pod,), level="info", eviction="evicted", uid=self._uid(key))
        if spec_of(self._documents.get(key, {})).get("terminationGracePeriodSeconds") == 0:
            self._gone(key, event)
        else:
            self._goes(key, event)

    def _delete(self, event: AuditEvent) -> None:
        key = _key(event, event.name)
        kind = SERVED.get((event.group, event.resource), (None, None))[0]
        if event.response is not None:
            self._documents[key] = with_known_times(self._documents.get(key, {}), event.response)
        if kind is NODECLAIM or kind is NODE:
            self._delete_node(key, event, kind)
        elif kind is POD:
            self._delete_pod(key, event)
        else:
            self._workload(event, event.name, "deletes {}")
            self._gone(key, event)

    def _delete_node(self, key: Key, event: AuditEvent, kind: WatchedKind) -> None:
        """Whoever asks first is the cause; what Karpenter does to the Node of a going claim is a consequence
        (F-132)."""
        already = bool(metadata_of(self._documents.get(key, {})).get("deletionTimestamp"))
        self._known(key)
        self._goes(key, event, by=event.actor if not event.is_karpenters and not already else "")
        node = self._shown.get(key)
        if kind is NODE and not event.is_karpenters and not already and isinstance(node, Node):
            for claim_key, claim in self._shown.items():
                if isinstance(claim, NodeClaimObject) and claim.node == node.name:
                    self._history.tell(event.at, seen.NodeClaimDeletionSeen(claim_key[3], f"{event.actor} (its Node)"))

    def _delete_pod(self, key: Key, event: AuditEvent) -> None:
        """The first delete is asked for; that of the kubelet, without grace, is the end (F-127)."""
        options = event.request if isinstance(event.request, dict) else {}
        grace = options.get("gracePeriodSeconds")
        known = self._documents.get(key, {})
        own = spec_of(known).get("terminationGracePeriodSeconds")
        if event.actor.startswith("system:node:") or grace == 0 or (grace is None and own == 0):
            self._gone(key, event)
            return
        pod = f"{event.namespace}/{event.name}"
        forced = "forced" if event.is_karpenters else ""
        self._say(event, f"deletes pod {pod}", pods=(pod,), eviction=forced, uid=self._uid(key) if forced else "")
        self._goes(key, event)

    # ── objects ────────────────────────────────────────────────────────────────────────────────────────────────

    def _known(self, key: Key) -> Document:
        """The document so far. One that is met first with its name may be a create that had none."""
        if key not in self._documents:
            self._documents[key] = self._nameless.take(key[1], key[2], key[3]) or {}
        return self._documents[key]

    def _goes(self, key: Key, event: AuditEvent, *, by: str = "") -> None:
        known = self._known(key)
        if not metadata_of(known).get("deletionTimestamp"):
            known = merged(known, {"metadata": {"deletionTimestamp": format_time(event.at)}})
        self._documents[key] = known
        if by and key[1] == NODECLAIM.served[0].plural:
            alive = merged(known, {"metadata": {"deletionTimestamp": None}})
            self._show(key, event, alive)
            self._history.tell(event.at, seen.NodeClaimDeletionSeen(key[3], by))
        self._show(key, event)

    def _gone(self, key: Key, event: AuditEvent) -> None:
        self._documents.pop(key, None)
        shown = self._shown.pop(key, None)
        kind = SERVED.get(key[:2], (None, None))[0]
        if shown is not None and kind is not None:
            self._history.tell(event.at, gone(kind, shown))

    def _is_over(self, document: Document) -> bool:
        """Whether nothing holds an object any more whose deletion was asked for."""
        metadata = metadata_of(document)
        return bool(metadata.get("deletionTimestamp")) and bool(spec_of(document)) and not metadata.get("finalizers")

    def _show(self, key: Key, event: AuditEvent, document: Document | None = None) -> None:
        """Tells of the object if it is of a kind that kerf watches, and says something new."""
        found = SERVED.get(key[:2])
        known = document if document is not None else self._documents.get(key, {})
        if found is None:
            return
        kind, served = found
        if not _is_told(kind, known):
            return
        obj, blobs = self._decoded(key, known, kind, served, event)
        if obj is None:
            return
        if kind.keep is not None and key in self._shown:
            obj = kind.keep(self._shown[key], obj)
        self.pods |= kind is POD
        self._tell(key, event, obj, blobs)
        if isinstance(obj, Node):
            self._claim_of(obj, known, event)

    def _decoded(
        self, key: Key, document: Document, kind: WatchedKind, served: ServedKind, event: AuditEvent
    ) -> tuple[Struct | None, dict[str, Struct]]:
        if kind.key == "uid" and not metadata_of(document).get("uid"):
            self._made += 1
            document = merged(document, {"metadata": {"uid": f"imported-{self._made}"}})
            self._documents[key] = document
        if kind is NODECLAIM:
            document = merged({"spec": _UNTOLD_SPEC}, document)
        named = merged(document, {"metadata": {"name": key[3], "namespace": key[2] or None}})
        try:
            obj, blobs = observed(kind, served, named)
        except InputError as error:
            self._history.not_read(event.order[1], f"{served.api} {key[3]} cannot be read", str(error))
            return None, {}
        return _as_told(obj, document), blobs

    def _tell(self, key: Key, event: AuditEvent, obj: Struct, blobs: dict[str, Struct] | None = None) -> None:
        if self._shown.get(key) != obj:
            self._shown[key] = obj
            self._history.tell(event.at, obj, blobs=blobs)

    def _claim_of(self, node: Node, document: Document, event: AuditEvent) -> None:
        """A Node tells what its NodeClaim does not say at the level Metadata (F-139)."""
        owners = metadata_of(document).get("ownerReferences")
        owned = [o for o in owners if isinstance(o, dict)] if isinstance(owners, list) else []
        names = [name_of(owner) for owner in owned if owner.get("kind") == "NodeClaim"]
        if not names or not names[0]:
            return
        key = ("karpenter.sh", NODECLAIM.served[0].plural, "", names[0])
        if spec_of(self._documents.get(key, {})):
            return
        was = self._shown.get(key)
        claim = was if isinstance(was, NodeClaimObject) else _bare_claim(names[0], {})
        conditions = tuple(Condition(kind, "True") for kind in ("Launched", "Registered"))
        self._tell(key, event, replace(
            claim, provider_id=node.provider_id, node=node.name, labels=node.labels, conditions=conditions
        ))  # fmt: skip

    # ── sentences ──────────────────────────────────────────────────────────────────────────────────────────────

    def _workload(self, event: AuditEvent, name: str, sentence: str) -> None:
        """What is done to a workload, if it is not a part of Kubernetes that does it."""
        if event.resource in _WORKERS and event.is_somebodys:
            key = f"{event.namespace}/{name}" if event.namespace else name
            self._say(event, sentence.format(f"{event.resource[:-1]} {key}"), level="info")

    def _say(
        self,
        event: AuditEvent,
        text: str,
        *,
        pods: tuple[str, ...] = (),
        level: str = "debug",
        eviction: str = "",
        uid: str = "",
    ) -> None:
        self._history.tell(
            event.at,
            seen.ControllerSaid("", level, text, pods=pods, actor=event.actor, eviction=eviction, uid=uid),
        )

    def _uid(self, key: Key) -> str:
        """The uid under which a pod was told; "" for one that was not."""
        shown = self._shown.get(key)
        return shown.uid if isinstance(shown, Pod) else ""


def _key(event: AuditEvent, name: str) -> Key:
    return event.group, event.resource, event.namespace, name


def _is_told(kind: WatchedKind, document: Document) -> bool:
    """Whether the log tells what the object asks for: without that it would stand for another one."""
    if kind is POD:
        return "containers" in spec_of(document)
    if kind is NODE:
        return bool(metadata_of(document).get("labels")) or "providerID" in spec_of(document)
    return kind is not WORKLOAD or "template" in spec_of(document)


def _within(event: AuditEvent) -> str:
    return f" of namespace {event.namespace}" if event.namespace else ""


def _replicas(document: Document) -> str:
    wanted = wanted_replicas(document)
    return "" if wanted is None else f", {wanted} replica{'' if wanted == 1 else 's'}"


_UNTOLD = "untold"
_UNTOLD_SPEC: Document = {
    "requirements": [],
    "nodeClassRef": {"group": f"{_UNTOLD}.example", "kind": _UNTOLD, "name": _UNTOLD},
}
"""What stands for the required fields of a NodeClaim whose spec the log does not tell, while it is decoded."""


def _as_told(obj: Struct, document: Document) -> Struct:
    """A NodeClaim without what stood for fields that are not told, and without the API's defaults for them."""
    if not isinstance(obj, NodeClaimObject):
        return obj
    known = obj.node_class if obj.node_class.name != _UNTOLD else NodeClassRef("", "", "")
    return replace(obj, node_class=known, expire_after=obj.expire_after if "expireAfter" in spec_of(document) else None)


def _bare_claim(name: str, document: Document) -> NodeClaimObject:
    """A NodeClaim of which only the name is told, and when something was done to it."""
    metadata = metadata_of(document)
    return NodeClaimObject(
        name, NodeClassRef("", "", ""), expire_after=None, created=time_of(metadata.get("creationTimestamp")) or 0,
        deleting=time_of(metadata.get("deletionTimestamp")) or 0,
    )  # fmt: skip


_VERBS = {
    "": _Reader._object,
    "status": _Reader._change,
    "scale": _Reader._scale,
    "binding": _Reader._bind,
    "eviction": _Reader._evict,
}
