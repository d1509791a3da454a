"""A kerf that runs for a whole module of tests, and the objects that they make: each test has NodePools of its own.

Pods select their NodePool, so that tests do not meet on nodes. When the module ends, what kerf has recorded is decided
again, and must come out the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tests.support.controlplane.plane import ControlPlane
from tests.support.controlplane.running import Kerf, deployment_of, eventually, is_true, node_pool, recorded

T = TypeVar("T")
MERGE = "application/merge-patch+json"
POOLS = "/apis/karpenter.sh/v1/nodepools"
CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
CLASSES = "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses"
NODES = "/api/v1/nodes"
DEFAULT = "/api/v1/namespaces/default"
PODS = f"{DEFAULT}/pods"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
QUICK = ("--batch-max-duration", "2s", "--batch-idle-duration", "200ms")
"""With Karpenter's own ten seconds a node is nobody's candidate for twenty (L-282)."""


class Live:
    """A control plane, and the kerf that acts on it."""

    def __init__(self, plane: ControlPlane, kerf: Kerf) -> None:
        self.plane, self.kerf = plane, kerf

    # ── waiting ─────────────────────────────────────────────────────────────────────────────────────────────

    def until(self, what: Callable[[], T], seconds: float = 60) -> T:
        return eventually(what, seconds=seconds, kerf=self.kerf)

    def running(self, app: str, count: int = 1, seconds: float = 60) -> list[dict[str, Any]]:
        """Its pods, as soon as so many run and no more."""
        self.until(lambda: len(self._phase(app, "Running")) == count == len(self.pods(app)), seconds)
        return self._phase(app, "Running")

    def ready(self, pool: str, count: int, seconds: float = 60) -> list[dict[str, Any]]:
        """The NodeClaims of a NodePool, as soon as there are so many and all are ready."""

        def found() -> bool:
            claims = self.claims(pool)
            return len(claims) == count and all(is_true(claim, "Ready") for claim in claims)

        self.until(found, seconds)
        return self.claims(pool)

    def refused(self, app: str) -> str:
        """What kerf says of a pod that it has no node for (L-437)."""

        def said() -> str:
            told = [self.events(pod["metadata"]["uid"]) for pod in self.pods(app)]
            return next((text for events in told for reason, text in events if reason == "FailedScheduling"), "")

        return self.until(said)

    def gone(self, path: str, seconds: float = 60) -> None:
        self.until(lambda: self.plane.request("GET", path)[0] == 404, seconds)

    # ── looking ─────────────────────────────────────────────────────────────────────────────────────────────

    def pods(self, app: str) -> list[dict[str, Any]]:
        return self.plane.items(f"{PODS}?labelSelector=app%3D{app}")

    def _phase(self, app: str, phase: str) -> list[dict[str, Any]]:
        return [pod for pod in self.pods(app) if pod["status"].get("phase") == phase]

    def claims(self, pool: str) -> list[dict[str, Any]]:
        return self.plane.items(f"{CLAIMS}?labelSelector=karpenter.sh/nodepool%3D{pool}")

    def nodes(self, pool: str) -> list[dict[str, Any]]:
        return self.plane.items(f"{NODES}?labelSelector=karpenter.sh/nodepool%3D{pool}")

    def events(self, uid: str) -> list[tuple[str, str]]:
        """Reason and message of kerf's events about an object."""
        found = self.plane.items(f"/api/v1/events?fieldSelector=involvedObject.uid%3D{uid}")
        own = [event for event in found if event["source"].get("component") == "karpenter"]
        return [(event["reason"], event["message"]) for event in own]

    def conditions(self, path: str) -> dict[str, tuple[str, str]]:
        """Status and reason by type."""
        found = self.plane.get(path).get("status", {}).get("conditions", [])
        return {condition["type"]: (condition["status"], condition["reason"]) for condition in found}

    def payloads(self, kind: type[T]) -> list[T]:
        """What is recorded of a kind so far."""
        return [payload for payload in recorded(self.kerf.record) if isinstance(payload, kind)]

    # ── changing ────────────────────────────────────────────────────────────────────────────────────────────

    def make(self, *documents: dict[str, Any]) -> None:
        for document in documents:
            self.plane.apply(document)

    def patch(self, path: str, body: dict[str, Any], content_type: str = MERGE) -> dict[str, Any]:
        status, found = self.plane.request("PATCH", path, body, content_type)
        assert status == 200, found
        return dict(found)

    def delete(self, path: str) -> None:
        status, found = self.plane.request("DELETE", path)
        assert status in (200, 202, 404), found

    def scale(self, app: str, replicas: int) -> None:
        self.patch(f"/apis/apps/v1/namespaces/default/deployments/{app}/scale", {"spec": {"replicas": replicas}})

    def clear(self) -> None:
        """What a test leaves: all workloads and NodePools, and with these all nodes."""
        for path in (
            "/apis/apps/v1/namespaces/default/deployments",
            "/apis/apps/v1/namespaces/default/daemonsets",
            BUDGETS,
            PODS,
            POOLS,
        ):
            self.plane.request("DELETE", f"{path}?gracePeriodSeconds=0")


def on(pool: str) -> dict[str, Any]:
    """What a pod says that wants a node of this NodePool."""
    return {"nodeSelector": {"karpenter.sh/nodepool": pool}}


def nodes_of(name: str, *requirements: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """A NodePool that takes no node away by itself; `template` goes into its template's spec, `metadata` beside it."""
    template, metadata = spec.pop("template", {}), spec.pop("metadata", None)
    made = node_pool(name, **{"disruption": {"consolidateAfter": "Never"}, **spec})
    inside = made["spec"]["template"]
    inside["spec"] |= template
    inside["spec"]["requirements"] = [
        *(
            requirement
            for requirement in inside["spec"]["requirements"]
            if requirement["key"] not in {r["key"] for r in requirements}
        ),
        *requirements,
    ]
    if metadata is not None:
        inside["metadata"] = metadata
    return made


def require(key: str, operator: str, *values: str, **more: Any) -> dict[str, Any]:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {}), **more}


def pod(name: str, cpu: str = "500m", labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """A pod of its own; `annotations` go into its metadata, all else into its spec."""
    metadata = {"name": name, "namespace": "default", "labels": {"app": name, **(labels or {})}}
    if "annotations" in spec:
        metadata["annotations"] = spec.pop("annotations")
    container = {"name": "c", "image": "pause", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
    if "ports" in spec:
        container["ports"] = spec.pop("ports")
    filled = {"terminationGracePeriodSeconds": 0, "containers": [container], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": filled}


def workload(name: str, replicas: int, cpu: str = "500m", **spec: Any) -> dict[str, Any]:
    """A Deployment of such pods."""
    template = pod(name, cpu, **spec)
    inside = {
        "metadata": {key: template["metadata"][key] for key in ("labels", "annotations") if key in template["metadata"]}
    }
    return deployment_of(name, replicas, {**inside, "spec": template["spec"]})


def budget(app: str, **spec: Any) -> dict[str, Any]:
    """A PodDisruptionBudget over an app's pods."""
    filled = {"selector": {"matchLabels": {"app": app}}, **spec}
    metadata = {"name": app, "namespace": "default"}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": filled}


def names(documents: list[dict[str, Any]]) -> set[str]:
    return {document["metadata"]["name"] for document in documents}
