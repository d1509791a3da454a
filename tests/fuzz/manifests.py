"""Manifests, objects of the API server, and Timelines."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from hypothesis import strategies as st

from kerf.adapters.cli.input.documents import read_documents
from kerf.adapters.cli.input.manifests import converted
from kerf.adapters.cli.input.validation import check_manifests
from kerf.adapters.kubernetes.watch.decoding import identity, read_frames, reader, subject
from kerf.adapters.simulation.timeline.timeline import decode_timeline, is_timeline
from kerf.engine.errors import KerfError
from kerf.engine.model.manifests.decode import decode_many, decode_object
from kerf.engine.record.errors import UNDECODABLE
from tests.fuzz.mutations import damaged, mutated
from tests.fuzz.target import EXAMPLES, Target, command, in_file, plain_json

_YAML = sorted(EXAMPLES.rglob("*.yaml"))
MANIFESTS: list[Any] = read_documents(_YAML).good
TIMELINES = [document for document in MANIFESTS if is_timeline(document)]
OBJECTS = [document for document in MANIFESTS if not is_timeline(document)]
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "web", "namespace": "default", "labels": {"app": "web"}, "creationTimestamp": "2026-01-15T11:00:00Z",
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u"}],
    },
    "spec": {
        "containers": [{"name": "app", "image": "a", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}],
        "nodeSelector": {"a": "b"},
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]}]
                }
            },
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 1, "podAffinityTerm": {"topologyKey": "z", "labelSelector": {"matchLabels": {"a": "b"}}}}
                ]
            },
        },
        "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoSchedule"}],
        "topologySpreadConstraints": [
            {"topologyKey": "z", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule",
             "labelSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}}
        ],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
        "priority": 1,
    },
    "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unfit"}]},
}  # fmt: skip
ALL = [*MANIFESTS, POD]
LISTS = [
    {"apiVersion": "v1", "kind": "List", "items": OBJECTS[:3]},
    {"apiVersion": "v1", "kind": "PodList", "items": [POD]},
]


def check_file(content: bytes) -> None:
    path = str(in_file(content, "given.yaml"))
    for read in (check_manifests, converted):
        with suppress(KerfError):
            read([path])


def check_documents(documents: list[Any]) -> None:
    check_file(b"\n---\n".join(map(plain_json, documents)))


def check_object(document: Any) -> None:
    data = plain_json(document)
    with suppress(KerfError):
        decode_object(data)
    with suppress(KerfError):
        decode_many(data)


def check_watch(lines: bytes) -> None:
    """A watch gives up on lines that are no frames; of a frame's object it makes a value or a refusal."""
    try:
        frames = read_frames(lines)
    except UNDECODABLE:
        return
    for frame in frames:
        for api in ("v1/Pod", "v1/Node", "karpenter.sh/v1/NodePool"):
            reader(api)(frame.object)
            subject(api, frame.object)
        identity(frame.object)


def check_timeline(document: Any) -> None:
    if isinstance(document, dict):
        decode_timeline(document)


def check_simulation(documents: list[Any]) -> None:
    path = in_file(b"\n---\n".join(map(plain_json, documents)), "given.yaml")
    command("simulate", str(path), "--until", "20m", "--quiet")


FRAMES = [plain_json({"type": "ADDED", "object": document}) + b"\n" for document in (POD, *OBJECTS[:4])]

TARGETS: dict[str, Target] = {
    "manifests": Target(st.lists(mutated(ALL), min_size=1, max_size=3), check_documents, slow=True),
    "manifests' bytes": Target(damaged([path.read_bytes() for path in _YAML]), check_file, slow=True),
    "objects": Target(mutated([*ALL, *LISTS]), check_object),
    "frames of a watch": Target(
        damaged(FRAMES)
        | mutated([POD, *OBJECTS]).map(lambda document: plain_json({"type": "ADDED", "object": document}) + b"\n"),
        check_watch,
    ),
    "Timelines": Target(mutated(TIMELINES), check_timeline),
    "simulations": Target(
        st.tuples(mutated(OBJECTS), mutated(MANIFESTS), st.sampled_from(OBJECTS)).map(list), check_simulation, slow=True
    ),
}
