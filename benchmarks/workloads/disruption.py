"""The scale-in of the disruption issue: one NodePool, ten Deployments of 50 pods, all scaled to 15 at once; and a state
of many nodes for one pass."""

from __future__ import annotations

import random
from typing import Any

from kerf.adapters.kwok.catalogue import built_in
from kerf.engine.model import labels as lbl
from kerf.engine.model.instances import Catalogue
from kerf.engine.model.nodes import Node
from kerf.engine.model.pods import Owner, Pod, PodShape
from kerf.engine.model.pools import Budget, NodeClassRef, NodePool, RequirementSpec
from kerf.engine.nodeclaim.events import Adopted
from kerf.engine.record.digest import content
from kerf.engine.record.observations import CatalogueSeen, NodeClassSeen, RecordStarted
from kerf.engine.runtime.draft import Draft
from kerf.engine.state.indexes import Blobs
from kerf.engine.state.state import Facts, State

REQUESTS = (
    ("500m", "256Mi"), ("1000m", "128Mi"), ("100m", "2048Mi"), ("100m", "512Mi"), ("1500m", "128Mi"),
    ("1500m", "256Mi"), ("100m", "128Mi"), ("1000m", "1024Mi"), ("100m", "256Mi"), ("100m", "2048Mi"),
)  # fmt: skip
FULL, LEFT = 50, 15
"""Replicas of each Deployment, before and after."""
START = 1_767_225_600_000
QUIET = 100_000  # ms
NODE_CLASS = NodeClassRef("karpenter.k8s.aws", "EC2NodeClass", "default")


def scale_in(at: str, budget: str) -> list[dict[str, Any]]:
    """The documents, with a Timeline that scales in at `at`."""
    ref = {"group": NODE_CLASS.group, "kind": NODE_CLASS.kind, "name": NODE_CLASS.name}
    wanted = {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", lbl.CAPACITY_TYPE: "on-demand"}
    requirements = [{"key": key, "operator": "In", "values": [value]} for key, value in wanted.items()]
    pool = {
        "template": {"spec": {"requirements": requirements, "nodeClassRef": ref, "expireAfter": "720h"}},
        "limits": {"cpu": "100000"},
        "disruption": {"consolidateAfter": "10s", "budgets": [{"nodes": budget}]},
    }
    terms = [{"tags": {"a": "b"}}]
    node_class = {
        "amiSelectorTerms": [{"alias": "al2023@latest"}], "role": "kerf", "subnetSelectorTerms": terms,
        "securityGroupSelectorTerms": terms,
    }  # fmt: skip
    names = [f"w{number}" for number in range(len(REQUESTS))]
    scale = [{"at": at, "action": "scale", "namespace": "default", "name": name, "replicas": LEFT} for name in names]
    return [
        {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"}, "spec": pool},
        {"apiVersion": f"{NODE_CLASS.group}/v1", "kind": NODE_CLASS.kind, "metadata": {"name": "default"},
         "spec": node_class},
        *(_deployment(name, *requests) for name, requests in zip(names, REQUESTS, strict=True)),
        {"apiVersion": "kerf.dev/v1alpha1", "kind": "Timeline", "metadata": {"name": "scale-in"},
         "spec": {"actions": scale}},
    ]  # fmt: skip


def _deployment(name: str, cpu: str, memory: str) -> dict[str, Any]:
    pod = {
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "c", "image": "pause", "resources": {"requests": {"cpu": cpu, "memory": memory}}}],
    }
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": FULL, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
            "spec": spec}  # fmt: skip


def many_nodes(nodes: int, pods: int, *, still: bool) -> tuple[State, int]:
    """A state of half-filled nodes with so many pods each, and a time at which they are quiet. `still`: their NodePool
    lets none of them go."""
    catalogue: Catalogue = built_in()
    digest, dice = content(catalogue)[0], random.Random(nodes)
    draft = Draft(State(Facts(), Blobs(_nothing)), START)
    draft.add(RecordStarted("benchmark", "benchmark"))
    draft.add(NodeClassSeen(NODE_CLASS.group, NODE_CLASS.kind, NODE_CLASS.name, ready=True))
    draft.add(CatalogueSeen(NODE_CLASS.key, digest), blobs={digest: catalogue})
    requirements = (RequirementSpec(lbl.CAPACITY_TYPE, "In", ("on-demand",)),)
    after = None if still else 10_000
    draft.add(NodePool("default", NODE_CLASS, requirements=requirements, consolidate_after=after, budgets=(Budget(),)))
    kind = next(each for each in catalogue.types if each.capacity["cpu"] == 8_000)
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
