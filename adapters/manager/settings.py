"""Karpenter's settings. Each is a flag and an environment variable of the same name (L-287 to L-315).

A flag beats the environment, which beats the default. A value that cannot be read is an error in both. (Karpenter
silently falls back to the default for a bad variable: docs/differences.md.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import yaml
from msgspec import Struct

from kerf.adapters.manager.flags import DEFAULT_LEASE, DEFAULT_NAMESPACE, Flags
from kerf.adapters.store.retention.policy import DAY, Retention
from kerf.engine.errors import InputError
from kerf.engine.model.durations import format_duration, parse_go_duration
from kerf.engine.model.feature_gates import RESERVED_CAPACITY, stated_gates, unknown_gates, with_gates
from kerf.engine.model.quantities import parse_quantity
from kerf.engine.model.reasons import Reason
from kerf.engine.model.settings import Settings
from kerf.engine.scheduling.problem.scheduler_config import SchedulerConfigError, default_constraints

T = TypeVar("T")
NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_TRUE, _FALSE = ("1", "t", "T", "true", "TRUE", "True"), ("0", "f", "F", "false", "FALSE", "False")
NODE_CLASS_CEL = "NodeClassCEL"
_MINUTE = 60_000
_MIN_RECORD_SIZE = 64 << 20  # bytes: a smaller record has no room for its snapshots
LONGEST_TURN = 300.0  # seconds; a turn that plans for 100,000 pods on a busy machine takes a tenth of it
_SHORTEST_LIMIT = 30_000  # milliseconds: a lower limit would end a kerf that has much to decide, again and again
PODS_OF_A_BURST = 100
"""How many pods make a burst by default (kerf.engine.state.pods.bursts). A record without the setting has no bursts."""


class SettingError(InputError):
    """A setting that cannot be read: kerf does not start with it."""

    code = "KERF340"


NAMES: tuple[str, ...] = tuple(field.name for field in fields(Flags))


class AwsOptions(Struct, frozen=True):
    """The settings of the AWS provider (L-306 to L-312). An empty endpoint is asked of EKS. Intervals in ms."""

    cluster: str
    endpoint: str
    ca_bundle: str
    isolated_vpc: bool
    eks_control_plane: bool
    memory_overhead: float
    interruption_queue: str
    reserved_enis: int
    ami_refresh: int
    subnet_refresh: int
    dry_run: bool
    node_class_cel: bool = False
    zonal_shift: bool = False
    reserved_capacity: bool = True


class Options(Struct, frozen=True):
    """All settings, read. A port of 0 is not opened; `outputs` are "stdout", "stderr" or files; `longest_turn` is
    in seconds, 0 for no limit; `notes` are for whoever gave the settings."""

    engine: Settings
    metrics_port: int
    health_port: int
    qps: float
    burst: int
    leader_election: bool
    lease_name: str
    lease_namespace: str
    state_metrics: bool
    condition_metrics_per_object: bool
    metrics_authorization: bool
    longest_turn: float
    log_level: str
    outputs: tuple[str, ...]
    retention: Retention
    instance_types: Path | None
    aws: AwsOptions
    notes: tuple[Reason, ...] = ()


def read_settings(flags: Flags, environment: Mapping[str, str]) -> Options:
    """The settings of flags and environment. Raises SettingError (KERF340), FeatureGatesError (KERF339) and
    SchedulerConfigError (KERF338)."""
    source = _Source(flags, environment)
    source.check_unused()
    return Options(
        engine=_engine(source),
        metrics_port=source.read("metrics_port", _port, 8080),
        health_port=source.read("health_probe_port", _port, 8081),
        qps=float(source.read("kube_client_qps", _positive, 200)),
        burst=source.read("kube_client_burst", _positive, 300),
        leader_election=not source.truth("disable_leader_election", False),
        lease_name=source.text("leader_election_name", DEFAULT_LEASE),
        lease_namespace=source.text("leader_election_namespace", "") or _own_namespace(),
        state_metrics=not source.truth("disable_cluster_state_observability", False),
        condition_metrics_per_object=source.truth("condition_metrics_per_object", False),
        metrics_authorization=source.truth("metrics_authorization", False),
        longest_turn=source.read("longest_turn", _turn_limit, LONGEST_TURN),
        log_level=source.read("log_level", _one_of("debug", "info", "error"), "info"),
        outputs=tuple(filter(None, source.text("log_output_paths", "stdout").split(","))),
        retention=Retention(
            observations=source.read("retain_observations", age, Retention().observations),
            decisions=source.read("retain_decisions", age, Retention().decisions),
            size=source.read("retain_size", size, Retention().size),
        ),
        instance_types=Path(path) if (path := source.text("instance_types_file_path", "")) else None,
        aws=_aws(source),
        notes=unknown_gates(source.text("feature_gates", "")),
    )


def _engine(source: _Source) -> Settings:
    settings = Settings(
        cluster_name=source.text("cluster_name", Settings().cluster_name),
        batch_idle=source.read("batch_idle_duration", _duration, Settings().batch_idle),
        batch_max=source.read("batch_max_duration", _duration, Settings().batch_max),
        batch_enough=source.read("batch_enough_pods", _not_negative, PODS_OF_A_BURST),
        preference_policy=source.read("preference_policy", _one_of("Respect", "Ignore"), Settings().preference_policy),
        min_values_policy=source.read(
            "min_values_policy", _one_of("Strict", "BestEffort"), Settings().min_values_policy
        ),
        ignore_dra_requests=source.truth("ignore_dra_requests", Settings().ignore_dra_requests),
        effort=source.read("effort", _not_negative, Settings().effort),
        keep_until_replaced=source.truth("keep_until_replaced", Settings().keep_until_replaced),
        default_spread=default_constraints(_document(source.text("scheduler_config", ""))),
    )
    return with_gates(settings, source.text("feature_gates", ""))


def _aws(source: _Source) -> AwsOptions:
    return AwsOptions(
        cluster=source.text("cluster_name", ""),
        endpoint=source.read("cluster_endpoint", _url, ""),
        ca_bundle=source.text("cluster_ca_bundle", ""),
        isolated_vpc=source.truth("isolated_vpc", False),
        eks_control_plane=source.truth("eks_control_plane", False),
        memory_overhead=source.read("vm_memory_overhead_percent", _share, 0.075),
        interruption_queue=source.text("interruption_queue", ""),
        reserved_enis=source.read("reserved_enis", _not_negative, 0),
        ami_refresh=source.read("ami_refresh_interval", _from_a_minute, _MINUTE),
        subnet_refresh=source.read("subnet_refresh_interval", _from_a_minute, _MINUTE),
        dry_run=not source.truth("disable_dry_run", False),
        zonal_shift=source.truth("enable_zonal_shift", False),
        node_class_cel=_aws_gates(source).get(NODE_CLASS_CEL, False),
        reserved_capacity=_core_gates(source).get(RESERVED_CAPACITY, True),
    )


def _core_gates(source: _Source) -> dict[str, bool]:
    return stated_gates(source.text("feature_gates", ""), "feature-gates", RESERVED_CAPACITY)


def _aws_gates(source: _Source) -> dict[str, bool]:
    """The gates of the AWS provider, "NodeClassCEL=true". Names that it does not know are left alone (A-14)."""
    return stated_gates(source.text("aws_feature_gates", ""), "aws-feature-gates", NODE_CLASS_CEL)


class _Source:
    """Where a setting's text comes from: its flag, else its environment variable. An empty variable counts as none."""

    def __init__(self, flags: Flags, environment: Mapping[str, str]) -> None:
        self._flags, self._environment = flags, environment

    def read(self, name: str, parse: Callable[[str], T], default: T) -> T:
        flag: str | None = getattr(self._flags, name)
        text = flag if flag is not None else self._environment.get(name.upper(), "")
        if not text:
            return default
        try:
            return parse(text)
        except ValueError as error:
            raise SettingError(f"{text!r} is not accepted", where=self._where(name), hint=f"Give {error}") from error

    def text(self, name: str, default: str) -> str:
        return self.read(name, str, default)

    def truth(self, name: str, default: bool) -> bool:
        """A boolean. A flag says exactly true or false, a variable may have any of Go's forms (L-287)."""
        return self.read(name, _bool if getattr(self._flags, name) is None else _exact_bool, default)

    def check_unused(self) -> None:
        """Check the values of settings without effect, too (L-289)."""
        for name in ("disable_controller_warmup", "enable_profiling"):
            self.truth(name, False)
        for name in ("cpu_requests", "memory_limit"):
            self.read(name, _whole, 0)

    def _where(self, name: str) -> str:
        return f"--{name.replace('_', '-')}" if getattr(self._flags, name) is not None else name.upper()


# ── values: each raises ValueError with what it accepts ──────────────────────────────────────────────────────────────


def _duration(text: str) -> int:
    try:
        return parse_go_duration(text)
    except InputError as error:
        raise ValueError("a duration such as 1s, 500ms or 1m30s") from error


def age(text: str) -> int:
    """An age in ms, given as days (7d) or as a Go duration; 0 for ever."""
    days = text.removesuffix("d")
    if days.isascii() and days.isdigit() and (days != text or int(days) == 0):
        return int(days) * DAY
    try:
        milliseconds = parse_go_duration(text)
    except InputError:
        milliseconds = -1
    if milliseconds <= 0:
        raise ValueError("an age such as 7d or 36h, or 0 for ever")
    return milliseconds


def size(text: str) -> int:
    """A size in bytes; 0 for no limit."""
    try:
        number = parse_quantity(text, "memory")
    except InputError:
        number = -1
    if number < 0 or 0 < number < _MIN_RECORD_SIZE:
        raise ValueError("a size from 64Mi on, such as 8Gi, or 0 for no limit")
    return number


def _from_a_minute(text: str) -> int:
    milliseconds = _duration(text)
    if milliseconds < _MINUTE:
        raise ValueError(f"a duration of at least {format_duration(_MINUTE)}")
    return milliseconds


def _turn_limit(text: str) -> float:
    """Seconds; 0 for no limit."""
    milliseconds = _duration(text)
    if milliseconds and milliseconds < _SHORTEST_LIMIT:
        raise ValueError(f"a duration from {format_duration(_SHORTEST_LIMIT)} on, or 0s for no limit")
    return milliseconds / 1000


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("a whole number") from None


def _not_negative(text: str) -> int:
    if (number := _whole(text)) < 0:
        raise ValueError("a whole number from 0 on")
    return number


def _positive(text: str) -> int:
    if (number := _whole(text)) < 1:
        raise ValueError("a whole number from 1 on")
    return number


def _port(text: str) -> int:
    if not 0 <= (port := _whole(text)) <= 65_535:
        raise ValueError("a port from 1 to 65535, or 0 for none")
    return port


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share < 1:
        raise ValueError("a share of 1, from 0 on, such as 0.075")
    return share


def _url(text: str) -> str:
    parts = urlsplit(text)
    if not parts.scheme or not parts.netloc:
        raise ValueError("a URL with its scheme, such as https://10.0.0.1:443")
    return text


def _bool(text: str) -> bool:
    if text not in _TRUE + _FALSE:
        raise ValueError("true or false")
    return text in _TRUE


def _exact_bool(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError("true or false")
    return text == "true"


def _one_of(*accepted: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in accepted:
            raise ValueError(f"{', '.join(accepted[:-1])} or {accepted[-1]}")
        return text

    return parse


def _document(text: str) -> Any:
    """The setting `scheduler-config` as it is written, YAML or JSON (L-305)."""
    try:
        document = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise SchedulerConfigError(str(error), where="scheduler-config", hint="Write YAML or JSON") from error
    if isinstance(document, str):
        hint = "Give the YAML or JSON itself, not a file's name; docs/plan.md has the format"
        raise SchedulerConfigError(f"{document!r} has no podTopologySpread", where="scheduler-config", hint=hint)
    return document


def _own_namespace() -> str:
    try:
        return NAMESPACE_FILE.read_text(encoding="utf-8").strip()
    except OSError:
        return DEFAULT_NAMESPACE
