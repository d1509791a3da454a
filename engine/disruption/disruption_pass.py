"""A disruption pass: it proposes moves, says why each other node stays, and when the next pass is due.

A pass first takes drifted nodes, then chooses the moves that make the cluster cheapest: empty nodes go, others are
removed or replaced. All of them stay within what the disruption budgets leave beside the moves that are under way
(D-16, D-22, D-62…D-66). A pass runs when something has changed or when a time has come, not periodically.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from kerf.engine.disruption import eligibility
from kerf.engine.disruption.budgets import window_ends
from kerf.engine.disruption.cluster import Cluster
from kerf.engine.disruption.cluster_from_state import NEVER, cluster_of, cluster_when_moves_start, quiet_at
from kerf.engine.disruption.consolidation.joint_search import find_joint_removal
from kerf.engine.disruption.consolidation.sequential_search import (
    MIN_SAVINGS,
    ChosenCommands,
    Tell,
    choose_commands,
)
from kerf.engine.disruption.drift.replacement import MAX_SIMULATIONS, ROTATION, replace_drifted
from kerf.engine.disruption.drift.static_nodepools import replace_drifted_static
from kerf.engine.disruption.eligibility import NodeEligibility, find_candidates, judge_nodes
from kerf.engine.disruption.moves.budget_headroom import ROUNDS_AHEAD
from kerf.engine.disruption.moves.cluster_with_moves import with_moves, without_late_pods
from kerf.engine.disruption.moves.proposal import proposed_moves
from kerf.engine.disruption.rebinding import Rebinding
from kerf.engine.disruption.why_nodes_stay import reasons_of_empty_nodes, verdicts
from kerf.engine.lifecycle.step import soonest
from kerf.engine.model.disruption_reasons import NOWHERE, DisruptionCode
from kerf.engine.model.reasons import Reason
from kerf.engine.nodeclaim.state_table import INITIALIZED
from kerf.engine.record.decisions import Move, ProposedMovesResult
from kerf.engine.scheduling.pods.evictability import FOREVER, protected_until
from kerf.engine.state.nodeclaims.unavailable import doubts_end
from kerf.engine.state.provisioning_window import window_closes_at
from kerf.engine.state.state import State

VERSION = 32
MIN_INTERVAL = 10_000
"""Between two passes, at least (D-16). Milliseconds."""
SETTLE_TIME = 1_000
"""After a change a pass waits this long (ms) for what belongs to the same change."""
MAX_QUIET_WAIT = 5_000
"""A pass waits up to so long (ms) until the pods of one scale-in have gone, and until moves of the node of the latest,
and of the one whose nomination ends last, may be proposed. So the nodes of one scale-in are judged together. Otherwise
the next pass would find the dearest ones when cheap ones go already."""
NO_DESTINATION = (*NOWHERE, DisruptionCode.NO_USABLE_NODEPOOL)
"""Why a drifted node cannot go if its pods have nowhere to go (D-64, D-90)."""


def due_at(state: State) -> int:
    """When the next pass is due (ms since the epoch), 0 for never.

    It comes after the provisioning pass that is due: it then sees the nodes which that pass launches for waiting pods.
    It waits for nodes that are about to become candidates, too.
    There is none while the clocks differ.
    """
    facts = state.facts
    if facts.clocks_differ:
        return 0
    due = soonest(facts.moves_changed + SETTLE_TIME if facts.moves_changed else 0, facts.moves_look_at)
    if not due or not any(claim.state == INITIALIZED for claim in facts.claims.values()):
        return 0
    due = max(due, facts.moves_looked + MIN_INTERVAL)
    due = max([due, *(at for at in _settled_soon(state) if due < at <= due + MAX_QUIET_WAIT)])
    return max(due, window_closes_at(facts)) if facts.batch_opened else due


def _settled_soon(state: State) -> Iterator[int]:
    """A moment after the latest pod event; when a move of its node may be proposed; and when one of the node whose
    nomination ends last may be (ms since the epoch)."""
    in_service = [claim for claim in state.facts.claims.values() if claim.state == INITIALIZED]
    latest = max([claim.last_pod_event for claim in in_service], default=0)
    delay = state.facts.settings.validation_delay
    yield latest + SETTLE_TIME
    yield from [quiet_at(claim, state) - delay for claim in in_service if claim.last_pod_event == latest]
    yield max([claim.nominated_until for claim in in_service], default=0) - delay


def run_pass(state: State, now: int, tell: Tell | None = None) -> ProposedMovesResult:
    """One pass over the state at `now` (ms since the epoch). `tell` is told of the sets of nodes that the search one
    after the other tries.

    Drifted nodes go at once. All other moves start after the validation delay, so the pass judges the cluster as of
    then: a node that will be Consolidatable may go.
    """
    proposed = [underway.move for _, underway in sorted(state.facts.moves.items()) if not underway.started]
    refused: dict[str, Reason] = {}
    moves, next_rotation = _replace_drifted(state, now, proposed, refused)
    cluster = with_moves(cluster_when_moves_start(state, now), [*proposed, *moves])
    eligible = judge_nodes(cluster)
    not_empty = find_candidates(cluster, eligibility.emptiness, known=eligible).excluded
    chosen, waves = cheapest_commands(cluster, eligible, refused, tell)
    moves += proposed_moves(cluster, chosen.commands, waves, eligible)
    reasons = {**chosen.kept, **reasons_of_empty_nodes(cluster, not_empty), **refused}
    said = tuple(verdicts(state, cluster, reasons, moves, proposed))
    short = _short_of_budget([*chosen.kept.values(), *refused.values()])
    delays = [state.facts.settings.validation_delay, *([0] if _any_drifted(state) else [])]
    changes = [_next_change(state, cluster, short, chosen.settled_at, now, delay) for delay in delays]
    return ProposedMovesResult(tuple(moves), said, soonest(next_rotation, *changes), chosen.exhausted)


def _any_drifted(state: State) -> bool:
    return any(claim.drifted_since for claim in state.facts.claims.values())


def _replace_drifted(
    state: State, now: int, proposed: list[Move], refused: dict[str, Reason]
) -> tuple[list[Move], int]:
    """Moves of drifted nodes, and when others are tried although nothing has changed (ms since the epoch, 0 for
    never)."""
    if not _any_drifted(state):
        return [], 0
    real = cluster_of(state, now)
    static, cluster = replace_drifted_static(with_moves(real, proposed), state, refused)
    moves = replace_drifted(cluster, refused)
    next_rotation = now + ROTATION if not moves and _simulated_in_vain(refused) else 0
    return [*static, *(without_late_pods(move, real, proposed) for move in moves)], next_rotation


def cheapest_commands(
    cluster: Cluster, known: NodeEligibility | None, refused: dict[str, Reason], tell: Tell | None = None
) -> tuple[ChosenCommands, tuple[int, ...]]:
    """kerf's own choice of commands, and the eviction waves in which their pods leave.

    A set that goes in rounds, if there is one. Else one set of nodes that goes at once, or commands chosen one after
    the other: whichever makes the cluster cheaper. Writes to `refused` why nodes cannot go whose pods kube-scheduler
    might leave over.
    """
    known = judge_nodes(cluster) if known is None else known
    joint, rebinding = find_joint_removal(cluster, known, rounds=ROUNDS_AHEAD), Rebinding(cluster)
    if joint.in_rounds and joint.commands is not None:
        return joint.commands, ()
    chosen = choose_commands(cluster, known=known, rounds=ROUNDS_AHEAD, fits=rebinding.fits, tell=tell)
    joint_price = joint.commands.end_price if joint.commands is not None else math.inf
    bindable = rebinding.fitting(chosen.commands) if chosen.end_price <= joint_price + MIN_SAVINGS else []
    dropped = [command for command in chosen.commands if command not in bindable]
    end_price = math.fsum([chosen.end_price, *(command.savings for command in dropped)])
    if joint.commands is not None and joint_price < end_price - MIN_SAVINGS:
        return joint.commands, joint.waves
    refused |= {name: Reason.of(DisruptionCode.LEFT_OVER) for command in dropped for name in command.names}
    return replace(chosen, commands=tuple(bindable), end_price=end_price), ()


# ── when the next pass is due ──────────────────────────────────────────────────────────────────────────────────────


def _simulated_in_vain(refused: dict[str, Reason]) -> bool:
    """Whether this pass spent all its simulations of drifted nodes on nodes whose pods have nowhere to go."""
    return sum(reason.code in NO_DESTINATION for reason in refused.values()) >= MAX_SIMULATIONS


def _short_of_budget(reasons: Iterable[Reason]) -> frozenset[str]:
    """The NodePools that have nodes which stay only because of a disruption budget."""
    return frozenset(
        str(reason.params.get("nodepool", "")) for reason in reasons if reason.code == DisruptionCode.BUDGET
    )


def _next_change(state: State, cluster: Cluster, short: frozenset[str], settled_at: int, now: int, delay: int) -> int:
    """The earliest time (ms since the epoch) at which a pass may decide otherwise although nothing is observed, if its
    moves start after `delay` ms. 0 for never.

    `short` are the NodePools whose budgets do not suffice. At `settled_at` nodes may go whose pods came too short a
    while ago.
    """
    facts = state.facts
    times = [hold.until for hold in facts.holds.values() if hold.again or facts.moves_changed > hold.since]
    times += doubts_end(facts)
    for claim in facts.claims.values():
        if claim.state == INITIALIZED:
            times += (quiet_at(claim, state), claim.nominated_until)
    shielded = (pod for node in cluster.nodes if node.managed for pod in node.pods if pod.do_not_disrupt)
    times += map(protected_until, shielded)
    times.append(settled_at)
    times += [window_ends(facts.pools[name], now + delay) for name in sorted(short & facts.pools.keys())]
    return min((at - delay for at in times if now + delay < at < min(NEVER, FOREVER)), default=0)
