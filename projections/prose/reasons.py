"""Coded reasons in words. Codes are what the record keeps; prose is made here, as late as possible.

Scheduling's codes have their sentences beside them (`kerf.engine.scheduling.reasons`); here are those of lifecycle and
disruption, and what would have to change. A code without a sentence shows as itself: nothing is hidden, nothing fails.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from kerf.engine.model.karpenter.nodeclaim_templates import Difference
from kerf.engine.model.reasons import Reason
from kerf.engine.scheduling import reasons as scheduling

_TIMES = ("quiet", "age", "waited")
"""Parameters that are durations."""
_PRICES = ("limit",)
"""Those of disruption and lifecycle that are USD per hour."""

_REQUIREMENTS = ("incoming", "existing")
"""Those that are requirements as text."""
_BOUNDED = re.compile(r" Exists(?: >=(-?\d+))?(?: <=(-?\d+))?(?= |$)")

LIFECYCLE: dict[str, str] = {
    "adopt-launch": "its object was found without an instance: one with its tag is looked for, else one is launched",
    "adopt-not-managed": "its object was found; it is of a kind of NodeClass that is not here",
    "adopt-waiting": "its object was found; its Node or the instance types of its NodeClass are not known yet",
    "adopted": "its object was found without a record of it",
    "cancelled": "it was deleted before anything was launched",
    "delete-node": "its instance is gone: the Node object goes too",
    "do-not-disrupt": "the annotation karpenter.sh/do-not-disrupt forbids it",
    "dra-driver-pools-not-published": "the driver {driver} has not published its devices on {node} yet",
    "drain-started": "the taint is on its node: draining begins",
    "drained": "every pod that had to leave has left",
    "error": "the cloud answered with an error",
    "evict": "pods that have to leave are evicted",
    "garbage-collected": "the cloud does not list its instance, and its node is not ready: the Node object goes",
    "going": "it is on its way out already",
    "in-service": "it is in service",
    "initialize": "its node is ready: it is marked as initialized",
    "initialized": "its node is ready, without startup taints, and reports its resources",
    "instance-vanished": "its instance {instance} is gone, and kerf did not end it",
    "insufficient-capacity": "the cloud had no capacity in any offering that was asked for",
    "known-ephemeral-taints-exist": "its node still has the taint {taint}",
    "launch-again": "the launch failed for another reason than capacity: it is tried again with the same token",
    "launch-timeout": "no instance came within the launch limit",
    "launched": "the cloud started its instance",
    "node-not-found": "no node has joined with its provider id yet",
    "node-not-ready": "its node {node} is not ready",
    "node-shape-consistent": "its node {node} reports what it was launched for, after all",
    "node-shape-inconsistent": "its node {node} reports less than 90% of what it was launched for: {resources}",
    "nodeclass-not-ready": "its NodeClass is not ready",
    "register": "its node has joined: labels and taints are synced onto it",
    "registered": "its node has joined and carries its labels and taints",
    "resource-not-registered": "its node does not report {resource} yet",
    "search-orphan": "an answer to its launch may be lost: an instance with its tag is looked for",
    "settling": "pods that were bound just before the taint was seen may still show",
    "startup-taints-exist": "its node still has the startup taint {taint}",
    "static-at-size": "it has its size, and nothing is left to be tried again",
    "static-limit": "its limit of {nodes} nodes allows no more",
    "static-no-offering": "nothing that its template allows is on offer now",
    "static-not-ready": "it or its NodeClass is not ready",
    "static-scale-down": "{count} too many: they are removed, those that cost least to move first",
    "static-scale-up": "{count} more are launched, straight from its template",
    "taint": "the taint karpenter.sh/disrupted goes onto its node",
    "terminate": "it is drained: its instance is ended",
    "terminate-orphan": "instance {instance} turned up after its claim was over: it is ended",
    "terminate-unclaimed": "instance {instance} carries this cluster's tags and belongs to no claim: it is ended",
    "terminate-without-drain": "there is no node to drain: its instance is ended",
    "terminated": "its instance and its node are gone",
    "terminating": "a pod is terminating",
    "node-without-claim": "somebody deleted this Node, and it belongs to no NodeClaim: it is drained, and let go",
    "relabel": "its node's labels are to say again what it is",
    "untaint": "it is to stay: the taint karpenter.sh/disrupted goes off its node",
    "waiting": "there is nothing to do",
    "waiting-for-cloud": "the cloud has not answered yet",
    "waiting-for-effect": "the answer to {effect} is awaited",
    "volumes-detached": "its volumes are detached",
    "volumes-left": "volumes are still attached, but its time is up",
    "waiting-for-volumes": "volumes are still attached ({count}): {volumes}",
    "waiting-for-next-place": "the node that it goes to is not in service yet, and the notice leaves time",
    "waiting-for-group": "pods that go before it are still there",
    "waiting-for-turn": "nodes go together, and their large pods leave before it",
    "waiting-for-replacement": "{replacements} has to be in service before",
    "waiting-for-pods": "{pods} still to leave",
    "waiting-to-retry": "{effect} was refused: it is tried again after a pause",
}
"""Codes of the lifecycle deciders."""

DRIFT: dict[str, str] = {
    "ami-drift": "NodeClass {nodeclass} has another image for it now",
    "capacity-reservation-drift": "NodeClass {nodeclass} no longer selects its capacity reservation",
    "placement-group-drift": "NodeClass {nodeclass} has another placement group",
    "instance-type-not-found": "its instance type {instance_type} is no longer offered as it has it",
    "nodeclass-drift": "NodeClass {nodeclass} was changed since it was launched",
    "nodepool-drifted": "the template of NodePool {nodepool} was changed since it was made",
    "requirements-drifted": "its labels no longer meet the requirements of NodePool {nodepool}",
    "security-group-drift": "NodeClass {nodeclass} selects other security groups now",
    "subnet-drift": "NodeClass {nodeclass} no longer selects its subnet",
}
"""What a node has drifted by."""

DISRUPTION: dict[str, str] = {
    **DRIFT,
    "awaiting-pods": "pods that are planned onto it have not arrived yet",
    "bad-budget": "budget {budget} of NodePool {nodepool} cannot be read (KERF314), so that nothing may go: {error}",
    "being-disrupted": "a disruption of it is under way already",
    "budget": "the NodePool's disruption budget allows no more for now",
    "churn": "at the second look it was no candidate any more ({nodes}{claims})",
    "consolidate-after-never": "its NodePool has consolidateAfter: Never",
    "deleted": "its NodeClaim was deleted by {detail}",
    "do-not-disrupt": "the annotation karpenter.sh/do-not-disrupt forbids it",
    "drifted": "it is no longer as its NodePool and NodeClass ask for",
    "empty": "nothing that needs a place has run on it for {quiet}",
    "empty-not-long-enough": "it is empty, but not for as long as consolidateAfter asks",
    "expired": "it has reached its expireAfter, at the age of {age}",
    "going": "it is on its way out already",
    "has-pods": "pods that would need another place run on it",
    "held-back": "a move of it came to nothing a while ago: it is left alone before the next attempt",
    "holds-buffers": "it holds room for {buffers} buffered pods",
    "interrupted": "the cloud takes its instance away ({detail})",
    "move-proposed": "it could go ({why}); that is looked at again in a moment",
    "left-over": "pods of it would have a place, but the cluster's scheduler might give it to others",
    "min-values": "of its replacement only {left} cheaper types would be left, fewer than minValues asks for",
    "missing-label": "its node does not carry the label {label}",
    "never-expires": "it never expires",
    "no-instance-types": "the instance types of its NodePool {nodepool} are not known",
    "no-node": "its Node object is not there",
    "no-nodepool": "its NodePool {nodepool} is not there",
    "no-nodepool-label": "its node does not carry the label {label}",
    "no-offering": "it has drifted, but nothing that its NodePool's template allows is on offer now",
    "no-place": "{count} of its pods would have no place elsewhere: {pods}",
    "no-usable-nodepool": "no NodePool may launch nodes: each is of a fixed size, not ready, or going",
    "node-deleted": "its Node {detail} was deleted",
    "node-healthy": "its node is healthy",
    "nominated": "pods are expected on it",
    "not-consolidatable": "consolidateAfter has not passed since its pods last changed",
    "not-deleted": "nobody has deleted it",
    "not-drifted": "it is as its NodePool and NodeClass ask for",
    "not-expired": "it has not reached its expireAfter",
    "not-initialized": "it is not initialized yet",
    "not-interrupted": "no interruption was announced",
    "not-launched": "it is not launched yet",
    "not-looked-at": "no disruption pass has looked at it since it could go",
    "not-managed": "it belongs to no NodeClaim",
    "not-worth-it": "what it would save is not worth the disruption",
    "no-room-to-replace": "it has drifted, but a node to replace it would be more than the limit of {nodes}",
    "not-static": "its NodePool has no fixed size",
    "nothing-cheaper": "its pods need a node, and none is cheaper than {limit}/h",
    "pod-budget-exhausted": "pod {pod} may not be evicted: PodDisruptionBudget {budgets} allows none",
    "pod-do-not-disrupt": "pod {pod} carries the annotation karpenter.sh/do-not-disrupt",
    "policy-when-empty": "its NodePool consolidates empty nodes only",
    "registered": "its node has registered",
    "registering": "its node may still register within the limit",
    "registration-timeout": "its node did not register within the limit, after {waited}",
    "replacement-late": "what was to replace it was not in service after {waited}",
    "replacement-lost": "what was to replace it ({claims}) is gone",
    "repair-blocked": "its node is unhealthy ({condition}), but {ill} of {nodes} nodes are: nothing is repaired",
    "scheduling": "its pods would find other places than was planned ({why})",
    "scale-down-first": "it has drifted, but its NodePool has {count} too many, which go first",
    "search-ended": "the search for moves had done all its work before it came to this node",
    "several-pod-budgets": "pod {pod} may not be evicted: several PodDisruptionBudgets cover it ({budgets})",
    "several-replacements": "its pods would need {count} nodes instead",
    "spot-to-spot-off": "spot nodes are not replaced by spot nodes unless the feature gate is on",
    "static-nodepool": "its NodePool keeps a fixed number of nodes",
    "takes-pods": "it takes pods of nodes that go",
    "too-few-spot-options": "only {found} cheaper spot types, and {needed} are needed",
    "underutilized": "its pods have room elsewhere, or on a cheaper node",
    "unhealthy": "its node has been unhealthy ({condition}: {status}) for {waited}",
    "unknown-instance-type": "its instance type {instance_type} is not in the catalogue",
}
"""Codes of the disruption methods."""

EXPLAINED: dict[str, str] = {
    "deletion-asked": "{actor} asked for its deletion",
    "fits-on-a-cheaper-node": "its pods fit on a node that costs less",
    "goes-at-once": "it may go, within the disruption budgets, and does so at once",
    "goes-as-empty": "it is empty: emptiness decides about it",
    "has-room-elsewhere": "its pods have room on other nodes",
    "ill-for-a-while": "its node is unhealthy ({condition}: {status}), but not for as long as is tolerated",
    "interruption-announced": "the cloud announced: {kind}",
    "launch-failed": "nothing could be launched: {code}",
    "launch-timed-out": "no instance came within the launch limit",
    "move-started-alone": "it goes, for it is {why}: the taint is put on it",
    "nodepool-gone": "NodePool {nodepool} was deleted: its NodeClaims go with it",
    "repair-off": "nodes are not repaired: the feature gate NodeRepair is off",
    "move-started": "it goes, for it is {why}: the taint is put on it, and what replaces it is launched",
    "reason-raised": "a stronger reason came, which waits for nothing",
    "tainted": "it is marked as going",
    "waits-for-budget": "it could go ({why}), as soon as the disruption budgets of its NodePool leave room",
    "would-go": "nothing speaks against its removal now ({why})",
}
"""Codes that only replay's explanations use."""

TO_BE_REMOVED: dict[str, str] = {
    "awaiting-pods": "the pods planned onto it are bound elsewhere or go away",
    "consolidate-after-never": "the NodePool's spec.disruption.consolidateAfter is set to a duration",
    "do-not-disrupt": "the annotation karpenter.sh/do-not-disrupt is taken off",
    "empty-not-long-enough": "it stays empty until the time is up",
    "has-pods": "the pods on it end or move, and then spec.disruption.consolidateAfter passes",
    "no-node": "its Node object shows again",
    "no-nodepool": "the NodePool shows again, or the NodeClaim is deleted",
    "no-usable-nodepool": "a NodePool without spec.replicas becomes ready",
    "not-initialized": "its node becomes ready and is initialized",
    "static-nodepool": "the NodePool's spec.replicas is lowered",
}
"""For a claim that stays for this reason: what would have to happen before it may go."""

DELETED = {
    "": "its NodeClaim was deleted (the API server does not say by whom)",
    "unknown": "its NodeClaim was deleted (the API server does not say by whom)",
    "node deleted": "its Node was deleted (the API server does not say by whom)",
}
"""Of a deletion of which nobody said by whom: what was deleted."""


def sentence(reason: Reason) -> str:
    """The reason in words, without a subject. Two codes are scheduling's as well: its reasons carry `node_pool`."""
    if reason.code == "deleted" and (said := DELETED.get(str(reason.params.get("detail", "")))) is not None:
        return said
    template = DISRUPTION.get(reason.code) or LIFECYCLE.get(reason.code) or EXPLAINED.get(reason.code)
    if template is None or "node_pool" in reason.params:
        return scheduling.sentence(Reason(reason.code, {k: _in_words(k, v) for k, v in reason.params.items()}))
    said = template.format_map(_Known({name: _shown(name, value) for name, value in reason.params.items()}))
    return " ".join(said.split())


def sentences(reasons: Sequence[Reason]) -> str:
    """Why a pod has no place: the word of each NodePool that was asked, in their order (S-174)."""
    return "; ".join(map(sentence, reasons))


def requirement_words(text: str) -> str:
    """The engine's text of a requirement (S-14), with its bounds in words: cpu Exists <=16 is cpu at most 16."""
    return _BOUNDED.sub(_bounds, text)


def _bounds(found: re.Match[str]) -> str:
    ends = ((word, end) for word, end in zip(("at least", "at most"), found.groups(), strict=True) if end)
    return " " + (" and ".join(f"{word} {end}" for word, end in ends) or "Exists")


def _in_words(name: str, value: str | int | float | list[str]) -> str | int | float | list[str]:
    if name not in _REQUIREMENTS or not isinstance(value, list):
        return value
    return [requirement_words(each) for each in value]


def _shown(name: str, value: str | int | float | list[str]) -> str | int | float:
    if isinstance(value, list):
        return ", ".join(value)
    if isinstance(value, int) and name in _TIMES:
        return duration(value)
    if isinstance(value, int) and name == "pods":
        return count(value, "pod")
    return dollars(value) if name in _PRICES and isinstance(value, int | float) else value


class _Known(dict[str, object]):
    """Parameters of a sentence: one that the record does not have is left out."""

    def __missing__(self, key: str) -> str:
        return ""


SHOWN_DIFFERENCES = 8
"""So many of the fields in which a node has drifted are written out."""


def difference_words(found: Difference) -> str:
    """One field: what the node has, and what is asked for."""
    where = f"{found.field}[{found.key}]" if found.key else found.field
    if found.field == "requirements":
        has = "without the label" if found.was is None else f"is {found.was or 'empty'}"
        return f"{found.key} {has}, and has to be {requirement_words(f'{found.key} {found.now}').partition(' ')[2]}"
    if found.was is None:
        return f"{where} is new: {found.now}"
    return f"{where} is gone: {found.was}" if found.now is None else f"{where} was {found.was}, is {found.now}"


def differences_words(found: Sequence[Difference]) -> str:
    """The fields in one line, "" for none."""
    shown = [difference_words(each) for each in found[:SHOWN_DIFFERENCES]]
    left = len(found) - len(shown)
    return "; ".join([*shown, f"and {left} more"] if left else shown)


def judged(reason: Reason, found: Sequence[Difference]) -> str:
    """A verdict's reason in words, with the fields where it has them."""
    fields = differences_words(found)
    return f"{sentence(reason)} ({fields})" if fields else sentence(reason)


# ── figures ────────────────────────────────────────────────────────────────────────────────────────────────────────


def count(number: int, noun: str) -> str:
    """As in 1 pod, 3 pods; the noun takes a plain s."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def duration(milliseconds: int) -> str:
    """As Go writes durations, to the two largest units: 1h30m, 12.5s, 340ms."""
    sign, rest = ("-", -milliseconds) if milliseconds < 0 else ("", milliseconds)
    if rest < 1_000:
        return f"{sign}{rest}ms" if rest else "0s"
    if rest < 60_000:
        return f"{sign}{rest / 1000:.3f}".rstrip("0").rstrip(".") + "s"
    seconds = rest // 1000
    for unit, size, lower, lower_size in (("d", 86_400, "h", 3_600), ("h", 3_600, "m", 60), ("m", 60, "s", 1)):
        if seconds >= size:
            part = seconds % size // lower_size
            return f"{sign}{seconds // size}{unit}" + (f"{part}{lower}" if part else "")
    raise AssertionError(milliseconds)


def moment(milliseconds: int) -> str:
    """RFC 3339 in UTC with milliseconds."""
    whole, part = divmod(milliseconds, 1000)
    return f"{datetime.fromtimestamp(whole, UTC):%Y-%m-%dT%H:%M:%S}.{part:03d}Z"


def dollars(amount: float) -> str:
    return f"${amount:,.4f}"
