"""Kubernetes Events of decisions and what came of them, in Karpenter's words (L-435 to L-454, L-461, L-462; EV-1 to
EV-23).

Deciders say a thing when it changes, so most of these come once; the reference repeats them for as long as they hold.
What an event is about is looked up in the state as it is after the turn: what is gone by then has no events any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec import Struct

from kerf.engine.disruption.consolidation.balanced_policy import THRESHOLD
from kerf.engine.disruption.forced.node_repair import UNHEALTHY_SHARE
from kerf.engine.lifecycle.drain.volumes import attached
from kerf.engine.model.disruption_reasons import is_deletion, karpenter_spelling
from kerf.engine.model.durations import format_time
from kerf.engine.record import claim_events as ev
from kerf.engine.record.decisions import (
    Decision,
    DisruptResult,
    EvictPod,
    LifecycleResult,
    Move,
    MoveResult,
    MovesResult,
    ProvisionResult,
    Score,
    Verdict,
)
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import EffectAnswered, InterruptionSeen
from kerf.engine.scheduling.reasons import Code
from kerf.engine.state.state import State
from kerf.projections.prose.reasons import count, dollars, sentence, sentences

NORMAL, WARNING = "Normal", "Warning"
MINUTE = 60_000
NOMINATIONS = "nominated"
"""The rate limit that all nominations share (L-437)."""
_LONGEST = 1024  # characters of a message, as the API server has it
_SHORT = 300  # of a launch error (L-454)
_NAMED = 5

BLOCKED = frozenset(
    [
        "awaiting-pods", "being-disrupted", "do-not-disrupt", "missing-label", "no-node", "no-nodepool",
        "no-nodepool-label", "nominated", "not-initialized", "pod-budget-exhausted", "pod-do-not-disrupt",
        "several-pod-budgets",
    ]
)  # fmt: skip
"""What keeps a node from any voluntary disruption (D-30)."""
UNCONSOLIDATABLE = frozenset(
    [
        "consolidate-after-never", "min-values", "no-instance-types", "no-place", "no-usable-nodepool",
        "nothing-cheaper", "policy-when-empty", "several-replacements", "spot-to-spot-off", "static-nodepool",
        "too-few-spot-options", "unknown-instance-type",
    ]
)  # fmt: skip
"""What keeps it from consolidation (EV-7). That Balanced finds it not worth it is in the metrics alone (D-84)."""
UNTOLD = frozenset([Code.OPTED_OUT, Code.RESERVATION])
"""Pods that want no NodePool's node, and those that this pass has no reserved capacity left for (S-43, S-170)."""
_INTERRUPTIONS = {
    "spot_interrupted": (WARNING, "SpotInterrupted", "Spot interruption warning was triggered"),
    "rebalance_recommendation": (NORMAL, "SpotRebalanceRecommendation", "Spot rebalance recommendation was triggered"),
    "instance_stopped": (WARNING, "InstanceStopping", "Instance is stopping"),
    "instance_terminated": (WARNING, "InstanceTerminating", "Instance is terminating"),
    "scheduled_change": (WARNING, "InstanceUnhealthy", "An unhealthy warning was triggered"),
    **dict.fromkeys(
        ("instance_status", "system_status", "event_status", "capacity_reservation_expiring"),
        (WARNING, "InstanceUnhealthy", "An unhealthy warning was triggered"),
    ),
    "capacity_reservation_interrupted": (
        WARNING, "CapacityReservationInstanceInterrupted", "Capacity reservation interruption was triggered",
    ),
}  # fmt: skip


class About(Struct, frozen=True):
    """The object. `uid` is empty where the record does not have it (NodeClaims)."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""


class Told(Struct, frozen=True):
    """One event to be. Events of one `key` within `window` (ms) of the first are one; `limit` names a rate that is
    shared, or is empty."""

    about: About
    type: str
    reason: str
    message: str
    key: tuple[str, ...]
    window: int = 2 * MINUTE
    limit: str = ""


class ClusterEvents:
    """`apply` each entry after its turn: `state` is the state that the turn left."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._evictions: dict[str, EvictPod] = {}
        self._moves = {ref: each.move for ref, each in state.facts.moves.items()}

    def apply(self, entry: Entry) -> list[Told]:
        handler = _HANDLERS.get(type(entry.payload))
        return [_cut(each) for each in handler(self, entry.payload, entry)] if handler is not None else []

    # ── objects ─────────────────────────────────────────────────────────────────────────────────────────────

    def _pod(self, uid: str) -> About | None:
        pod = self._state.facts.pods.get(uid)
        return About("v1", "Pod", pod.name, pod.namespace, pod.uid) if pod is not None else None

    def _node(self, name: str) -> About | None:
        node = self._state.facts.nodes.get(name)
        return About("v1", "Node", node.name, "", node.uid) if node is not None else None

    def _pool(self, name: str) -> About | None:
        pool = self._state.facts.pools.get(name)
        return About("karpenter.sh/v1", "NodePool", name, "", pool.uid) if pool is not None else None

    def _claim(self, name: str) -> About | None:
        return About("karpenter.sh/v1", "NodeClaim", name) if name in self._state.facts.claims else None

    def _both(self, claim: str) -> list[About]:
        """Node and NodeClaim, those that exist (EV-1)."""
        known = self._state.facts.claims.get(claim)
        node = self._node(known.node) if known is not None and known.node else None
        return [each for each in (node, self._claim(claim)) if each is not None]

    def _tell(
        self,
        objects: Iterable[About | None],
        kind: str,
        reason: str,
        message: str,
        *more: str,
        window: int = 2 * MINUTE,
    ) -> list[Told]:
        return [
            Told(each, kind, reason, message.format(kind=each.kind), (each.uid or each.name, *more), window)
            for each in objects
            if each is not None
        ]

    # ── pods and plans ──────────────────────────────────────────────────────────────────────────────────────

    def _decision(self, decision: Decision, entry: Entry) -> list[Told]:
        for index, intent in enumerate(decision.intents):
            if isinstance(intent, EvictPod):
                self._evictions[f"{entry.position}.{index}"] = intent
        result = decision.result
        if isinstance(result, ProvisionResult):
            return self._provisioned(result)
        if isinstance(result, LifecycleResult):
            return self._lifecycle(result)
        if isinstance(result, MovesResult):
            self._moves |= {f"{entry.position}.{index}": move for index, move in enumerate(result.proposed)}
            told = [each for move in result.proposed for each in self._proposed(move)]
            return told + self._verdicts(result.verdicts)
        if isinstance(result, MoveResult):
            return self._moved(result) + self._verdicts(result.verdicts)
        return self._verdicts(result.verdicts) if isinstance(result, DisruptResult) else []

    def _provisioned(self, result: ProvisionResult) -> list[Told]:
        """S-168, S-170, S-171 and S-173: pods without a place, and where the others should go."""
        told = self._without_types(result)
        for left in (*result.unplaced, *result.ignored):
            if any(each.code in UNTOLD for each in left.reasons):
                continue
            why = f"Failed to schedule pod, {_plain(sentences(left.reasons))}"
            for uid in left.pods:
                told += self._tell([self._pod(uid)], WARNING, "FailedScheduling", why, window=5 * MINUTE)
        for claim in result.claims:
            told += self._nominated(claim.pods, f"nodeclaim/{claim.name}")
        for placed in result.placements:
            parts = [f"nodeclaim/{placed.claim}"] if placed.claim else []
            told += self._nominated(placed.pods, ", ".join([*parts, *([f"node/{placed.node}"] if placed.node else [])]))
        return told

    def _without_types(self, result: ProvisionResult) -> list[Told]:
        """L-438, S-66: NodePools that can launch nothing, where a pod has no place and that is a reason."""
        found = {
            str(each.params["node_pool"]): sentence(each)
            for left in result.unplaced
            for each in left.reasons
            if each.code in (Code.NO_INSTANCE_TYPES, Code.TOO_FEW_TYPES)
        }
        return [
            each
            for pool, why in sorted(found.items())
            for each in self._tell([self._pool(pool)], WARNING, "NoCompatibleInstanceTypes", _plain(why), window=MINUTE)
        ]

    def _nominated(self, pods: Sequence[str], where: str) -> list[Told]:
        """Tell pods which node a plan gives them (L-437)."""
        about = [each for each in map(self._pod, pods) if each is not None]
        message = f"Pod should schedule on: {where}"
        return [Told(each, NORMAL, "Nominated", message, (each.uid,), limit=NOMINATIONS) for each in about]

    # ── disruption ──────────────────────────────────────────────────────────────────────────────────────────

    def _verdicts(self, verdicts: Sequence[Verdict]) -> list[Told]:
        told: list[Told] = []
        pools: dict[tuple[str, str], None] = {}
        for each in verdicts:
            code, why = each.reason.code, _plain(sentence(each.reason))
            if each.action == "remove":
                continue
            if code == "repair-blocked":
                told += self._repair_blocked(each.claim, why)
            elif code in BLOCKED:
                told += self._tell(
                    self._both(each.claim), NORMAL, "DisruptionBlocked", f"Cannot disrupt {{kind}}: {why}"
                )
            elif code in UNCONSOLIDATABLE:
                told += self._tell(self._both(each.claim), NORMAL, "Unconsolidatable", why, window=15 * MINUTE)
            elif code == "budget":
                pools[str(each.reason.params.get("nodepool", "")), each.method] = None
        for pool, method in pools:
            text = f"No allowed disruptions for disruption reason {method.capitalize()} due to blocking budget"
            about = [self._pool(pool)]
            told += self._tell(about, NORMAL, "DisruptionBlocked", text, method, window=MINUTE)
        return told

    def _repair_blocked(self, claim: str, why: str) -> list[Told]:
        known = self._state.facts.claims.get(claim)
        node = self._node(known.node) if known is not None else None
        text = f"more than {UNHEALTHY_SHARE}% nodes are unhealthy: {why}"
        return self._tell([node], WARNING, "NodeRepairBlocked", text, window=15 * MINUTE)

    def _proposed(self, move: Move) -> list[Told]:
        """EV-8; EV-10 of one node, EV-11 of several."""
        about = [each for name in move.claims for each in self._both(name)]
        command = self._command(move)
        text = _plain(f"{command} (savings: {dollars(move.savings)}/h{_types(move)})")
        told = self._tell(about, NORMAL, "ConsolidationCandidate", text, command) if move.savings else []
        for each in move.scores:
            judges = about if len(move.claims) == 1 else [self._pool(each.node_pool)]
            told += self._tell(judges, NORMAL, "ConsolidationApproved", _plain(_approval(each)))
        return told

    def _command(self, move: Move) -> str:
        """D-106, before a method is attached: what goes, and how many come for it."""
        claims = (self._state.facts.claims.get(name) for name in move.claims)
        named = ", ".join(each.node for each in claims if each is not None)
        if not move.replacements:
            return f"delete: [{named}]"
        return f"replace: [{named}] -> [{count(len(move.replacements), 'replacement')}]"

    def _moved(self, result: MoveResult) -> list[Told]:
        """EV-3, EV-9. The candidates' own events follow from their claims' (EV-5)."""
        if result.step == "started":
            move = result.begun
            replacements = [] if move is None else [self._claim(each.name) for each in move.replacements]
            why = karpenter_spelling(move.why) if move is not None else ""
            return self._tell(replacements, NORMAL, "DisruptionLaunching", f"Launching {{kind}}: {why}", why)
        known = self._moves.pop(result.move, None)
        about = [each for name in (known.claims if known is not None else ()) for each in self._both(name)]
        return self._tell(about, NORMAL, "ConsolidationRejected", _plain(sentence(result.reason)), result.move)

    def _tainted(self, event: ev.Tainted | ev.ReasonRaised, entry: Entry) -> list[Told]:
        """EV-5, EV-19. A static scale-down deletes, and is no disruption (D-165)."""
        about = self._both(event.claim)
        told: list[Told] = []
        if not is_deletion(event.why):
            why = karpenter_spelling(event.why)
            told = self._tell(about, NORMAL, "DisruptionTerminating", f"Disrupting {{kind}}: {why}", event.why)
        return told + self._deadline(about, event.deadline)

    def _deadline(self, about: list[About], deadline: int | None) -> list[Told]:
        """Tell a node or claim when its pods will be deleted (EV-18, EV-19)."""
        if deadline is None:
            return []
        text = f"All pods will be deleted by {format_time(deadline)}"
        return self._tell(about, WARNING, "TerminationGracePeriodExpiring", text)

    def _drained(self, event: ev.Drained, entry: Entry) -> list[Told]:
        """L-199: its volumes are waited for."""
        known = self._state.facts.claims.get(event.claim)
        node = self._state.facts.nodes.get(known.node) if known is not None else None
        if node is None or not event.volumes:
            return []
        named = ", ".join(attached(node, self._state, self._state.facts.at)[:_NAMED])
        message = f"Awaiting deletion VolumeAttachments bound to node ({named})"
        return self._tell([self._node(node.name)], NORMAL, "AwaitingVolumeDetachment", message)

    # ── the way out ─────────────────────────────────────────────────────────────────────────────────────────

    def _lifecycle(self, result: LifecycleResult) -> list[Told]:
        code, params = result.reason.code, result.reason.params
        known = self._state.facts.claims.get(result.claim)
        node = self._node(known.node) if known is not None and known.node else None
        if code == "waiting-for-pods":
            pods = count(int(str(params.get("pods", 0))), "pod")
            return self._tell(
                [node], WARNING, "FailedDraining", f"Failed to drain node, {pods} are waiting to be evicted"
            )
        if code == "node-shape-inconsistent":
            text = _plain(sentence(result.reason))
            return self._tell([self._claim(result.claim)], WARNING, "FailedConsistencyCheck", text, text)
        return []

    def _drain(self, event: ev.DrainStarted, entry: Entry) -> list[Told]:
        return self._deadline(self._both(event.claim), event.deadline)

    def _evicted(self, event: ev.PodEvicted, entry: Entry) -> list[Told]:
        """Tell a pod that it was evicted, and why (EV-14)."""
        known = self._state.facts.claims.get(event.claim)
        why = karpenter_spelling(known.why) if known is not None else ""
        about = self._pod(event.uid)
        if about is None:
            return []
        return [Told(about, NORMAL, "Evicted", f"Evicted pod: {why}", (about.namespace, about.name))]

    def _forced(self, event: ev.PodForced, entry: Entry) -> list[Told]:
        """Tell a pod that it was deleted for its node's deadline (EV-15)."""
        about = self._pod(event.uid)
        text = f"Deleting the pod for the deadline of its node. It was granted {event.grace} seconds of grace-period"
        return [Told(about, NORMAL, "Disrupted", text, (about.namespace, about.name))] if about is not None else []

    def _answered(self, answer: EffectAnswered, entry: Entry) -> list[Told]:
        """EV-16: a PodDisruptionBudget refused an eviction."""
        intent = self._evictions.pop(answer.intent, None)
        if intent is None or answer.ok or answer.code != "429":
            return []
        text = f"Failed to drain node, evicting pod {intent.namespace}/{intent.name} violates a PDB: {answer.message}"
        return self._tell([self._node(intent.node)], WARNING, "FailedDraining", _plain(text))

    # ── claims and the cloud ────────────────────────────────────────────────────────────────────────────────

    def _launch_failed(self, event: ev.LaunchFailed, entry: Entry) -> list[Told]:
        """EV-22, EV-23. The claim is over: its object may show for a moment yet."""
        reasons = {"insufficient-capacity": "InsufficientCapacityError", "nodeclass-not-ready": "NodeClassNotReady"}
        reason = reasons.get(event.kind)
        if reason is None:
            return []
        about = About("karpenter.sh/v1", "NodeClaim", event.claim)
        text = f"NodeClaim {event.claim} event: {event.message or event.code}"
        return [Told(about, WARNING, reason, text[:_SHORT], (event.claim,))]

    def _interrupted(self, message: InterruptionSeen, entry: Entry) -> list[Told]:
        """Tell node and claim what EC2 announced of their instance (L-461, L-462)."""
        kind, reason, text = _INTERRUPTIONS.get(message.kind, ("", "", ""))
        claim = self._state.ix.claim_by_instance.get(message.instance, "")
        return self._tell(self._both(claim), kind, reason, text + " for the {kind}") if reason and claim else []


def _cut(told: Told) -> Told:
    if len(told.message) <= _LONGEST:
        return told
    return Told(
        told.about, told.type, told.reason, told.message[: _LONGEST - 1] + "…", told.key, told.window, told.limit
    )


def _plain(text: str) -> str:
    """For `format`: braces that are the text's own."""
    return text.replace("{", "{{").replace("}", "}}")


def _approval(given: Score) -> str:
    worth = f"score {given.worth:.2f} (threshold {THRESHOLD:.2f}, k {1 / THRESHOLD:g})"
    shares = f"saves {given.savings:.1%} of its cost for {given.disruption:.1%} of its disruption"
    return f"NodePool {given.node_pool} approves, {worth}: {shares}"


def _types(move: Move) -> str:
    """What most likely comes."""
    types = "; ".join(each.instance_types[0] for each in move.replacements if each.instance_types)
    return f", by {types}" if types else ""


_HANDLERS: dict[type[Struct], Callable[[ClusterEvents, Any, Entry], list[Told]]] = {
    Decision: ClusterEvents._decision,
    EffectAnswered: ClusterEvents._answered,
    InterruptionSeen: ClusterEvents._interrupted,
    ev.Tainted: ClusterEvents._tainted,
    ev.ReasonRaised: ClusterEvents._tainted,
    ev.DrainStarted: ClusterEvents._drain,
    ev.PodEvicted: ClusterEvents._evicted,
    ev.PodForced: ClusterEvents._forced,
    ev.LaunchFailed: ClusterEvents._launch_failed,
    ev.Drained: ClusterEvents._drained,
}
