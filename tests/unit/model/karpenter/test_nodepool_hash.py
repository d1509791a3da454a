"""The hash of a NodePool's template equals the reference's (D-129, D-130, L-103)."""

from typing import Any

import pytest

from kerf.engine.model.karpenter.nodepool_hash import template_hash
from kerf.engine.model.karpenter.nodepools import Budget, NodeClassRef, NodePool, RequirementSpec
from kerf.engine.model.kubernetes.pods import Taint
from tests.support.manifests.small import NODE_POOL, changed, node_pool

TEST_CLASS = NodeClassRef("karpenter.test.sh", "TestNodeClass", "default")
K1, K2 = Taint("k1", "NoSchedule", "v1"), Taint("k2", "NoExecute")


def hash_of(empty: tuple[str, ...] = (), **fields: Any) -> str:
    return template_hash(NodePool("any", TEST_CLASS, **fields), empty=empty)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "15987417032968393143"),  # 720h, the default
        ({"expire_after": None}, "5568174970230275839"),
        ({"labels": {"a": "b", "c": "d"}}, "16731082386335375547"),
        ({"empty": ("labels",)}, "1650812449358321585"),
        ({"annotations": {"a": "b"}}, "1196507873531884525"),
        ({"taints": (K1, K2)}, "6158930715519522655"),
        ({"taints": (K2, K1)}, "6158930715519522655"),
        ({"startup_taints": (K1,)}, "6449481721094573729"),
        ({"termination_grace_period": 300_000}, "1716499194683853716"),
        ({"termination_grace_period": 0}, "11370769265231192194"),
        ({"expire_after": 1_830_000}, "12914076102194862490"),
    ],
)
def test_d130_the_check_vectors(fields: dict[str, Any], expected: str) -> None:
    assert hash_of(**fields) == expected


def test_d127_s65_what_is_behaviour_is_not_hashed() -> None:
    behaviour: dict[str, Any] = {
        "requirements": (RequirementSpec("team", "In", ("a",)),), "limits": {"cpu": 1000}, "weight": 10,
        "budgets": (Budget("5"),), "consolidate_after": None, "consolidation_policy": "WhenEmpty", "uid": "u",
        "generation": 7, "ready": False,
    }  # fmt: skip
    assert hash_of(**behaviour) == hash_of()


def test_d129_an_empty_map_is_told_from_an_absent_one_when_a_document_is_read() -> None:
    absent = node_pool(NODE_POOL)
    empty = node_pool(changed(NODE_POOL, "spec.template.metadata", {"labels": {}, "annotations": {}}))
    assert (absent.labels, empty.labels) == ({}, {})
    assert absent.hash == template_hash(absent)
    assert empty.hash == template_hash(absent, empty=("labels", "annotations"))
    assert absent.hash != empty.hash


def test_d128_the_version_on_the_object_is_read() -> None:
    annotated = changed(NODE_POOL, "metadata.annotations", {"karpenter.sh/nodepool-hash-version": "v2"})
    assert node_pool(annotated).hash_version == "v2"
