"""One fault brings one error: nothing is said of a value that is of the wrong type but that."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.adapters.kubernetes.published_schemas import published_schemas
from kerf.engine.model.manifests.decode import decode_object
from kerf.engine.model.manifests.validate import judge
from kerf.engine.model.manifests.violations import ManifestError
from tests.support.manifests.small import EC2_NODE_CLASS, NODE_POOL, changed

SPEC = {"containers": [{"name": "c", "image": "i"}]}


def found(document: dict[str, Any]) -> list[tuple[str, str]]:
    return [(wrong.code, wrong.path) for wrong in judge(document, published=published_schemas()).violations]


def deployment(template: Any, **selector: Any) -> dict[str, Any]:
    spec = {"selector": selector, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}, "spec": spec}


def labelled(labels: Any) -> dict[str, Any]:
    return {"metadata": {"labels": labels}, "spec": SPEC}


@pytest.mark.parametrize(
    ("template", "code", "path"),
    [
        (labelled({"app": 1}), "KERF303", "spec.template.metadata.labels[app]"),
        (labelled("app=1"), "KERF303", "spec.template.metadata.labels"),
        ({"metadata": "app=1", "spec": SPEC}, "KERF303", "spec.template.metadata"),
        ("x", "KERF303", "spec.template"),
        (None, "KERF304", "spec.template"),
    ],
)
def test_a_template_of_a_wrong_type_is_not_said_to_be_missed_by_the_selector(
    template: Any, code: str, path: str
) -> None:
    assert found(deployment(template, matchLabels={"app": "1"})) == [(code, path)]
    expression = {"key": "app", "operator": "In", "values": ["1"]}
    assert found(deployment(template, matchExpressions=[expression])) == [(code, path)]


@pytest.mark.parametrize("template", [labelled({"app": "2"}), labelled({}), labelled(None), {"spec": SPEC}])
def test_labels_that_the_selector_does_not_meet_are_still_told(template: Any) -> None:
    selected = deployment(template, matchLabels={"app": "1"})
    assert found(selected) == [("KERF322", "spec.selector.matchLabels[app]")]


@pytest.mark.parametrize(
    ("field", "value", "path"),
    [
        ("subnetSelectorTerms", [{"tags": "a=b"}], "[0].tags"),
        ("securityGroupSelectorTerms", [{"id": ["sg-1"]}], "[0].id"),
        ("amiSelectorTerms", ["al2023@latest"], "[0]"),
        ("amiSelectorTerms", "al2023@latest", ""),
    ],
)
def test_a_term_of_a_wrong_type_is_not_said_to_select_nothing(field: str, value: Any, path: str) -> None:
    document = changed(EC2_NODE_CLASS, f"spec.{field}", value)
    assert found(document) == [("KERF303", f"spec.{field}{path}")]
    with pytest.raises(ManifestError) as refused:
        decode_object(document)
    assert [wrong.code for wrong in refused.value.violations] == ["KERF303"]


def test_a_nodepool_without_a_spec_has_one_fault() -> None:
    assert found({**NODE_POOL, "spec": None}) == [("KERF304", "spec")]


@pytest.mark.parametrize(
    ("field", "value", "rule", "unknown"),
    [
        ("subnetSelectorTerms", [{"tgs": {"a": "b"}}], "[0]", "[0].tgs"),
        ("blockDeviceMappings", [{"ebs": {"volumesize": "1Gi"}}], "[0].ebs", "[0].ebs.volumesize"),
        ("placementGroupSelector", {"nme": "x"}, "", ".nme"),
    ],
)
def test_a_misspelt_field_is_told_also_where_a_rule_fails_for_want_of_it(
    field: str, value: Any, rule: str, unknown: str
) -> None:
    told = found(changed(EC2_NODE_CLASS, f"spec.{field}", value))
    assert told == [("KERF316", f"spec.{field}{rule}"), ("KERF320", f"spec.{field}{unknown}")]
