"""Kubelets of v1beta1 NodePools go to their EC2NodeClasses (L-131)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kerf.adapters.cli.input.manifests import Converted, converted


def node_class(name: str = "default", **spec: Any) -> dict[str, Any]:
    terms = {"subnetSelectorTerms": [{"id": "subnet-1"}], "securityGroupSelectorTerms": [{"id": "sg-1"}]}
    spec = {"amiSelectorTerms": [{"alias": "al2023@latest"}], **terms, "role": "node", **spec}
    return {"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": name}, "spec": spec}


def pool(name: str, kubelet: dict[str, Any] | None, of: str = "default") -> dict[str, Any]:
    reference = {"apiVersion": "karpenter.k8s.aws/v1beta1", "kind": "EC2NodeClass", "name": of}
    node = {"requirements": [], "nodeClassRef": reference} | ({"kubelet": kubelet} if kubelet is not None else {})
    return {
        "apiVersion": "karpenter.sh/v1beta1", "kind": "NodePool", "metadata": {"name": name},
        "spec": {"template": {"spec": node}},
    }  # fmt: skip


def of(folder: Path, *documents: dict[str, Any]) -> Converted:
    file = folder / "all.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}), encoding="utf-8")
    result = converted([str(file)])
    assert result.refused == []
    return result


def kubelets(result: Converted) -> dict[str, Any]:
    return {
        each["metadata"]["name"]: each["spec"].get("kubelet")
        for each in result.documents
        if each["kind"] == "EC2NodeClass"
    }


def classes(result: Converted) -> dict[str, str]:
    """The class of each NodePool."""
    pools = [each for each in result.documents if each["kind"] == "NodePool"]
    assert not any("v1beta1-kubelet-conversion" in str(each["metadata"]) for each in pools)
    return {each["metadata"]["name"]: each["spec"]["template"]["spec"]["nodeClassRef"]["name"] for each in pools}


def test_l131_the_kubelet_of_a_class_s_only_pool_outranks_its_own(tmp_path: Path) -> None:
    result = of(tmp_path, pool("web", {"maxPods": 20}), node_class(kubelet={"podsPerCore": 4}))
    assert (kubelets(result), classes(result)) == ({"default": {"maxPods": 20}}, {"web": "default"})
    assert result.notes[-1].endswith("kubelet moved to EC2NodeClass/default")


def test_l131_pools_that_agree_share_their_class_and_others_get_copies(tmp_path: Path) -> None:
    alike = of(tmp_path, node_class(), pool("a", {"maxPods": 20}), pool("b", {"maxPods": 20}))
    assert (kubelets(alike), classes(alike)) == ({"default": {"maxPods": 20}}, {"a": "default", "b": "default"})
    mixed = of(tmp_path, node_class(), pool("a", {"maxPods": 20}), pool("b", {"maxPods": 9}), pool("c", None))
    assert kubelets(mixed) == {"default": None, "default-a": {"maxPods": 20}, "default-b": {"maxPods": 9}}
    assert classes(mixed) == {"a": "default-a", "b": "default-b", "c": "default"}


def test_l131_without_the_class_the_annotation_stays_and_the_note_says_what_to_do(tmp_path: Path) -> None:
    result = of(tmp_path, node_class("other"), pool("web", {"maxPods": 20}))
    (annotations,) = [each["metadata"]["annotations"] for each in result.documents if each["kind"] == "NodePool"]
    assert json.loads(annotations["compatibility.karpenter.sh/v1beta1-kubelet-conversion"]) == {"maxPods": 20}
    assert "set spec.kubelet of the EC2NodeClass" in result.notes[-1]


@pytest.mark.parametrize("wrong", [{"metadata": [{"name": "default"}]}, {"spec": []}, {"metadata": {}}])
def test_a_class_that_is_none_is_left_alone(wrong: dict[str, Any], tmp_path: Path) -> None:
    """`make fuzz` found that kerf broke on it. Documents that are v1 already are not checked."""
    broken = node_class() | wrong
    result = of(tmp_path, broken, pool("web", {"maxPods": 20}))
    assert result.documents[0] == broken
    assert "set spec.kubelet of the EC2NodeClass" in result.notes[-1]
