"""v1beta1 → v1 (L-104…L-135, A-72, A-73)."""

import json
from typing import Any

import pytest

from kerf.engine.model.karpenter.ec2nodeclasses import AMITerm, EC2NodeClass
from kerf.engine.model.karpenter.nodepools import Budget, NodeClassRef, NodePool
from kerf.engine.model.manifests.karpenter import v1beta1
from kerf.engine.model.manifests.violations import Report
from kerf.engine.model.reasons import Reason
from tests.support.manifests.small import EC2_NODE_CLASS, NODE_POOL, changed, decode, node_pool, refusals

HOUR = 3_600_000
TEMPLATE = "spec.template.spec"
POOL = changed(NODE_POOL | {"apiVersion": "karpenter.sh/v1beta1"}, f"{TEMPLATE}.nodeClassRef", {"name": "default"})
NODE_CLASS = EC2_NODE_CLASS | {
    "apiVersion": "karpenter.k8s.aws/v1beta1",
    "spec": {
        "amiFamily": "AL2023",
        "role": "r",
        "subnetSelectorTerms": [{"id": "subnet-1"}],
        "securityGroupSelectorTerms": [{"id": "sg-1"}],
        "metadataOptions": {"httpPutResponseHopLimit": 3},
    },
}


def with_disruption(**disruption: Any) -> dict[str, Any]:
    return changed(POOL, "spec.disruption", disruption)


def codes(document: dict[str, Any]) -> list[str]:
    """The notes, without the one that every pool with a bare nodeClassRef gets."""
    return [n.code for n in decode(document).notes if n.code != "v1beta1-node-class-assumed"]


def test_defaults_of_v1beta1() -> None:
    """What a v1beta1 NodePool leaves out has the default of v1beta1 (L-104, L-105, L-128, L-132)."""
    pool = node_pool(POOL)
    assert (pool.consolidation_policy, pool.consolidate_after) == ("WhenEmptyOrUnderutilized", 0)
    assert (pool.expire_after, pool.termination_grace_period, pool.budgets) == (720 * HOUR, None, (Budget("10%"),))


@pytest.mark.parametrize(
    ("policy", "after", "new_policy", "new_after", "notes"),
    [
        ("WhenUnderutilized", None, "WhenEmptyOrUnderutilized", 0, []),
        ("WhenUnderutilized", "Never", "WhenEmptyOrUnderutilized", None, ["v1beta1-consolidation-stays-off"]),
        (None, "Never", "WhenEmptyOrUnderutilized", None, ["v1beta1-consolidation-stays-off"]),
        ("WhenEmpty", "60s", "WhenEmpty", 60_000, []),
        ("WhenEmpty", "Never", "WhenEmpty", None, []),
        ("WhenEmpty", None, "WhenEmpty", None, ["v1beta1-empty-nodes-stay"]),
    ],
)
def test_consolidation(
    policy: str | None, after: str | None, new_policy: str, new_after: int | None, notes: list[str]
) -> None:
    """L-128, L-513: what was switched off stays off, and kerf says so."""
    document = with_disruption(consolidationPolicy=policy, consolidateAfter=after)
    pool = node_pool(document)
    assert (pool.consolidation_policy, pool.consolidate_after) == (new_policy, new_after)
    assert codes(document) == notes


def test_a_wait_with_when_underutilized_is_refused() -> None:
    """`consolidateAfter` beside `WhenUnderutilized` is refused (L-106)."""
    assert refusals(with_disruption(consolidateAfter="30s")) == {"spec.disruption.consolidateAfter": "KERF310"}


@pytest.mark.parametrize(("text", "expected"), [("168h", 168 * HOUR), ("Never", None)])
def test_expire_after_moves_to_the_template(text: str, expected: int | None) -> None:
    """`expireAfter` moves to the template (L-107, L-129)."""
    assert node_pool(with_disruption(expireAfter=text)).expire_after == expected


@pytest.mark.parametrize(("value", "code"), [("5mfoo", "KERF307"), (720, "KERF303")])
def test_refusals_name_the_field_where_v1beta1_has_it(value: Any, code: str) -> None:
    """L-125: junk that v1beta1's loose pattern let pass is refused."""
    assert refusals(with_disruption(expireAfter=value)) == {"spec.disruption.expireAfter": code}
    ref = {"name": "d", "apiVersion": 1, "kind": "K"}
    moved = refusals(changed(POOL, f"{TEMPLATE}.nodeClassRef", ref))
    assert moved == {f"{TEMPLATE}.nodeClassRef.apiVersion": "KERF303"}


def test_what_is_copied_unchanged() -> None:
    """Metadata, taints, requirements, limits, weight and budgets stay as they are (L-127)."""
    spec = POOL["spec"]["template"]["spec"] | {"taints": [{"key": "k", "effect": "NoSchedule"}]}
    document = changed(POOL, TEMPLATE, spec) | {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    document["spec"] |= {"limits": {"cpu": 5}, "weight": 3}
    document["spec"]["template"]["metadata"] = {"labels": {"a": "b"}, "annotations": {"c": "d"}}
    document["spec"]["disruption"] = {"budgets": [{"nodes": "1"}]}
    assert refusals(document) == {}
    pool = node_pool(document)
    assert (pool.taints[0].key, pool.limits, pool.weight, pool.ready) == ("k", {"cpu": 5000}, 3, False)
    assert (pool.labels, pool.annotations, pool.budgets) == ({"a": "b"}, {"c": "d"}, (Budget("1"),))


@pytest.mark.parametrize(
    ("ref", "expected"),
    [
        ({"name": "d"}, NodeClassRef("karpenter.k8s.aws", "EC2NodeClass", "d")),
        ({"name": "d", "kind": "K"}, NodeClassRef("karpenter.k8s.aws", "K", "d")),
        ({"name": "d", "apiVersion": "x.io/v1", "kind": "K"}, NodeClassRef("x.io", "K", "d")),
    ],
)
def test_node_class_ref(ref: dict[str, str], expected: NodeClassRef) -> None:
    """A reference gets the group and kind that v1beta1 leaves out (L-110, L-130)."""
    decoded = decode(changed(POOL, f"{TEMPLATE}.nodeClassRef", ref))
    assert isinstance(decoded.object, NodePool)
    assert decoded.object.node_class == expected
    assert bool(decoded.notes) is (len(ref) < 3)


def test_annotations_keep_what_a_round_trip_needs() -> None:
    """Annotations keep what a round trip needs (L-130, L-131)."""
    document = changed(POOL, f"{TEMPLATE}.kubelet", {"maxPods": 20})
    report = Report()
    converted = v1beta1.convert_node_pool(document, report)
    annotations = converted["metadata"]["annotations"]
    assert json.loads(annotations["compatibility.karpenter.sh/v1beta1-nodeclass-reference"]) == {"name": "default"}
    assert json.loads(annotations["compatibility.karpenter.sh/v1beta1-kubelet-conversion"]) == {"maxPods": 20}
    assert "kubelet" not in converted["spec"]["template"]["spec"]
    assert document["spec"]["template"]["spec"]["kubelet"] == {"maxPods": 20}, "the input is not changed"
    assert "v1beta1-kubelet-on-pool" in [note.code for note in report.notes]


def test_a_stale_kubelet_annotation_is_removed() -> None:
    """A stale kubelet annotation is removed (L-131)."""
    stale = changed(
        POOL, "metadata.annotations", {"compatibility.karpenter.sh/v1beta1-kubelet-conversion": "{}", "a": "b"}
    )
    annotations = v1beta1.convert_node_pool(stale, Report())["metadata"]["annotations"]
    assert "compatibility.karpenter.sh/v1beta1-kubelet-conversion" not in annotations
    assert annotations["a"] == "b"


def test_resources_of_a_pool_are_dropped() -> None:
    """Resources of a pool are dropped (L-111)."""
    assert codes(changed(POOL, f"{TEMPLATE}.resources", {"requests": {"cpu": "1"}})) == ["v1beta1-resources-dropped"]


def node_class(
    spec: dict[str, Any], annotations: dict[str, str] | None = None
) -> tuple[EC2NodeClass, tuple[Reason, ...]]:
    metadata = {"name": "default", "annotations": annotations or {}}
    decoded = decode(NODE_CLASS | {"metadata": metadata, "spec": NODE_CLASS["spec"] | spec})
    assert isinstance(decoded.object, EC2NodeClass)
    return decoded.object, decoded.notes


@pytest.mark.parametrize("family", ["AL2", "AL2023", "Bottlerocket", "Windows2019", "Windows2022"])
def test_a_family_without_terms_becomes_an_alias(family: str) -> None:
    """A family without terms becomes an alias (L-133, A-73)."""
    found, notes = node_class({"amiFamily": family})
    alias = f"{family.lower()}@latest"
    assert (found.spec.ami_family, found.spec.ami_selector_terms) == ("", (AMITerm(alias=alias),))
    assert found.ami_family == family
    assert notes == (Reason("v1beta1-alias", {"family": family, "alias": alias}),)


def test_the_alias_version_of_an_annotation_is_used() -> None:
    """The alias version of an annotation is used (L-133)."""
    found, _ = node_class({"amiFamily": "AL2"}, {"compatibility.karpenter.k8s.aws/v1-alias-version": "v20240807"})
    assert found.spec.ami_selector_terms == (AMITerm(alias="al2@v20240807"),)
    assert found.annotations == {}


def test_a_family_with_terms_is_copied() -> None:
    """A family with terms is copied (L-133)."""
    found, notes = node_class({"amiFamily": "AL2", "amiSelectorTerms": [{"id": "ami-1"}]})
    assert (found.spec.ami_family, found.spec.ami_selector_terms, notes) == ("AL2", (AMITerm(id="ami-1"),), ())


def test_a73_ubuntu_without_terms_can_never_be_ready() -> None:
    """Ubuntu without terms can never be ready (L-134)."""
    found, notes = node_class({"amiFamily": "Ubuntu"})
    assert found.annotations == {
        "compatibility.karpenter.k8s.aws/v1beta1-ubuntu": "amiFamily,blockDeviceMappings,incompatible"
    }
    assert (found.spec.ami_family, found.spec.ami_selector_terms) == ("AL2", (AMITerm(id="ami-placeholder"),))
    mapping = found.spec.block_device_mappings[0]
    assert mapping.ebs is not None
    assert (mapping.device_name, mapping.root_volume, mapping.ebs.volume_size) == ("/dev/sda1", True, "20Gi")
    assert (mapping.ebs.volume_type, mapping.ebs.encrypted) == ("gp3", True)
    assert [note.code for note in notes] == ["v1beta1-ubuntu", "v1beta1-ubuntu-without-image"]


def test_ubuntu_with_terms_and_devices_changes_only_the_family() -> None:
    """Ubuntu with terms and devices changes only the family (L-134)."""
    devices = [{"deviceName": "/dev/sda1", "ebs": {"volumeSize": "50Gi"}}]
    found, _ = node_class(
        {"amiFamily": "Ubuntu", "amiSelectorTerms": [{"id": "ami-1"}], "blockDeviceMappings": devices}
    )
    assert found.annotations == {"compatibility.karpenter.k8s.aws/v1beta1-ubuntu": "amiFamily"}
    assert len(found.spec.block_device_mappings) == 1


@pytest.mark.parametrize("family", ["Custom", "", None])
def test_custom_and_no_family_are_custom(family: str | None) -> None:
    """Custom and no family are custom (L-135)."""
    assert node_class({"amiFamily": family, "amiSelectorTerms": [{"id": "ami-1"}]})[0].spec.ami_family == "Custom"


def test_custom_needs_terms() -> None:
    """The family Custom needs terms that select images (L-120)."""
    assert refusals(changed(NODE_CLASS, "spec.amiFamily", "Custom")) == {"spec.amiSelectorTerms": "KERF304"}


def test_an_unknown_family_is_refused() -> None:
    """An unknown family is refused (L-119)."""
    assert refusals(changed(NODE_CLASS, "spec.amiFamily", "AL2024"))["spec.amiFamily"] == "KERF305"


def test_the_hop_limit_that_v1beta1_would_have_stored_is_kept() -> None:
    """The hop limit that v1beta1 would have stored is kept (L-121, A-72)."""
    found, notes = node_class({"metadataOptions": {"httpTokens": "optional"}})
    options = found.spec.metadata_options
    assert (options.http_put_response_hop_limit, options.http_tokens, options.http_endpoint) == (
        2,
        "optional",
        "enabled",
    )
    assert "v1beta1-hop-limit" in [note.code for note in notes]
    assert node_class({})[0].spec.metadata_options.http_put_response_hop_limit == 3


@pytest.mark.parametrize("path", ["spec", "metadata", "spec.template", TEMPLATE, "spec.disruption"])
def test_wrong_types_are_refused_before_conversion_can_fail(path: str) -> None:
    assert refusals(changed(POOL, path, "text"))[path] == "KERF303"


def test_every_note_that_conversion_leaves_is_in_the_list() -> None:
    documents = [
        with_disruption(consolidateAfter="Never"),
        with_disruption(consolidationPolicy="WhenEmpty"),
        changed(changed(POOL, f"{TEMPLATE}.kubelet", {}), f"{TEMPLATE}.resources", {}),
        changed(NODE_CLASS, "spec.metadataOptions", None),
        changed(NODE_CLASS, "spec.amiFamily", "Ubuntu"),
    ]
    found = {note.code for document in documents for note in decode(document).notes}
    assert found == set(v1beta1.NOTES)
