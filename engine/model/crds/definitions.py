"""The kinds of kerf's API: their names, columns and schemas (L-1 to L-6, A-23), and their CustomResourceDefinitions."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from kerf.engine.model import labels
from kerf.engine.model.crds.check import check_document
from kerf.engine.model.crds.ec2nodeclasses import EC2_NODE_CLASS
from kerf.engine.model.crds.feature_gated import CAPACITY_BUFFER, NODE_OVERLAY
from kerf.engine.model.crds.kwoknodeclasses import KWOK_NODE_CLASS
from kerf.engine.model.crds.metadata import check_metadata
from kerf.engine.model.crds.nodepools import NODE_CLAIM, NODE_POOL
from kerf.engine.model.crds.schema import Schema, openapi
from kerf.engine.model.manifests.violations import Report

_MOST_REPLICAS = (1 << 31) - 1


class Column(Struct, frozen=True):
    """A column of kubectl get. One that is not `narrow` is shown only with -o wide."""

    name: str
    path: str
    narrow: bool = True
    type: str = "string"


class Kind(Struct, frozen=True, kw_only=True):
    """A kind of the API. `short` are its short names; `scale` holds the paths of desired and present replicas."""

    group: str
    version: str
    kind: str
    plural: str
    schema: Schema
    columns: tuple[Column, ...] = ()
    short: tuple[str, ...] = ()
    category: str = "karpenter"
    namespaced: bool = False
    scale: tuple[str, str] | None = None

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}"


def _condition(kind: str, of: str = "status") -> str:
    return f'.status.conditions[?(@.type=="{kind}")].{of}'


def _label(key: str) -> str:
    return ".metadata.labels." + key.replace(".", "\\.")


_AGE = Column("Age", ".metadata.creationTimestamp", type="date")
_READY = Column("Ready", _condition("Ready"))
_WEIGHT = Column("Weight", ".spec.weight", narrow=False, type="integer")

KINDS: tuple[Kind, ...] = (
    Kind(
        group="karpenter.sh",
        version="v1",
        kind="NodePool",
        plural="nodepools",
        schema=NODE_POOL,
        scale=(".spec.replicas", ".status.nodes"),
        columns=(
            Column("NodeClass", ".spec.template.spec.nodeClassRef.name"),
            Column("Nodes", ".status.nodes", type="integer"),
            _READY,
            _AGE,
            _WEIGHT,
            Column("CPU", ".status.resources.cpu", narrow=False),
            Column("Memory", ".status.resources.memory", narrow=False),
        ),
    ),
    Kind(
        group="karpenter.sh",
        version="v1",
        kind="NodeClaim",
        plural="nodeclaims",
        schema=NODE_CLAIM,
        columns=(
            Column("Type", _label(labels.INSTANCE_TYPE)),
            Column("Capacity", _label(labels.CAPACITY_TYPE)),
            Column("Zone", _label(labels.ZONE)),
            Column("Node", ".status.nodeName"),
            _READY,
            _AGE,
            Column("ImageID", ".status.imageID", narrow=False),
            Column("ID", ".status.providerID", narrow=False),
            Column("NodePool", _label(labels.NODEPOOL), narrow=False),
            Column("NodeClass", ".spec.nodeClassRef.name", narrow=False),
            Column("Drifted", _condition("Drifted"), narrow=False),
        ),
    ),
    Kind(
        group="karpenter.sh",
        version="v1alpha1",
        kind="NodeOverlay",
        plural="nodeoverlays",
        schema=NODE_OVERLAY,
        short=("overlays",),
        columns=(_READY, _AGE, _WEIGHT),
    ),
    Kind(
        group="autoscaling.x-k8s.io",
        version="v1beta1",
        kind="CapacityBuffer",
        plural="capacitybuffers",
        schema=CAPACITY_BUFFER,
        short=("cb",),
        category="autoscaling",
        namespaced=True,
        columns=(
            Column("Strategy", ".spec.provisioningStrategy"),
            Column("PodTemplate", ".status.podTemplateRef.name"),
            Column("Replicas", ".status.replicas", type="integer"),
            Column("ConditionsType", ".status.conditions[*].type"),
            Column("ConditionsStatus", ".status.conditions[*].status"),
            Column("ConditionsReason", ".status.conditions[*].reason"),
            _AGE,
        ),
    ),
    Kind(
        group="karpenter.k8s.aws",
        version="v1",
        kind="EC2NodeClass",
        plural="ec2nodeclasses",
        schema=EC2_NODE_CLASS,
        short=("ec2nc", "ec2ncs"),
        columns=(_READY, _AGE, Column("Role", ".spec.role", narrow=False)),
    ),
    Kind(
        group="karpenter.kwok.sh",
        version="v1alpha1",
        kind="KWOKNodeClass",
        plural="kwoknodeclasses",
        schema=KWOK_NODE_CLASS,
        short=("kwoknc", "kwokncs"),
    ),
)
BY_NAME: dict[str, Kind] = {f"{kind.api_version}/{kind.kind}": kind for kind in KINDS}
"""The kinds by "apiVersion/kind"."""


def definition(kind: Kind) -> dict[str, Any]:
    """Returns the CustomResourceDefinition of a kind."""
    names = {
        "categories": [kind.category],
        "kind": kind.kind,
        "listKind": f"{kind.kind}List",
        "plural": kind.plural,
        "singular": kind.kind.lower(),
    }
    subresources: dict[str, Any] = {"status": {}}
    if kind.scale is not None:
        wanted, present = kind.scale
        subresources["scale"] = {"specReplicasPath": wanted, "statusReplicasPath": present}
    version = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _whole(kind)},
        "subresources": subresources,
        "additionalPrinterColumns": [_column(column) for column in kind.columns],
    }
    if not kind.columns:
        del version["additionalPrinterColumns"]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "names": names | ({"shortNames": list(kind.short)} if kind.short else {}),
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [version],
        },
    }


def _whole(kind: Kind) -> dict[str, Any]:
    schema = openapi(kind.schema)
    head = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
    return schema | {"properties": head | schema["properties"]}


def _column(column: Column) -> dict[str, Any]:
    shown = {"name": column.name, "type": column.type, "jsonPath": column.path}
    return shown if column.narrow else shown | {"priority": 1}


def admit(document: dict[str, Any], report: Report, *, strict: bool = True) -> Kind | None:
    """Reports what the API server would refuse in an object of these kinds. Returns None for an object of another kind.

    `strict` also refuses unknown fields, as kubectl does; without it they are dropped silently.
    """
    kind = BY_NAME.get(f"{document.get('apiVersion')}/{document.get('kind')}")
    if kind is None:
        return None
    check_metadata(document.get("metadata"), report, namespaced=kind.namespaced, strict=strict)
    check_document(kind.schema, document, report, strict=strict)
    if kind.scale is not None:
        _check_scale(document.get("spec"), report)
    return kind


def _check_scale(spec: Any, report: Report) -> None:
    """Refuses replicas that a Scale could not hold. The API server does so, whatever the schema says."""
    replicas = spec.get("replicas") if isinstance(spec, dict) else None
    if isinstance(replicas, int) and replicas > _MOST_REPLICAS:
        report.add("KERF309", "spec.replicas", f"replicas is at most {_MOST_REPLICAS}, not {replicas}")
