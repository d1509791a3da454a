"""The scale-in that the reference was measured with (one NodePool, ten Deployments of 50 pods, all scaled to 15 at
once), a wave that comes every day, and a state of many nodes for one pass."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from kerf.adapters.kwok.catalogue import built_in
from kerf.adapters.simulation.timing import Timing
from kerf.engine.model import labels as lbl
from kerf.engine.model.content_digest import content
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.karpenter.nodepools import Budget, NodeClassRef, NodePool, RequirementSpec
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import Owner, Pod, PodShape
from kerf.engine.record.claim_events import Adopted
from kerf.engine.record.observations import CatalogueSeen, NodeClassSeen, RecordStarted
from kerf.engine.runtime.turn_draft import TurnDraft
from kerf.engine.state.indexes import Blobs
from kerf.engine.state.state import Facts, State

SCALE = Path(__file__).with_name("scale-500.json")
"""One NodePool of the default budget, a KWOKNodeClass, and ten Deployments of 50 replicas."""
LEFT = 15
"""Replicas of each Deployment after the scale-in."""
REFERENCE = (
    (0, 10.25), (20, 10.25), (38, 9.83), (54, 9.73), (67, 9.45), (70, 8.97), (99, 8.53), (131, 8.28), (161, 6.62),
    (163, 3.58), (193, 3.52), (257, 3.38), (318, 3.25), (366, 3.17), (414, 3.08),
)  # fmt: skip
"""The reference's course on a real control plane of two cores: seconds after the scale-in, USD per hour."""
AS_KWOK = Timing(
    join=0, join_jitter=0, ready=1_000, pod_start=1_000, pod_stop=0, running=1_000, shutdown=1_000, launch=500
)
"""Nodes are there at once and ready a second later, as fake nodes on a control plane are."""
START = 1_767_225_600_000
QUIET = 100_000  # ms
NODE_CLASS = NodeClassRef("karpenter.k8s.aws", "EC2NodeClass", "default")


def scale_in(at: str, budget: str) -> list[dict[str, Any]]:
    """The documents, with a Timeline that scales in at `at`."""
    documents = [*before(budget), *node_class()]
    return [
        *documents,
        _timeline([_scale(at, document, LEFT) for document in documents if document["kind"] == "Deployment"]),
    ]


def after_scale_in() -> list[dict[str, Any]]:
    """A cluster that never had more than the pods that stay."""
    documents = before("0")
    for document in documents:
        if document["kind"] == "Deployment":
            document["spec"]["replicas"] = LEFT
    return [*documents, *node_class()]


def before(budget: str) -> list[dict[str, Any]]:
    """The workload's NodePool, for the virtual cloud's NodeClass, and its Deployments."""
    found: list[dict[str, Any]] = json.loads(SCALE.read_text())["items"]
    for manifest in found:
        if manifest["kind"] == "NodePool":
            ref = {"group": NODE_CLASS.group, "kind": NODE_CLASS.kind, "name": NODE_CLASS.name}
            manifest["spec"]["template"]["spec"]["nodeClassRef"] = ref
            manifest["spec"]["disruption"]["budgets"] = [{"nodes": budget}]
    return [manifest for manifest in found if manifest["kind"] != "KWOKNodeClass"]


def daily_wave(days: int, low: int, high: int) -> list[dict[str, Any]]:
    """The same Deployments with `high` replicas each from eight to eight o'clock, `low` by night."""
    documents = [*before("10%"), *node_class()]
    deployments = [document for document in documents if document["kind"] == "Deployment"]
    for deployment in deployments:
        deployment["spec"]["replicas"] = low
    hours = ((24 * day + hour, size) for day in range(days) for hour, size in ((8, high), (20, low)))
    return [
        *documents,
        _timeline([_scale(f"{at}h", deployment, size) for at, size in hours for deployment in deployments]),
    ]


def _scale(at: str, deployment: dict[str, Any], replicas: int) -> dict[str, Any]:
    meta = deployment["metadata"]
    return {"at": at, "action": "scale", "namespace": meta["namespace"], "name": meta["name"], "replicas": replicas}


def _timeline(actions: list[dict[str, Any]]) -> dict[str, Any]:
    spec = {"actions": actions}
    return {"apiVersion": "kerf.dev/v1alpha1", "kind": "Timeline", "metadata": {"name": "benchmark"}, "spec": spec}


def node_class() -> list[dict[str, Any]]:
    terms = [{"tags": {"a": "b"}}]
    spec = {
        "amiSelectorTerms": [{"alias": "al2023@latest"}], "role": "kerf", "subnetSelectorTerms": terms,
        "securityGroupSelectorTerms": terms,
    }  # fmt: skip
    version = f"{NODE_CLASS.group}/v1"
    return [{"apiVersion": version, "kind": NODE_CLASS.kind, "metadata": {"name": NODE_CLASS.name}, "spec": spec}]


def many_nodes(
    nodes: int, pods: int, *, still: bool, catalogue: Catalogue | None = None, instance_type: str = ""
) -> tuple[State, int]:
    """A state of half-filled nodes with so many pods each of 40 workloads, and a time at which they are quiet.

    `still`: their NodePool lets none of them go. All nodes have one type of 8 CPUs: the first of KWOK's catalogue, or
    `instance_type` of the catalogue that is given."""
    catalogue = built_in() if catalogue is None else catalogue
    digest, dice = content(catalogue)[0], random.Random(nodes)
    draft = TurnDraft(State(Facts(), Blobs(_nothing)), START)
    draft.add(RecordStarted("benchmark", "benchmark"))
    draft.add(NodeClassSeen(NODE_CLASS.group, NODE_CLASS.kind, NODE_CLASS.name, ready=True))
    draft.add(CatalogueSeen(NODE_CLASS.key, digest), blobs={digest: catalogue})
    requirements = (RequirementSpec(lbl.CAPACITY_TYPE, "In", ("on-demand",)),)
    after = None if still else 10_000
    draft.add(NodePool("default", NODE_CLASS, requirements=requirements, consolidate_after=after, budgets=(Budget(),)))
    kind = next(
        offered_type
        for offered_type in catalogue.types
        if (offered_type.name == instance_type if instance_type else offered_type.capacity["cpu"] == 8_000)
    )
    price = min(offer.price for offer in kind.offerings if offer.capacity_type == "on-demand")
    shapes = [PodShape(requests={"cpu": 10 * n, "memory": n << 24}, labels={"app": f"a{n}"}) for n in range(1, 41)]
    zones = sorted({offer.zone for offer in kind.offerings})
    for number in range(nodes):
        node, zone = f"node-{number:05}", zones[number % len(zones)]
        provider = f"kwok://{node}"
        labels = {
            lbl.NODEPOOL: "default", lbl.INSTANCE_TYPE: kind.name, lbl.ZONE: zone, lbl.CAPACITY_TYPE: "on-demand",
            lbl.REGISTERED: "true", lbl.INITIALIZED: "true", lbl.ARCH: "amd64", lbl.OS: "linux", lbl.HOSTNAME: node,
        }  # fmt: skip
        draft.add(
            Adopted(
                f"default-{number:05}", "initialized", "default", NODE_CLASS, instance=node, provider_id=provider,
                instance_type=kind.name, zone=zone, capacity_type="on-demand", price=price, node=node, created=START,
                registered=START, initialized=START, capacity=kind.capacity, allocatable=kind.allocatable(),
                labels=labels,
            )
        )  # fmt: skip
        draft.add(
            Node(node, provider_id=provider, created=START, labels=labels, capacity=kind.capacity,
                 allocatable=kind.allocatable(), ready=True)
        )  # fmt: skip
        for index in range(pods):
            shape = dice.choice(shapes)
            name, digest = f"p{number}-{index}", content(shape)[0]
            owner = Owner("apps/v1/ReplicaSet", "web")
            pod = Pod(f"uid-{name}", "default", name, digest, node=node, phase="Running", ready=True, owner=owner)
            draft.add(pod, blobs={digest: shape})
    return draft.state, START + QUIET


def _nothing(digest: str) -> bytes:
    raise KeyError(digest)
