"""Write log lines as Karpenter does, from the record, for tools that read Karpenter's logs (L-358, L-359, L-361).

A line is a dict in the order of its keys; `line_json` turns it into JSON. The same record gives the same lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from kerf.engine.lifecycle.reasons import COLLECTED
from kerf.engine.model.durations import format_duration
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.kubernetes.pods import Pod, Resources
from kerf.engine.model.labels import DISRUPTED_TAINT
from kerf.engine.model.quantities import format_quantity
from kerf.engine.record import claim_events as ev
from kerf.engine.record.decisions import (
    Decision,
    DeleteNode,
    DisruptResult,
    Intent,
    LifecycleResult,
    MoveStepResult,
    ProposedMovesResult,
    ProvisionResult,
    StaticResult,
    TaintNode,
)
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import (
    ClocksAgree,
    ClocksDiffer,
    EffectAnswered,
    InputRefused,
    ObjectGone,
    TimeSetBack,
)
from kerf.engine.scheduling.reasons import SchedulingCode
from kerf.engine.state.state import State
from kerf.projections.disruption_log_lines import DEBUG, ERROR, INFO, ClaimFacts, DisruptionLines, Line
from kerf.projections.prose.amounts import moment
from kerf.projections.prose.printable import printable_json
from kerf.projections.prose.reasons import sentences

_LEVELS = (DEBUG, INFO, ERROR)
_MAX_NAMES = 5
"""At most this many names of a list are written out, as Karpenter does."""
_ALL_WRITTEN = 100
"""Up to this many lines of one message are all written; of further ones, one in this many (L-360)."""


class Moment(Struct, frozen=True):
    """When a line is written that no entry is the cause of: the time (ms since the epoch) and the latest position."""

    at: int
    position: int


class KarpenterLog:
    """Gives the lines of one entry with `apply`: those of `level` (debug, info or error) and above. `commit` is the
    build's revision, left out when unknown (L-360)."""

    def __init__(self, commit: str = "", level: str = "info") -> None:
        self._commit, self._level = commit, level.upper()
        self._pods: dict[str, str] = {}
        self._claims: dict[str, ClaimFacts] = {}
        self._intents: dict[str, tuple[Intent, str]] = {}
        """With the NodePool: the answer may come after the claim's end."""
        self._disruption = DisruptionLines(self._line, self._claims)
        self._position = 0

    def know(self, state: State) -> None:
        """Take over what the state knows, for a process that goes on with a record."""
        facts = state.facts
        self._position = facts.position
        self._pods = {uid: pod.key for uid, pod in facts.pods.items()}
        self._claims.update({claim.name: ClaimFacts.of(claim) for claim in facts.claims.values()})
        self._disruption.know(state)
        intents = {ref: intent.intent for ref, intent in facts.intents.items()}
        self._intents = {
            ref: (intent, self._node_pool(intent.claim))
            for ref, intent in intents.items()
            if isinstance(intent, TaintNode | DeleteNode)
        }

    def recall(self, entry: Entry) -> None:
        """Take up what an earlier process proposed or began."""
        self._disruption.recall(entry)

    def recall_lives(self, entries: Iterable[Entry]) -> None:
        """Take up claims that are over in the state, of their earlier events, which are logged already."""
        for entry in entries:
            if isinstance(entry.payload, ev.Requested | ev.Adopted | ev.Launched | ev.Registered):
                self.apply(entry)

    def untold(self, entries: Sequence[Entry]) -> None:
        """Note that the state of `know` has these entries already, and that they are still to be applied."""
        self._disruption.untold(entries)

    def apply(self, entry: Entry) -> list[Line]:
        self._position = entry.position
        handler = _HANDLERS.get(type(entry.payload))
        lines = handler(self, entry.payload, entry) if handler is not None else []
        return [line for line in lines if _LEVELS.index(line["level"]) >= _LEVELS.index(self._level)]

    def consolidatable(self, turned: dict[str, bool], now: int) -> list[Line]:
        """Log which claims became Consolidatable, and which ceased to be (LG-8). That follows from time, and is in no
        entry."""
        if self._level != DEBUG:
            return []
        when = Moment(now, self._position)
        return [
            self._line(
                DEBUG, when, "marking consolidatable" if quiet else "removing consolidatable", "nodeclaim.disruption",
                NodeClaim={"name": name}, Node={"name": self._claims.get(name, ClaimFacts()).node},
                reason="Consolidatable",
            )
            for name, quiet in turned.items()
        ]  # fmt: skip

    def _line(self, level: str, entry: Entry | Moment, message: str, controller: str, **context: Any) -> Line:
        head: Line = {"level": level, "time": moment(entry.at), "logger": "controller"}
        if self._level == DEBUG:  # L-358
            head["caller"] = f"record:{entry.position}"
        head["message"] = message
        if self._commit:
            head["commit"] = self._commit
        return {**head, "controller": controller, **{k.replace("_", "-"): v for k, v in context.items()}}

    def _about(self, level: str, entry: Entry, message: str, claim: str, pool: str = "", **context: Any) -> Line:
        """Make a line of the NodeClaim's own controller. `pool` is needed for a claim that may be gone."""
        return self._line(
            level, entry, message, "nodeclaim.lifecycle", controllerGroup="karpenter.sh", controllerKind="NodeClaim",
            NodeClaim={"name": claim}, NodePool={"name": pool or self._node_pool(claim)}, namespace="", name=claim,
            **context,
        )  # fmt: skip

    def _about_lone(self, entry: Entry, message: str, node: str, **context: Any) -> Line:
        """Make a line about a Node that belongs to no NodeClaim (D-140)."""
        return self._line(
            INFO, entry, message, "node.termination", controllerGroup="", controllerKind="Node", Node={"name": node},
            namespace="", name=node, **context,
        )  # fmt: skip

    def _node_pool(self, claim: str) -> str:
        known = self._claims.get(claim)
        return known.node_pool if known is not None else ""

    # ── what is kept ───────────────────────────────────────────────────────────────────────────────────────────

    def _unreadable(self, refused: InputRefused, entry: Entry) -> list[Line]:
        """Log what of the input cannot be read: a pod's deletion cost, say (LG-14)."""
        error = " ".join(filter(None, (refused.code, refused.field, refused.message)))
        return [self._line(ERROR, entry, "refused input", refused.source, object=refused.object, error=error)]

    def _pod(self, pod: Pod, entry: Entry) -> list[Line]:
        self._pods[pod.uid] = pod.key
        return []

    def _gone(self, gone: ObjectGone, entry: Entry) -> list[Line]:
        if gone.kind == "pod":
            self._pods.pop(gone.key, None)
        elif gone.kind == "nodepool":
            self._disruption.gone(gone.key)
        return []

    def _pool(self, pool: NodePool, entry: Entry) -> list[Line]:
        self._disruption.pool(pool)
        return []

    # ── what is told ───────────────────────────────────────────────────────────────────────────────────────────

    def _decision(self, decision: Decision, entry: Entry) -> list[Line]:
        for index, intent in enumerate(decision.intents):
            if isinstance(intent, TaintNode | DeleteNode):
                self._intents[f"{entry.position}.{index}"] = intent, self._node_pool(intent.claim)
            self._disruption.graces.note(intent)
        match decision.result:
            case ProvisionResult(repeats=0) as result:
                return (self._planned(result, entry) if result.claims else []) + self._left(result, entry)
            case ProposedMovesResult() as result:
                return self._disruption.passed(result, entry)
            case MoveStepResult() as result:
                return self._disruption.moved(result, entry) + self._disruption.verdicts(result.verdicts, entry)
            case DisruptResult() as result:
                return self._disruption.verdicts(result.verdicts, entry)
            case StaticResult() as result:
                return self._disruption.static(result, entry)
            case LifecycleResult(reason=reason) as result if reason.code in COLLECTED:
                return self._garbage(result.claim, entry)
            case _:
                return []

    def _garbage(self, claim: str, entry: Entry) -> list[Line]:
        """Log once that a claim goes because its instance is gone (LG-9)."""
        known = self._claims.get(claim)
        if known is None or known.collected:
            return []
        known.collected = True
        message = "garbage collecting nodeclaim with no cloudprovider representation"
        return [
            self._line(DEBUG, entry, message, "nodeclaim.garbagecollection", NodeClaim={"name": claim},
                       Node={"name": known.node}, provider_id=known.provider_id)
        ]  # fmt: skip

    def _planned(self, result: ProvisionResult, entry: Entry) -> list[Line]:
        """Log a plan with new nodes. Of a plan without new nodes nothing is logged (S-172)."""
        groups = [group.pods for group in result.claims] + [group.pods for group in result.placements]
        groups += [group.pods for group in result.unplaced]
        pods = sorted(self._pods.get(uid, uid) for group in groups for uid in group)
        new = sum(len(group.pods) for group in result.claims)
        message = "computed new nodeclaim(s) to fit pod(s)"
        lines = [
            self._line(INFO, entry, "found provisionable pod(s)", "provisioner", Pods=_listed(pods)),
            self._line(INFO, entry, message, "provisioner", nodeclaims=len(result.claims), pods=new),
        ]
        placed = sum(len(group.pods) for group in result.placements)
        if placed:
            message, nodes = "computed unready node(s) will fit pod(s)", len(result.placements)
            lines.append(self._line(INFO, entry, message, "provisioner", nodes=nodes, pods=placed))
        return lines

    def _left(self, result: ProvisionResult, entry: Entry) -> list[Line]:
        """Log the pods without a place (S-170), and those that were refused before planning (S-43). Those that wait for
        reserved capacity are no failure."""
        failures = [
            (INFO if codes == {SchedulingCode.RESOURCE_CLAIMS} else ERROR, uid, sentences(group.reasons))
            for group in result.unplaced
            if SchedulingCode.RESERVATION not in (codes := {reason.code for reason in group.reasons})
            for uid in group.pods
        ]
        ignored = [(DEBUG, uid, sentences(group.reasons)) for group in result.ignored for uid in group.pods]
        return [
            self._line(level, entry, message, "provisioner", Pod=self._named(uid), error=error)
            for message, pods in (("could not schedule pod", failures), ("ignoring pod", ignored))
            for level, uid, error in (*pods[:_ALL_WRITTEN], *pods[2 * _ALL_WRITTEN - 1 :: _ALL_WRITTEN])
        ]

    def _named(self, uid: str) -> Line:
        namespace, _, name = self._pods.get(uid, f"/{uid}").partition("/")
        return {"name": name, "namespace": namespace}

    def _requested(self, event: ev.Requested, entry: Entry) -> list[Line]:
        claim = self._claims.setdefault(event.claim, ClaimFacts())
        claim.node_pool = event.node_pool
        return [
            self._line(
                INFO, entry, "created nodeclaim", "provisioner", NodePool={"name": event.node_pool},
                NodeClaim={"name": event.claim}, requests=_quantities(event.requests),
                instance_types=_listed(event.instance_types),
            )
        ]  # fmt: skip

    def _adopted(self, event: ev.Adopted, entry: Entry) -> list[Line]:
        self._claims[event.claim] = ClaimFacts.of(event)
        return []

    def _launched(self, event: ev.Launched, entry: Entry) -> list[Line]:
        claim = self._claims.setdefault(event.claim, ClaimFacts())
        claim.provider_id, claim.allocatable = event.provider_id, event.allocatable
        claim.instance_type, claim.capacity_type = event.instance_type, event.capacity_type
        return [
            self._about(
                INFO, entry, "launched nodeclaim", event.claim, provider_id=event.provider_id,
                instance_type=event.instance_type, zone=event.zone, capacity_type=event.capacity_type,
                allocatable=_quantities(event.allocatable),
            )
        ]  # fmt: skip

    def _failed(self, event: ev.LaunchFailed | ev.LaunchTimedOut, entry: Entry) -> list[Line]:
        error = " ".join(filter(None, (getattr(event, "kind", ""), getattr(event, "code", ""), event.message)))
        line = self._about(
            ERROR, entry, "failed launching nodeclaim", event.claim, error=error or "no instance in time"
        )
        self._claims.pop(event.claim, None)
        self._disruption.over(event.claim)
        return [line]

    def _registered(self, event: ev.Registered, entry: Entry) -> list[Line]:
        claim = self._claims.setdefault(event.claim, ClaimFacts())
        claim.node = event.node
        return [
            self._about(INFO, entry, "registered nodeclaim", event.claim, provider_id=claim.provider_id,
                        Node={"name": event.node})
        ]  # fmt: skip

    def _initialized(self, event: ev.Initialized, entry: Entry) -> list[Line]:
        claim = self._claims.setdefault(event.claim, ClaimFacts())
        return [
            self._about(INFO, entry, "initialized nodeclaim", event.claim, provider_id=claim.provider_id,
                        Node={"name": event.node}, allocatable=_quantities(claim.allocatable))
        ]  # fmt: skip

    def _tainted(self, event: ev.Tainted | ev.ReasonRaised, entry: Entry) -> list[Line]:
        return self._disruption.tainted(event, entry)

    def _drain_started(self, event: ev.DrainStarted, entry: Entry) -> list[Line]:
        return self._disruption.started(event, entry)

    def _forced(self, event: ev.PodForced, entry: Entry) -> list[Line]:
        return self._disruption.forced(event, entry)

    def _answered(self, answer: EffectAnswered, entry: Entry) -> list[Line]:
        intent, pool = self._intents.pop(answer.intent, (None, ""))
        if intent is None or not answer.ok:
            return self._refused(answer, entry)
        assert isinstance(intent, TaintNode | DeleteNode)
        taint = {"taint.Key": DISRUPTED_TAINT, "taint.Value": "", "taint.Effect": "NoSchedule"}
        message, more = ("deleted node", {}) if isinstance(intent, DeleteNode) else ("tainted node", taint)
        if not intent.claim:
            return [self._about_lone(entry, message, intent.node, **more)]
        return [self._about(INFO, entry, message, intent.claim, pool, Node={"name": intent.node}, **more)]

    def _refused(self, answer: EffectAnswered, entry: Entry) -> list[Line]:
        """Log a request that was refused. Most are made again after a pause."""
        if answer.ok:
            return []
        error = f"{answer.code} {answer.message}".strip()
        return [self._line(DEBUG, entry, "request refused", "effects", intent=answer.intent, error=error)]

    # ── the clocks ─────────────────────────────────────────────────────────────────────────────────────────────

    def _clocks_differ(self, differ: ClocksDiffer, entry: Entry) -> list[Line]:
        message = "clocks differ: nothing expires, is consolidated or repaired until they agree"
        return [self._line(ERROR, entry, message, "clocks", jump=_seconds(differ.jump), skew=_seconds(differ.skew))]

    def _clocks_agree(self, agree: ClocksAgree, entry: Entry) -> list[Line]:
        return [self._line(INFO, entry, "clocks agree again", "clocks", time_set_by=_seconds(agree.moved))]

    def _set_back(self, back: TimeSetBack, entry: Entry) -> list[Line]:
        message = "the record was ahead of the clock: its time is set back"
        return [self._line(ERROR, entry, message, "clocks", by=_seconds(entry.at - back.was))]

    def _terminated(self, event: ev.Terminated | ev.InstanceVanished, entry: Entry) -> list[Line]:
        claim = self._claims.setdefault(event.claim, ClaimFacts())
        line = self._about(
            INFO, entry, "deleted nodeclaim", event.claim, provider_id=claim.provider_id, Node={"name": claim.node},
            duration=format_duration(event.lifetime),
        )  # fmt: skip
        self._claims.pop(event.claim, None)
        self._disruption.over(event.claim)
        return [line]


_HANDLERS: dict[type[Struct], Callable[[KarpenterLog, Any, Entry], list[Line]]] = {
    InputRefused: KarpenterLog._unreadable,
    Pod: KarpenterLog._pod,
    ObjectGone: KarpenterLog._gone,
    NodePool: KarpenterLog._pool,
    Decision: KarpenterLog._decision,
    EffectAnswered: KarpenterLog._answered,
    ClocksDiffer: KarpenterLog._clocks_differ,
    ClocksAgree: KarpenterLog._clocks_agree,
    TimeSetBack: KarpenterLog._set_back,
    ev.Requested: KarpenterLog._requested,
    ev.Adopted: KarpenterLog._adopted,
    ev.Launched: KarpenterLog._launched,
    ev.LaunchFailed: KarpenterLog._failed,
    ev.LaunchTimedOut: KarpenterLog._failed,
    ev.Registered: KarpenterLog._registered,
    ev.Initialized: KarpenterLog._initialized,
    ev.Tainted: KarpenterLog._tainted,
    ev.ReasonRaised: KarpenterLog._tainted,
    ev.DrainStarted: KarpenterLog._drain_started,
    ev.PodForced: KarpenterLog._forced,
    ev.Terminated: KarpenterLog._terminated,
    ev.InstanceVanished: KarpenterLog._terminated,
}


def line_json(line: Line) -> str:
    """Return the line as one JSON object, without a line end."""
    return printable_json(msgspec.json.encode(line).decode())


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:+g}s"


def _quantities(amounts: Resources) -> dict[str, str]:
    return {name: format_quantity(amount, name) for name, amount in sorted(amounts.items())}


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MAX_NAMES])
    return f"{shown} and {len(names) - _MAX_NAMES} other(s)" if len(names) > _MAX_NAMES else shown
