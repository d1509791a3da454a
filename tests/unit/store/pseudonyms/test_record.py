"""Pseudonymised bundles: no name gets out, and what deciders look at stays."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Raw, Struct

from kerf.adapters.cli.bundles.pseudonyms import mapped_back
from kerf.adapters.store.files.bundle import BundleStore, export_bundle, inspect_bundle
from kerf.adapters.store.pseudonyms.reasons import params
from kerf.adapters.store.pseudonyms.record import Pseudonymised, Pseudonyms
from kerf.adapters.store.pseudonyms.replacements import BLOB, key_map, known_or_name, value_under
from kerf.adapters.store.pseudonyms.rules import rules_of
from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.engine.model.content_digest import content, deviation
from kerf.engine.model.instance_types import Catalogue, InstanceType, Offering
from kerf.engine.model.karpenter.nodeoverlays import NodeOverlay
from kerf.engine.model.karpenter.nodepools import NodeClassRef, NodePool, RequirementSpec
from kerf.engine.model.kubernetes.daemonsets import DaemonSet
from kerf.engine.model.kubernetes.devices import ResourceSlice
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
from kerf.engine.model.labels import ALIASES
from kerf.engine.model.names import Mark
from kerf.engine.model.reasons import Reason
from kerf.engine.model.settings import Settings
from kerf.engine.record.base import Base
from kerf.engine.record.claim_events import Launched, PodEvicted, Requested, Tainted
from kerf.engine.record.codec import CODEC
from kerf.engine.record.decisions import (
    Decision,
    EvictPod,
    LaunchInstance,
    Offer,
    PlannedClaim,
    ProvisionResult,
    Unplaced,
)
from kerf.engine.record.entries import Entry, UnknownEntry
from kerf.engine.record.entry_types import TYPES
from kerf.engine.record.errors import BlobMissing
from kerf.engine.record.hash_chain import START, Checkpoint
from kerf.engine.record.observations import (
    CatalogueSeen,
    LaunchAnswered,
    LaunchError,
    NodeClassSeen,
    ObjectGone,
    Observation,
    OfficeTaken,
    RecordStarted,
    ReservationsSeen,
    SettingsSeen,
)
from tests.contract.store_contract import turn
from tests.support.payloads import entries
from tests.support.strategies.planted import recorded_structs
from tests.support.world import World

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


@pytest.mark.parametrize(
    ("key", "kind"),
    [("karpenter.sh/nodepool", "nodepool"), ("karpenter.k8s.aws/ec2nodeclass", "nodeclass"),
     ("karpenter.kwok.sh/kwoknodeclass", "nodeclass"),
     ("kubernetes.io/hostname", "node"), ("acme.example/tier", "value")],
)  # fmt: skip
def test_a_value_in_a_reason_gets_the_pseudonym_that_it_has_under_its_key(key: str, kind: str) -> None:
    """All sorts of things have the same name here: deciding again writes the one that stands under the key."""
    names = Pseudonyms(b"s")
    said = {"incoming": [f"{key} In [acme zeta and 2 others]", f"acme.example/tier=acme:NoSchedule, {key} Exists"]}
    for gathered in ("nodepool", "nodeclass", "node", "value", "pod"):
        names.name(gathered, "acme")
    params(said, names)
    names.settle()
    label, custom = key_map({key: ("acme", "zeta")}, names), key_map({"acme.example/tier": "acme"}, names)
    ((shown, values),), ((taint, value),) = label.items(), custom.items()
    assert params(said, names) == {
        "incoming": [
            f"{shown} In [{values[0]} {values[1]} and 2 others]",
            f"{taint}={value}:NoSchedule, {shown} Exists",
        ]
    }
    assert kind in values[0]


def test_labels_of_kwok_are_as_public_as_those_of_ec2() -> None:
    """Else a bundle diverges: a node has to carry its NodeClass's name (L-242), and well-known keys deny nothing."""
    names = Pseudonyms(b"s")
    node_class, family = "karpenter.kwok.sh/kwoknodeclass", "karpenter.kwok.sh/instance-family"
    key_map({node_class: "acme", family: "c"}, names)
    names.settle()
    assert key_map({node_class: "acme", family: "c"}, names) == {
        node_class: names.name("nodeclass", "acme"),
        family: "c",
    }


def test_the_annotations_that_kerf_gives_claims_keep_their_keys() -> None:
    """Else a launch would be decided otherwise, with the real keys."""
    world = World(node_overlays=True)
    world.prepare()
    world.see(Observation(NodeOverlay("cheap", price=0.01)), Observation(NodeOverlay("fuse", capacity={"a.io/b": 8})))
    world.pending("a")
    world.after(1_000)
    (claim,) = world.runtime.state.facts.claims.values()
    assert {"karpenter.sh/price-overlay-applied", "karpenter.sh/capacity-overlay-applied"} <= claim.annotations.keys()
    names = Pseudonyms(b"s")
    key_map(claim.annotations, names)
    names.settle()
    assert key_map(claim.annotations, names).keys() == claim.annotations.keys()


def test_a_budget_and_a_pod_in_a_reason_have_the_pseudonyms_of_the_objects() -> None:
    """Though a label has the value that the PodDisruptionBudget and the pod are named by."""
    names = Pseudonyms(b"s")
    said = {"pod": "shop/web", "budgets": ["shop/web"]}
    params(said, names)
    names.name("value", "web")
    names.settle()
    namespace = names.name("namespace", "shop")
    shown = {"pod": f"{namespace}/{names.name('pod', 'web')}", "budgets": [f"{namespace}/{names.name('pdb', 'web')}"]}
    assert params(said, names) == shown


@pytest.mark.parametrize("alias", sorted(ALIASES))
def test_s5_a_key_that_is_read_as_another_stays(alias: str) -> None:
    """A volume's zone stands under its driver's key."""
    names = Pseudonyms(b"s")
    names.settle()
    assert key_map({alias: "us-west-2a"}, names) == {alias: "us-west-2a"}


def test_a_well_known_value_in_a_reason_stays_though_a_label_of_ones_own_has_it_too() -> None:
    names = Pseudonyms(b"s")
    names.name("value", "amd64")
    names.settle()
    assert params({"here": "kubernetes.io/arch In [amd64]"}, names) == {"here": "kubernetes.io/arch In [amd64]"}


def test_a_resource_in_a_reason_stays_though_an_app_is_called_like_its_last_word() -> None:
    """As in requests: decided again, the reason names the resource that the pod asks for."""
    names = Pseudonyms(b"s")
    names.name("value", "gpu")
    names.settle()
    assert params({"resources": ["nvidia.com/gpu"]}, names) == {"resources": ["nvidia.com/gpu"]}
    assert params({"said": "gpu"}, names) != {"said": "gpu"}


def test_a_public_label_in_a_reason_stays_though_an_app_is_called_like_its_last_word() -> None:
    names = Pseudonyms(b"s")
    names.name("value", "zone")
    said = {
        "key": "topology.kubernetes.io/zone",
        "keys": ["topology.kubernetes.io/zone", "node.kubernetes.io/not-ready"],
    }
    own = {"key": "zone", "keys": ["zone"]}
    params(own, names)
    names.settle()
    assert params(said, names) == said
    assert params(own, names) == {"key": names.name("key", "zone"), "keys": [names.name("key", "zone")]}


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


class OneEntry:
    """A source of a single entry without blobs."""

    record_id = "r"

    def checkpoint(self, position: int) -> Checkpoint:
        return START

    def first_position(self) -> int:
        return self._entry.position

    def __init__(self, entry: Entry) -> None:
        self._entry = entry

    def base(self) -> Base | None:
        return None

    def history(self, after: int = 0, until: int | None = None) -> Iterator[bytes]:
        return iter(())

    def encoded(self, after: int = 0, until: int | None = None) -> Iterator[bytes]:
        return iter([CODEC.encode(self._entry)])

    def blob(self, digest: str) -> bytes:
        raise BlobMissing(digest)


@pytest.mark.parametrize("name", sorted(TYPES))
@settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_every_type_passes(name: str, data: st.DataObject) -> None:
    """What comes out is of the same type and shape."""
    entry = data.draw(entries(TYPES[name]))
    (encoded,) = Pseudonymised(OneEntry(entry), key=b"s").encoded()
    changed = CODEC.decode(encoded)
    assert type(changed.payload) is type(entry.payload)
    assert (changed.position, changed.at, changed.epoch) == (entry.position, entry.at, entry.epoch)


def has_unmarked_text(hint: Any) -> bool:
    """Whether text without a mark (kerf.engine.model.names) can stand in a value of this type, structs left out."""
    if any(isinstance(mark, Mark) for mark in getattr(hint, "__metadata__", ())):
        return False
    return hint is str or any(has_unmarked_text(part) for part in typing.get_args(hint))


def test_every_field_with_text_is_marked() -> None:
    """So a new field cannot let names out: it stops the export, and before that this test."""
    missing = [
        f"{kind.__name__}.{field}"
        for kind in recorded_structs()
        if isinstance(rules_of(kind), dict)
        for field, hint in typing.get_type_hints(kind, include_extras=True).items()
        if has_unmarked_text(hint)
    ]
    assert sorted(missing) == []


def test_only_text_is_the_digest_of_a_blob() -> None:
    digests = [
        typing.get_type_hints(kind)[field]
        for kind in recorded_structs()
        if isinstance(rules := rules_of(kind), dict)
        for field, rule in rules.items()
        if rule is BLOB
    ]
    assert digests
    assert set(digests) == {str}


def test_s152_the_claim_of_an_ephemeral_volume_stays_named_after_pod_and_volume() -> None:
    names = Pseudonyms(b"key")
    for kind, text in (("pod", "web-0"), ("pod-volume", "my-data"), ("volume-claim", "web-0-my-data")):
        names.name(kind, text)
    names.name("volume-claim", "another-one")
    names.settle()
    pod, volume = names.name("pod", "web-0"), names.name("pod-volume", "my-data")
    assert names.name("volume-claim", "web-0-my-data") == f"{pod}-{volume}"
    assert names.name("volume-claim", "another-one").startswith("volume-claim-")


def test_d144_the_two_critical_priority_classes_keep_their_names() -> None:
    names = Pseudonyms(b"key")
    names.name("priority-class", "mine")
    names.settle()
    assert known_or_name("priority-class")("system-node-critical", names) == "system-node-critical"
    assert known_or_name("priority-class")("mine", names) != "mine"


def settled(claims: dict[str, str], pools: list[str]) -> Pseudonyms:
    """The pseudonyms of claims and their nodes (claim → node)."""
    names = Pseudonyms(b"key")
    for pool in pools:
        names.name("nodepool", pool)
    for claim, node in claims.items():
        names.name("claim", claim)
        names.name("node", node)
        names.node_of(claim, node)
    names.settle()
    return names


def test_a_node_is_named_after_its_own_claim_and_after_no_other() -> None:
    claims = {"gpu-zzzzz": "ip-10-0-0-9", "gpu-aaaaa": "ip-10-0-0-5", "web-bbbbb": "ip-10-0-0-7"}
    names = settled(claims, ["gpu", "web"])
    shown = {claim: (names.name("claim", claim), names.name("node", node)) for claim, node in claims.items()}
    for own, node in shown.values():
        assert node.endswith(f"-of-{own}")
        assert [claim for claim, _ in shown.values() if claim in node] == [own]


@given(data=st.data())
def test_nodes_keep_their_place_among_nodes_and_claims(data: st.DataObject) -> None:
    """Deciders break ties by name."""
    letters = st.text("abz", min_size=5, max_size=5)
    pools = data.draw(st.lists(st.sampled_from(["gpu", "ip", "spot", "web"]), min_size=1, unique=True))
    ends = data.draw(st.lists(letters, min_size=1, max_size=6, unique=True))
    claims = [f"{data.draw(st.sampled_from(pools))}-{end}" for end in ends]
    nodes = [f"{data.draw(st.sampled_from(['ip-10', 'a', 'z', *claims]))}-{number}" for number in range(len(claims))]
    names = settled(dict(zip(claims, nodes, strict=True)), pools)
    given = {("claim", text): names.name("claim", text) for text in claims}
    given |= {("node", text): names.name("node", text) for text in nodes}
    by_name = sorted(given, key=lambda key: key[1])
    assert sorted(given, key=lambda key: given[key]) == by_name


def test_names_of_devices_are_mapped_back_though_they_have_other_ranks(tmp_path: Path) -> None:
    first = ResourceSlice("s", "gpu.acme.example", "pool")
    store = SQLiteStore(tmp_path / "r.kerf", "create")
    store.append(turn([RecordStarted("r-1", "0.1.0"), first, Namespace("a"), Namespace("b")], first=1))
    store.close()
    (tmp_path / "key").write_bytes(b"k" * 32)
    given = mapped_back(str(tmp_path / "r.kerf"), tmp_path / "key", ())
    (pseudonym,) = (pseudonym for pseudonym, name in given.items() if name == "gpu.acme.example")
    other = f"device_0017_{pseudonym.rpartition('_')[2]}"
    assert mapped_back(str(tmp_path / "r.kerf"), tmp_path / "key", [other]) == {other: "gpu.acme.example"}


@given(st.sets(st.sampled_from(["true", "false", "1", "10", "blue", "false-x", "gold", "truth", "zeta", "A"])))
def test_values_keep_their_order_among_those_that_stay(values: set[str]) -> None:
    """Domains of a topology key are values of a label."""
    names = Pseudonyms(b"key")
    for text in values:
        value_under("acme.example/rack", text, names)
    names.settle()
    shown = {text: value_under("acme.example/rack", text, names) for text in values}
    assert sorted(values) == sorted(values, key=shown.__getitem__)
    assert {text for text in values if shown[text] == text} == values & {"true", "false", "1", "10"}
