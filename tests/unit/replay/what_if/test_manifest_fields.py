"""Fields of a NodePool's manifest: it says all that the record keeps, and one field changes nothing else."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kerf.engine.model.karpenter.nodepools import Budget, NodeClassRef, NodePool, RequirementSpec
from kerf.engine.model.kubernetes.pods import Taint
from kerf.engine.model.manifests.decode import decode_object
from kerf.projections.differences.node_pool_document import node_pool_document
from kerf.replay.errors import ChangeRefused
from kerf.replay.what_if.manifest_fields import unknown_name, value_at, with_field
from tests.support.repository import ROOT


def pools_in(*files: str) -> list[Any]:
    texts = ((ROOT / "docs" / "examples" / file).read_text() for file in files)
    documents = [document for text in texts for document in yaml.safe_load_all(text) if document]
    return [document for document in documents if document.get("kind") == "NodePool"]


EXAMPLES = pools_in("workshop/nodepool.yaml", "simulations/morning.yaml")


def decoded(document: Any) -> NodePool:
    pool = decode_object(document).object
    assert isinstance(pool, NodePool)
    return pool


@pytest.mark.parametrize("document", EXAMPLES, ids=lambda document: document["metadata"]["name"])
def test_the_manifest_of_an_example_says_what_it_said(document: Any) -> None:
    pool = decoded(document)
    assert decoded(node_pool_document(pool)) == replace(pool, ready=True, hash_version="")


DURATIONS = st.none() | st.integers(0, 10**9).map(lambda seconds: seconds * 1_000)
BUDGETS = st.builds(
    Budget,
    nodes=st.sampled_from(["0", "5", "10%", "100%"]),
    reasons=st.sampled_from([(), ("Empty",), ("Drifted", "Underutilized")]),
)
POOLS = st.builds(
    NodePool,
    name=st.just("p"),
    node_class=st.just(NodeClassRef("karpenter.k8s.aws", "EC2NodeClass", "default")),
    requirements=st.sampled_from(
        [(), (RequirementSpec("kubernetes.io/arch", "In", ("amd64", "arm64"), 2), RequirementSpec("team", "Exists"))]
    ),
    labels=st.sampled_from([{}, {"team": "a"}]),
    taints=st.sampled_from([(), (Taint("dedicated", "NoSchedule", "batch"),)]),
    expire_after=DURATIONS,
    termination_grace_period=DURATIONS,
    consolidation_policy=st.sampled_from(["WhenEmpty", "WhenEmptyOrUnderutilized"]),
    consolidate_after=DURATIONS,
    budgets=st.lists(BUDGETS, max_size=3).map(tuple),
    limits=st.none() | st.fixed_dictionaries({"cpu": st.integers(0, 10**7), "memory": st.integers(0, 2**45)}),
    weight=st.integers(0, 100),
)


@given(POOLS)
def test_a_manifest_says_all_that_the_record_keeps(pool: NodePool) -> None:
    read = decoded(node_pool_document(pool))
    assert replace(read, hash="") == pool


@given(POOLS, st.integers(1, 100))
def test_one_field_changes_nothing_else(pool: NodePool, weight: int) -> None:
    document = node_pool_document(pool)
    changed = with_field(document, "spec.weight", weight)
    assert value_at(changed, "spec.weight") == weight
    assert decoded(changed) == replace(decoded(document), weight=weight)
    assert value_at(document, "spec.weight") == (pool.weight or None)


DOCUMENT = {"spec": {"items": [{"key": "a.b/c", "values": ["x"]}, {"name": "two"}], "labels": {"a.b/c": "x"}, "n": 1}}


@pytest.mark.parametrize(
    ("path", "there"),
    [
        ("spec.items[0].key", "a.b/c"),
        ("spec.items[a.b/c].values[0]", "x"),
        ("spec.items[two].name", "two"),
        ("spec.labels[a.b/c]", "x"),
        ("spec.missing", None),
    ],
)
def test_items_are_found_by_number_key_or_name(path: str, there: Any) -> None:
    assert value_at(DOCUMENT, path) == there
    assert value_at(with_field(DOCUMENT, path, there or "new"), path) == (there or "new")


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("spec.n.x", 1, "spec.n is 1, and has no fields"),
        ("spec.items[9].x", 1, "spec.items has no item 9"),
        ("spec.items[none].x", 1, "[a.b/c], [two]"),
        ("spec.none", None, "spec has no none"),
        ("spec..", 1, "KERF208"),
        ("spec[", 1, "is no path of a field"),
        ("", 1, "is no path of a field"),
    ],
)
def test_a_path_that_leads_nowhere_says_what_is_there(path: str, value: Any, said: str) -> None:
    with pytest.raises(ChangeRefused) as refused:
        with_field(DOCUMENT, path, value)
    assert said in str(refused.value)


def test_of_many_names_the_first_are_told_and_how_many_more_there_are() -> None:
    known = [f"node-{number}" for number in range(1_009)]

    assert str(unknown_name("node", "zzz", known)).endswith(" and 1,001 more")
    assert " more" not in str(unknown_name("node", "zzz", known[:8]))
