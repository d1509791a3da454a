"""Bottlerocket's user data: settings as TOML. kerf's settings win over the user's (A-267…A-270). Pure."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from kerf.adapters.aws.userdata.boot import Boot, cluster_dns
from kerf.engine.errors import InputError
from kerf.engine.model.karpenter.ec2nodeclasses import EC2NodeClass

_OWN = (
    "api-server", "cluster-certificate", "cluster-name", "node-labels", "node-taints", "max-pods", "cluster-dns-ip",
    "system-reserved", "kube-reserved", "eviction-hard", "eviction-soft", "eviction-soft-grace-period",
    "eviction-max-pod-grace-period", "image-gc-high-threshold-percent", "image-gc-low-threshold-percent",
    "cpu-cfs-quota-enforced",
)  # fmt: skip
_PASSED_ON = (
    "cloud-provider", "credential-providers", "static-pods", "allowed-unsafe-sysctls", "server-tls-bootstrap",
    "registry-qps", "registry-burst", "event-qps", "event-burst", "kube-api-qps", "kube-api-burst",
    "container-log-max-size", "container-log-max-files", "container-log-max-workers",
    "container-log-monitor-interval", "cpu-manager-policy", "cpu-manager-policy-options",
    "cpu-manager-reconcile-period", "memory-manager-policy", "memory-manager-reserved-memory",
    "topology-manager-scope", "topology-manager-policy", "topology-manager-policy-options", "ids-per-pod",
    "shutdown-grace-period", "shutdown-grace-period-for-critical-pods", "cluster-domain", "seccomp-default",
    "pod-pids-limit", "device-ownership-from-security-context", "single-process-oom-kill",
    "hostname-override-source", "log-level",
)  # fmt: skip
"""The settings of the user's kubelet that are passed on (A-268)."""
_MAPS = {
    "systemReserved": "system-reserved", "kubeReserved": "kube-reserved", "evictionHard": "eviction-hard",
    "evictionSoft": "eviction-soft", "evictionSoftGracePeriod": "eviction-soft-grace-period",
}  # fmt: skip
_BINDS_ALL = (1, 46, 0)
"""The first version whose `ephemeral-storage bind` needs no folders named (A-269)."""
_VERSION = re.compile(r"v[0-9]{1,9}(\.[0-9]{1,9})+")
_FOLDERS = ("/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods")


def settings(boot: Boot) -> str:
    """The TOML. Raises `InputError` (KERF521) for user data that is not TOML, or too deep, or has too long a number."""
    try:
        return _settings(boot, _given(boot.custom))
    except RecursionError:
        raise _wrong("it is nested too deep") from None
    except ValueError:  # Python reads no number of more than 4,300 digits, and writes none
        raise _wrong("a number is too long") from None


def _settings(boot: Boot, document: dict[str, Any]) -> str:
    chosen = _table(document, "settings")
    theirs = _table(chosen, "kubernetes")
    kubernetes = {key: value for key, value in theirs.items() if key in _OWN + _PASSED_ON}
    chosen["kubernetes"] = {**kubernetes, **_kubernetes(boot, _table(theirs, "node-labels"))}
    if boot.raid0:
        bind = ["apiclient", "ephemeral-storage", "bind", *(["--dirs", *_FOLDERS] if boot.bind_folders else [])]
        _table(chosen, "bootstrap-commands")["000-mount-instance-storage"] = {
            "commands": [["apiclient", "ephemeral-storage", "init"], bind],
            "mode": "always",
            "essential": True,
        }
    return "\n".join(_lines(document)) + "\n"


def binds_folders(node_class: EC2NodeClass) -> bool:
    """Whether folders have to be named for `ephemeral-storage bind`: before version 1.46.0, or if the version is
    unknown (A-269)."""
    version = _version(node_class)
    return version is None or version < _BINDS_ALL


def _kubernetes(boot: Boot, labels: Mapping[str, Any]) -> dict[str, Any]:
    kubelet, dns = boot.kubelet, cluster_dns(boot)
    taints: dict[str, list[str]] = {}
    for taint in boot.taints:
        taints.setdefault(taint.key, []).append(f"{taint.value}:{taint.effect}")
    settings: dict[str, Any] = {
        "api-server": boot.endpoint,
        "cluster-certificate": boot.ca_bundle,
        "cluster-name": boot.cluster,
        "node-labels": {**labels, **boot.labels},
        "node-taints": taints,
        "max-pods": boot.max_pods,
    }
    if dns:
        settings["cluster-dns-ip"] = dns
    settings |= {name: dict(kubelet[key]) for key, name in _MAPS.items() if kubelet.get(key)}
    for key, name in (("High", "high"), ("Low", "low")):
        if (percent := kubelet.get(f"imageGC{key}ThresholdPercent")) is not None:
            settings[f"image-gc-{name}-threshold-percent"] = str(percent)
    for key, name in (
        ("evictionMaxPodGracePeriod", "eviction-max-pod-grace-period"),
        ("cpuCFSQuota", "cpu-cfs-quota-enforced"),
    ):
        if kubelet.get(key) is not None:
            settings[name] = kubelet[key]
    return settings


def _version(node_class: EC2NodeClass) -> tuple[int, ...] | None:
    """The version by the alias, by a term's name, or by the images' names. The latest counts as new."""
    terms = node_class.spec.ami_selector_terms
    alias = next((term.alias_version for term in terms if term.alias), "")
    if alias == "latest":
        return _BINDS_ALL
    images = {image.id: image.name for image in node_class.status.amis}
    by_id = [images.get(term.id, "") for term in terms if term.id]
    named = [name for name in images.values() if "bottlerocket" in name]
    texts = [alias if alias.startswith("v") else f"v{alias}", *(term.name for term in terms), *by_id, *named]
    for token in (token for text in texts for token in text.split("-")):
        if _VERSION.fullmatch(token):
            return tuple(int(number) for number in token.removeprefix("v").split("."))
    return None


# ── TOML ────────────────────────────────────────────────────────────────────────────────────────────────────


def _given(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"at .*?(?=\)$)", str(error))  # without what stands there: it may be a password
        raise _wrong(f"it is wrong {place[0]}" if place else "it cannot be read") from None


def _table(parent: dict[str, Any], key: str) -> dict[str, Any]:
    """The table under a key, made if it is not there."""
    table = parent.setdefault(key, {})
    if not isinstance(table, dict):
        raise _wrong(f"{key} is no table")
    return table


def _wrong(message: str) -> InputError:
    hint = "Bottlerocket's settings are TOML"
    return InputError(f"the user data is no TOML: {message}", where="spec.userData", hint=hint, code="KERF521")


def _lines(table: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[str]:
    """A table with its plain values first, in order of their keys."""
    plain = {key: value for key, value in sorted(table.items()) if not isinstance(value, dict)}
    if path and (plain or not table):
        yield f"[{'.'.join(map(_key, path))}]"
    for key, value in plain.items():
        yield f"{_key(key)} = {_value(value)}"
    for key, value in sorted(table.items()):
        if isinstance(value, dict):
            yield from _lines(value, (*path, key))


def _key(key: str) -> str:
    return key if key.replace("-", "").replace("_", "").isalnum() and key.isascii() else json.dumps(key)


def _value(value: Any) -> str:
    """A value as TOML. Strings, numbers and truth are written as in JSON; tables in arrays stand in line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)} = {_value(part)}" for key, part in sorted(value.items())) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, str | bool | int | float):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value.isoformat())
