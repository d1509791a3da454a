"""Pseudonyms keep the order of names, and the names that are made of other names."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from kerf.adapters.cli.bundles.pseudonyms import mapped_back
from kerf.adapters.store.pseudonyms.record import Pseudonyms
from kerf.adapters.store.pseudonyms.replacements import known_or_name, value_under
from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.engine.model.kubernetes.devices import ResourceSlice
from kerf.engine.model.kubernetes.namespaces import Namespace
from kerf.engine.record.observations import (
    RecordStarted,
)
from tests.contract.store_contract import turn


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


def test_claims_that_somebody_made_by_hand_keep_their_place_among_those_of_nodepools() -> None:
    claims = {"drift-aaaaa": "n1", "handmade": "n2", "another": "n3", "web-bbbbb": "n4", "zoo": "n5"}
    names = settled(claims, ["drift", "web"])
    shown = [names.name("claim", claim) for claim in sorted(claims)]
    assert shown == sorted(shown)


def test_where_an_instance_is_called_like_its_node_words_are_about_the_node() -> None:
    """As with KWOK. Why a claim goes whose Node is gone names the Node (L-193)."""
    names = Pseudonyms(b"key")
    for kind in ("instance", "node"):
        names.name(kind, "kwok-web-x5d4g-maple")
    names.settle()
    assert names.words("kwok-web-x5d4g-maple") == names.name("node", "kwok-web-x5d4g-maple")
