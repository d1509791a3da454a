"""Services, workloads' selectors, PodTemplates, NodeOverlays and CapacityBuffers, from their documents."""

from __future__ import annotations

from typing import Any

import pytest

from kerf.engine.model.karpenter.capacity_buffers import CapacityBuffer
from kerf.engine.model.karpenter.nodeoverlays import Adjustment, NodeOverlay
from kerf.engine.model.karpenter.nodepools import RequirementSpec
from kerf.engine.model.kubernetes.pod_templates import PodTemplate
from kerf.engine.model.kubernetes.pods import Expression, PodShape, Selector
from kerf.engine.model.kubernetes.services import Service
from kerf.engine.model.kubernetes.workloads import Workload, watched
from kerf.engine.model.manifests.decode import decode_object
from kerf.engine.model.manifests.violations import ManifestError

TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}


def decoded(version: str, kind: str, **fields: Any) -> Any:
    document = {"apiVersion": version, "kind": kind, "metadata": {"name": "n", "namespace": "shop"}, **fields}
    return decode_object(document)


def paths(version: str, kind: str, **fields: Any) -> list[tuple[str, str]]:
    with pytest.raises(ManifestError) as refused:
        decoded(version, kind, **fields)
    return [(violation.code, violation.path) for violation in refused.value.violations]


def overlay(**spec: Any) -> Any:
    return decoded("karpenter.sh/v1alpha1", "NodeOverlay", spec={"requirements": [], **spec}).object


def refused_overlay(**spec: Any) -> list[tuple[str, str]]:
    return paths("karpenter.sh/v1alpha1", "NodeOverlay", spec={"requirements": [], **spec})


def buffer(**spec: Any) -> Any:
    return decoded("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer", spec=spec).object


def refused_buffer(**spec: Any) -> list[tuple[str, str]]:
    return paths("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer", spec=spec)


def test_s151_a_service_is_its_selector() -> None:
    assert decoded("v1", "Service", spec={"selector": {"app": "a"}}).object == Service("shop", "n", {"app": "a"})
    assert decoded("v1", "Service", spec={"type": "ExternalName"}).object == Service("shop", "n")


@pytest.mark.parametrize(
    ("version", "kind", "selector", "expected"),
    [
        ("apps/v1", "ReplicaSet", {"matchLabels": {"a": "b"}}, Selector({"a": "b"})),
        (
            "apps/v1", "StatefulSet", {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
            Selector({}, (Expression("a", "Exists"),)),
        ),
        ("v1", "ReplicationController", {"a": "b"}, Selector({"a": "b"})),
        ("v1", "ReplicationController", {}, None),
    ],
)  # fmt: skip
def test_s151_workloads_keep_their_selectors(version: str, kind: str, selector: Any, expected: Selector | None) -> None:
    read = decoded(version, kind, spec={"selector": selector, "replicas": 3, "template": TEMPLATE})
    assert isinstance(read.object, Workload)
    assert (read.object.selector, read.object.replicas) == (expected, 3)
    assert read.object.key == f"{version}/{kind}/shop/n"
    kept = watched(read.object)
    assert (kept.template_labels, kept.selector, kept.shape) == ({}, expected, read.object.shape)


def test_s177_a_pod_template_is_its_shape() -> None:
    read = decoded("v1", "PodTemplate", template=TEMPLATE)
    assert isinstance(read.object, PodTemplate)
    assert read.object.key == "shop/n"
    (shape,) = read.blobs.values()
    assert isinstance(shape, PodShape)
    assert shape.labels == {"app": "a"}
    assert paths("v1", "PodTemplate") == [("KERF304", "template.spec")]


def test_l49_l52_an_overlay() -> None:
    wanted: dict[str, Any] = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.large"]}
    found = overlay(requirements=[wanted], price="0.25", capacity={"smarter-devices/fuse": 1}, weight=10)
    assert found == NodeOverlay(
        "n", requirements=(RequirementSpec(wanted["key"], "In", ("m5.large",)),), price=0.25,
        capacity={"smarter-devices/fuse": 1}, weight=10,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "change", "of_two"),
    [
        ("+0.5", Adjustment(0.5), 2.5),
        ("-.3", Adjustment(-0.3), 1.7),
        ("-3", Adjustment(-3.0), 0.0),
        ("+250%", Adjustment(250.0, percent=True), 7.0),
        ("-15%", Adjustment(-15.0, percent=True), 1.7),
        ("-100%", Adjustment(-100.0, percent=True), 0.0),
    ],
)
def test_l50_l51_changes_of_prices(text: str, change: Adjustment, of_two: float) -> None:
    found = overlay(priceAdjustment=text)
    assert found.adjustment == change
    assert found.priced(2.0) == pytest.approx(of_two)


def test_l49_l52_what_an_overlay_may_not_say() -> None:
    assert refused_overlay(priceAdjustment="20%") == [("KERF306", "spec.priceAdjustment")]
    assert refused_overlay(priceAdjustment="-150%") == [("KERF306", "spec.priceAdjustment")]
    assert refused_overlay(price="-1") == [("KERF306", "spec.price")]
    assert refused_overlay(price="1", priceAdjustment="+1") == [("KERF317", "spec.price")]
    assert refused_overlay(capacity={"cpu": 1, "x/y": 1}) == [("KERF306", "spec.capacity[cpu]")]
    assert refused_overlay(weight=0) == [("KERF309", "spec.weight")]
    negative = {"key": "a", "operator": "NotIn", "values": []}
    assert refused_overlay(requirements=[negative]) == [("KERF310", "spec.requirements[0].values")]
    assert refused_overlay(requirements=None) == [("KERF304", "spec.requirements")]


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("capacity-reservation-interruptible", ""),
        ("instance-tenancy", ""),
        ("placement-group-partition", ""),
        ("instance-familly", "Is it karpenter.k8s.aws/instance-family?"),
    ],
)
def test_a69_an_overlay_names_no_reservation_tenancy_or_placement_group(key: str, hint: str) -> None:
    """And it is not told to write the key that it wrote."""
    named = {"key": f"karpenter.k8s.aws/{key}", "operator": "In", "values": ["true"]}
    with pytest.raises(ManifestError) as refused:
        overlay(requirements=[named], price="0.1")
    (violation,) = refused.value.violations
    assert (violation.code, violation.path, violation.hint) == ("KERF311", "spec.requirements[0].key", hint)
    overlay(requirements=[{**named, "key": "karpenter.k8s.aws/instance-family"}], price="0.1")


def test_l57_a_buffer() -> None:
    assert buffer(podTemplateRef={"name": "t"}, replicas=2, limits={"cpu": "8"}) == CapacityBuffer(
        "shop/n", "shop", "n", template="t", replicas=2, limits={"cpu": 8000}
    )
    assert buffer(scalableRef={"apiGroup": "apps", "kind": "Deployment", "name": "d"}, percentage=20) == CapacityBuffer(
        "shop/n", "shop", "n", kind="apps/v1/Deployment", workload="d", percentage=20
    )
    assert buffer() == CapacityBuffer("shop/n", "shop", "n")  # admitted, and never ready


def test_l57_what_a_buffer_may_not_say() -> None:
    assert refused_buffer(podTemplateRef={"name": "t"}) == [("KERF304", "spec.replicas")]
    assert refused_buffer(podTemplateRef={"name": ""}, replicas=1) == [("KERF304", "spec.podTemplateRef.name")]
    assert refused_buffer(scalableRef={}) == [
        ("KERF304", "spec.scalableRef.kind"),
        ("KERF304", "spec.scalableRef.name"),
    ]
    both = refused_buffer(podTemplateRef={"name": "t"}, scalableRef={"kind": "Deployment", "name": "d"}, replicas=1)
    assert both == [("KERF317", "spec.podTemplateRef")]
    assert refused_buffer(replicas=-1, percentage=-1) == [("KERF309", "spec.replicas"), ("KERF309", "spec.percentage")]


def test_l67_the_generation_of_overlays_and_buffers_is_read() -> None:
    for version, kind, spec in (
        ("karpenter.sh/v1alpha1", "NodeOverlay", {"requirements": []}),
        ("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer", {"podTemplateRef": {"name": "t"}, "replicas": 1}),
    ):
        metadata = {"name": "n", "namespace": "shop", "generation": 5}
        assert decoded(version, kind, metadata=metadata, spec=spec).object.generation == 5
