"""What admission refuses in a NodePool or NodeClaim, rule by rule. Offline documents have met no API server
before.

Each rule is a function of the wire object and a report; its docstring cites the rule of the specification
that it enforces. `NODEPOOL_RULES` and `NODECLAIM_RULES` are the lists that decoding runs through: a further
rule is one more function and one more entry. Wrong types, enumerations of structs, quantities and durations
are refused while the object is read, not here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from kerf.engine.model import labels
from kerf.engine.model.manifests.violations import Report
from kerf.engine.model.manifests.wire import NodeClassRefWire, RequirementWire, TaintWire
from kerf.engine.model.manifests.wire_pools import ClaimTemplateSpecWire, NodeClaimWire, NodePoolWire

OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte")
_NUMERIC = ("Gt", "Lt", "Gte", "Lte")
POLICIES = ("WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced")
REASONS = ("Underutilized", "Empty", "Drifted")

_TEMPLATE = "spec.template.spec"
_QUALIFIED = re.compile(
    r"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
)
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
_INTEGER = re.compile(r"[0-9]{1,19}")
_LARGEST = (1 << 63) - 1
_BUDGET_NODES = re.compile(r"(100|[0-9]{1,2})%|[0-9]{1,18}")
_SCHEDULE = re.compile(r"@(annually|yearly|monthly|weekly|daily|midnight|hourly)|\S+(\s+\S+){4}")
_BUDGET_DURATION = re.compile(r"([0-9]+[hm]|[0-9]+h[0-9]+m)(0s)?")

_ALLOWED_IN_DOMAIN: dict[str, frozenset[str]] = {
    "karpenter.sh": frozenset([labels.CAPACITY_TYPE, labels.NODEPOOL]),
    "karpenter.k8s.aws": labels.AWS_WELL_KNOWN | {labels.EC2NODECLASS},
    "karpenter.kwok.sh": frozenset(
        "karpenter.kwok.sh/" + name
        for name in ("kwoknodeclass", "instance-cpu", "instance-memory", "instance-family", "instance-size")
    ),
}
"""L-30, L-31: the keys of Karpenter's own domains that NodePools may use."""

NodePoolRule = Callable[[NodePoolWire, Report], None]
NodeClaimRule = Callable[[NodeClaimWire, Report], None]


def template_is_present(pool: NodePoolWire, report: Report) -> None:
    """L-9."""
    if pool.spec.template.spec is None:
        report.add("KERF304", _TEMPLATE, "A NodePool needs a template")


def template_labels(pool: NodePoolWire, report: Report) -> None:
    """L-10: at most 100, valid keys and values, no key that Karpenter sets itself (L-30, L-31)."""
    path = "spec.template.metadata.labels"
    found = pool.spec.template.metadata.labels or {}
    if len(found) > 100:
        report.add("KERF309", path, f"At most 100 labels, not {len(found)}")
    for key, value in found.items():
        _check_key(report, f"{path}[{key}]", key, forbidden=(labels.NODEPOOL, labels.HOSTNAME))
        if len(value) > 63 or not _LABEL_VALUE.fullmatch(value):
            report.add("KERF312", f"{path}[{key}]", f"{value!r} is not a label value")


def template_taints(pool: NodePoolWire, report: Report) -> None:
    """L-12, and L-37: no key and effect twice among taints and startupTaints."""
    if pool.spec.template.spec is None:
        return
    seen: dict[tuple[str, str], str] = {}
    for name, taints in _taints(pool.spec.template.spec):
        for index, taint in enumerate(taints):
            path = f"{_TEMPLATE}.{name}[{index}]"
            if taint.key and not _QUALIFIED.fullmatch(taint.key):
                report.add("KERF312", f"{path}.key", f"{taint.key!r} is not a taint key")
            if taint.value and not _QUALIFIED.fullmatch(taint.value):
                report.add("KERF312", f"{path}.value", f"{taint.value!r} is not a taint value")
            first = seen.setdefault((taint.key, taint.effect), path)
            if first != path:
                report.add("KERF312", path, f"The same key and effect stand at {first}")


def _taints(spec: ClaimTemplateSpecWire) -> tuple[tuple[str, Sequence[TaintWire]], ...]:
    return ("taints", spec.taints), ("startupTaints", spec.startup_taints)


def template_requirements(pool: NodePoolWire, report: Report) -> None:
    """L-13, L-32, L-33, with the keys that Karpenter keeps to itself (L-30, L-31)."""
    if pool.spec.template.spec is None:
        return
    path, requirements = f"{_TEMPLATE}.requirements", pool.spec.template.spec.requirements
    check_requirements(report, path, requirements)
    for index, requirement in enumerate(requirements or ()):
        where = f"{path}[{index}].key"
        _check_key(report, where, requirement.key, forbidden=(labels.NODEPOOL, labels.HOSTNAME))


def template_node_class(pool: NodePoolWire, report: Report) -> None:
    """L-14."""
    if pool.spec.template.spec is not None:
        check_node_class_ref(report, f"{_TEMPLATE}.nodeClassRef", pool.spec.template.spec.node_class_ref)


def disruption_policy(pool: NodePoolWire, report: Report) -> None:
    """L-19."""
    policy = pool.spec.disruption.consolidation_policy
    if policy is not None:
        hint = "WhenUnderutilized is v1beta1's name of WhenEmptyOrUnderutilized"
        hint = hint if policy == "WhenUnderutilized" else ""
        report.one_of("spec.disruption.consolidationPolicy", policy, POLICIES, hint)


def budgets(pool: NodePoolWire, report: Report) -> None:
    """L-20…L-24. A schedule is only checked for its form: that is all that admission does (L-22)."""
    path = "spec.disruption.budgets"
    found = pool.spec.disruption.budgets or []
    if len(found) > 50:
        report.add("KERF309", path, f"At most 50 budgets, not {len(found)}")
    for index, budget in enumerate(found):
        where = f"{path}[{index}]"
        if budget.nodes is not None and not _BUDGET_NODES.fullmatch(budget.nodes):
            hint = 'Write a number of nodes as text, or a percentage: "5" or "10%"'
            report.add("KERF314", f"{where}.nodes", f"{budget.nodes!r} is no share of nodes", hint)
        _check_window(report, where, budget.schedule, budget.duration)
        for at, reason in enumerate(budget.reasons or ()):
            report.one_of(f"{where}.reasons[{at}]", reason, REASONS)


def _check_window(report: Report, path: str, schedule: str | None, duration: str | None) -> None:
    if (schedule is None) != (duration is None):
        missing, given = ("duration", "schedule") if duration is None else ("schedule", "duration")
        message = f"A budget with a {given} needs a {missing} too"
        report.add("KERF314", f"{path}.{missing}", message, "Give both for a window, neither for always")
    if schedule is not None and not _SCHEDULE.fullmatch(schedule.strip()):
        report.add("KERF314", f"{path}.schedule", f"{schedule!r} is no cron schedule of five fields")
    if duration is not None and not _BUDGET_DURATION.fullmatch(duration):
        hint = 'Write hours and minutes, such as "8h" or "1h30m"'
        report.add("KERF307", f"{path}.duration", f"{duration!r} is not a duration for a budget", hint)


def weight_and_replicas(pool: NodePoolWire, report: Report) -> None:
    """L-26, L-27, L-29: a static pool has no weight and limits nothing but nodes."""
    weight, replicas, limits = pool.spec.weight, pool.spec.replicas, pool.spec.limits
    if weight is not None and not 1 <= weight <= 100:
        report.add("KERF309", "spec.weight", f"A weight is 1 to 100, not {weight}")
    if replicas is None:
        return
    if replicas < 0:
        report.add("KERF309", "spec.replicas", f"replicas is at least 0, not {replicas}")
    if weight is not None:
        report.add("KERF315", "spec.weight", "A static NodePool (with replicas) has no weight")
    for resource in sorted(set(limits or ()) - {"nodes"}):
        message = "A static NodePool (with replicas) limits only nodes"
        report.add("KERF315", f"spec.limits[{resource}]", message)


def fields_of_v1beta1(pool: NodePoolWire, report: Report) -> None:
    """L-107, L-109: fields that v1 has elsewhere. Ignored in silence they would change how nodes run or
    end."""
    if pool.spec.disruption.expire_after is not None:
        hint = "Move it to spec.template.spec.expireAfter"
        report.add("KERF319", "spec.disruption.expireAfter", "expireAfter is not here in v1", hint)
    if pool.spec.template.spec is not None and pool.spec.template.spec.kubelet is not None:
        hint = "Move it to spec.kubelet of the EC2NodeClass"
        report.add("KERF319", f"{_TEMPLATE}.kubelet", "A v1 NodePool has no kubelet", hint)


def claim_requirements(claim: NodeClaimWire, report: Report) -> None:
    """L-42: as in the template of a NodePool. Domains are not judged: a running node must be adopted all the
    same."""
    check_requirements(report, "spec.requirements", claim.spec.requirements)


def claim_node_class(claim: NodeClaimWire, report: Report) -> None:
    """L-42."""
    check_node_class_ref(report, "spec.nodeClassRef", claim.spec.node_class_ref)


NODEPOOL_RULES: tuple[NodePoolRule, ...] = (
    template_is_present,
    template_labels,
    template_taints,
    template_requirements,
    template_node_class,
    disruption_policy,
    budgets,
    weight_and_replicas,
    fields_of_v1beta1,
)
NODECLAIM_RULES: tuple[NodeClaimRule, ...] = (claim_requirements, claim_node_class)


def check_node_class_ref(report: Report, path: str, ref: NodeClassRefWire | None) -> None:
    """L-14: group, kind and name are required; a group is no apiVersion."""
    if ref is None:
        hint = "Name the NodeClass by group, kind and name"
        report.add("KERF304", path, "nodeClassRef is required", hint)
        return
    for name, value in (("group", ref.group), ("kind", ref.kind), ("name", ref.name)):
        if not value:
            report.add("KERF304", f"{path}.{name}", f"nodeClassRef needs a {name}")
    if "/" in ref.group:
        hint = f"Leave out the version: {ref.group.partition('/')[0]}"
        report.add("KERF312", f"{path}.group", f"{ref.group!r} is not a group", hint)


def check_requirements(report: Report, path: str, requirements: Sequence[RequirementWire] | None) -> None:
    """L-13, L-32, L-33, without the rules of what keys may be used."""
    if requirements is None:
        report.add("KERF304", path, "requirements is required", "Write [] to allow everything")
        return
    if len(requirements) > 100:
        report.add("KERF309", path, f"At most 100 requirements, not {len(requirements)}")
    for index, requirement in enumerate(requirements):
        where = f"{path}[{index}]"
        if not requirement.key:
            report.add("KERF304", f"{where}.key", "A requirement needs a key")
        elif len(requirement.key) > 316 or not _QUALIFIED.fullmatch(requirement.key):
            report.add("KERF312", f"{where}.key", f"{requirement.key[:316]!r} is not a label key")
        if report.one_of(f"{where}.operator", requirement.operator, OPERATORS):
            _check_values(report, where, requirement)


def _check_values(report: Report, path: str, requirement: RequirementWire) -> None:
    """L-32 (minValues), L-33."""
    operator, values, least = requirement.operator, requirement.values or [], requirement.min_values
    where = f"{path}.values"
    if operator == "In" and not values:
        report.add("KERF310", where, "Operator In needs at least one value")
    if operator in _NUMERIC and len(values) != 1:
        report.add("KERF310", where, f"Operator {operator} needs exactly one value, not {len(values)}")
    elif operator in _NUMERIC and not (_INTEGER.fullmatch(values[0]) and int(values[0]) <= _LARGEST):
        message = f"Operator {operator} needs an integer that is at least 0, not {values[0]!r}"
        report.add("KERF310", f"{where}[0]", message)
    if least is None:
        return
    if not 1 <= least <= 50:
        report.add("KERF309", f"{path}.minValues", f"minValues is 1 to 50, not {least}")
    elif operator == "In" and len(values) < least:
        message = f"minValues asks for {least} values of {len(values)}"
        report.add("KERF313", f"{path}.minValues", message, "List more values or ask for fewer")


def _check_key(report: Report, path: str, key: str, *, forbidden: tuple[str, ...]) -> None:
    """L-30, L-31: the plain suffix test of admission, which is wider than what scheduling restricts
    (S-25)."""
    if key in forbidden:
        report.add("KERF311", path, f"{key} is set by Karpenter")
        return
    domain = key.partition("/")[0]
    for suffix, allowed in _ALLOWED_IN_DOMAIN.items():
        if domain.endswith(suffix) and key not in allowed:
            report.add("KERF311", path, f"{key} is in the restricted domain {suffix}")
            return
    if key and not _QUALIFIED.fullmatch(key):
        report.add("KERF312", path, f"{key!r} is not a label key")
