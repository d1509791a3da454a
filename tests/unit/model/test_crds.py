"""The CustomResourceDefinitions: the files are what is declared, and what is declared has the names of the API."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from kerf.engine.model.crds.definitions import BY_NAME, KINDS, definition
from kerf.engine.model.crds.schema import Schema, compiled
from kerf.engine.model.karpenter.ec2nodeclasses import EC2NodeClassSpec, EC2NodeClassStatus
from kerf.engine.model.manifests.karpenter.nodepools_wire import NodeClaimSpecWire, NodePoolSpecWire
from kerf.engine.model.manifests.violations import CODES
from tests.support.repository import ROOT

FOLDER = ROOT / "deploy" / "crds"


def schemas(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    yield path, schema
    for name, field in schema.properties.items():
        yield from schemas(field, f"{path}.{name}")
    for inner in (schema.values, schema.items):
        if inner is not None:
            yield from schemas(inner, f"{path}[]")


ALL = [(f"{kind.kind}{path}", schema) for kind in KINDS for path, schema in schemas(kind.schema)]


def test_the_files_are_what_is_declared() -> None:
    """If not: make crds."""
    found = {path.name: yaml.safe_load(path.read_text()) for path in FOLDER.glob("*.yaml")}
    assert found == {f"{kind.group}_{kind.plural}.yaml": definition(kind) for kind in KINDS}


@pytest.mark.parametrize(
    ("name", "scope", "short", "category", "subresources", "columns"),
    [
        ("karpenter.sh/v1/NodePool", "Cluster", None, "karpenter", ["scale", "status"],
         "NodeClass Nodes Ready Age Weight* CPU* Memory*"),
        ("karpenter.sh/v1/NodeClaim", "Cluster", None, "karpenter", ["status"],
         "Type Capacity Zone Node Ready Age ImageID* ID* NodePool* NodeClass* Drifted*"),
        ("karpenter.sh/v1alpha1/NodeOverlay", "Cluster", ["overlays"], "karpenter", ["status"], "Ready Age Weight*"),
        ("autoscaling.x-k8s.io/v1beta1/CapacityBuffer", "Namespaced", ["cb"], "autoscaling", ["status"],
         "Strategy PodTemplate Replicas ConditionsType ConditionsStatus ConditionsReason Age"),
        ("karpenter.kwok.sh/v1alpha1/KWOKNodeClass", "Cluster", ["kwoknc", "kwokncs"], "karpenter", ["status"], ""),
        ("karpenter.k8s.aws/v1/EC2NodeClass", "Cluster", ["ec2nc", "ec2ncs"], "karpenter", ["status"],
         "Ready Age Role*"),
    ],
)  # fmt: skip
def test_names_and_columns(
    name: str, scope: str, short: list[str] | None, category: str, subresources: list[str], columns: str
) -> None:
    """L-1 to L-7, A-23: one version, served and stored."""
    spec = definition(BY_NAME[name])["spec"]
    (version,) = spec["versions"]
    shown = [f"{c['name']}{'*' if c.get('priority') else ''}" for c in version.get("additionalPrinterColumns", [])]
    assert (spec["scope"], spec["names"].get("shortNames"), spec["names"]["categories"]) == (scope, short, [category])
    assert (sorted(version["subresources"]), " ".join(shown)) == (subresources, columns)
    assert (version["served"], version["storage"]) == (True, True)


def test_a_pool_scales_by_its_replicas() -> None:
    """A pool scales by its replicas (L-1)."""
    (version,) = definition(BY_NAME["karpenter.sh/v1/NodePool"])["spec"]["versions"]
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.nodes"}
    assert version["subresources"]["scale"] == scale


@pytest.mark.parametrize(("name", "schema"), ALL, ids=[name for name, _ in ALL])
def test_what_is_declared_is_sound(name: str, schema: Schema) -> None:
    assert set(schema.required) <= set(schema.properties)
    assert schema.code in CODES
    if schema.pattern:
        compiled(schema.pattern)
        assert "(?" not in schema.pattern  # Go has no look-around
    assert all(re.search(r"\bself\b", rule.cel) and rule.message for rule in schema.rules)
    assert schema.type != "array" or schema.items is not None


def camel(name: str) -> str:
    return re.sub(r"_(.)", lambda match: match[1].upper(), name)


def declared(name: str, *path: str) -> set[str]:
    schema = BY_NAME[name].schema
    for step in path:
        schema = schema.properties[step]
    return set(schema.properties)


def fields(struct: Any) -> set[str]:
    return set(struct.__struct_encode_fields__)


def test_what_kerf_reads_is_declared() -> None:
    """No field is read that the API server would drop, but those of v1beta1, which are refused (KERF319)."""
    assert fields(EC2NodeClassSpec) == declared("karpenter.k8s.aws/v1/EC2NodeClass", "spec")
    status = {camel(name) for name in fields(EC2NodeClassStatus)}
    assert status == declared("karpenter.k8s.aws/v1/EC2NodeClass", "status")
    assert fields(NodePoolSpecWire) == declared("karpenter.sh/v1/NodePool", "spec")
    assert fields(NodeClaimSpecWire) - {"kubelet"} == declared("karpenter.sh/v1/NodeClaim", "spec")


def test_a24_every_field_of_an_ec2nodeclass_may_be_edited_and_nothing_is_defaulted_by_a_webhook() -> None:
    """What an edit brings about is drift, not a refusal."""
    assert "oldSelf" not in (FOLDER / "karpenter.k8s.aws_ec2nodeclasses.yaml").read_text()
    charts = [path.read_text() for path in (ROOT / "deploy" / "charts").rglob("*") if path.is_file()]
    assert any("kind: Deployment" in text for text in charts)
    assert not any("WebhookConfiguration" in text for text in charts)
