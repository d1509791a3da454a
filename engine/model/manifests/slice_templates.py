"""What a catalogue says that a type's nodes will publish: slice templates (S-196), and which devices will have one
value of an attribute that only a node has (S-200)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kerf.engine.model.kubernetes.devices import AttributeBinding, ResourceSlice
from kerf.engine.model.manifests.decode import decode_object


def slice_templates(specs: Iterable[Mapping[str, Any]]) -> tuple[ResourceSlice, ...]:
    """From `resourceSlices`: each is the spec of a ResourceSlice. Raises ManifestError (KERF3xx) for a bad one."""
    return tuple(_template(number, spec) for number, spec in enumerate(specs))


def _template(number: int, spec: Mapping[str, Any]) -> ResourceSlice:
    metadata = {"name": f"template-{number}"}
    document = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": metadata, "spec": dict(spec)}
    found = decode_object(document).object
    assert isinstance(found, ResourceSlice)
    return found


def attribute_bindings(documents: Iterable[Mapping[str, Any]]) -> tuple[AttributeBinding, ...]:
    """From `attributeBindings`: each has an `attribute` and `devices`, these by driver, pool and device. Raises
    KeyError or TypeError for another form."""
    return tuple(
        AttributeBinding(
            str(document["attribute"]),
            tuple((str(one["driver"]), str(one["pool"]), str(one["device"])) for one in document["devices"]),
        )
        for document in documents
    )
