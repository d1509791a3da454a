"""What the API server refuses in the volumes of a pod beyond their schema, and mounts of volumes that are not there."""

from __future__ import annotations

from typing import Any

from kerf.engine.model.did_you_mean import did_you_mean, is_it
from kerf.engine.model.manifests.rules.checks import Check, needs, one_kind_but, one_of, size_of
from kerf.engine.model.manifests.rules.containers import CONTAINERS
from kerf.engine.model.manifests.rules.names import check_label_name
from kerf.engine.model.manifests.violations import Report

_MOUNTS = ("volumeMounts", "volumeDevices")


_PATHS = ("", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice")
RULES_OF_VOLUMES: dict[str, Check] = {
    "": one_kind_but("The volume", ("name",)),  # one of no kind is an emptyDir
    ".name": check_label_name,
    ".persistentVolumeClaim": needs("claimName"),
    ".hostPath": needs("path"),
    ".hostPath.type": one_of(*_PATHS),
    ".emptyDir.sizeLimit": size_of(0),
}
"""What each field of a volume has to be."""


def check_mounts(spec: dict[str, Any], claim_templates: Any, path: str, report: Report) -> None:
    """Report mounts in the spec of a pod that name no volume. A StatefulSet's claims are volumes of its pods, too."""
    volumes = spec.get("volumes")
    if not isinstance(volumes, list | None) or not isinstance(claim_templates, list | None):
        return  # its type is what is wrong
    metadata = [entry.get("metadata") for entry in claim_templates or () if isinstance(entry, dict)]
    names = [str(entry.get("name")) for entry in (*(volumes or ()), *metadata) if isinstance(entry, dict)]
    for holder in CONTAINERS:
        for number, container in enumerate(_list(spec, holder)):
            for mounts in _MOUNTS:
                for index, mount in enumerate(_list(container, mounts)):
                    name = mount.get("name") if isinstance(mount, dict) else None
                    if isinstance(name, str) and name and name not in names:
                        hint = is_it(did_you_mean(name, names)) or "Write it into volumes"
                        at = f"{path}.{holder}[{number}].{mounts}[{index}].name"
                        report.add("KERF305", at, f"The pod has no volume {name}", hint)


def _list(holder: Any, name: str) -> list[Any]:
    found = holder.get(name) if isinstance(holder, dict) else None
    return found if isinstance(found, list) else []
