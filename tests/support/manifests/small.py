"""Small valid manifests for the tests of decoding, and shorthands to change and decode them."""

import copy
from pathlib import Path
from typing import Any

import msgspec
import yaml

from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.kubernetes.pods import Pod, PodShape
from kerf.engine.model.manifests.decode import Decoded, decode_object
from kerf.engine.model.manifests.violations import ManifestError

Document = dict[str, Any]

NODE_POOL: Document = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "default", "uid": "u-1"},
    "spec": {
        "template": {
            "spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                "requirements": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}],
            }
        }
    },
}

EC2_NODE_CLASS: Document = {
    "apiVersion": "karpenter.k8s.aws/v1",
    "kind": "EC2NodeClass",
    "metadata": {"name": "default"},
    "spec": {
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "role": "node-role",
        "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "kerf"}}],
        "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": "kerf"}}],
    },
}

POD: Document = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web-0", "namespace": "shop", "uid": "p-1", "labels": {"app": "web"}},
    "spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": "250m", "memory": "1Gi"}}}]},
}


def changed(document: Document, path: str, value: Any) -> Document:
    """A copy with the field at a dotted path (numbers are list indices) set, or removed for `...`."""
    result = copy.deepcopy(document)
    *steps, last = path.split(".")
    holder: Any = result
    for step in steps:
        holder = holder[int(step)] if isinstance(holder, list) else holder.setdefault(step, {})
    if value is ...:
        del holder[last]
    else:
        holder[int(last) if isinstance(holder, list) else last] = value
    return result


def decode(document: Document) -> Decoded:
    return decode_object(msgspec.json.encode(document))


def pod(document: Document) -> tuple[Pod, PodShape]:
    decoded = decode(document)
    assert isinstance(decoded.object, Pod)
    shape = decoded.blobs[decoded.object.shape]
    assert isinstance(shape, PodShape)
    return decoded.object, shape


def node_pool(document: Document) -> NodePool:
    decoded = decode(document)
    assert isinstance(decoded.object, NodePool)
    return decoded.object


def refusals(document: Document) -> dict[str, str]:
    """Path → code of every violation; empty when the document is accepted."""
    try:
        decode(document)
    except ManifestError as error:
        return {violation.path: violation.code for violation in error.violations}
    return {}


def written(folder: Path, *documents: Any, name: str = "m.yaml") -> Path:
    file = folder / name
    file.write_text("---\n".join(yaml.safe_dump(document) for document in documents), encoding="utf-8")
    return file
