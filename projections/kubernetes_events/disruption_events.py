"""Make Kubernetes Events of disruption: why nodes stay, what moves would do, and what goes (EV-1 to EV-13, EV-20)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kerf.engine.disruption.budgets import allowance
from kerf.engine.disruption.consolidation.balanced_policy import THRESHOLD
from kerf.engine.disruption.forced.node_repair import UNHEALTHY_SHARE
from kerf.engine.disruption.moves.budget_headroom import budget_use
from kerf.engine.model.disruption_reasons import (
    BUDGET_REASONS,
    DisruptionCode,
    DisruptionReason,
    karpenter_spelling,
)
from kerf.engine.model.kubernetes.pods import is_reschedulable
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.record.decisions import Move, MoveStepResult, ProposedMovesResult, Score, Verdict
from kerf.engine.record.entries import Entry
from kerf.engine.state.moves import WITHDRAWN
from kerf.engine.state.nodeclaims.drift import DRIFTED as HAS_DRIFTED
from kerf.engine.state.state import State
from kerf.projections.kubernetes_events.event import MINUTE, NORMAL, WARNING, KubernetesEvent
from kerf.projections.kubernetes_events.events_by_code import (
    BLOCKS_ANY_DISRUPTION,
    BLOCKS_CONSOLIDATION,
    NO_DESTINATION,
    REJECTED_FOR,
    WITHIN_BUDGETS,
)
from kerf.projections.kubernetes_events.references import References, escaped, events_about
from kerf.projections.proposals import proposals
from kerf.projections.prose.amounts import count
from kerf.projections.prose.reasons import sentence

NOMINATIONS = "nominated"
"""The rate limit that all nominations share (L-437)."""


class DisruptionEvents:
    """Gives the Events of passes, of moves and of their candidates. `state` is the state that the turn left."""

    def __init__(self, state: State) -> None:
        self._state, self._objects = state, References(state)
        self._kept: dict[tuple[str, str], Verdict] = {}  # claim and action → the latest verdict that was seen
        self._moves = {ref: move.move for ref, move in state.facts.moves.items()}

    # ── why nodes stay ──────────────────────────────────────────────────────────────────────────────────────

    def verdicts(self, verdicts: Iterable[Verdict], at: int) -> list[KubernetesEvent]:
        """Tell why nodes stay, and which NodePools' budgets allow nothing."""
        events: list[KubernetesEvent] = []
        short: dict[tuple[str, DisruptionReason], None] = {}
        for verdict in filter(None, map(self._to_tell, verdicts)):
            self._kept[verdict.claim, verdict.action] = verdict
            if verdict.reason.code in WITHIN_BUDGETS:  # a window may have opened since it was found to stay
                short |= dict.fromkeys(self._short_of(verdict))
            events += self._stays(verdict)
        return events + self._blocking_budgets(short, at)

    def _to_tell(self, verdict: Verdict) -> Verdict | None:
        """Return the verdict if it says why a node stays. Of one that has drifted, what kept it from consolidation: now
        it keeps it from drift (D-52, D-64)."""
        if verdict.action == HAS_DRIFTED:
            known = self._kept.get((verdict.claim, "keep"))
            stays = known is not None and known.reason.code in (DisruptionCode.BUDGET, *NO_DESTINATION)
            return known if stays else None
        return None if verdict.action == "remove" else verdict

    def recall(self, verdicts: Iterable[Verdict]) -> None:
        """Take up verdicts that an earlier process told."""
        self._kept |= {(verdict.claim, verdict.action): verdict for verdict in verdicts}

    def recall_moves(self, entry: Entry) -> None:
        """Take up moves that an earlier process proposed or began, and that are over in the state."""
        self._moves |= proposals(entry)

    def kept(self) -> list[Verdict]:
        """Return the latest verdicts on claims that still stand."""
        claims = self._state.facts.claims
        self._kept = {key: verdict for key, verdict in self._kept.items() if verdict.claim in claims}
        codes = {name: {"keep": claim.verdict, "note": claim.repair} for name, claim in claims.items()}
        return [
            verdict for (name, action), verdict in self._kept.items() if codes[name].get(action) == verdict.reason.code
        ]

    def _stays(self, verdict: Verdict) -> list[KubernetesEvent]:
        code, why, about = verdict.reason.code, escaped(sentence(verdict.reason)), self._objects.both(verdict.claim)
        known = self._state.facts.claims.get(verdict.claim)
        if code == DisruptionCode.REPAIR_BLOCKED:
            text = f"more than {UNHEALTHY_SHARE}% nodes are unhealthy: {why}"
            node = [self._objects.node_of(verdict.claim)]
            return events_about(node, WARNING, "NodeRepairBlocked", text, window=15 * MINUTE)
        drifted = known is not None and known.drift is not None and code in NO_DESTINATION  # D-64
        if "pod" in verdict.reason.params and not self._named_pods(verdict):
            return []  # the pod is on another node of the same move. The next pass says what keeps this one
        if drifted or code in BLOCKS_ANY_DISRUPTION:
            text, key = f"Cannot disrupt {{kind}}: {why}", why if "pod" in verdict.reason.params else code
            return events_about(about, NORMAL, "DisruptionBlocked", text, key) + self._blockers(verdict)
        if code in BLOCKS_CONSOLIDATION:
            return events_about(about, NORMAL, "Unconsolidatable", why, code, window=15 * MINUTE)
        return []

    def _blockers(self, verdict: Verdict) -> list[KubernetesEvent]:
        """Tell the pod that blocks its node's disruption, and the PodDisruptionBudgets that do: their owners can do
        something about it."""
        node, named = self._objects.node_of(verdict.claim), verdict.reason.params.get("budgets")
        if node is None or "pod" not in verdict.reason.params:
            return []
        pods = [self._objects.pod(uid) for uid in self._named_pods(verdict)]
        budgets = [self._objects.pod_disruption_budget(key) for key in named] if isinstance(named, list) else []
        text = escaped(f"It keeps node {node.name} from being disrupted: {sentence(verdict.reason)}")
        return events_about([*pods, *budgets], NORMAL, "DisruptionBlocked", text, node.name)

    def _named_pods(self, verdict: Verdict) -> list[str]:
        """Return the pod that a verdict names, if it is on the verdict's node."""
        node, pods = self._objects.node_of(verdict.claim), self._state.facts.pods
        here = self._state.indexes.pods_by_node.get(node.name, ()) if node is not None else ()
        return [uid for uid in here if pods[uid].key == verdict.reason.params["pod"]]

    # ── budgets ─────────────────────────────────────────────────────────────────────────────────────────────

    def _short_of(self, verdict: Verdict) -> list[tuple[str, DisruptionReason]]:
        """Return the NodePool of a claim that stays for its budget, and what the claim would go for."""
        claim = self._state.facts.claims.get(verdict.claim)
        return [] if claim is None else [(claim.node_pool, self._would_go_as(claim))]

    def _would_go_as(self, claim: NodeClaim) -> DisruptionReason:
        if claim.drift is not None:
            return DisruptionReason.DRIFTED
        pods = (self._state.facts.pods[uid] for uid in self._state.indexes.pods_by_node.get(claim.node, ()))
        return DisruptionReason.UNDERUTILIZED if any(map(is_reschedulable, pods)) else DisruptionReason.EMPTY

    def _blocking_budgets(self, short: Iterable[tuple[str, DisruptionReason]], at: int) -> list[KubernetesEvent]:
        """Tell NodePools that their budgets allow nothing for a reason: the budgets themselves, not what already uses
        them up (D-52, EV-2), and what is wrong with those that cannot be read (L-22)."""
        events: list[KubernetesEvent] = []
        pools, use = self._state.facts.pools, budget_use(self._state) if short else {}
        for name, reason in short:
            nodes = use[name].total if name in use else 0
            allowed = allowance(pools[name], reason, nodes, at) if name in pools and nodes else None
            if allowed is None or allowed.nodes:
                continue
            text = f"No allowed disruptions for disruption reason {reason.karpenter} due to blocking budget"
            text += "".join(f": {escaped(sentence(fault))}" for fault in allowed.faults)
            about = [self._objects.pool(name)]
            events += events_about(about, NORMAL, "DisruptionBlocked", text, reason.karpenter, window=MINUTE)
        return events

    # ── moves ───────────────────────────────────────────────────────────────────────────────────────────────

    def proposed(self, result: ProposedMovesResult, entry: Entry) -> list[KubernetesEvent]:
        self._moves |= proposals(entry)
        return [event for move in result.proposed for event in self._proposal(move)]

    def _proposal(self, move: Move) -> list[KubernetesEvent]:
        """Tell which replacement is computed and what it saves (EV-8), and that a NodePool approves: to one node
        (EV-10) or to the pool (EV-11)."""
        about = [reference for name in move.claims for reference in self._objects.both(name)]
        events: list[KubernetesEvent] = []
        if move.replacements and move.why == DisruptionReason.UNDERUTILIZED:  # D-98, step 9
            command = self._command(move)
            text = escaped(f"{command} (savings: {_dollars(move.savings)}{_likely_type(move)})")
            events += events_about(about, NORMAL, "ConsolidationCandidate", text, command)
        for score in move.scores:
            scored = about if len(move.claims) == 1 else [self._objects.pool(score.node_pool)]
            events += events_about(scored, NORMAL, "ConsolidationApproved", escaped(_approval_message(score)))
        return events

    def _command(self, move: Move) -> str:
        """Write a move as Karpenter writes a command: what goes, and how many nodes replace it (D-106)."""
        claims = (self._state.facts.claims.get(name) for name in move.claims)
        named = ", ".join(claim.node for claim in claims if claim is not None)
        if not move.replacements:
            return f"delete: [{named}]"
        return f"replace: [{named}] -> [{count(len(move.replacements), 'replacement')}]"

    def moved(self, result: MoveStepResult) -> list[KubernetesEvent]:
        """Tell that a move launches replacements (EV-3) and where its pods should go (EV-12), or that it was withdrawn
        (EV-9). Candidates get their Events when they go (EV-5)."""
        known = self._moves.pop(result.move, None)
        if result.begun is not None:
            return self._begun(result.begun)
        if known is None or result.step != WITHDRAWN or known.why != DisruptionReason.UNDERUTILIZED:  # D-61
            return []
        about = [reference for name in known.claims for reference in self._objects.both(name)]
        command, category = self._command(known), REJECTED_FOR.get(result.reason.code, "unknown")
        text = f"{command} (savings: {_dollars(known.savings)}), rejected: {category}: {sentence(result.reason)}"
        return events_about(about, NORMAL, "ConsolidationRejected", escaped(text), command, category)

    def _begun(self, move: Move) -> list[KubernetesEvent]:
        why = karpenter_spelling(move.why)
        replacements = [self._objects.claim(replacement.name) for replacement in move.replacements]
        events = events_about(replacements, NORMAL, "DisruptionLaunching", f"Launching {{kind}}: {why}", why)
        for placed in move.placements:  # D-115, step 8
            events += self.nominated(placed.pods, placed.claim, placed.node)
        return events

    def nominated(self, pods: Sequence[str], claim: str, node: str = "") -> list[KubernetesEvent]:
        """Tell pods which node a plan gives them (L-437, EV-12): NodeClaim and Node, those that exist (S-173). A plan
        calls a node that has not joined like its claim."""
        references = [reference for reference in map(self._objects.pod, pods) if reference is not None]
        named = [*([f"nodeclaim/{claim}"] if claim else []), *([f"node/{node}"] if self._objects.node(node) else [])]
        message = f"Pod should schedule on: {', '.join(named)}"
        return [
            KubernetesEvent(reference, NORMAL, "Nominated", message, (reference.uid,), limit=NOMINATIONS)
            for reference in references
        ]

    def going(self, claim: str) -> list[KubernetesEvent]:
        """Tell that a candidate of a move goes (EV-5): now, and not while it waits for what replaces it (D-116). What
        goes for other reasons is no candidate of a move (D-132)."""
        known = self._state.facts.claims.get(claim)
        if known is None or known.why not in BUDGET_REASONS:
            return []
        why = karpenter_spelling(known.why)
        about = self._objects.both(claim)
        return events_about(about, NORMAL, "DisruptionTerminating", f"Disrupting {{kind}}: {why}", why)


def _dollars(savings: float) -> str:
    """Write savings an hour as Karpenter does, in cents (EV-8, EV-9)."""
    return f"${savings:.2f}/h"


def _approval_message(score: Score) -> str:
    worth = f"score {score.worth:.2f} (threshold {THRESHOLD:.2f}, k {1 / THRESHOLD:g})"
    shares = f"saves {score.savings:.1%} of its cost for {score.disruption:.1%} of its disruption"
    return f"NodePool {score.node_pool} approves, {worth}: {shares}"


def _likely_type(move: Move) -> str:
    """Name the instance types that will most likely come."""
    types = "; ".join(replacement.instance_types[0] for replacement in move.replacements if replacement.instance_types)
    return f", by {types}" if types else ""
