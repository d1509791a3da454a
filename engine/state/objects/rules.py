"""What the fold does with each watched kind: rules of its own, or those of kinds that are only kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kerf.engine.model.kinds.kind import WatchedKind
from kerf.engine.model.kinds.watched import WATCHED
from kerf.engine.state.nodeclaims.adoption import claim_object_gone, claim_object_seen
from kerf.engine.state.objects.capacity_buffers import capacity_buffer_rules
from kerf.engine.state.objects.daemonsets import daemonset_gone, daemonset_seen
from kerf.engine.state.objects.devices import device_rules
from kerf.engine.state.objects.kept import ObjectRules, keeping
from kerf.engine.state.objects.namespaces import namespace_gone, namespace_seen
from kerf.engine.state.objects.nodepools import nodepool_gone, nodepool_seen, overlay_rules
from kerf.engine.state.objects.nodes import node_gone, node_seen
from kerf.engine.state.objects.pod_disruption_budgets import budget_gone, budget_seen
from kerf.engine.state.objects.pods import pod_gone, pod_seen
from kerf.engine.state.objects.volumes import attachment_gone, attachment_seen

_OWN: dict[str, ObjectRules] = {
    "pod": ObjectRules(pod_seen, pod_gone),
    "node": ObjectRules(node_seen, node_gone),
    "nodepool": ObjectRules(nodepool_seen, nodepool_gone),
    "daemonset": ObjectRules(daemonset_seen, daemonset_gone),
    "pdb": ObjectRules(budget_seen, budget_gone),
    "namespace": ObjectRules(namespace_seen, namespace_gone),
    "volumeattachment": ObjectRules(attachment_seen, attachment_gone),
    "nodeclaim": ObjectRules(claim_object_seen, claim_object_gone),
}
_MADE_BY: dict[str, Callable[[WatchedKind], ObjectRules]] = {
    "capacitybuffer": capacity_buffer_rules,
    "nodeoverlay": overlay_rules,
    **dict.fromkeys(("deviceclass", "resourceslice", "resourceclaim"), device_rules),
}


def object_rules(kinds: Iterable[WatchedKind] = WATCHED) -> dict[str, ObjectRules]:
    """By the kind's name."""
    return {kind.name: _OWN.get(kind.name) or _MADE_BY.get(kind.name, keeping)(kind) for kind in kinds}
