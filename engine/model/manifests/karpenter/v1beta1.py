"""v1beta1 NodePools and EC2NodeClasses become v1 documents before they are read (L-127…L-135, A-73).

The conversion works on plain JSON documents and moves what it does not understand unchanged: reading the v1 document
then refuses it. `NODEPOOL_MOVED` tells where the author wrote a field that v1 has elsewhere, for the paths of refusals.

One quirk of the reference is not repeated (L-128): consolidation that v1beta1 switched off stays off.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kerf.engine.model.crds.kubelet import check_v1beta1_kubelet
from kerf.engine.model.manifests.violations import Report

KUBELET_ON_POOL = "v1beta1-kubelet-on-pool"
NOTES: dict[str, str] = {
    "v1beta1-consolidation-stays-off": "consolidateAfter Never with WhenUnderutilized switched consolidation off, and "
    "still does; Karpenter's own conversion would have switched it on",
    "v1beta1-empty-nodes-stay": "WhenEmpty without consolidateAfter never removes empty nodes",
    "v1beta1-node-class-assumed": "nodeClassRef named no apiVersion or kind: {group}/{kind} was taken",
    KUBELET_ON_POOL: "kubelet moved to the annotation {annotation}; set spec.kubelet of the EC2NodeClass, "
    "which is what counts",
    "v1beta1-resources-dropped": "spec.template.spec.resources of a NodePool never had an effect and was dropped",
    "v1beta1-alias": "amiFamily {family} without terms became the alias {alias}",
    "v1beta1-ubuntu": "amiFamily Ubuntu is gone: AL2 was taken, and changed were {changed}",
    "v1beta1-ubuntu-without-image": "without amiSelectorTerms nothing says which image of Ubuntu to start: the class "
    "never becomes ready",
    "v1beta1-hop-limit": "httpPutResponseHopLimit was not given: v1beta1's default of 2 was kept (v1's is 1)",
}
"""The closed list of notes that conversion leaves, and their sentences."""

NODE_CLASS_REFERENCE = "compatibility.karpenter.sh/v1beta1-nodeclass-reference"
KUBELET_CONVERSION = "compatibility.karpenter.sh/v1beta1-kubelet-conversion"
ALIAS_VERSION = "compatibility.karpenter.k8s.aws/v1-alias-version"
UBUNTU = "compatibility.karpenter.k8s.aws/v1beta1-ubuntu"

_DEFAULT_GROUP, _DEFAULT_KIND = "karpenter.k8s.aws", "EC2NodeClass"

NODEPOOL_MOVED = {
    "spec.template.spec.expireAfter": "spec.disruption.expireAfter",
    "spec.template.spec.nodeClassRef.group": "spec.template.spec.nodeClassRef.apiVersion",
}
_ALIASED_FAMILIES = ("AL2", "AL2023", "Bottlerocket", "Windows2019", "Windows2022")

Document = dict[str, Any]


def convert_node_pool(document: Document, report: Report) -> Document:
    """The v1 document of a v1beta1 NodePool, as new objects. Violations of v1beta1's own rules go to `report`."""
    pool = document | {"apiVersion": "karpenter.sh/v1"}
    metadata, annotations = _metadata(pool, report)
    spec = pool["spec"] = _object(report, "spec", pool.get("spec"))
    template = spec["template"] = _object(report, "spec.template", spec.get("template"))
    node = template["spec"] = _object(report, "spec.template.spec", template.get("spec"))
    disruption = _object(report, "spec.disruption", spec.get("disruption"))
    spec["disruption"], node["expireAfter"] = _disruption(disruption, report)
    if "nodeClassRef" in node:
        node["nodeClassRef"] = _node_class_ref(node["nodeClassRef"], annotations, report)
    if node.pop("resources", None) is not None:
        report.note("v1beta1-resources-dropped")
    _move_kubelet(node, annotations, report)
    pool["metadata"] = metadata | {"annotations": annotations}
    return pool


def _metadata(document: Document, report: Report) -> tuple[Document, Document]:
    """Copies of the metadata and of its annotations."""
    metadata = _object(report, "metadata", document.get("metadata"))
    return metadata, _object(report, "metadata.annotations", metadata.get("annotations"))


def _disruption(disruption: Document, report: Report) -> tuple[Document, Any]:
    """The v1 disruption, and expireAfter, which moves to the template (L-104…L-108, L-128, L-129)."""
    expire_after = disruption.pop("expireAfter", None) or "720h"
    policy = disruption.get("consolidationPolicy") or "WhenUnderutilized"
    after = disruption.get("consolidateAfter")
    if policy == "WhenUnderutilized":
        if after is not None and after != "Never":
            message = f"v1beta1 takes consolidateAfter {after!r} only with the policy WhenEmpty"
            report.add("KERF310", "spec.disruption.consolidateAfter", message, "Write Never, or leave it out")
        elif after == "Never":
            report.note("v1beta1-consolidation-stays-off")
        policy, after = "WhenEmptyOrUnderutilized", after or "0s"
    elif after is None:
        report.note("v1beta1-empty-nodes-stay")
        after = "Never"
    return disruption | {"consolidationPolicy": policy, "consolidateAfter": after}, expire_after


def _node_class_ref(ref: Any, annotations: Document, report: Report) -> Any:
    """The reference with the group and kind that v1beta1 leaves out, and the old one kept as an annotation (L-110,
    L-130)."""
    if not isinstance(ref, dict):
        return ref
    annotations[NODE_CLASS_REFERENCE] = msgspec.json.encode(ref, order="sorted").decode()
    api_version, kind = ref.get("apiVersion") or "", ref.get("kind") or _DEFAULT_KIND
    group = api_version.partition("/")[0] if isinstance(api_version, str) else api_version
    converted = {"group": group or _DEFAULT_GROUP, "kind": kind, "name": ref.get("name")}
    if not ref.get("apiVersion") or not ref.get("kind"):
        report.note("v1beta1-node-class-assumed", group=str(converted["group"]), kind=str(kind))
    return converted


def _move_kubelet(node: Document, annotations: Document, report: Report) -> None:
    """Move the kubelet settings, which v1 has on the NodeClass, to an annotation (L-109, L-131)."""
    kubelet = node.pop("kubelet", None)
    annotations.pop(KUBELET_CONVERSION, None)
    if kubelet is not None:
        check_v1beta1_kubelet(kubelet, report, "spec.template.spec.kubelet")
        annotations[KUBELET_CONVERSION] = msgspec.json.encode(kubelet, order="sorted").decode()
        report.note(KUBELET_ON_POOL, annotation=KUBELET_CONVERSION)


def convert_ec2_node_class(document: Document, report: Report) -> Document:
    """The v1 document of a v1beta1 EC2NodeClass, as new objects (L-133…L-135)."""
    node_class = document | {"apiVersion": "karpenter.k8s.aws/v1"}
    metadata, annotations = _metadata(node_class, report)
    spec = node_class["spec"] = _object(report, "spec", node_class.get("spec"))
    _convert_family(spec, annotations, report)
    _keep_hop_limit(spec, report)
    node_class["metadata"] = metadata | {"annotations": annotations}
    return node_class


def _convert_family(spec: Document, annotations: Document, report: Report) -> None:
    """Convert the AMI family (L-119, L-133, L-135). One that v1beta1 does not know is refused, as it was then."""
    family, terms = spec.get("amiFamily"), spec.get("amiSelectorTerms")
    version = annotations.pop(ALIAS_VERSION, None) or "latest"
    if family in _ALIASED_FAMILIES and not terms:
        alias = f"{family.lower()}@{version}"
        del spec["amiFamily"]
        spec["amiSelectorTerms"] = [{"alias": alias}]
        report.note("v1beta1-alias", family=family, alias=alias)
    elif family == "Ubuntu":
        _convert_ubuntu(spec, annotations, report)
    elif not family:
        spec["amiFamily"] = "Custom"
    elif isinstance(family, str):
        report.one_of("spec.amiFamily", family, (*_ALIASED_FAMILIES, "Ubuntu", "Custom"))


def _convert_ubuntu(spec: Document, annotations: Document, report: Report) -> None:
    """Convert Ubuntu: without terms there is no image to start, and the placeholder keeps it not ready (L-134)."""
    changed = ["amiFamily"]
    spec["amiFamily"] = "AL2"
    if not spec.get("blockDeviceMappings"):
        changed.append("blockDeviceMappings")
        root = {"volumeSize": "20Gi", "volumeType": "gp3", "encrypted": True}
        spec["blockDeviceMappings"] = [{"deviceName": "/dev/sda1", "rootVolume": True, "ebs": root}]
    if not spec.get("amiSelectorTerms"):
        changed.append("incompatible")
        spec["amiSelectorTerms"] = [{"id": "ami-placeholder"}]
    annotations[UBUNTU] = ",".join(changed)
    report.note("v1beta1-ubuntu", changed=changed)
    if "incompatible" in changed:
        report.note("v1beta1-ubuntu-without-image")


def _keep_hop_limit(spec: Document, report: Report) -> None:
    """Keep the hop limit that v1beta1 would have stored for metadata options that say nothing of it (L-121)."""
    options = _object(report, "spec.metadataOptions", spec.get("metadataOptions"))
    if options.get("httpPutResponseHopLimit") is None:
        spec["metadataOptions"] = options | {"httpPutResponseHopLimit": 2}
        report.note("v1beta1-hop-limit")


def _object(report: Report, path: str, value: Any) -> Document:
    """A copy of the object at `path`, {} for an absent one; for anything else too, after reporting it."""
    if isinstance(value, dict):
        return dict(value)
    if value is not None:
        report.add("KERF303", path, "Expected an object")
    return {}
