"""Apply, delete and remove objects of the cluster, as the watch would have shown it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.lifecycle.adoption import NODE_DELETED
from kerf.engine.model.karpenter.nodeclaim_objects import NodeClaimObject
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.kinds.kind import WatchedKind
from kerf.engine.model.kinds.watched import DAEMONSET, NODEPOOL, WATCHED
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.kubernetes.pods import Owner, Pod, PodShape, is_reschedulable
from kerf.engine.model.manifests.decode import Decoded, decode_object
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.state_table import GOING
from kerf.engine.record.observations import NodeClaimDeletionSeen, ObjectGone, Observation
from kerf.engine.state.state import State
from kerf.projections.differences.documents import Shapes, changed_fields
from kerf.projections.prose.amounts import count, first_names
from kerf.projections.workload_names import WorkloadName, owner_name
from kerf.replay.errors import ChangeRefused
from kerf.replay.subject_names import kind_of
from kerf.replay.what_if.budget_status import with_status
from kerf.replay.what_if.changes import Applied, Change
from kerf.replay.what_if.manifest_fields import Document, check_node_class, unknown_name
from kerf.replay.what_if.new_pods import pods_of

_BY_STRUCT: dict[type[Struct], WatchedKind] = {kind.struct: kind for kind in WATCHED}
ASKED_BY = "kerf whatif"
"""Who deletes what is deleted."""
MAX_FIELDS_SHOWN = 8
"""Of a manifest that is applied, so many changed fields are told."""
_SHORT_KINDS = {"deploy": "deployment", "rs": "replicaset", "sts": "statefulset", "ds": "daemonset", "cj": "cronjob"}
_NEEDS_THE_CLOUD = ("EC2NodeClass", "KWOKNodeClass")
_OF_THE_CLOUD = (
    "What the cloud makes of a NodeClass is not in the record. --set, --price and --no-capacity change the rest"
)


def added_pods(documents: Sequence[Document], said: str) -> Change:
    """Pods that wait for a node: those of the documents, and the replicas of workloads among them."""

    def change(state: State) -> Applied:
        pods = [(pod, decode_object(pod)) for document in documents for pod in pods_of(document, state.facts.at)]
        known = {pod.key for pod in state.facts.pods.values()}
        for _, decoded in pods:
            if _pod(decoded).key in known:
                hint = "Give it another name, or remove that one with --delete"
                raise ChangeRefused(f"there is a pod {_pod(decoded).key} already", where=said, hint=hint)
        observations = tuple(Observation(decoded.object, decoded.blobs) for _, decoded in pods)
        return Applied(f"{said}: {len(pods)} more pod{'' if len(pods) == 1 else 's'}", observations)

    return change


def _pod(decoded: Decoded) -> Pod:
    assert isinstance(decoded.object, Pod)
    return decoded.object


def applied(document: Document, said: str) -> Change:
    """Apply a manifest, as `kubectl apply` does."""

    def change(state: State) -> Applied:
        what = _named(document)
        decoded = decode_object(dict(document), source=said)
        if isinstance(decoded.object, Pod):
            return added_pods([document], what)(state)
        kind = _BY_STRUCT.get(type(decoded.object))
        if kind is None or not kind.watched_with(state.facts.settings) or isinstance(decoded.object, NodeClaimObject):
            raise ChangeRefused(f"kerf would not look at {what}", where=said, hint=_instead(document, kind))
        shapes = partial(_shape, {**decoded.blobs}, state)
        known = _known(kind, decoded.object, state)
        if isinstance(decoded.object, NodePool):
            check_node_class(decoded.object, known, state, said)
        made = _as_admitted(decoded.object, known, kind, state)
        made = made if kind.trim is None else kind.trim(made)
        told = f"{what} is new{_others(kind, state)}" if known is None else f"{what}: {_changes(known, made, shapes)}"
        return Applied(told, (Observation(made, decoded.blobs),))

    return change


def _others(kind: WatchedKind, state: State) -> str:
    """Say what the record has of the kind: a new object may be one whose name is another there."""
    names = sorted("/".join(filter(None, _key(found)[1:])) for found in _objects(kind, state))
    return f": the record has {first_names(names)}" if names else ""


def _shape(new: dict[str, Struct], state: State, digest: str) -> PodShape:
    """Return what pods of a template ask for: one that is new with a manifest, or of the record."""
    found = new.get(digest)
    return found if isinstance(found, PodShape) else state.indexes.blobs.shape(digest)


def _changes(known: Struct, made: Struct, shapes: Shapes) -> str:
    """Say which fields of an object change, and how."""
    fields = changed_fields(known, made, shapes)
    more = f" and {count(len(fields) - MAX_FIELDS_SHOWN, 'other field')}" if len(fields) > MAX_FIELDS_SHOWN else ""
    return ", ".join(fields[:MAX_FIELDS_SHOWN]) + more if fields else "as it is in the record"


def _named(document: Document) -> str:
    metadata = document.get("metadata")
    name = metadata.get("name", "?") if isinstance(metadata, Mapping) else "?"
    return f"{document.get('kind', '?')} {name}"


def _instead(document: Document, kind: WatchedKind | None) -> str:
    name = str(document.get("kind"))
    if name in _NEEDS_THE_CLOUD:
        return _OF_THE_CLOUD
    if kind is not None and kind.name == "nodeclaim":
        return "--add-pods asks for nodes, --remove takes one away"
    if kind is not None and kind.name == "workload":
        instead = f"with --delete {name.lower()}/{_named(document).partition(' ')[2]} in place of those that are there"
        return f"--add-pods adds its pods, {instead}"
    return "It looks at it only with other settings" if kind is not None else "Leave it out"


def _known(kind: WatchedKind, made: Any, state: State) -> Any:
    """Return the object of the same name that the record has at this moment, or None."""
    return next((found for found in _objects(kind, state) if _key(found) == _key(made)), None)


def _objects(kind: WatchedKind, state: State) -> Iterable[Any]:
    return attrgetter(kind.facts)(state.facts).values() if kind.facts else ()


def _key(found: Any) -> tuple[str, str, str]:
    return getattr(found, "kind", ""), getattr(found, "namespace", ""), found.name


def _as_admitted(made: Any, known: Any, kind: WatchedKind, state: State) -> Struct:
    """Give the object what the API server and its controllers would: the uid, and the status that it had."""
    if hasattr(made, "uid"):
        uid = getattr(known, "uid", "") or made.uid or f"what-if/{kind.name}/{'/'.join(_key(made))}"
        made = replace(made, uid=uid)
    if isinstance(made, NodePool) and known is not None:
        made = replace(made, generation=known.generation + 1, hash_version=known.hash_version, ready=known.ready)
    if isinstance(made, Node):
        at = state.facts.at
        ready = replace(made, ready=True, ready_since=at) if known is None and not made.ready else made
        made = replace(ready, created=ready.created or at, allocatable=ready.allocatable or ready.capacity)
    return with_status(made, state) if isinstance(made, PodDisruptionBudget) else made


# ── what goes ──────────────────────────────────────────────────────────────────────────────────────────────────────


def deleted(subject: str) -> Change:
    """Delete an object, as `kubectl delete` does. Nodes and NodeClaims drain; a NodePool takes its NodeClaims
    along, a workload its pods."""

    def change(state: State) -> Applied:
        word, _, name = subject.partition("/")
        if word in ("node", "nodes", "no"):
            return Applied(f"node/{name} deleted", tuple(_node_deleted(name, state)))
        if word in ("nodeclaim", "nodeclaims", "nc"):
            return Applied(f"nodeclaim/{name} deleted", (_claim_deleted(_claim(name, state), ASKED_BY),))
        asked = _SHORT_KINDS.get(word.lower(), word.lower().partition(".")[0].removesuffix("s"))
        if kind_of(word) == "workload" and asked != "daemonset":
            gone_with_it = tuple(_workload_deleted(asked, name, state))
            return Applied(f"{asked}/{name} deleted", gone_with_it, takes=partial(_is_of, asked, name))
        kind = _kind(_SHORT_KINDS.get(word.lower(), word), subject)
        found = [item for item in _objects(kind, state) if name in _names(item)]
        if not found:
            known = sorted(_names(item)[0] for item in _objects(kind, state))
            raise unknown_name(kind.name, name, known, f"--delete {subject}")
        gone = [Observation(ObjectGone(kind.name, str(getattr(item, kind.key)))) for item in found]
        if kind is NODEPOOL:
            owned = [claim for claim in _claims_of(name, state) if claim.state not in GOING]
            gone += [_claim_deleted(claim, ASKED_BY) for claim in owned]
        elif kind is DAEMONSET:
            pods = [pod for pod in state.facts.pods.values() if _is_of(asked, name, pod)]
            gone += [Observation(ObjectGone("pod", pod.uid)) for pod in pods]
        return Applied(f"{kind.name}/{name} deleted", tuple(gone))

    return change


def _workload_deleted(asked: str, name: str, state: State) -> Iterator[Observation]:
    """A workload takes its pods along. Most records know workloads only as the owners of pods."""
    gone: list[ObjectGone] = []
    known: set[str] = set()
    for part, workloads in _parts_of_workloads(state):
        called = [workload for workload in workloads if workload.kind.lower() == asked]
        known.update(workload.key for workload in called)
        if any(name in (workload.key, workload.name) for workload in called):
            gone.append(part)
    if not gone:
        raise unknown_name(asked, name, sorted(known), f"--delete {asked}/{name}")
    yield from (Observation(part) for part in gone)


def _is_of(asked: str, name: str, pod: Pod) -> bool:
    """Whether a pod is of the workload of this kind and name."""
    workloads = _workloads(pod.namespace, pod.owner) if pod.owner is not None else set()
    return any(found.kind.lower() == asked and name in (found.key, found.name) for found in workloads)


def _parts_of_workloads(state: State) -> Iterator[tuple[ObjectGone, set[WorkloadName]]]:
    """What the record has of workloads, each as it would be gone, with the workloads that it is of: a pod is of its
    ReplicaSet, and of the Deployment of that."""
    for key, workload in state.facts.workloads.items():
        yield ObjectGone("workload", key), _workloads(workload.namespace, Owner(workload.kind, workload.name))
    for uid, pod in state.facts.pods.items():
        if pod.owner is not None:
            yield ObjectGone("pod", uid), _workloads(pod.namespace, pod.owner)


def _workloads(namespace: str, owner: Owner) -> set[WorkloadName]:
    return {WorkloadName(namespace, owner.name, owner.kind.rpartition("/")[2]), owner_name(namespace, owner)}


def removed_node(subject: str) -> Change:
    """Take a node away: kerf drains its own ones, and finds a place for their pods. A node that is not kerf's is gone
    at once, and the replicas on it wait again."""

    def change(state: State) -> Applied:
        name = subject.partition("/")[2] or subject
        return Applied(f"node/{name} removed", tuple(_node_deleted(name, state)))

    return change


def _node_deleted(name: str, state: State) -> Iterator[Observation]:
    facts, indexes = state.facts, state.indexes
    if name in facts.claims:
        yield _claim_deleted(facts.claims[name], ASKED_BY)
        return
    node = facts.nodes.get(name)
    if node is None:
        raise unknown_name("node", name, [*facts.nodes, *facts.claims], f"node/{name}")
    claim = facts.claims.get(indexes.claim_by_node.get(name, ""))
    if claim is not None:
        yield Observation(replace(node, deleting=facts.at))
        yield _claim_deleted(claim, NODE_DELETED)
        return
    yield Observation(ObjectGone("node", name))
    for uid in sorted(indexes.pods_by_node.get(name, {})):
        pod = facts.pods[uid]
        yield Observation(ObjectGone("pod", uid))
        if is_reschedulable(pod) and pod.owner is not None:
            yield Observation(_replica(pod, facts.at))


def _replica(pod: Pod, at: int) -> Pod:
    """The pod that its workload makes in place of one that is gone. It keeps its name, so that it can be followed."""
    return replace(pod, uid=f"{pod.uid}/what-if", node="", phase="Pending", unschedulable=True, nominated="",
                   ready=False, started=0, deleting=0, created=at)  # fmt: skip


def _claim(name: str, state: State) -> NodeClaim:
    claim = state.facts.claims.get(name)
    if claim is None:
        raise unknown_name("NodeClaim", name, list(state.facts.claims), f"nodeclaim/{name}")
    return claim


def _claim_deleted(claim: NodeClaim, actor: str) -> Observation:
    if claim.state in GOING:
        raise ChangeRefused(f"{claim.name} goes already: {claim.why}", hint="Ask about a moment before that")
    return Observation(NodeClaimDeletionSeen(claim.name, actor))


def _claims_of(pool: str, state: State) -> list[NodeClaim]:
    claims = state.facts.claims
    return [claims[name] for name in sorted(claims) if claims[name].node_pool == pool]


def _names(found: Any) -> list[str]:
    namespace = getattr(found, "namespace", "")
    return [f"{namespace}/{found.name}", found.name] if namespace else [found.name]


def _kind(word: str, subject: str) -> WatchedKind:
    spelt = {
        name: kind
        for kind in WATCHED
        if kind.facts
        for served in kind.served
        for name in (kind.name, served.plural, served.plural.removesuffix("s"), served.api.rpartition("/")[2].lower())
    }
    if kind_of(word) == "nodeclass":
        raise ChangeRefused("kerf would not look at a NodeClass", where=f"--delete {subject}", hint=_OF_THE_CLOUD)
    if word.lower() not in spelt:
        raise unknown_name("kind", word, sorted({*spelt, "nodeclaim"}), f"--delete {subject}")
    return spelt[word.lower()]
