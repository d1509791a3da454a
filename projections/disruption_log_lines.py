"""Write Karpenter's log lines about disruption: commands, budgets, drift, forced pods (LG-1 to LG-14).

A command is a move. Its lines name it by the "position.index" of its proposal.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from msgspec import Struct

from kerf.engine.disruption.budgets import allowance
from kerf.engine.disruption.consolidation.balanced_policy import THRESHOLD
from kerf.engine.model.disruption_reasons import BUDGET_REASONS, DisruptionReason, is_deletion, karpenter_spelling
from kerf.engine.model.durations import format_time
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.nodeclaim.state_table import TAINTED
from kerf.engine.record import claim_events as ev
from kerf.engine.record.decisions import (
    Move,
    MoveStepResult,
    ProposedMovesResult,
    Score,
    StaticResult,
    Verdict,
)
from kerf.engine.record.entries import Entry
from kerf.engine.state.moves import ABANDONED, STARTED
from kerf.engine.state.state import State
from kerf.projections.forced_graces import ForcedGraces
from kerf.projections.proposals import proposals
from kerf.projections.prose.amounts import count
from kerf.projections.prose.reasons import sentence

Line = dict[str, Any]
DEBUG, INFO, ERROR = "DEBUG", "INFO", "ERROR"
_CAPACITY_TYPES = ("reserved", "spot", "on-demand")
_MAX_NAMES = 5
_ANY_NODES = 100  # nodes of a NodePool as which budgets are tried whether they can be read (D-18)
_STATIC = {
    "static-scale-up": "provisioning static nodeclaim(s)",
    "static-scale-down": "deprovisioning static nodeclaim(s)",
    "static-limit": "static node limit reached",
    "static-no-offering": "no instance type for static nodeclaim(s)",
}


class Lines(Protocol):
    """Makes one line: level, entry, message, controller, and its context."""

    def __call__(self, level: str, entry: Entry, message: str, controller: str, **context: Any) -> Line: ...


class ClaimFacts(Struct):
    """What lines about a claim need to know of it. `collected`: it was told that its instance is gone."""

    node_pool: str = ""
    node: str = ""
    provider_id: str = ""
    instance_type: str = ""
    capacity_type: str = ""
    allocatable: dict[str, int] = {}
    collected: bool = False

    @classmethod
    def of(cls, claim: NodeClaim | ev.Adopted) -> ClaimFacts:
        return cls(
            claim.node_pool, claim.node, claim.provider_id, claim.instance_type, claim.capacity_type, claim.allocatable
        )


class DisruptionLines:
    """Gives the lines of decisions and claim events that are about disruption. `claims` is what the log knows of
    claims, by name."""

    def __init__(self, line: Lines, claims: dict[str, ClaimFacts]) -> None:
        self._line, self._claims = line, claims
        self._pools: dict[str, NodePool] = {}
        self._proposed: dict[str, Move] = {}
        self._begun: dict[str, tuple[Move, set[str]]] = {}  # with the candidates that have not gone yet
        self._deadlines: dict[str, int] = {}  # claim → when its pods go by force
        self._drains: dict[str, int] = {}  # claim → since when it is drained
        self.graces = ForcedGraces()

    def know(self, state: State) -> None:
        self._pools = dict(state.facts.pools)
        moves = state.facts.moves.items()
        self._proposed = {ref: move.move for ref, move in moves if not move.started}
        waiting = {claim.name for claim in state.facts.claims.values() if claim.state == TAINTED}
        self._begun = {ref: (move.move, waiting.intersection(move.move.claims)) for ref, move in moves if move.started}
        claims = state.facts.claims.values()
        self._deadlines = {claim.name: claim.deadline for claim in claims if claim.deadline is not None}
        self._drains = {claim.name: claim.drain_started for claim in claims if claim.drain_started}
        self.graces.know(state)

    def recall(self, entry: Entry) -> None:
        """Take up moves that an earlier process proposed or began, and that are over in the state."""
        self._proposed |= proposals(entry)

    def untold(self, entries: Iterable[Entry]) -> None:
        """Forget deadlines that these entries bring, which the state has already: their lines are still to come."""
        for entry in entries:
            event = entry.payload
            if isinstance(event, ev.Tainted | ev.ReasonRaised | ev.DrainStarted) and _brings_deadline(event, entry):
                self._deadlines.pop(event.claim, None)

    def pool(self, pool: NodePool) -> None:
        self._pools[pool.name] = pool

    def gone(self, pool: str) -> None:
        self._pools.pop(pool, None)

    # ── passes and commands ─────────────────────────────────────────────────────────────────────────────────

    def passed(self, result: ProposedMovesResult, entry: Entry) -> list[Line]:
        """Log budgets that cannot be read (LG-14), what Balanced approves (LG-4), and a search that ended by its steps
        (LG-5)."""
        proposed = proposals(entry)
        self._proposed |= proposed
        lines = self._unreadable_budgets(entry)
        lines += [self._balanced(ref, move, rated, entry) for ref, move in proposed.items() for rated in move.scores]
        if result.exhausted:
            lines.append(self._line(DEBUG, entry, "the search for moves ended by its steps", "disruption"))
        return lines + self.verdicts(result.verdicts, entry)

    def _unreadable_budgets(self, entry: Entry) -> list[Line]:
        """Log one error for all NodePools with a budget that cannot be read (D-18). Nothing of theirs may go."""
        faults = {
            name: [sentence(fault) for fault in allowance(pool, BUDGET_REASONS[0], _ANY_NODES, entry.at).faults]
            for name, pool in sorted(self._pools.items())
        }
        wrong = {name: texts for name, texts in faults.items() if texts}
        if not wrong:
            return []
        error = "; ".join(text for texts in wrong.values() for text in texts)
        named = [{"name": name} for name in wrong]
        return [self._line(ERROR, entry, "invalid disruption budgets", "disruption", NodePools=named, error=error)]

    def _balanced(self, ref: str, move: Move, rated: Score, entry: Entry) -> Line:
        """Log how Balanced rates a move that it approves (LG-4). That a node is not worth it is why it stays (LG-8)."""
        return self._line(
            DEBUG, entry, "evaluated consolidation", "disruption", NodePool={"name": rated.node_pool}, command_id=ref,
            score=rated.worth, savings_fraction=rated.savings, disruption_fraction=rated.disruption,
            savings=move.savings, threshold=THRESHOLD, k=1 / THRESHOLD, approved=True,
            decision="replace" if move.replacements else "delete",
            candidates=[self._node(name) for name in move.claims],
        )  # fmt: skip

    def verdicts(self, verdicts: Iterable[Verdict], entry: Entry) -> list[Line]:
        """Log why nodes stay, and that a claim has drifted or no longer has (LG-8)."""
        return [self._verdict(verdict, entry) for verdict in verdicts if verdict.action != "remove"]

    def _verdict(self, verdict: Verdict, entry: Entry) -> Line:
        drift = {"drifted": "marking drifted", "not-drifted": "removing drifted"}.get(verdict.action)
        return self._line(
            DEBUG, entry, drift or "node stays", "nodeclaim.disruption" if drift else "disruption",
            NodeClaim={"name": verdict.claim}, Node={"name": self._facts(verdict.claim).node},
            reason=verdict.reason.code, cause=sentence(verdict.reason),
        )  # fmt: skip

    def moved(self, result: MoveStepResult, entry: Entry) -> list[Line]:
        """Log that a command starts (LG-1), fails (LG-3), or does not pass the second look (LG-6)."""
        proposed = self._proposed.pop(result.move, None)
        if result.step == STARTED and result.begun is not None:
            self._begun[result.move] = result.begun, set(result.begun.claims)
            return [self._command(INFO, entry, "disrupting node(s)", result.move, result.begun)]
        begun, _ = self._begun.pop(result.move, (proposed, set()))
        if begun is None:
            return []
        failed = result.step == ABANDONED
        level, message = (ERROR, "failed to disrupt node(s)") if failed else (DEBUG, "disruption validation failed")
        return [self._command(level, entry, message, result.move, begun, error=sentence(result.reason))]

    def _command(self, level: str, entry: Entry, message: str, ref: str, move: Move, **more: Any) -> Line:
        groups = [placement.pods for placement in move.placements] + [
            replacement.pods for replacement in move.replacements
        ]
        return self._line(
            level, entry, message, "disruption", command=self._text(ref, move), command_id=ref, reason=move.why,
            decision="replace" if move.replacements else "delete", disrupted_node_count=len(move.claims),
            replacement_node_count=len(move.replacements), pod_count=sum(map(len, groups)),
            disrupted_nodes=[self._node(name) for name in move.claims],
            replacement_nodes=[_replacement(replacement.name, replacement.capacity_types, replacement.instance_types)
                               for replacement in move.replacements],
            **more,
        )  # fmt: skip

    def _text(self, ref: str, move: Move) -> str:
        """Write the command with its method (D-106)."""
        pools = sorted({self._facts(name).node_pool for name in move.claims})
        nodes = ", ".join(self._facts(name).node for name in move.claims)
        what = "replace" if move.replacements else "delete"
        to = f" -> [{count(len(move.replacements), 'replacement')}]" if move.replacements else ""
        head = f"{karpenter_spelling(move.why)}/{ref}: {what}: nodepools=[{', '.join(pools)}]: [{nodes}]{to}"
        return f"{head} (savings: ${move.savings:.2f})" if move.savings else head

    def _node(self, claim: str) -> Line:
        facts = self._facts(claim)
        return {
            "Node": {"name": facts.node}, "NodeClaim": {"name": claim}, "capacity-type": facts.capacity_type,
            "instance-type": facts.instance_type,
        }  # fmt: skip

    def _facts(self, claim: str) -> ClaimFacts:
        return self._claims.get(claim) or ClaimFacts()

    def static(self, result: StaticResult, entry: Entry) -> list[Line]:
        """Log that a static NodePool is scaled, or may not be (LG-12)."""
        message = _STATIC.get(result.reason.code)
        if message is None:
            return []
        pool = {"name": result.node_pool}
        changed = len(result.claims) + len(result.removed)
        return [
            self._line(INFO, entry, message, "static", NodePool=pool, current=result.running, desired=result.replicas,
                       count=changed)
        ]  # fmt: skip

    # ── claims ──────────────────────────────────────────────────────────────────────────────────────────────

    def tainted(self, event: ev.Tainted | ev.ReasonRaised, entry: Entry) -> list[Line]:
        """Log a claim that goes without a command: what leaves no choice. A move has its own line; what somebody else
        deletes is no disruption. What goes already goes once, as M-13 counts it (D-136, A-362)."""
        lines = self._deadline(event.claim, event.deadline, entry)
        if isinstance(event, ev.ReasonRaised):  # its command no longer brings it about
            self._leaves(event.claim)
        if event.why in BUDGET_REASONS or is_deletion(event.why) or self._goes_already(event, entry):
            return lines
        message = "deleting unhealthy node" if event.why == DisruptionReason.UNHEALTHY else "disrupting node(s)"
        told = self._line(
            INFO, entry, message, "disruption", reason=event.why, decision="delete", command_id=str(entry.position),
            disrupted_node_count=1, replacement_node_count=0, disrupted_nodes=[self._node(event.claim)],
            replacement_nodes=[],
        )  # fmt: skip
        return [told, *lines]

    def _goes_already(self, event: ev.Tainted | ev.ReasonRaised, entry: Entry) -> bool:
        """Whether a claim was on its way out before. The candidate of a move is not until it is drained (D-116)."""
        drains = 0 < self._drains.get(event.claim, 0) < entry.at
        return isinstance(event, ev.ReasonRaised) and (drains or event.was not in BUDGET_REASONS)

    def started(self, event: ev.DrainStarted, entry: Entry) -> list[Line]:
        """Log a command that has come to its end: all its candidates go (LG-2)."""
        self._drains[event.claim] = entry.at
        done = self._leaves(event.claim)
        lines = [self._command(DEBUG, entry, "command succeeded", ref, move) for ref, move in done]
        return self._deadline(event.claim, event.deadline, entry) + lines

    def _leaves(self, claim: str) -> list[tuple[str, Move]]:
        """Note that a claim waits for no replacement any more. Return the commands that come to their end with it."""
        for _, waiting in self._begun.values():
            waiting.discard(claim)
        done = [(ref, move) for ref, (move, waiting) in self._begun.items() if not waiting]
        for ref, _ in done:
            del self._begun[ref]
        return done

    def _deadline(self, claim: str, deadline: int | None, entry: Entry) -> list[Line]:
        """Log when a claim's pods go by force, once it is known (LG-11)."""
        if deadline is None or self._deadlines.get(claim) == deadline:
            return []
        self._deadlines[claim] = deadline
        annotation = {"karpenter.sh/nodeclaim-termination-timestamp": format_time(deadline)}
        pool = {"name": self._facts(claim).node_pool}
        return [
            self._line(INFO, entry, "annotated nodeclaim", "nodeclaim.lifecycle", NodeClaim={"name": claim},
                       NodePool=pool, **annotation)
        ]  # fmt: skip

    def forced(self, event: ev.PodForced, entry: Entry) -> list[Line]:
        """Log a pod that is deleted by force (LG-13)."""
        namespace, _, name = event.pod.partition("/")
        until = self._deadlines.get(event.claim)
        grace = self.graces.taken(event.uid)
        own = {"grace_period": grace} if grace is not None else {}
        more: dict[str, Any] = {"granted_grace_period": event.grace}
        more |= {"deadline": format_time(until)} if until is not None else {}
        return [
            self._line(DEBUG, entry, "force-deleted pod", "eviction-queue", Pod={"name": name, "namespace": namespace},
                       NodeClaim={"name": event.claim}, **own, **more)
        ]  # fmt: skip

    def over(self, claim: str) -> None:
        self._deadlines.pop(claim, None)
        self._drains.pop(claim, None)
        self._leaves(claim)


def _brings_deadline(event: ev.Tainted | ev.ReasonRaised | ev.DrainStarted, entry: Entry) -> bool:
    """Whether a claim had another deadline before, or none. A stronger reason only leaves no time, or the deadline as
    it was (D-136)."""
    return event.deadline == entry.at if isinstance(event, ev.ReasonRaised) else event.deadline is not None


def _replacement(claim: str, capacity_types: tuple[str, ...], types: tuple[str, ...]) -> Line:
    shown = ", ".join(types[:_MAX_NAMES])
    more = f" and {len(types) - _MAX_NAMES} other(s)" if len(types) > _MAX_NAMES else ""
    likely = next((capacity_type for capacity_type in _CAPACITY_TYPES if capacity_type in capacity_types), "")
    return {"NodeClaim": {"name": claim}, "capacity-type": likely, "instance-types": shown + more}
