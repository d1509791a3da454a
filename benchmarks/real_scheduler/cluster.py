"""A real kube-scheduler that is given nodes and then pods, and what it makes of them.

Only etcd, the API server and the scheduler run: nodes need nobody to be ready, and a pod is bound when it has a node.
The scheduler is paused while pods are made, so that it comes to all of them at once, in the order in which they were
made. The place of a provisioner of volumes is taken here.
"""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from msgspec import Struct

from benchmarks.real_scheduler.objects import VOLUME_BOUND, ComingNode, Document, Key, PlannedPod, Stage, key_of
from kerf.adapters.kubernetes.objects.pod_nominations import (
    MAX_REQUESTS_UNDER_WAY,
    MAX_SECONDS_TO_SETTLE,
    SECONDS_TO_SETTLE,
)
from kerf.engine.model.labels import UNREGISTERED_TAINT, ZONE
from kerf.engine.runtime.pod_nominations import MAX_TIMES_TOLD
from kerf.engine.scheduling.pods.told_at_once import ToldAtOnce, labels_of_all
from tests.support.controlplane.plane import ControlPlane, collection

FLAGS = {
    "kube-apiserver": (
        # Both want a controller manager: one to take a taint off new nodes, one to take finalizers off volumes.
        "--disable-admission-plugins=TaintNodesByCondition,StorageObjectInUseProtection",
        "--feature-gates=TaintTolerationComparisonOperators=true",
    ),
    "kube-scheduler": ("--feature-gates=TaintTolerationComparisonOperators=true",),
}
SENTINEL = "kerf-sentinel"
"""A node that one pod fills, which nothing else concerns: when that is bound, the scheduler knows all before it."""
UNREGISTERED = {"key": UNREGISTERED_TAINT, "effect": "NoExecute"}
SELECTED_NODE = "volume.kubernetes.io/selected-node"
WAITING = 30.0  # seconds that the scheduler may take to come to a pod
PAUSE = 0.05
UNBOUND = "/api/v1/pods?fieldSelector=spec.nodeName%3D"
NOW = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}


Planned = Callable[[Mapping[Key, str]], Sequence[ComingNode]]
"""Plans for the pods that are left, once others are bound to these nodes."""


class Refused(Exception):
    """The API server does not take an object."""


class SchedulingOutcome(Struct, frozen=True):
    """The node of each pod that was bound, in the order in which they were, and what the scheduler says of others."""

    bindings: dict[Key, str]
    words: dict[Key, str]


class Cluster:
    """`plane` is made with FLAGS and started by `start_scheduling`. `still`: seconds in which nothing is bound before
    it is believed that nothing will be."""

    def __init__(self, plane: ControlPlane, still: float) -> None:
        self._plane, self._still = plane, still
        self._connection = plane.connection()
        self._threads = ThreadPoolExecutor(MAX_REQUESTS_UNDER_WAY)
        self._idle = [plane.connection() for _ in range(MAX_REQUESTS_UNDER_WAY)]  # each thread takes one at a time
        self._made: list[Document] = []
        self._there: dict[str, ComingNode] = {}
        self._planned: dict[Key, PlannedPod] = {}
        self._place_of: dict[Key, str] = {}  # the node that a planned pod waits for, until it is bound
        self._times = Counter[Key]()  # how often pods were told nodes that are open
        self._told: dict[Key, str] = {}  # the node that a pod was told
        self._open: set[str] = set()  # names of nodes that came and take pods
        self._at_once = ToldAtOnce()
        self._turn = 0

    def carried_out(
        self, stage: Stage, expected: Callable[[], Collection[Key]], planned: Planned | None = None
    ) -> SchedulingOutcome:
        """What becomes of the pods that wait; returns as soon as those expected are bound, or nothing happens any more.
        `planned` gives the nodes that come once the scheduler has refused the pods that are left. Raises Refused. The
        cluster is empty before and after."""
        try:
            for manifest in stage.before:
                self._make(manifest)
            for namespace, name in stage.ending:
                self._call("DELETE", f"/api/v1/namespaces/{namespace}/pods/{name}")
            self._until_known()
            self._plane.signal_process("kube-scheduler", signal.SIGSTOP)
            try:
                uids = {key_of(manifest): self._make(manifest)["metadata"]["uid"] for manifest in stage.waiting}
                for key, claim in stage.ephemeral:
                    self._make(_owned(claim, key, uids))
            finally:
                self._plane.signal_process("kube-scheduler", signal.SIGCONT)
            volumes = any("volumes" in pod["spec"] for pod in stage.waiting)
            if planned is not None:
                self._until_refused(volumes)
                self._come(planned(self._outcome(frozenset(uids)).bindings))
            self._until_still(frozenset(expected()), volumes)
            return self._outcome(frozenset(uids))
        finally:
            self._clear()

    def close(self) -> None:
        self._threads.shutdown()
        for connection in (self._connection, *self._idle):
            connection.close()

    # ── inside ──────────────────────────────────────

    def _make(self, document: Document) -> Document:
        path = collection(document)
        status, answer = self._call("POST", path, document)
        if status == 409 and document["kind"] == "Namespace":  # it would take a controller to delete one
            status, answer = self._call("PUT", f"{path}/{document['metadata']['name']}", document)
        if status not in (200, 201):
            raise Refused(f"{document['kind']} {document['metadata']['name']}: {answer.get('message', status)}")
        self._made.append(document)
        return dict(answer)

    def _until_refused(self, volumes: bool) -> None:
        """Until the scheduler has come to all pods that wait."""
        until = time.monotonic() + WAITING
        while not all(map(_refused, self._items(UNBOUND))) and time.monotonic() < until:
            if volumes:
                self._provisioned()
            time.sleep(PAUSE)

    def _come(self, coming: Sequence[ComingNode]) -> None:
        """Nodes join together as with kerf: closed, until their pods have been told them and kube-scheduler has got
        over their coming. Then all open at the same moment, those of the first pods first (`NodeOpenings`)."""
        for each in coming:
            taints = [*each.node["spec"]["taints"], UNREGISTERED]
            self._make({**each.node, "spec": {**each.node["spec"], "taints": taints}})
            for pod in each.daemon_pods:
                self._make(pod)
            self._there[_name(each)] = each
            self._planned |= {pod.key: pod for pod in each.pods}
            self._place_of |= {pod.key: _name(each) for pod in each.pods}
        shapes = {digest: shape for each in coming for digest, shape in each.shapes.items()}
        nodes = (made for made in self._made if made["kind"] == "Node" and made["metadata"]["name"] != SENTINEL)
        self._at_once = ToldAtOnce(labels_of_all(shapes.values(), (node["metadata"]["labels"] for node in nodes)))
        self._tell(self._items(UNBOUND))
        if self._told:
            self._until_settled()
        self._tell(self._items(UNBOUND), coming)
        first_pods = {_name(each): min((pod.place for pod in each.pods), default=()) for each in coming}
        self._patch_all(
            (f"/api/v1/nodes/{_name(each)}", {"spec": {"taints": each.node["spec"]["taints"]}})
            for each in sorted(coming, key=lambda each: first_pods[_name(each)])
        )
        self._open |= {_name(each) for each in coming}

    def _until_settled(self) -> None:
        """Until the scheduler clears no nominations and binds no pods any more (`Nominations.settled`)."""
        began = since = time.monotonic()
        before: dict[Key, bool] = {}
        while time.monotonic() < min(since + SECONDS_TO_SETTLE, began + MAX_SECONDS_TO_SETTLE):
            now = {key_of(pod): "nominatedNodeName" in pod.get("status", {}) for pod in self._items(UNBOUND)}
            if any(key not in now or (is_told and not now[key]) for key, is_told in before.items()):
                since = time.monotonic()
            before = now
            time.sleep(PAUSE)

    def _tell(self, unbound: Iterable[Document], opening: Collection[ComingNode] = ()) -> None:
        """Tell pods their planned nodes (KEP-5278), again if the scheduler has cleared it, as
        engine/runtime/pod_nominations.py does: those of the nodes that open, and those of nodes that are open."""
        shown = {key_of(pod): pod.get("status", {}).get("nominatedNodeName", "") for pod in unbound}
        self._exchange_places(shown)
        waiting: dict[str, list[PlannedPod]] = {name: [] for name in self._there}
        for key, name in self._place_of.items():
            if key in shown:
                waiting[name].append(self._planned[key])
        due: list[tuple[str, Document]] = []
        for name, coming in self._there.items():
            waiting[name].sort(key=lambda pod: (shown[pod.key] != name, pod.place))
            for pod in self._at_once.of(waiting[name], coming.shapes.__getitem__):
                is_news = self._told.get(pod.key) != name or coming in opening
                again = name in self._open and self._times[pod.key] < MAX_TIMES_TOLD
                is_free = not shown[pod.key] or name != shown[pod.key] == self._told.get(pod.key)
                if is_free and (is_news or again):
                    self._told[pod.key] = name
                    self._times[pod.key] += name in self._open
                    path = f"/api/v1/namespaces/{pod.key[0]}/pods/{pod.key[1]}/status"
                    due.append((path, {"status": {"nominatedNodeName": name}}))
        self._patch_all(due, refused=422)  # it is bound meanwhile

    def _exchange_places(self, waiting: Container[Key]) -> None:
        """A pod that is bound to another node than planned leaves its place to a pod like it that waits for that node,
        as in engine/state/pods/targets.py."""
        if all(key in waiting for key in self._place_of):
            return
        for key, node in self._outcome(frozenset(self._place_of)).bindings.items():
            left = self._place_of.pop(key)
            kind = self._planned[key].kind
            alike = [
                self._planned[other]
                for other, place in self._place_of.items()
                if place == node != left and other in waiting and self._planned[other].kind == kind
            ]
            if alike:
                self._place_of[max(alike, key=lambda pod: pod.place).key] = left

    def _patch_all(self, patches: Iterable[tuple[str, Document]], refused: int = 200) -> None:
        """Several at a time, as kerf does. `refused`: a status that is as good as success."""

        def patch(asked: tuple[str, Document]) -> None:
            connection = self._idle.pop()
            status, answer = self._call("PATCH", *asked, "application/merge-patch+json", connection)
            self._idle.append(connection)
            if status not in (200, refused):
                raise Refused(f"{asked[0]}: {answer.get('message', status)}")

        list(self._threads.map(patch, patches))

    def _until_known(self) -> None:
        self._turn += 1
        self._make(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": SENTINEL},
                "spec": {"taints": [{"key": SENTINEL, "effect": "NoSchedule"}]},
                "status": {"allocatable": {"pods": "1"}, "capacity": {"pods": "1"}},
            }
        )
        self._make({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SENTINEL}})
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [SENTINEL]}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{SENTINEL}-{self._turn}", "namespace": SENTINEL},
            "spec": {
                "containers": [{"name": "x", "image": "x"}],
                "tolerations": [{"operator": "Exists"}],
                "affinity": {"nodeAffinity": required},
            },
        }
        self._make(pod)
        path = f"{collection(pod)}/{SENTINEL}-{self._turn}"
        until = time.monotonic() + WAITING
        while not self._get(path)["spec"].get("nodeName"):
            if time.monotonic() > until:
                raise AssertionError(f"the scheduler does not move:\n{self._plane.log('kube-scheduler')}")
            time.sleep(PAUSE)

    def _until_still(self, expected: frozenset[Key], volumes: bool) -> None:
        waiting: list[Document] = []
        since = time.monotonic()
        while time.monotonic() < since + self._still:
            answer = self._items(UNBOUND)
            if volumes and self._provisioned():
                since = time.monotonic()
            if not any(key_of(pod) in expected for pod in answer):
                return
            self._tell(answer)
            if len(answer) != len(waiting) or not all(map(_refused, answer)):
                waiting, since = answer, time.monotonic()
            time.sleep(PAUSE)

    def _outcome(self, pods: frozenset[Key]) -> SchedulingOutcome:
        there = [pod for pod in self._items("/api/v1/pods") if key_of(pod) in pods]
        bound = [pod for pod in there if pod["spec"].get("nodeName")]
        bound.sort(key=lambda each: int(each["metadata"]["resourceVersion"]))
        return SchedulingOutcome(
            {key_of(pod): pod["spec"]["nodeName"] for pod in bound},
            {key_of(pod): _last_word(pod) for pod in there if not pod["spec"].get("nodeName")},
        )

    def _provisioned(self) -> bool:
        """Whether claims have got the volumes that the scheduler has chosen, or chosen a node for."""
        claims = [
            volume_claim
            for volume_claim in self._items("/api/v1/persistentvolumeclaims")
            if not volume_claim["spec"].get("volumeName")
        ]
        volumes = {
            key_of({"metadata": volume["spec"]["claimRef"]}): volume["metadata"]["name"]
            for volume in (self._items("/api/v1/persistentvolumes") if claims else ())
            if "claimRef" in volume["spec"]
        }
        done = False
        for claim in claims:
            node = claim["metadata"].get("annotations", {}).get(SELECTED_NODE)
            name = volumes.get(key_of(claim))
            if name is None and node:
                name = self._make(self._volume(claim, node))["metadata"]["name"]
            if name is not None:
                self._bind(claim, name)
                done = True
        return done

    def _volume(self, claim: Document, node: str) -> Document:
        namespace, name = key_of(claim)
        zone = self._get(f"/api/v1/nodes/{node}")["metadata"]["labels"].get(ZONE)
        terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}]
        return {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"made-{namespace}-{name}"},
            "spec": {
                "accessModes": claim["spec"]["accessModes"],
                "capacity": claim["spec"]["resources"]["requests"],
                "storageClassName": claim["spec"].get("storageClassName", ""),
                "claimRef": {"kind": claim["kind"], "namespace": namespace, "name": name},
                "csi": {"driver": "made.example.com", "volumeHandle": name},
                **({"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}} if zone else {}),
            },
        }

    def _bind(self, claim: Document, volume: str) -> None:
        annotations = {**claim["metadata"].get("annotations", {}), VOLUME_BOUND: "yes"}
        metadata = {**claim["metadata"], "annotations": annotations}
        namespace, name = key_of(claim)
        path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}"
        self._call("PUT", path, {**claim, "metadata": metadata, "spec": {**claim["spec"], "volumeName": volume}})

    def _clear(self) -> None:
        by_path = {collection(made): made for made in self._made if made["kind"] != "Namespace"}
        for path, manifest in reversed(by_path.items()):  # pods before nodes: no pod gets a place for what is gone
            if manifest["kind"] in ("PriorityClass", "RuntimeClass"):  # there are others
                for one in (one for one in self._made if one["kind"] == manifest["kind"]):
                    self._call("DELETE", f"{path}/{one['metadata']['name']}")
            else:
                self._call("DELETE", path, NOW)
        self._made.clear()
        self._there.clear()
        self._planned.clear()
        self._place_of.clear()
        self._times.clear()
        self._told.clear()
        self._open.clear()

    def _items(self, path: str) -> list[Document]:
        """With their kind, which a list leaves out."""
        answer = self._get(path)
        kind = answer["kind"].removesuffix("List")
        return [{"apiVersion": answer["apiVersion"], "kind": kind, **item} for item in answer["items"]]

    def _get(self, path: str) -> Any:
        status, answer = self._call("GET", path)
        if status != 200:
            raise AssertionError(f"GET {path}: {status} {answer}")
        return answer

    def _call(
        self,
        method: str,
        path: str,
        body: object = None,
        form: str = "application/json",
        connection: HTTPConnection | None = None,
    ) -> tuple[int, Any]:
        connection = connection or self._connection
        headers = {"Authorization": f"Bearer {self._plane.token}", "Content-Type": form}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())


def plane_in(binaries: Path, folder: Path) -> ControlPlane:
    """One for a `Cluster`, not started."""
    return ControlPlane(binaries, folder, flags=FLAGS)


def _name(coming: ComingNode) -> str:
    return str(coming.node["metadata"]["name"])


def _owned(claim: Document, pod: Key, uids: Mapping[Key, str]) -> Document:
    if pod not in uids:
        return claim
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod[1], "uid": uids[pod], "controller": True}
    return {**claim, "metadata": {**claim["metadata"], "ownerReferences": [owner]}}


def _condition(pod: Document) -> Document:
    conditions = pod.get("status", {}).get("conditions") or []
    answer: Document = next((condition for condition in conditions if condition["type"] == "PodScheduled"), {})
    return answer


def _refused(pod: Document) -> bool:
    return _condition(pod).get("status") == "False"


def _last_word(pod: Document) -> str:
    return str(_condition(pod).get("message", ""))
