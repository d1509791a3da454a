"""What each message of Karpenter's log means as a step (F-62…F-80).

A message that is not here tells nothing of nodes and pods, unless it is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from kerf.adapters.importers import claim_steps as st
from kerf.adapters.importers.karpenter.decisions import decision_of, gave_up_on
from kerf.adapters.importers.karpenter.lines import LogLine, may_be_karpenters
from kerf.adapters.importers.untrusted import key_of, name_of, resources_of, whole_number
from kerf.engine.model import labels as lbl
from kerf.engine.model.disruption_reasons import DisruptionReason
from kerf.engine.model.karpenter.launch_reasons import fleet_errors
from kerf.engine.record.observations import LaunchError

_OTHERS = re.compile(r" and (\d{1,9}) other\(s\)$")
_OLD_NO_PLACE = "could not schedule pod, "
"""Up to 0.36 the error is in the message (F-89)."""
_OLD_NO_CAPACITY = "insufficient capacity, "
"""Up to 0.36 the message is the error of a launch that failed (F-89)."""
_TOO_LARGE = re.compile(r"\d{1,6} out of \d{1,6} instance types were excluded because they would breach limits")
_PREFERRED = re.compile(
    r"pod(?:\(s\) have| (?P<pod>\S{1,600}) has) a preferred (?P<term>\w{1,60}(?:-\w{1,60})?) which can prevent .*"
)
_UNREADY = re.compile(r"computed (\d{1,9}) unready node\(s\) will fit (\d{1,9}) pod\(s\)")
_LONGEST_TEXT = 2_000  # characters of an error that are kept
_LONGEST_REASON = 100  # characters of EC2's code


def steps_of(line: LogLine) -> tuple[st.Step, ...] | None:
    """The steps that a line tells of; none if it does not name what it is about, and None if that is neither nodes nor
    pods."""
    if line.message.startswith("disrupting "):
        decided = decision_of(line)
        return (decided,) if decided is not None else ()
    known = _MEANING.get(line.message)
    if known is not None:
        return known(line)
    failed = line.level == "ERROR" and may_be_karpenters(line)  # other containers have errors, too
    return _by_its_beginning(line) or ((_error(line),) if failed else None)


def _by_its_beginning(line: LogLine) -> tuple[st.Step, ...]:
    """The steps of a message with names, numbers or an error in it."""
    message = line.message.lower()
    if message.startswith("successfully acquired lease"):
        return (_said(line, "info", "is the leader from now on: what was under way before may be missing"),)
    if message.startswith(_OLD_NO_PLACE):
        return _no_place(line, line.message[len(_OLD_NO_PLACE) :])
    if message.startswith(_OLD_NO_CAPACITY) and line.level == "ERROR":
        return _launch_failed(line, line.message)
    unready = _UNREADY.fullmatch(line.message)
    if unready is not None:
        return (_said(line, "info", f"{unready[2]} pods fit on {unready[1]} nodes that are not ready yet"),)
    preferred = _PREFERRED.fullmatch(line.message)
    if preferred is not None:
        pods = (preferred["pod"] or "").strip('"') or line.text("pods")
        text = f"a preferred {preferred['term']} can prevent consolidation, that of {pods}"
        return (_said(line, "info", text, pods=_pods_in(pods)),)
    return _told("info")(line) if _TOO_LARGE.match(line.message) else ()


def _said(
    line: LogLine,
    level: str,
    text: str,
    *,
    pods: tuple[str, ...] = (),
    about: bool = False,
    refused: tuple[LaunchError, ...] = (),
) -> st.Said:
    """A sentence about these pods, and with `about` also about the objects that the line names. It names them."""
    names = {kind: (name,) if about and (name := line.name(kind)) else () for kind in ("NodeClaim", "Node", "NodePool")}
    unnamed = [f"{kind} {name}" for kind, found in names.items() for name in found if name not in text]
    text = f"{', '.join(unnamed)}: {text}" if unnamed else text
    return st.Said(
        at=line.at, level=level, text=text[:_LONGEST_TEXT], pods=pods, claims=names["NodeClaim"], nodes=names["Node"],
        node_pools=names["NodePool"], refused=refused,
    )  # fmt: skip


def _error(line: LogLine) -> st.Said:
    pod = key_of(line.fields.get("Pod"))
    text = f"{line.message}: {line.text('error')}" if line.text("error") else line.message
    refused = tuple(
        LaunchError(error.code, instance_type=error.instance_type, zone=error.zone)
        for error in fleet_errors(line.text("error"))
    )
    return _said(line, "error", text, pods=(pod,) if pod else (), about=True, refused=refused)


# ── pods and plans ─────────────────────────────────────────────────────────────────────────────────────────────────


def _found_pods(line: LogLine) -> tuple[st.Step, ...]:
    text = line.text("Pods") or line.text("pods")
    return (_said(line, "info", f"found pods that need a place: {text}", pods=_pods_in(text)),)


def _pods_in(text: str) -> tuple[str, ...]:
    """The pods that a text lists: the first of them, and the number of the others."""
    return tuple(key for part in _OTHERS.sub("", text).split(",") if (key := _pod_key(part.strip())))


def _pod_key(text: str) -> str:
    namespace, _, name = text.partition("/")
    return f"{namespace}/{name}" if name_of(namespace) and name_of(name) else ""


def _computed(line: LogLine) -> tuple[st.Step, ...]:
    claims, pods = whole_number(line.fields.get("nodeclaims")), whole_number(line.fields.get("pods"))
    return (_said(line, "info", f"plans {claims} new node{'s' * (claims != 1)} for {pods} pod{'s' * (pods != 1)}"),)


def _unready(line: LogLine) -> tuple[st.Step, ...]:
    nodes, pods = whole_number(line.fields.get("nodes")), whole_number(line.fields.get("pods"))
    return (_said(line, "info", f"{pods} pods fit on {nodes} nodes that are not ready yet"),)


def _no_place(line: LogLine, error: str = "") -> tuple[st.Step, ...]:
    pod = key_of(line.fields.get("Pod")) or _pod_key(line.text("pod"))
    text = f"no place for pod {pod or '(not named)'}: {error or line.text('error')}"
    return (_said(line, "warning", text, pods=(pod,) if pod else ()),)


# ── a claim's life ─────────────────────────────────────────────────────────────────────────────────────────────────


def _created(line: LogLine) -> tuple[st.Step, ...]:
    types = line.text("instance-types")
    complete = types and not _OTHERS.search(types)
    return _if_named(line, lambda claim: st.Created(
        at=line.at, claim=claim, node_pool=line.name("NodePool"), requests=resources_of(line.fields.get("requests")),
        instance_types=tuple(filter(None, (name_of(name.strip()) for name in types.split(",")))) if complete else (),
        run=line.text("reconcileID"), replaces=line.controller == "disruption",
    ))  # fmt: skip


def _launched(line: LogLine) -> tuple[st.Step, ...]:
    return _if_named(line, lambda claim: st.Launched(
        at=line.at, claim=claim, provider_id=line.text("provider-id"),
        instance_type=name_of(line.text("instance-type")), zone=name_of(line.text("zone")),
        capacity_type=name_of(line.text("capacity-type")),
        allocatable=resources_of(line.fields.get("allocatable")),
    ))  # fmt: skip


def _launch_failed(line: LogLine, error: str = "") -> tuple[st.Step, ...]:
    error = (error or line.text("error"))[:_LONGEST_TEXT]
    return _if_named(line, lambda claim: st.LaunchFailed(at=line.at, claim=claim, error=error))


def _registered(line: LogLine) -> tuple[st.Step, ...]:
    return _if_named(line, lambda claim: st.Registered(
        at=line.at, claim=claim, node=line.name("Node"), provider_id=line.text("provider-id")
    ))  # fmt: skip


def _initialized(line: LogLine) -> tuple[st.Step, ...]:
    return _if_named(line, lambda claim: st.Initialized(
        at=line.at, claim=claim, node=line.name("Node"), provider_id=line.text("provider-id"),
        allocatable=resources_of(line.fields.get("allocatable")),
    ))  # fmt: skip


def _if_named(line: LogLine, step: Callable[[str], st.Step]) -> tuple[st.Step, ...]:
    claim = line.name("NodeClaim")
    return (step(claim),) if claim else ()


# ── its end ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _interrupted(line: LogLine) -> tuple[st.Step, ...]:
    return _if_named(line, lambda claim: st.Interrupted(
        at=line.at, claim=claim, node=line.name("Node"), kind=_interruption_kind(line.text("messageKind"))
    ))  # fmt: skip


def _interruption_kind(kind: str) -> str:
    """The kind as 1.x spells it: SpotInterruptionKind is spot_interrupted (F-88)."""
    older = {"SpotInterruptionKind": "spot_interrupted", "ScheduledChangeKind": "scheduled_change",
             "RebalanceRecommendationKind": "rebalance_recommendation"}  # fmt: skip
    return name_of(older.get(kind, kind)) or "unknown"


def _annotated(line: LogLine) -> tuple[st.Step, ...]:
    told = line.text(lbl.TERMINATION_TIMESTAMP)
    return _if_named(line, lambda claim: st.DeletionSeen(at=line.at, claim=claim, deadline=told)) if told else ()


def _tainted(line: LogLine) -> tuple[st.Step, ...]:
    node = line.name("Node")
    if not node:  # somebody has cut it out
        return _if_named(line, lambda claim: st.DeletionSeen(at=line.at, claim=claim))
    return (st.DrainBegan(at=line.at, node=node, claim=line.name("NodeClaim")),)


def _node_gone(line: LogLine) -> tuple[st.Step, ...]:
    node, claim = line.name("Node"), line.name("NodeClaim")
    return (st.NodeGone(at=line.at, node=node, claim=claim),) if node or claim else ()


def _claim_gone(line: LogLine) -> tuple[st.Step, ...]:
    return _if_named(line, lambda claim: st.ClaimGone(
        at=line.at, claim=claim, node=line.name("Node"), provider_id=line.text("provider-id")
    ))  # fmt: skip


def _gave_up(line: LogLine) -> tuple[st.Step, ...]:
    return (gave_up_on(line),)


def _removed_because(why: str) -> Callable[[LogLine], tuple[st.Step, ...]]:
    """A cause that only the level DEBUG tells of (F-80)."""

    def step(line: LogLine) -> tuple[st.Step, ...]:
        targets = (st.Target(line.name("Node"), line.name("NodeClaim")),)
        if not (targets[0].node or targets[0].claim):
            return ()
        return (st.Decided(at=line.at, why=why, action="delete", targets=targets, run=line.text("reconcileID")),)

    return step


def _timed_out(line: LogLine) -> tuple[st.Step, ...]:
    launch = line.text("reason") == "launch_timeout"
    why = DisruptionReason.LAUNCH_TIMEOUT if launch else DisruptionReason.REGISTRATION_TIMEOUT
    return _removed_because(why.value)(line)


def _told(level: str) -> Callable[[LogLine], tuple[st.Step, ...]]:
    def step(line: LogLine) -> tuple[st.Step, ...]:
        reason = line.text("reason") or line.text("error") or line.text("minValuesIncompatibleErr")
        pod = key_of(line.fields.get("Pod"))
        text = f"{line.message}: {reason}" if reason else line.message
        return (_said(line, level, text, pods=(pod,) if pod else (), about=True),)

    return step


def _no_capacity(line: LogLine) -> tuple[st.Step, ...]:
    parts = [name_of(line.fields.get(key)) for key in ("capacity-type", "instance-type", "zone")]
    reason = line.text("reason")[:_LONGEST_REASON]
    refused = LaunchError(reason, instance_type=parts[1], zone=parts[2], capacity_type=parts[0])
    text = f"no capacity for {' '.join(filter(None, parts))}: {reason}"
    return (_said(line, "warning", text, refused=(refused,)),)


_MEANING: dict[str, Callable[[LogLine], tuple[st.Step, ...]]] = {
    "found provisionable pod(s)": _found_pods,
    "computed new nodeclaim(s) to fit pod(s)": _computed,
    "computed unready node(s) will fit pod(s)": _unready,
    "could not schedule pod": _no_place,
    "created nodeclaim": _created,
    "launched nodeclaim": _launched,
    "failed launching nodeclaim": _launch_failed,
    "registered nodeclaim": _registered,
    "initialized nodeclaim": _initialized,
    "initiating delete from interruption message": _interrupted,
    "annotated nodeclaim": _annotated,
    "tainted node": _tainted,
    "cordoned node": _tainted,
    "deleted node": _node_gone,
    "deleted nodeclaim": _claim_gone,
    "failed terminating nodes while executing a disruption command": _gave_up,
    "deleting expired nodeclaim": _removed_because(DisruptionReason.EXPIRED.value),
    "triggering termination for expired node after TTL": _removed_because(DisruptionReason.EXPIRED.value),
    "garbage collecting nodeclaim with no cloudprovider representation": _removed_because("garbage-collected"),
    "garbage collected cloudprovider instance": _told("warning"),
    "garbage collected node": _told("warning"),
    "terminating due to registration ttl": _timed_out,
    "terminating due to timeout": _timed_out,
    "deleting unhealthy node": _removed_because(DisruptionReason.UNHEALTHY.value),
    "detected unhealthy instance owned by cluster": _told("warning"),
    "deleting nodeclaim": _removed_because(DisruptionReason.OVERPROVISIONED.value),
    "marking drifted": _told("info"),
    "deleting pod": _told("warning"),
    "removing offering from offerings": _no_capacity,
    "nodepool node limit reached": _told("warning"),
    "skipping, nodepool requirements filtered out all instance types": _told("warning"),
    "ignoring nodepool, not ready": _told("warning"),
    "no nodepools found": _told("warning"),
    "no dynamic nodepools found": _told("warning"),
    "provisioning nodeclaims to satisfy replica count": _told("info"),
    "deprovisioning nodeclaims to satisfy replica count": _told("info"),
}
