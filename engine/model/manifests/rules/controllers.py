"""Refuses what the API server accepts, but a controller would refuse, or no record could hold.

The API server's rules are declared in kerf.engine.model.crds. Each rule here is a function of the wire object and a
report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from kerf.engine.model.crds.schema import compiled
from kerf.engine.model.crds.shared_fields import QUALIFIED
from kerf.engine.model.karpenter.ec2nodeclasses import EC2NodeClassSpec
from kerf.engine.model.manifests.karpenter.nodepools_wire import ClaimTemplateSpecWire, NodePoolWire
from kerf.engine.model.manifests.violations import Report
from kerf.engine.model.manifests.wire import TaintWire
from kerf.engine.model.quantities import LARGEST_AMOUNT

_TEMPLATE = "spec.template.spec"

NodePoolRule = Callable[[NodePoolWire, Report], None]
EC2NodeClassRule = Callable[[EC2NodeClassSpec, Report], None]


def template_label_keys(pool: NodePoolWire, report: Report) -> None:
    """Checks keys of the template's labels, since the API server checks only their values (L-36)."""
    for key in pool.spec.template.metadata.labels or {}:
        if not compiled(QUALIFIED).search(key):
            report.add("KERF312", f"spec.template.metadata.labels[{key}]", f"{key!r} is not a label key")


def repeated_taints(pool: NodePoolWire, report: Report) -> None:
    """Refuses a key and effect that occur twice among taints and startupTaints (L-37)."""
    if pool.spec.template.spec is None:
        return
    seen: dict[tuple[str, str], str] = {}
    for name, taints in _taints(pool.spec.template.spec):
        for index, taint in enumerate(taints):
            path = f"{_TEMPLATE}.{name}[{index}]"
            first = seen.setdefault((taint.key, taint.effect), path)
            if first != path:
                report.add("KERF312", path, f"The same key and effect stand at {first}")


def _taints(spec: ClaimTemplateSpecWire) -> tuple[tuple[str, Sequence[TaintWire]], ...]:
    return ("taints", spec.taints), ("startupTaints", spec.startup_taints)


def fields_of_v1beta1(pool: NodePoolWire, report: Report) -> None:
    """Refuses fields of v1beta1 that v1 has elsewhere: ignored silently, they would change how nodes run or end (L-107,
    L-109).
    """
    if pool.spec.disruption.expire_after is not None:
        hint = "Move it to spec.template.spec.expireAfter"
        report.add("KERF319", "spec.disruption.expireAfter", "expireAfter is not here in v1", hint)
    if pool.spec.template.spec is not None and pool.spec.template.spec.kubelet is not None:
        hint = "Move it to spec.kubelet of the EC2NodeClass"
        report.add("KERF319", f"{_TEMPLATE}.kubelet", "A v1 NodePool has no kubelet", hint)


def volume_sizes(spec: EC2NodeClassSpec, report: Report) -> None:
    """Refuses a volume size without a number, which the API's pattern accepts (A-37)."""
    for index, mapping in enumerate(spec.block_device_mappings):
        if mapping.ebs is not None and mapping.ebs.volume_size in {"Ti", "T"}:
            path = f"spec.blockDeviceMappings[{index}].ebs.volumeSize"
            report.add("KERF306", path, f"{mapping.ebs.volume_size!r} is no volume size", "Write a number before it")


def kubelet(spec: EC2NodeClassSpec, report: Report) -> None:
    """Refuses kubelet settings that no record could hold (A-35). The rest of the open object is the controller's to
    check (A-50).
    """
    if any(isinstance(leaf, int) and abs(leaf) > LARGEST_AMOUNT for leaf in _leaves(spec.kubelet)):
        report.add("KERF309", "spec.kubelet", "An integer is beyond 64 bits")


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (dict, list)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _leaves(inner)
    else:
        yield value


NODEPOOL_RULES: tuple[NodePoolRule, ...] = (template_label_keys, repeated_taints, fields_of_v1beta1)
RECORD_RULES: tuple[EC2NodeClassRule, ...] = (kubelet,)
"""Also of a class that is there: without them no record could hold it."""
EC2NODECLASS_RULES: tuple[EC2NodeClassRule, ...] = (volume_sizes, *RECORD_RULES)
