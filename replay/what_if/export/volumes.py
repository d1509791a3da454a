"""Write PersistentVolumeClaims, PersistentVolumes, StorageClasses and CSINodes as manifests."""

from __future__ import annotations

from typing import Any

from kerf.engine.model.kubernetes.volumes import CSINode, StorageClass, Volume, VolumeClaim
from kerf.engine.state.state import Facts
from kerf.replay.what_if.export.pods import node_term, without_empty

Document = dict[str, Any]
_BOUND = "pv.kubernetes.io/bind-completed"
_DEFAULT = "storageclass.kubernetes.io/is-default-class"


def volume_documents(facts: Facts) -> dict[str, list[Document]]:
    """Write all of them, under the names that a scenario has for them."""
    return {
        "pvcs": [_claim(claim) for _, claim in sorted(facts.volume_claims.items())],
        "pvs": [_volume(volume) for _, volume in sorted(facts.volumes.items())],
        "storageClasses": [_class(found) for _, found in sorted(facts.storage_classes.items())],
        "csiNodes": [_csi_node(node) for _, node in sorted(facts.csi_nodes.items())],
    }


def _claim(claim: VolumeClaim) -> Document:
    annotations = {"annotations": {_BOUND: "yes"}} if claim.bind_completed else {}
    spec = {"volumeName": claim.volume, "storageClassName": claim.storage_class}
    return {
        "metadata": {"name": claim.name, "namespace": claim.namespace, **annotations},
        "spec": without_empty(spec),
        "status": {"phase": claim.phase},
    }


def _volume(volume: Volume) -> Document:
    spec: Document = {"csi": {"driver": volume.driver, "volumeHandle": volume.name}} if volume.driver else {}
    if volume.local:
        spec["local"] = {"path": "/"}
    if volume.terms:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [node_term(term) for term in volume.terms]}}
    return {"metadata": {"name": volume.name}, "spec": spec}


def _class(found: StorageClass) -> Document:
    annotations = {"annotations": {_DEFAULT: "true"}} if found.default else {}
    topologies = [
        {"matchLabelExpressions": [{"key": e.key, "values": list(e.values)} for e in term.expressions]}
        for term in found.topologies
    ]
    more = without_empty({"allowedTopologies": topologies})
    return {
        "metadata": {"name": found.name, **annotations},
        "provisioner": found.driver,
        "volumeBindingMode": "Immediate" if found.immediate else "WaitForFirstConsumer",
        **more,
    }


def _csi_node(node: CSINode) -> Document:
    drivers = [{"name": name, "allocatable": {"count": count}} for name, count in sorted(node.limits.items())]
    return {"metadata": {"name": node.name}, "spec": {"drivers": drivers}}
