"""The template that a NodeClaim was made from, field by field. Drift compares fields, not two hashes (D-124, A-334).

A template is a flat map: `field` or `field key` → the value's text. Absent fields have no entry.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from kerf.engine.model.durations import format_duration
from kerf.engine.model.karpenter.nodepools import NodePool

Template = dict[str, str]


class Difference(Struct, frozen=True, omit_defaults=True):
    """One field that differs: `was` is what the NodeClaim has, `now` what the template says today; None means absent.

    `key` names the entry of a map, or the requirement.
    """

    field: str
    key: str = ""
    was: str | None = None
    now: str | None = None


def pool_template(pool: NodePool) -> Template:
    """Returns the fields of spec.template that drift compares (D-127)."""
    template = {
        "nodeClassRef.group": pool.node_class.group,
        "nodeClassRef.kind": pool.node_class.kind,
        "nodeClassRef.name": pool.node_class.name,
        "expireAfter": "Never" if pool.expire_after is None else format_duration(pool.expire_after),
    }
    if pool.termination_grace_period is not None:
        template["terminationGracePeriod"] = format_duration(pool.termination_grace_period)
    for field, entries in (("labels", pool.labels), ("annotations", pool.annotations)):
        template |= {f"{field} {key}": value for key, value in entries.items()}
    for field, taints in (("taints", pool.taints), ("startupTaints", pool.startup_taints)):
        template |= {f"{field}/{taint.effect} {taint.key}": taint.value for taint in taints}
    return template


def differences(was: Mapping[str, str], now: Mapping[str, str]) -> tuple[Difference, ...]:
    """Returns the fields that differ, in order of their names."""
    found = []
    for path in sorted(was.keys() | now.keys()):
        if was.get(path) != now.get(path):
            field, _, key = path.partition(" ")
            found.append(Difference(field, key, was.get(path), now.get(path)))
    return tuple(found)
