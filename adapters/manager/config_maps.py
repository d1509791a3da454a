"""The ConfigMaps in which Karpenter had its settings before 0.32, as today's variables (L-317 to L-324)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml
from msgspec import Struct

from kerf.adapters.manager.flags import Flags
from kerf.adapters.manager.settings import SettingError, read_settings
from kerf.engine.errors import InputError, KerfError
from kerf.engine.model.manifests.violations import Violation

GLOBAL, LOGGING = "karpenter-global-settings", "config-logging"
_VARIABLES = {
    "batchMaxDuration": "BATCH_MAX_DURATION",
    "batchIdleDuration": "BATCH_IDLE_DURATION",
    "aws.clusterName": "CLUSTER_NAME",
    "aws.clusterEndpoint": "CLUSTER_ENDPOINT",
    "aws.clusterCABundle": "CLUSTER_CA_BUNDLE",
    "aws.isolatedVPC": "ISOLATED_VPC",
    "aws.vmMemoryOverheadPercent": "VM_MEMORY_OVERHEAD_PERCENT",
    "aws.interruptionQueueName": "INTERRUPTION_QUEUE",
    "aws.reservedENIs": "RESERVED_ENIS",
}
_GONE = {
    "featureGates.driftEnabled": "drift is always on",
    "aws.assumeRoleARN": "the pod has its role by Pod Identity or IRSA",
    "aws.assumeRoleDuration": "the pod has its role by Pod Identity or IRSA",
    "aws.defaultInstanceProfile": "write role or instanceProfile in each EC2NodeClass",
    "aws.enablePodENI": "the resource vpc.amazonaws.com/pod-eni is always counted",
    "aws.enableENILimitedPodDensity": "write kubelet.maxPods in an EC2NodeClass for another number of pods",
    "aws.tags": "write tags in each EC2NodeClass",
    "loglevel.webhook": "kerf has no webhooks",
}
_LEVELS = {"debug": "debug", "info": "info", "warn": "info", "error": "error"}


class NoSettings(InputError):
    """A file that is to hold settings holds none."""

    code = "KERF347"


class OldSettings(Struct, frozen=True):
    """What a ConfigMap became: variables, a note on each key, and what is wrong with keys."""

    environment: dict[str, str]
    notes: tuple[str, ...]
    violations: tuple[Violation, ...]


def is_settings(document: Mapping[str, Any]) -> bool:
    """Whether a manifest is one of the two ConfigMaps."""
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    return document.get("kind") == "ConfigMap" and name in (GLOBAL, LOGGING)


def old_settings(document: Mapping[str, Any]) -> OldSettings:
    """The settings of a ConfigMap, key by key. A value that cannot be read is a violation, and the others stand."""
    return _settings(document.get("data"), "data.")


def settings_from(path: Path) -> OldSettings:
    """The settings of a file with such ConfigMaps, or of a folder into which they are mounted, a file for each key.
    Raises NoSettings (KERF347)."""
    try:
        if path.is_dir():
            data = {file.name: file.read_text() for file in sorted(path.iterdir()) if file.is_file()}
            return _settings(data, "")
        found = [each for each in yaml.safe_load_all(path.read_text()) if isinstance(each, dict) and is_settings(each)]
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise NoSettings("it cannot be read", where=str(path), hint=str(error).splitlines()[0]) from error
    if not found:
        hint = f"Give a ConfigMap {GLOBAL} or {LOGGING}, or the folder into which it is mounted"
        raise NoSettings("it holds no settings of Karpenter's", where=str(path), hint=hint)
    parts = [old_settings(document) for document in found]
    return OldSettings(
        {name: value for part in parts for name, value in part.environment.items()},
        tuple(note for part in parts for note in part.notes),
        tuple(violation for part in parts for violation in part.violations),
    )


def environment_with(path: Path | None, environment: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """The environment's variables, with those of `settings_from` where it has none, and a note on each key. Raises
    NoSettings (KERF347), and SettingError (KERF340) for a value that cannot be read."""
    if path is None:
        return dict(environment), ()
    found = settings_from(path)
    for wrong in found.violations:
        raise SettingError(wrong.message, where=f"{path}: {wrong.path}", hint=wrong.hint)
    return {**found.environment, **{name: value for name, value in environment.items() if value}}, found.notes


def _settings(data: object, prefix: str) -> OldSettings:
    environment: dict[str, str] = {}
    notes: list[str] = []
    wrong: list[Violation] = []
    if not isinstance(data, Mapping):
        return OldSettings({}, ("it has no data",), ())
    for key, value in data.items():
        try:
            became, note = _of(str(key), str(value))
            read_settings(Flags(), became)
        except KerfError as error:
            wrong.append(Violation(error.code, f"{prefix}{key}", error.message, error.hint))
            continue
        environment |= became
        notes.append(f"{key}: {note}")
    return OldSettings(environment, tuple(notes), tuple(wrong))


def _of(key: str, value: str) -> tuple[dict[str, str], str]:
    """The variables of one key, and what it became. Raises SettingError (KERF340)."""
    if key in _GONE:
        return {}, f"no effect: {_GONE[key]}"
    if key in _VARIABLES:
        return {_VARIABLES[key]: value}, f"{_VARIABLES[key]}={value}"
    reader = _LOGGING.get(key)
    return reader(value) if reader is not None else ({}, "no effect: no version of Karpenter had this setting")


def _level(value: str) -> tuple[dict[str, str], str]:
    if value not in _LEVELS:
        raise SettingError(f"{value!r} is not accepted", hint=f"Give one of {', '.join(_LEVELS)}")
    return {"LOG_LEVEL": _LEVELS[value]}, f"LOG_LEVEL={_LEVELS[value]}"


def _zap(value: str) -> tuple[dict[str, str], str]:
    """What is no JSON is left out: people keep comments there, and a log is no reason not to start."""
    try:
        config = msgspec.json.decode(value, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as error:
        return {}, f"no effect: it is no JSON object. {error}"
    became, _ = _level(str(config.get("level", "info")))
    paths = config.get("outputPaths")
    if isinstance(paths, list) and paths:
        became["LOG_OUTPUT_PATHS"] = ",".join(map(str, paths))
    rest = sorted(config.keys() - {"level", "outputPaths"})
    said = " ".join(f"{name}={text}" for name, text in became.items())
    return became, f"{said}; no effect, since the log is JSON: {', '.join(rest)}" if rest else said


_LOGGING: dict[str, Callable[[str], tuple[dict[str, str], str]]] = {
    "loglevel.controller": _level,
    "zap-logger-config": _zap,
}
