"""Put the kubelets of v1beta1 NodePools onto their EC2NodeClasses, where v1 has them (L-131).

A converted NodePool keeps its kubelet in an annotation. Karpenter 1.0 let it outrank the kubelet of the EC2NodeClass;
later versions ignore it. A NodePool whose kubelet is not that of the class's other NodePools gets a class of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from kerf.engine.model.manifests.karpenter.v1beta1 import KUBELET_CONVERSION

Document = dict[str, Any]


class MovedKubelets(msgspec.Struct, frozen=True):
    """All documents, and of each NodePool whose kubelet was moved (by its index) the name of the class that has it."""

    documents: list[Document]
    moved: dict[int, str]


def with_moved_kubelets(documents: Sequence[Document], converted: Sequence[int]) -> MovedKubelets:
    """Move the kubelets of `converted` NodePools, given by index, to EC2NodeClasses that are among the documents. A
    NodePool whose class is not there keeps its annotation."""
    found, moved, added = list(documents), dict[int, str](), dict[str, Document]()
    classes = {_name(each): index for index, each in enumerate(documents) if _is_class(each)}
    for name, at in classes.items():
        pools = [index for index, each in enumerate(documents) if _class_of(each) == name]
        alike = len({_kubelet(documents[index]) for index in pools}) == 1
        for index in (index for index in pools if index in converted):
            pool = documents[index]
            moved[index] = name if alike else f"{name}-{_name(pool)}"
            node_class = _class_with(documents[at], moved[index], msgspec.json.decode(_kubelet(pool)))
            if alike:
                found[at] = node_class
            else:
                added[moved[index]] = node_class
            found[index] = _pool_of(pool, moved[index])
    return MovedKubelets([*found, *added.values()], moved)


def _name(document: Document) -> str:
    return str(_at(document, "metadata").get("name", ""))


def _is_class(document: Document) -> bool:
    return document.get("kind") == "EC2NodeClass" and bool(_name(document)) and bool(_at(document, "spec"))


def _annotations(document: Document) -> Document:
    return _at(document, "metadata", "annotations")


def _kubelet(pool: Document) -> str:
    return str(_annotations(pool).get(KUBELET_CONVERSION, ""))


def _class_of(document: Document) -> str:
    """The EC2NodeClass of a NodePool, "" for anything else."""
    if document.get("kind") != "NodePool":
        return ""
    reference = _at(document, "spec", "template", "spec", "nodeClassRef")
    return str(reference.get("name", "")) if reference.get("kind") == "EC2NodeClass" else ""


def _at(document: Document, *path: str) -> Document:
    """The object at a path; an empty one where there is none. Nobody has checked documents that were v1 before."""
    found: Any = document
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _class_with(node_class: Document, name: str, kubelet: Any) -> Document:
    """The class under a name, with a kubelet."""
    return node_class | {
        "metadata": node_class["metadata"] | {"name": name},
        "spec": node_class["spec"] | {"kubelet": kubelet},
    }


def _pool_of(pool: Document, node_class: str) -> Document:
    """The NodePool with its class, and without the annotation."""
    annotations = {key: text for key, text in _annotations(pool).items() if key != KUBELET_CONVERSION}
    spec, template = pool["spec"], pool["spec"]["template"]
    node = template["spec"] | {"nodeClassRef": template["spec"]["nodeClassRef"] | {"name": node_class}}
    metadata = {key: part for key, part in pool["metadata"].items() if key != "annotations"}
    return pool | {
        "metadata": metadata | ({"annotations": annotations} if annotations else {}),
        "spec": spec | {"template": template | {"spec": node}},
    }
