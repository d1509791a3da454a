"""What the API server refuses in volumes, of pods and by themselves, and in claims of them, beyond their schema.

A value of the wrong type is passed over: the schema reports it.
"""

from __future__ import annotations

from typing import Any

from kerf.engine.model.did_you_mean import did_you_mean, is_it
from kerf.engine.model.manifests.rules.checks import (
    Check,
    between,
    both,
    check_label_key,
    check_label_value,
    domain_name,
    filled,
    needs,
    node_field,
    of_selector,
    one_kind_but,
    one_kind_of,
    one_of,
    one_of_given,
    relative_path,
    size_of,
)
from kerf.engine.model.manifests.rules.containers import CONTAINERS
from kerf.engine.model.manifests.rules.names import check_domain_name, check_label_name
from kerf.engine.model.manifests.violations import Report

_MOUNTS = ("volumeMounts", "volumeDevices")
_PATHS = ("", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice")
_MODES = between(0, 0o777)
_ONE_POD = "ReadWriteOncePod"
_TOKEN_SECONDS = 60 * 10, 1 << 32
"""The seconds that a token may hold."""
_OF_FILES = ("configMap", "secret", "downwardAPI")
_FIELDS = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
_LONGEST_DRIVER = 63


def _driver(report: Report, path: str, value: Any) -> None:
    if isinstance(value, str) and value:
        check_domain_name(report, path, value.lower(), _LONGEST_DRIVER)


def _absolute(report: Report, path: str, value: Any) -> None:
    if isinstance(value, str) and value and not value.startswith("/"):
        report.add("KERF305", path, f"{value!r} does not begin with /")


def _without_steps_back(report: Report, path: str, value: Any) -> None:
    if isinstance(value, str) and ".." in value.split("/"):
        report.add("KERF305", path, f"{value!r} has .. in it", "Write where it leads to")


def _field(report: Report, path: str, value: Any) -> None:
    """Report a field of the pod that no file can hold."""
    if isinstance(value, str) and value and "[" not in value:
        report.one_of(path, value, _FIELDS)


def _storage(report: Report, path: str, value: Any) -> None:
    """Report a claim that asks for no storage. Its text is a quantity, or that is what is wrong."""
    requests = value.get("requests") if isinstance(value, dict) else None
    size = requests.get("storage") if isinstance(requests, dict) else None
    if size is None:
        report.add("KERF304", f"{path}.requests[storage]", "A claim says how much storage it asks for")
    else:
        size_of(1)(report, f"{path}.requests[storage]", size)


def _claim(report: Report, path: str, value: Any) -> None:
    if isinstance(value, dict) and value.get("accessModes") is None:
        report.add("KERF304", f"{path}.accessModes", "accessModes is required", "Write [ReadWriteOnce]")
    if isinstance(value, dict) and value.get("resources") is None:
        _storage(report, f"{path}.resources", {})


def _volume(report: Report, path: str, value: Any) -> None:
    """Report a volume that is several things at once, or lacks what each has."""
    one_kind_but("The volume", _NO_SOURCES)(report, path, value)
    needs("accessModes", "capacity")(report, path, value)


def _capacity(report: Report, path: str, value: Any) -> None:
    """Report a volume of no size, or with one of something else than storage."""
    if not isinstance(value, dict):
        return
    size_of(1)(report, f"{path}[storage]", value.get("storage"))
    others = [name for name in value if name != "storage"]
    if others or not value:
        told = f"A volume has a size of storage, not of {', '.join(map(str, others))}" if others else "It has no size"
        report.add("KERF305", path, told, "Write storage: 10Gi")


def _origin(report: Report, path: str, value: Any) -> None:
    """Report what a volume cannot be made of. Where namespaces are not for use yet, one with a namespace is dropped."""
    if isinstance(value, dict) and value.get("namespace"):
        return
    needs("kind", "name")(report, path, value)
    kind = value.get("kind") if isinstance(value, dict) else None
    group = value.get("apiGroup") if isinstance(value, dict) else None
    domain_name(report, f"{path}.apiGroup", group)
    if isinstance(kind, str) and kind and not group:
        report.one_of(f"{path}.kind", kind, ("PersistentVolumeClaim",), "Name the apiGroup of another kind")


def _access_modes(report: Report, path: str, value: Any) -> None:
    filled(report, path, value)
    if isinstance(value, list) and _ONE_POD in value and any(mode != _ONE_POD for mode in value):
        report.add("KERF309", path, f"{_ONE_POD} stands beside other modes", "Leave out the others")


_OF_ITEMS: dict[str, Check] = {"items[]": needs("key", "path"), "items[].path": relative_path, "items[].mode": _MODES}
_OF_DOWNWARD: dict[str, Check] = {
    "items[]": both(needs("path"), one_kind_of("The file", "fieldRef", "resourceFieldRef")),
    "items[].path": relative_path,
    "items[].mode": _MODES,
    "items[].fieldRef.fieldPath": _field,
}
_OF_SOURCES: dict[str, Check] = {
    **{f"{source}.{field}": check for source in ("configMap", "secret") for field, check in _OF_ITEMS.items()},
    **{f"downwardAPI.{field}": check for field, check in _OF_DOWNWARD.items()},
}
_ACCESS: dict[str, Check] = {
    "accessModes": _access_modes,
    "accessModes[]": one_of_given("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", _ONE_POD),
    "volumeMode": one_of("Filesystem", "Block"),
    "storageClassName": domain_name,
}
CLAIM: dict[str, Check] = {
    "spec": _claim,
    "spec.resources": _storage,
    **{f"spec.{field}": check for field, check in of_selector("selector").items()},
    "spec.volumeAttributesClassName": domain_name,
    "spec.dataSourceRef": _origin,
    **{f"spec.{field}": check for field, check in _ACCESS.items()},
}
_TERMS = "nodeAffinity.required.nodeSelectorTerms"
_SECRETS = (
    "controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef",
)  # fmt: skip
_NO_SOURCES = frozenset({
    "accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity", "persistentVolumeReclaimPolicy",
    "storageClassName", "volumeAttributesClassName", "volumeMode",
})  # fmt: skip
"""The fields of a PersistentVolume that do not say what it is."""
_VOLUME: dict[str, Check] = {
    **_ACCESS,
    _TERMS: filled,
    "capacity": _capacity,
    "persistentVolumeReclaimPolicy": one_of("Delete", "Recycle", "Retain"),
    "volumeAttributesClassName": check_domain_name,
    "csi": needs("driver", "volumeHandle"),
    "csi.driver": _driver,
    **{f"csi.{secret}": needs("name", "namespace") for secret in _SECRETS},
    **{f"csi.{secret}.name": domain_name for secret in _SECRETS},
    **{f"csi.{secret}.namespace": check_label_name for secret in _SECRETS},
    f"{_TERMS}[].matchFields[]": node_field,
    f"{_TERMS}[].matchExpressions[].key": check_label_key,
    f"{_TERMS}[].matchExpressions[].values[]": check_label_value,
}
PERSISTENT_VOLUME = {"spec": _volume, **{f"spec.{field}": check for field, check in _VOLUME.items()}}
RULES_OF_VOLUMES: dict[str, Check] = {
    "": both(needs("name"), one_kind_but("The volume", ("name",))),  # one of no kind is an emptyDir
    ".name": check_label_name,
    ".persistentVolumeClaim": needs("claimName"),
    ".hostPath": needs("path"),
    ".hostPath.path": _without_steps_back,
    ".hostPath.type": one_of(*_PATHS),
    ".emptyDir.sizeLimit": size_of(0),
    ".configMap": needs("name"),
    ".secret": needs("secretName"),
    **{f".{field}": check for field, check in _OF_SOURCES.items()},
    **{f".{source}.defaultMode": _MODES for source in (*_OF_FILES, "projected")},
    ".projected.sources[]": one_kind_but("The source", ()),
    ".projected.sources[].serviceAccountToken": needs("path"),
    ".projected.sources[].serviceAccountToken.expirationSeconds": between(*_TOKEN_SECONDS),
    **{f".projected.sources[].{field}": check for field, check in _OF_SOURCES.items()},
    ".csi": needs("driver"),
    ".csi.driver": _driver,
    ".nfs": needs("server", "path"),
    ".nfs.path": _absolute,
    ".awsElasticBlockStore": needs("volumeID"),
    ".ephemeral": needs("volumeClaimTemplate"),
    **{f".ephemeral.volumeClaimTemplate.{field}": check for field, check in CLAIM.items()},
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
