"""Writes to the Kubernetes API: `kerf.engine.runtime.ports.Cluster` on a real API server.

A write that replaces a list carries the resourceVersion that it was made from. After a conflict it is made again from
the current object. Answers have the API's codes, and 200 for every success.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from kerf.adapters.kubernetes.objects.node_cache import NodeCache, NodeParts, read_parts
from kerf.adapters.kubernetes.session import MERGE, STRATEGIC, Answer, Session
from kerf.adapters.kubernetes.thread_bridge import Bridge
from kerf.adapters.kubernetes.watch.watched_kinds import NODE_CLAIMS
from kerf.engine.model import labels as names
from kerf.engine.model.kubernetes.pods import Taint
from kerf.engine.record.decisions import (
    DeleteNode,
    DeletePod,
    EvictPod,
    InitializeNode,
    RegisterNode,
    TaintNode,
    UntaintNode,
)
from kerf.engine.record.observations import EffectAnswered
from kerf.engine.runtime.proposed_taints import PROPOSED

FIELD_MANAGER = "kerf"
MAX_WRITE_ATTEMPTS = 5  # of a write that meets conflicts
CONFLICT, NOT_FOUND = 409, 404
DISRUPTED = Taint(names.DISRUPTED_TAINT, "NoSchedule")

Patch = dict[str, Any]
Uids = Callable[[str], Awaitable[str]]
Written = Callable[[str], Awaitable[None]]


class KubernetesCluster:
    """Carries out the engine's writes. `claim_uid` returns the uid of a NodeClaim object, "" if there is none.

    A Node needs that uid, because its NodeClaim owns it, and the garbage collector deletes objects whose owner does not
    exist. `nominated` waits until the nominations of a Node's planned pods are written: pods can be bound to the Node
    as soon as it is registered.
    """

    def __init__(
        self, session: Session, bridge: Bridge, nodes: NodeCache, claim_uid: Uids, nominated: Written | None = None
    ) -> None:
        self._session, self._bridge, self._nodes, self._claim_uid = session, bridge, nodes, claim_uid
        self._nominated = nominated

    # ── ports.Cluster ───────────────────────────────────────────────────────────────────────────────────────

    def register(self, order: RegisterNode, *, intent: str) -> EffectAnswered:
        return self._bridge.call(self._register(order, intent))

    def initialize(self, order: InitializeNode, *, intent: str) -> EffectAnswered:
        patch = {"metadata": {"labels": {names.INITIALIZED: "true"}}}
        return self._bridge.call(self._patch_node(order.node, lambda parts: patch, intent))

    def taint(self, order: TaintNode, *, intent: str) -> EffectAnswered:
        return self._bridge.call(self._patch_node(order.node, _tainted, intent))

    def untaint(self, order: UntaintNode, *, intent: str) -> EffectAnswered:
        return self._bridge.call(self._patch_node(order.node, _untainted, intent))

    def evict(self, order: EvictPod, *, intent: str) -> EffectAnswered:
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": order.name, "namespace": order.namespace},
            "deleteOptions": {"preconditions": {"uid": order.uid}},
        }
        return self._bridge.call(self._send(intent, "POST", f"{_pod(order)}/eviction", body))

    def delete_pod(self, order: DeletePod, *, intent: str) -> EffectAnswered:
        return self._bridge.call(self._delete_pod(order, intent))

    def delete_node(self, order: DeleteNode, *, intent: str) -> EffectAnswered:
        return self._bridge.call(self._delete_node(order.node, intent))

    async def taint_proposed(self, node: str, *, on: bool) -> bool:
        """Puts the taint of a proposed disruption on a Node, or takes it off. Returns whether it was written. Call it
        on the loop."""
        return (await self._patch_node(node, lambda parts: _with_proposed(parts, on), "")).ok

    # ── nodes ───────────────────────────────────────────────────────────────────────────────────────────────

    async def _register(self, order: RegisterNode, intent: str) -> EffectAnswered:
        """Registers a Node in one write (L-163, L-164)."""
        owner = await self._claim_uid(order.claim)
        if self._nominated is not None:
            await self._nominated(order.node)
        return await self._patch_node(order.node, lambda parts: _registered(parts, order, owner), intent)

    async def _patch_node(self, node: str, make: Callable[[NodeParts], Patch], intent: str) -> EffectAnswered:
        """Sends a merge patch made from the current Node. Makes it again after a conflict."""
        path = f"/api/v1/nodes/{node}"
        answer = Answer(CONFLICT, b"")
        for attempt in range(MAX_WRITE_ATTEMPTS):
            parts = self._nodes.get(node) if not attempt else None
            if parts is None:
                answer = await self._session.request("GET", path)
                if not answer.ok:
                    break
                parts = read_parts(answer.body)
            patch = make(parts)
            if any(part in patch.get("metadata", {}) for part in ("finalizers", "ownerReferences")) or "spec" in patch:
                patch["metadata"]["resourceVersion"] = parts.metadata.resource_version
            answer = await self._session.request("PATCH", path, body=patch, content_type=MERGE, query=_MANAGED)
            if answer.status != CONFLICT:
                break
            self._nodes.drop(node)
        if answer.ok:
            self._nodes.put(node, answer.body)
        return answered(intent, answer)

    async def _delete_node(self, node: str, intent: str) -> EffectAnswered:
        """Deletes the Node, then removes its finalizer (L-201). In this order nothing can bind to it in between."""
        path = f"/api/v1/nodes/{node}"
        answer = await self._session.request("DELETE", path)
        if not answer.ok or answer.json().get("kind") != "Node":
            return answered(intent, answer)
        self._nodes.put(node, answer.body)
        patched = await self._patch_node(node, _unfinalized, intent)
        gone = patched.code == str(NOT_FOUND)
        return EffectAnswered(intent, ok=True, code="200") if gone else patched

    async def _delete_pod(self, order: DeletePod, intent: str) -> EffectAnswered:
        """Deletes a pod by force. Its condition DisruptionTarget says why, as for an eviction; Jobs look at it. A pod
        whose status cannot be written is deleted all the same.
        """
        condition = {**_TARGET, "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}
        patch = {"metadata": {"uid": order.uid}, "status": {"conditions": [condition]}}
        await self._session.request("PATCH", f"{_pod(order)}/status", body=patch, content_type=STRATEGIC)
        body = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "gracePeriodSeconds": order.grace,
            "preconditions": {"uid": order.uid},
        }
        return await self._send(intent, "DELETE", _pod(order), body)

    async def _send(self, intent: str, method: str, path: str, body: object) -> EffectAnswered:
        return answered(intent, await self._session.request(method, path, body=body))


_TARGET = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "DeletionByKarpenter",
    "message": "Its node has to be gone by the end of its NodeClaim's terminationGracePeriod",
}
_MANAGED = {"fieldManager": FIELD_MANAGER}


def _registered(parts: NodeParts, order: RegisterNode, owner: str) -> Patch:
    taints = parts.spec.taints
    if parts.metadata.labels.get(names.DO_NOT_SYNC_TAINTS) != "true":
        present = {(taint.get("key"), taint.get("effect")) for taint in taints}
        taints = taints + [_taint(taint) for taint in order.taints if (taint.key, taint.effect) not in present]
    metadata: Patch = {
        "labels": {**dict.fromkeys(order.without), **order.labels, names.REGISTERED: "true"},
        "annotations": dict(order.annotations),
        "finalizers": [*(f for f in parts.metadata.finalizers if f != names.TERMINATION_FINALIZER),
                       names.TERMINATION_FINALIZER],
    }  # fmt: skip
    owners = parts.metadata.owner_references
    if owner and all(reference.get("uid") != owner for reference in owners):
        metadata["ownerReferences"] = [*owners, _owner(order.claim, owner)]
    left = [taint for taint in taints if taint.get("key") != names.UNREGISTERED_TAINT]
    return {"metadata": metadata, "spec": {"taints": left or None}}


def _tainted(parts: NodeParts) -> Patch:
    """Adds the taint, and removes taints of the same key and another effect (L-196)."""
    left = [taint for taint in parts.spec.taints if taint.get("key") != DISRUPTED.key]
    labels = {names.EXCLUDE_FROM_LB: "karpenter"}
    return {"metadata": {"labels": labels}, "spec": {"taints": [*left, _taint(DISRUPTED)]}}


def _untainted(parts: NodeParts) -> Patch:
    left = [taint for taint in parts.spec.taints if taint.get("key") != DISRUPTED.key]
    return {"metadata": {"labels": {names.EXCLUDE_FROM_LB: None}}, "spec": {"taints": left or None}}


def _with_proposed(parts: NodeParts, on: bool) -> Patch:
    left = [taint for taint in parts.spec.taints if taint.get("key") != PROPOSED.key]
    return {"metadata": {}, "spec": {"taints": [*left, *([_taint(PROPOSED)] if on else [])] or None}}


def _unfinalized(parts: NodeParts) -> Patch:
    left = [finalizer for finalizer in parts.metadata.finalizers if finalizer != names.TERMINATION_FINALIZER]
    return {"metadata": {"finalizers": left or None}}


def _taint(taint: Taint) -> dict[str, str]:
    shown = {"key": taint.key, "effect": taint.effect}
    return {**shown, "value": taint.value} if taint.value else shown


def _owner(claim: str, uid: str) -> dict[str, Any]:
    version = NODE_CLAIMS.removeprefix("/apis/").rpartition("/")[0]
    return {"apiVersion": version, "kind": "NodeClaim", "name": claim, "uid": uid, "blockOwnerDeletion": True}


def _pod(order: EvictPod | DeletePod) -> str:
    return f"/api/v1/namespaces/{order.namespace}/pods/{order.name}"


def answered(intent: str, answer: Answer) -> EffectAnswered:
    code = "200" if answer.ok else str(answer.status)
    return EffectAnswered(intent=intent, ok=answer.ok, code=code, message="" if answer.ok else answer.message())
