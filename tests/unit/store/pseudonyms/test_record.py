"""Pseudonymised bundles: no name gets out, and what deciders look at stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Raw, Struct

from kerf.adapters.store.files.bundle import BundleStore, export_bundle, inspect_bundle
from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.engine.model.content_digest import content, deviation
from kerf.engine.model.instance_types import Catalogue, InstanceType, Offering
from kerf.engine.model.karpenter.nodepools import NodeClassRef, NodePool, RequirementSpec
from kerf.engine.model.kubernetes.daemonsets import DaemonSet
from kerf.engine.model.kubernetes.namespaces import Namespace
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import (
    AffinityTerm,
    Expression,
    NodeTerm,
    Owner,
    Pod,
    PodShape,
    Selector,
    SpreadConstraint,
    Taint,
    Toleration,
    VolumeRef,
)
from kerf.engine.model.reasons import Reason
from kerf.engine.model.settings import Settings
from kerf.engine.record.claim_events import Launched, PodEvicted, Requested, Tainted
from kerf.engine.record.decisions import (
    Decision,
    EvictPod,
    LaunchInstance,
    Offer,
    PlannedClaim,
    ProvisionResult,
    Unplaced,
)
from kerf.engine.record.entries import UnknownEntry
from kerf.engine.record.observations import (
    CatalogueSeen,
    LaunchAnswered,
    LaunchError,
    NodeClassSeen,
    ObjectGone,
    OfficeTaken,
    RecordStarted,
    ReservationsSeen,
    SettingsSeen,
)
from tests.contract.store_contract import turn

SHAPE = PodShape(
    requests={"cpu": 500, "acme.example/gpu": 1},
    labels={"app": "acme-shop", "version": "7"},
    node_selector={"kubernetes.io/arch": "arm64", "acme.example/tier": "acme-gold"},
    required_terms=(
        NodeTerm(
            (Expression("topology.kubernetes.io/zone", "In", ("eu-west-1a",)), Expression("cores", "Gt", ("4",))),
            (Expression("metadata.name", "In", ("acme-node-1",)),),
        ),
    ),
    tolerations=(Toleration("acme.example/team", "Equal", "acme-a", "NoSchedule"),),
    spread=(SpreadConstraint("topology.kubernetes.io/zone", selector=Selector({"app": "acme-shop"})),),
    affinity=(AffinityTerm("kubernetes.io/hostname", namespaces=("acme-prod",)),),
    volumes=(VolumeRef("acme-data", "acme-claim", "acme-ssd"),),
    resource_claims=("acme-device",),
    priority_class="acme-high",
)

SHAPE_DIGEST, SHAPE_BYTES = content(SHAPE)

CATALOGUE = Catalogue(
    (
        InstanceType(
            "m7g.large",
            {"cpu": 2000, "memory": 8 << 30},
            requirements={"karpenter.k8s.aws/instance-cpu": ("2",)},
            offerings=(Offering("eu-west-1a", "on-demand", 0.08),),
        ),
    )
)

CATALOGUE_DIGEST, CATALOGUE_BYTES = content(CATALOGUE)

SETTINGS = Settings(cluster_name="acme-cluster")

REF = NodeClassRef("karpenter.k8s.aws", "EC2NodeClass", "acme-class")

GOLD = Taint("acme.example/team", "NoSchedule", "acme-a")

NODE_LABELS = {
    "karpenter.sh/nodepool": "acme-pool",
    "kubernetes.io/hostname": "acme-node-1",
    "node.kubernetes.io/instance-type": "m7g.large",
    "acme.example/tier": "acme-gold",
}

PAYLOADS: list[Struct] = [
    RecordStarted("r-1", "0.1.0"),
    OfficeTaken(1, "acme-controller-0"),
    SettingsSeen(SETTINGS),
    Namespace("acme-prod", {"kubernetes.io/metadata.name": "acme-prod"}),
    Pod("u-2", "acme-prod", "acme-web-b", SHAPE_DIGEST, owner=Owner("apps/v1/ReplicaSet", "acme-web", "u-9")),
    Pod("u-1", "acme-prod", "acme-web-a", SHAPE_DIGEST, node="acme-node-1"),
    DaemonSet("u-3", "acme-prod", "acme-agent", SHAPE_DIGEST),
    NodeClassSeen("karpenter.k8s.aws", "EC2NodeClass", "acme-class", ready=True, digest="f" * 32),
    CatalogueSeen("karpenter.k8s.aws/EC2NodeClass/acme-class", CATALOGUE_DIGEST),
    ReservationsSeen("karpenter.k8s.aws/EC2NodeClass/acme-class", {"cr-acme": 3}),
    NodePool("acme-pool", REF, requirements=(RequirementSpec("acme.example/tier", "In", ("acme-gold",)),)),
    Node("acme-node-1", provider_id="aws:///eu-west-1a/i-acme0001", labels=NODE_LABELS, taints=(GOLD,)),
    Requested("acme-pool-x1", "acme-pool", REF, (), ("m7g.large",), {"cpu": 500}, ("u-1", "u-2"), 0.08, 4),
    Launched(
        "acme-pool-x1",
        "i-acme0001",
        "aws:///eu-west-1a/i-acme0001",
        "m7g.large",
        "eu-west-1a",
        "spot",
        0.03,
        {},
        {},
        image="ami-acme",
    ),
    LaunchAnswered("11.0", "acme-pool-x1", errors=(LaunchError("UnauthorizedOperation", "acme's account 123456"),)),
    Tainted("acme-pool-x1", "drifted", detail="acme-pool: acme-class changed"),
    PodEvicted("acme-pool-x1", "u-1", "acme-prod/acme-web-a"),
    ObjectGone("node", "acme-node-1"),
    Decision(
        "provision",
        10,
        5,
        1,
        deviation(SETTINGS),
        ProvisionResult(
            (
                PlannedClaim(
                    "acme-pool-x1", "acme-pool", ("u-1",), ("m7g.large",), (), {}, 0.08, ("spot",), NODE_LABELS
                ),
            ),
            unplaced=(Unplaced(("u-2",), (Reason("NO_POOL", {"pool": "acme-pool", "of": ["cpu", "acme-pool"]}),)),),
        ),
        (
            LaunchInstance("acme-pool-x1", "acme-pool", REF, "spot", (Offer("m7g.large", "eu-west-1a", 0.03),), {}),
            EvictPod("acme-pool-x1", "acme-node-1", "u-1", "acme-prod", "acme-web-a"),
        ),
    ),
    UnknownEntry("moon.seen", 1, Raw(msgspec.msgpack.encode({"who": "acme"}))),
]


@pytest.fixture
def store(tmp_path: Path) -> SQLiteStore:
    store = SQLiteStore(tmp_path / "r.kerf", "create")
    blobs = {SHAPE_DIGEST: SHAPE_BYTES, CATALOGUE_DIGEST: CATALOGUE_BYTES}
    store.append(turn(PAYLOADS, first=1, blobs=blobs))
    return store


def export(store: SQLiteStore, path: Path, key: bytes = b"s") -> BundleStore:
    export_bundle(store, path, pseudonymise=True, key=key, created=1)
    return BundleStore(path)


def payloads(store: BundleStore) -> dict[type, Any]:
    """The last payload of each type."""
    return {type(entry.payload): entry.payload for entry in store.scan()}


def test_no_name_gets_out(store: SQLiteStore, tmp_path: Path) -> None:
    bundle = export(store, tmp_path / "b.kerfb")
    shape = bundle.blob(payloads(bundle)[Pod].shape)
    out = b"".join([*bundle.encoded(), shape])
    assert b"acme" not in out
    assert b"123456" not in out
    assert inspect_bundle(tmp_path / "b.kerfb").sanitised


def test_of_an_entry_of_a_newer_kerf_nothing_stays(tmp_path: Path) -> None:
    """Neither its type nor its stream, which may name something. It stays an entry that nobody knows, to a newer kerf,
    too, which could not read it without its payload."""
    store = SQLiteStore(tmp_path / "r.kerf", "create")
    strange = UnknownEntry("acme.seen", 3, Raw(msgspec.msgpack.encode({"who": "acme"})))
    store.append(turn([RecordStarted("r-1", "0.1.0"), Namespace("a")], first=1))
    store.append(turn([strange], first=3, stream="acme/prod"))
    info = export_bundle(store, tmp_path / "b.kerfb", pseudonymise=True, key=b"s", created=1)
    assert info.unknown == 1
    bundle = BundleStore(tmp_path / "b.kerfb")
    last = list(bundle.scan())[-1]
    assert (last.position, last.type, last.schema) == (3, "left-out", 1)
    assert last.payload == UnknownEntry("left-out", 1, Raw(b"\x80"))
    assert b"acme" not in b"".join(bundle.encoded())


def test_what_scheduling_looks_at_stays(store: SQLiteStore, tmp_path: Path) -> None:
    bundle = export(store, tmp_path / "b.kerfb")
    seen = payloads(bundle)
    shape = msgspec.msgpack.decode(bundle.blob(seen[Pod].shape), type=PodShape)
    assert sorted(shape.requests.values()) == sorted(SHAPE.requests.values())
    assert shape.requests["cpu"] == SHAPE.requests["cpu"]
    assert shape.required_terms[0].expressions[0] == SHAPE.required_terms[0].expressions[0]
    assert shape.required_terms[0].expressions[1].values == ("4",)
    assert shape.node_selector["kubernetes.io/arch"] == "arm64"
    assert bundle.blob(CATALOGUE_DIGEST) == CATALOGUE_BYTES
    assert (seen[Launched].instance_type, seen[Launched].zone, seen[Launched].price) == (
        "m7g.large",
        "eu-west-1a",
        0.03,
    )
    assert (seen[Pod].uid, seen[RecordStarted].record) == ("u-1", "r-1")


def test_equal_names_stay_equal_wherever_they_stand(store: SQLiteStore, tmp_path: Path) -> None:
    bundle = export(store, tmp_path / "b.kerfb")
    seen = payloads(bundle)
    shape = msgspec.msgpack.decode(bundle.blob(seen[Pod].shape), type=PodShape)
    node, pod, decision = seen[Node], seen[Pod], seen[Decision]
    assert pod.node == node.name == node.labels["kubernetes.io/hostname"] == seen[ObjectGone].key
    assert node.name == shape.required_terms[0].fields[0].values[0]
    assert node.provider_id == seen[Launched].provider_id == f"aws:///eu-west-1a/{seen[Launched].instance}"
    assert node.labels["karpenter.sh/nodepool"] == seen[NodePool].name == decision.intents[0].node_pool
    assert seen[PodEvicted].pod == f"{pod.namespace}/{pod.name}"
    assert pod.namespace == seen[Namespace].labels["kubernetes.io/metadata.name"] == shape.affinity[0].namespaces[0]
    (requirement,) = seen[NodePool].requirements
    assert shape.node_selector[requirement.key] == requirement.values[0]
    assert (shape.tolerations[0].key, shape.tolerations[0].value) == (node.taints[0].key, node.taints[0].value)
    assert decision.result.unplaced[0].reasons[0].params == {
        "pool": seen[NodePool].name,
        "of": ["cpu", seen[NodePool].name],
    }
    assert seen[Tainted].detail == f"{seen[NodePool].name}: {seen[NodePool].node_class.name} changed"
    assert seen[CatalogueSeen].node_class.rpartition("/")[2] == seen[NodePool].node_class.name
    assert decision.settings == deviation(seen[SettingsSeen].settings)
    stream = next(entry.stream for entry in bundle.scan() if isinstance(entry.payload, Launched))
    assert stream == f"nodeclaim/{seen[Launched].claim}"


def test_the_order_of_names_stays(store: SQLiteStore, tmp_path: Path) -> None:
    """Deciders break ties by name: another order would be another decision."""
    pods = [e.payload for e in export(store, tmp_path / "b.kerfb").scan() if isinstance(e.payload, Pod)]
    assert [pod.uid for pod in sorted(pods, key=lambda pod: pod.name)] == ["u-1", "u-2"]


def test_the_same_key_gives_the_same_pseudonyms(store: SQLiteStore, tmp_path: Path) -> None:
    one, same, other = (
        list(export(store, tmp_path / f"{number}.kerfb", key).encoded())
        for number, key in enumerate((b"a", b"a", b"b"))
    )
    assert one == same
    assert one != other


def test_left_out_blobs_are_counted(store: SQLiteStore, tmp_path: Path) -> None:
    export(store, tmp_path / "b.kerfb")
    assert inspect_bundle(tmp_path / "b.kerfb").missing == 1  # the NodeClass's own object
