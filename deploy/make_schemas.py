"""Writes adapters/kubernetes/data/schemas.json: Kubernetes' published schemas, cut to what `kerf validate` checks.

    make schemas

The source is the package kubernetes-validate, which holds them for each version of Kubernetes. Of the newest version
the file keeps the kinds of `KINDS` with all that they refer to, without descriptions. `since` names the version that
brought a field, for those that the oldest version does not have.
"""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

OUT = Path(__file__).resolve().parents[1] / "adapters" / "kubernetes" / "data" / "schemas.json"
KINDS = {
    "v1/Pod": "io.k8s.api.core.v1.Pod",
    "v1/PodTemplate": "io.k8s.api.core.v1.PodTemplate",
    "v1/ReplicationController": "io.k8s.api.core.v1.ReplicationController",
    "v1/Namespace": "io.k8s.api.core.v1.Namespace",
    "v1/Node": "io.k8s.api.core.v1.Node",
    "v1/PersistentVolume": "io.k8s.api.core.v1.PersistentVolume",
    "v1/PersistentVolumeClaim": "io.k8s.api.core.v1.PersistentVolumeClaim",
    "v1/Service": "io.k8s.api.core.v1.Service",
    "apps/v1/DaemonSet": "io.k8s.api.apps.v1.DaemonSet",
    "apps/v1/Deployment": "io.k8s.api.apps.v1.Deployment",
    "apps/v1/ReplicaSet": "io.k8s.api.apps.v1.ReplicaSet",
    "apps/v1/StatefulSet": "io.k8s.api.apps.v1.StatefulSet",
    "batch/v1/CronJob": "io.k8s.api.batch.v1.CronJob",
    "batch/v1/Job": "io.k8s.api.batch.v1.Job",
    "policy/v1/PodDisruptionBudget": "io.k8s.api.policy.v1.PodDisruptionBudget",
    "scheduling.k8s.io/v1/PriorityClass": "io.k8s.api.scheduling.v1.PriorityClass",
    "storage.k8s.io/v1/CSINode": "io.k8s.api.storage.v1.CSINode",
    "storage.k8s.io/v1/StorageClass": "io.k8s.api.storage.v1.StorageClass",
    "storage.k8s.io/v1/VolumeAttachment": "io.k8s.api.storage.v1.VolumeAttachment",
}
"""apiVersion/kind → the name of its definition."""
QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
SCALARS = {QUANTITY: {"type": "amount"}, INT_OR_STRING: {"type": "quantity"}}
"""Definitions that are one value, with the type that engine/model/crds/schema.py has for it."""
KEPT = ("format", "required")
Definitions = dict[str, dict[str, Any]]


def versions() -> dict[str, Definitions]:
    """The definitions of each version ("1.37"), oldest first."""
    folder = files("kubernetes_validate").joinpath("kubernetes-json-schema")
    names = [match for entry in folder.iterdir() if (match := re.fullmatch(r"v1\.(\d+)\.\d+-local-strict", entry.name))]
    return {
        f"1.{match[1]}": json.loads(folder.joinpath(match[0], "_definitions.json").read_text(encoding="utf-8"))["$defs"]
        for match in sorted(names, key=lambda match: int(match[1]))
    }


def cut(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema without descriptions: what is checked, and nothing else."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return SCALARS.get(name) or {"$ref": name}
    types = schema.get("type", "")
    kind = types if isinstance(types, str) else next(name for name in types if name != "null")
    found: dict[str, Any] = {"type": kind} | {key: schema[key] for key in KEPT if schema.get(key)}
    if schema.get("properties"):
        found["properties"] = {name: cut(field) for name, field in sorted(schema["properties"].items())}
    if schema.get("items"):
        found["items"] = cut(schema["items"])
    if isinstance(schema.get("additionalProperties"), dict):
        found["values"] = cut(schema["additionalProperties"])
    return found


def reached(definitions: Definitions) -> Definitions:
    """The kinds and all that they refer to, cut, by name."""
    found: Definitions = {}
    waiting = list(KINDS.values())
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = cut(definitions[name])
            waiting += re.findall(r'"\$ref": "([^"]+)"', json.dumps(found[name]))
    return dict(sorted(found.items()))


def since(every: dict[str, Definitions], definitions: Definitions) -> dict[str, dict[str, str]]:
    """Definition → field → the first version that has it, for fields that the oldest version does not have.

    A definition that the oldest version does not have is left out: the field that leads to it is named.
    """
    oldest = next(iter(every.values()))
    found: dict[str, dict[str, str]] = {}
    for name in definitions.keys() & oldest.keys():
        known = oldest[name].get("properties", {})
        for field in definitions[name].get("properties", {}):
            if field not in known:
                first = next(at for at, old in every.items() if field in old.get(name, {}).get("properties", {}))
                found.setdefault(name, {})[field] = first
    return dict(sorted(found.items()))


def document() -> str:
    """The content of the file."""
    every = versions()
    definitions = reached(every[list(every)[-1]])
    content = {
        "oldest": next(iter(every)),
        "newest": list(every)[-1],
        "kinds": KINDS,
        "since": since(every, definitions),
        "definitions": definitions,
    }
    return json.dumps(content, separators=(",", ":")) + "\n"


def main() -> None:
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(document(), encoding="utf-8")


if __name__ == "__main__":
    main()
