"""Turn a planned scenario into objects of a real cluster: what exists, the nodes of the plan, and the pods that wait.

Planned nodes are as in `kube_scheduler.node_info.planned_node`: the cheapest type of a claim, with its cheapest
offering. Nodes carry the labels that a kubelet and a cloud's controllers add, and a pod of each DaemonSet that runs on
them. Nodes that leave are cordoned; pods that have to move wait for a place, the others stay.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from kerf.engine.model.karpenter.requirements import Requirements
from kerf.engine.model.kubernetes.pods import PodShape, Resources, Taint
from kerf.engine.model.labels import ALIASES, HOSTNAME
from kerf.engine.scheduling.kube_scheduler.node_info import planned_node
from kerf.engine.scheduling.kube_scheduler.scheduler import new_node_name
from kerf.engine.scheduling.launchable.daemons import daemon_of_shape, daemons, reserved_for_daemons
from kerf.engine.scheduling.matching.resources import total
from kerf.engine.scheduling.plan import OpenedClaim, Plan
from kerf.engine.scheduling.problem.problem import NodeInput, PendingPod, Problem
from kerf.replay.scenarios.pods import with_defaults

Document = dict[str, Any]
Key = tuple[str, str]
"""The namespace and the name of a pod."""
ORDERS = ("age", "file", "name")
"""By creationTimestamp and then as in the file; as in the file; by name, numbers as text."""
DISRUPTED = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}
STORAGE = "storage.k8s.io/v1"
OF_CLUSTER = (
    ("storageClasses", STORAGE, "StorageClass"), ("pvs", "v1", "PersistentVolume"), ("csiNodes", STORAGE, "CSINode"),
)  # fmt: skip
VOLUME_BOUND = "pv.kubernetes.io/bind-completed"


class PlannedPod(Struct, frozen=True):
    """A pod that is told its node. `place`: in the queue. `shape`: the digest of its PodShape."""

    key: Key
    place: tuple[int, ...]
    namespace: str
    shape: str

    @property
    def kind(self) -> tuple[str, str]:
        return self.namespace, self.shape


class ComingNode(Struct, frozen=True):
    """A planned node that comes when pods wait already: its daemons' pods, and the pods that are told it, with their
    shapes by digest."""

    node: Document
    daemon_pods: tuple[Document, ...]
    pods: tuple[PlannedPod, ...]
    shapes: Mapping[str, PodShape]


class Stage(Struct, frozen=True):
    """`before`: what is there before pods wait, in the order in which it is made; `waiting`: the pods that wait;
    `ending`: bound pods that are being deleted; `ephemeral`: claims that are made for a pod, and are its."""

    before: tuple[Document, ...]
    waiting: tuple[Document, ...]
    ending: tuple[Key, ...]
    ephemeral: tuple[tuple[Key, Document], ...]


def node_name(number: int) -> str:
    """Of a planned claim, in its order. The scheduler takes names for nothing."""
    return new_node_name(number).lstrip("~")


def obstacle(scenario: Mapping[str, Any], problem: Problem) -> str:
    """Why it cannot be put on a cluster; "" if it can."""
    if any(pod.virtual for pod in problem.pods):
        return "its CapacityBuffers stand for pods that nobody makes"
    if any(pod.device_claims for pod in problem.pods) or scenario.get("resourceSlices"):
        return "its devices would need drivers"
    names = Counter(node.name for node in (*problem.nodes, *problem.leaving))
    if any(count > 1 for count in names.values()):
        return "two of its nodes have one name"
    return ""


def stage(
    scenario: Mapping[str, Any],
    problem: Problem,
    plan: Plan,
    order: str,
    *,
    planned_only: bool = False,
    services: bool = False,
    nominate: bool = False,
) -> Stage:
    """`order` is one of ORDERS; `planned_only`: pods that the plan has no place for are not made; `services`: there is
    a Service for each set of labels that pods have; `nominate`: the planned nodes come later (`coming_nodes`)."""
    pods = _pods(scenario)
    sets = _daemon_sets(scenario, problem)
    bound = [_pod_document(pods[pod.uid], pod.node) for pod in problem.bound]
    nodes = [*_existing(scenario, problem), *(() if nominate else _planned(problem, plan))]
    owned = {(pod.node, owner) for pod in problem.bound for owner in _daemon_sets_of(pods[pod.uid])}
    daemon_pods = [pod for node in nodes for pod in _daemon_pods(node, sets, problem, owned)]
    given = [pod for pod in problem.pods if not planned_only or pod.uid in plan.placed]
    waiting = [_pod_document(pods[pod.uid]) for pod in _in_order(given, pods, order)]
    ephemeral = [(key_of(pod), claim) for pod in (*bound, *waiting) for claim in _ephemeral(pod)]
    listed = {key_of(claim): claim for claim in _claims(scenario)}
    own = {key_of(claim) for _, claim in ephemeral}
    templates = [
        _pod_document({**document["spec"]["template"], "metadata": document["metadata"]}) for document, _ in sets
    ]
    made = [*_namespaces(scenario, problem, [*bound, *waiting, *templates]), *_volumes(scenario)]
    made += [claim for key, claim in listed.items() if key not in own]
    made += _classes([*bound, *waiting, *templates])
    made += _services([*bound, *waiting]) if services else ()
    return Stage(
        before=(*made, *nodes, *bound, *daemon_pods),
        waiting=tuple(waiting),
        ending=tuple(key_of(doc) for doc, pod in zip(bound, problem.bound, strict=True) if pod.terminating),
        ephemeral=tuple((pod, listed.get(key_of(claim), claim)) for pod, claim in ephemeral),
    )


def coming_nodes(scenario: Mapping[str, Any], problem: Problem, plan: Plan) -> tuple[ComingNode, ...]:
    """The planned nodes, for pods that are told them."""
    sets = _daemon_sets(scenario, problem)
    return tuple(
        ComingNode(node, tuple(_daemon_pods(node, sets, problem, ())), _planned_pods(problem, claim), problem.shapes)
        for node, claim in zip(_planned(problem, plan), plan.claims, strict=True)
    )


def _daemon_sets(scenario: Mapping[str, Any], problem: Problem) -> list[tuple[Document, str]]:
    return list(zip(scenario.get("daemonSets") or [], problem.daemons, strict=True))


def _planned_pods(problem: Problem, claim: OpenedClaim) -> tuple[PlannedPod, ...]:
    """The pods of a claim, in the order in which they are made."""
    pods = {pod.uid: pod for pod in problem.pods}
    planned = []
    for pod in sorted(map(pods.__getitem__, claim.pods), key=lambda each: (each.created, each.arrival)):
        place = -problem.shapes[pod.shape].priority, pod.created, pod.arrival
        planned.append(PlannedPod((pod.namespace, pod.name), place, pod.namespace, pod.shape))
    return tuple(planned)


def key_of(pod: Document) -> Key:
    return pod["metadata"].get("namespace", "default"), pod["metadata"]["name"]


# ── nodes ──────────────────────────────────────


def _existing(scenario: Mapping[str, Any], problem: Problem) -> Iterator[Document]:
    cordoned = {
        entry["node"]["metadata"]["name"]
        for entry in scenario.get("nodes") or []
        if entry.get("node") and entry["node"].get("spec", {}).get("unschedulable")
    }
    for leaving, nodes in ((False, problem.nodes), (True, problem.leaving)):
        for node in nodes:
            there = _used_on(node, problem)
            taints = [*map(_taint, node.taints), *([DISRUPTED] if leaving else [])]
            amounts = {name: max(0, n + there.get(name, 0)) for name, n in node.available.items()}
            yield _node(node.name, node.labels, taints, amounts, cordoned=leaving or node.name in cordoned)


def _used_on(node: NodeInput, problem: Problem) -> Resources:
    return total({**problem.shapes[pod.shape].requests, "pods": 1} for pod in problem.bound if pod.node == node.name)


def _planned(problem: Problem, plan: Plan) -> Iterator[Document]:
    given = daemons(problem.daemons, problem.shapes, problem.settings.ignore_dra_requests)
    for number, claim in enumerate(plan.claims):
        node = planned_node(node_name(number), claim, given, problem)
        waiting = reserved_for_daemons(given, node.taints, Requirements.of_labels(node.labels), {})
        amounts = {name: free + waiting.get(name, 0) for name, free in node.free.items()}
        yield _node(node.name, node.labels, [_taint(taint) for taint in node.taints], amounts)


def _node(
    name: str, labels: Mapping[str, str], taints: list[Document], amounts: Resources, *, cordoned: bool = False
) -> Document:
    aliases = {alias: labels[key] for alias, key in ALIASES.items() if key in labels}
    distinct = {(taint["key"], taint["effect"]): taint for taint in taints}
    quantities = {key: f"{n}m" if key == "cpu" else str(n) for key, n in amounts.items()}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOSTNAME: name, **aliases, **labels}},
        "spec": {"taints": list(distinct.values()), **({"unschedulable": True} if cordoned else {})},
        "status": {
            "allocatable": quantities,
            "capacity": quantities,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _taint(taint: Taint) -> Document:
    return {"key": taint.key, "value": taint.value, "effect": taint.effect}


def _daemon_pods(
    node: Document, sets: Iterable[tuple[Document, str]], problem: Problem, owned: Collection[tuple[str, str]]
) -> Iterator[Document]:
    """Those that a node has not got yet. `owned`: nodes, and the DaemonSets that have a pod there."""
    name, labels = node["metadata"]["name"], Requirements.of_labels(node["metadata"]["labels"])
    told = [taint for taint in node["spec"]["taints"] if taint != DISRUPTED]
    taints = tuple(Taint(taint["key"], taint.get("value", ""), taint["effect"]) for taint in told)
    for document, shape in sets:
        own = document["metadata"]
        if (name, own["name"]) not in owned and daemon_of_shape(problem.shapes[shape]).expected_on(taints, labels):
            template = document["spec"]["template"]
            named = {"name": f"{own['name']}-{name}", "namespace": own.get("namespace", "default")}
            metadata = {**template.get("metadata", {}), **named}
            yield _pod_document({"metadata": metadata, "spec": template["spec"]}, name)


# ── pods ──────────────────────────────────────


def _pods(scenario: Mapping[str, Any]) -> dict[str, Document]:
    """By uid, in the scenario's order, with the defaults of docs/plan.md, section 1.1."""
    now = str(scenario.get("now", "1970-01-01T00:00:00Z"))
    waiting = [with_defaults(pod, now, bound=False) for pod in scenario.get("pods") or []]
    there = [pod for node in scenario.get("nodes") or [] for pod in node.get("pods") or []]
    every = [*waiting, *(with_defaults(pod, now, bound=True) for pod in there)]
    return {pod["metadata"]["uid"]: pod for pod in every}


def _in_order(pods: Iterable[PendingPod], documents: Mapping[str, Document], order: str) -> list[PendingPod]:
    turn = {uid: number for number, uid in enumerate(documents)}
    if order == "name":
        return sorted(pods, key=lambda each: (each.namespace, each.name))
    return sorted(pods, key=lambda each: (each.created if order == "age" else 0, turn[each.uid]))


def _pod_document(pod: Document, node: str = "") -> Document:
    """As one makes it: nobody has set anything in it, but perhaps its node. A scenario may leave images out."""
    metadata = {key: pod["metadata"][key] for key in ("name", "namespace", "labels") if key in pod["metadata"]}
    spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
    for field in ("containers", "initContainers"):
        if field in spec:
            spec[field] = [{"image": "none", **container} for container in spec[field]]
    if "priority" in spec:
        spec.setdefault("priorityClassName", f"priority-{spec['priority']}")
    if "overhead" in spec:
        spec.setdefault("runtimeClassName", "overhead")
    if node:
        spec["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _daemon_sets_of(pod: Document) -> list[str]:
    return [
        owner_reference["name"]
        for owner_reference in pod["metadata"].get("ownerReferences") or []
        if owner_reference.get("kind") == "DaemonSet"
    ]


def _ephemeral(pod: Document) -> Iterator[Document]:
    for volume in pod["spec"].get("volumes") or []:
        if "ephemeral" in volume:
            namespace, name = key_of(pod)
            yield {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": f"{name}-{volume['name']}", "namespace": namespace},
                "spec": volume["ephemeral"]["volumeClaimTemplate"]["spec"],
            }


# ── what pods refer to, and what refers to them ──────────────────────────────────────


def _services(pods: Iterable[Document]) -> Iterator[Document]:
    sets = {(key_of(pod)[0], tuple(sorted((pod["metadata"].get("labels") or {}).items()))) for pod in pods}
    for number, (namespace, labels) in enumerate(sorted(sets)):
        if labels:
            metadata = {"name": f"service-{number}", "namespace": namespace}
            spec = {"selector": dict(labels), "clusterIP": "None"}
            yield {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def _namespaces(scenario: Mapping[str, Any], problem: Problem, pods: Iterable[Document]) -> Iterator[Document]:
    listed = {namespace.name: namespace.labels for namespace in problem.namespaces}
    claims = {pvc["metadata"].get("namespace", "default") for pvc in scenario.get("pvcs") or []}
    for name in sorted({*listed, *claims, *(key_of(pod)[0] for pod in pods)}):
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": listed.get(name, {})}}


def _volumes(scenario: Mapping[str, Any]) -> Iterator[Document]:
    """Classes, volumes and the limits of nodes."""
    owners = {claim["spec"]["volumeName"]: claim["metadata"] for claim in _claims(scenario) if _is_bound(claim)}
    for field, version, kind in OF_CLUSTER:
        for document in scenario.get(field) or []:
            made = _object_document(document, version, kind, "namespace")
            owner = owners.get(document["metadata"]["name"]) if kind == "PersistentVolume" else None
            if owner is not None:
                reference = {"kind": "PersistentVolumeClaim", **{key: owner[key] for key in ("namespace", "name")}}
                made["spec"] = {**made["spec"], "claimRef": reference}
            yield made


def _claims(scenario: Mapping[str, Any]) -> Iterator[Document]:
    for pvc in scenario.get("pvcs") or []:
        made = _object_document(pvc, "v1", "PersistentVolumeClaim")
        bound = {"annotations": {VOLUME_BOUND: "yes"}} if _is_bound(pvc) else {}
        yield {**made, "metadata": {"namespace": "default", **made["metadata"], **bound}}


def _is_bound(claim: Document) -> bool:
    return bool(claim["spec"].get("volumeName"))


def _object_document(document: Document, version: str, kind: str, *without: str) -> Document:
    metadata = {key: value for key, value in document["metadata"].items() if key not in ("uid", *without)}
    rest = {key: value for key, value in document.items() if key not in ("metadata", "status")}
    return {**rest, "apiVersion": version, "kind": kind, "metadata": metadata}


def _classes(pods: Iterable[Document]) -> Iterator[Document]:
    """PriorityClasses and RuntimeClasses."""
    specs = [pod["spec"] for pod in pods]
    priorities = {spec["priorityClassName"]: spec.get("priority", 0) for spec in specs if "priorityClassName" in spec}
    overheads = {spec["runtimeClassName"]: spec.get("overhead") for spec in specs if "runtimeClassName" in spec}
    for name, value in priorities.items():
        if not name.startswith("system-"):
            yield _object_document(
                {"metadata": {"name": name}, "value": value}, "scheduling.k8s.io/v1", "PriorityClass"
            )
    for name, overhead in overheads.items():
        more = {"overhead": {"podFixed": overhead}} if overhead else {}
        yield _object_document({"metadata": {"name": name}, "handler": "x", **more}, "node.k8s.io/v1", "RuntimeClass")
