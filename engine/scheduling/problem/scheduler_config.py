"""The flag scheduler-config (S-149, L-305): the default topology spread of a cluster, as its kube-scheduler has it."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct, field

from kerf.engine.errors import InputError
from kerf.engine.model.kubernetes.pods import SpreadConstraint
from kerf.engine.scheduling.pods.validation import is_qualified_name

_PATH = "podTopologySpread.defaultConstraints"
_WHEN = ("DoNotSchedule", "ScheduleAnyway")


class SchedulerConfigError(InputError):
    """A scheduler-config that cannot be used: kerf does not start with it."""

    code = "KERF338"


class _Constraint(Struct, rename="camel", forbid_unknown_fields=True):
    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    min_domains: int | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"


class _Spread(Struct, rename="camel", forbid_unknown_fields=True):
    default_constraints: list[_Constraint] = []


class _Config(Struct, rename="camel", forbid_unknown_fields=True):
    pod_topology_spread: _Spread = field(default_factory=_Spread)


def default_constraints(document: Any) -> tuple[SpreadConstraint, ...]:
    """The constraints of a parsed document, without selectors.

    Raises SchedulerConfigError (KERF338) for unknown fields (labelSelector and matchLabelKeys among them), a bad value,
    or two constraints with the same key and effect.
    """
    try:
        config = msgspec.convert(document if document is not None else {}, _Config)
    except msgspec.ValidationError as error:
        raise SchedulerConfigError(str(error), where="scheduler-config") from error
    constraints = config.pod_topology_spread.default_constraints
    for index, constraint in enumerate(constraints):
        _check(constraint, f"{_PATH}[{index}]")
    pairs = [(constraint.topology_key, constraint.when_unsatisfiable) for constraint in constraints]
    for index, pair in enumerate(pairs):
        if pair in pairs[:index]:
            raise _refused(f"{pair[0]} with {pair[1]} stands there twice", f"{_PATH}[{index}]")
    return tuple(
        SpreadConstraint(
            topology_key=constraint.topology_key,
            max_skew=constraint.max_skew,
            when_unsatisfiable=constraint.when_unsatisfiable,
            min_domains=constraint.min_domains,
            node_affinity_policy=constraint.node_affinity_policy,
            node_taints_policy=constraint.node_taints_policy,
        )
        for constraint in constraints
    )


def _check(constraint: _Constraint, where: str) -> None:
    if constraint.max_skew < 1:
        raise _refused(f"maxSkew is at least 1, not {constraint.max_skew}", f"{where}.maxSkew")
    if not is_qualified_name(constraint.topology_key):
        raise _refused(f"{constraint.topology_key!r} is no label key", f"{where}.topologyKey")
    if constraint.when_unsatisfiable not in _WHEN:
        allowed = " or ".join(_WHEN)
        raise _refused(f"{constraint.when_unsatisfiable!r} is not {allowed}", f"{where}.whenUnsatisfiable")


def _refused(message: str, where: str) -> SchedulerConfigError:
    return SchedulerConfigError(message, where=where, hint="docs/plan.md describes the format")
