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
from kerf.engine.disruption.cluster_from_state import NEVER, cluster_of, quiet_at
from kerf.engine.disruption.consolidation.joint_search import find_joint_removal
from kerf.engine.disruption.consolidation.second_moves import settled_at
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
from kerf.engine.model.disruption_reasons import DisruptionCode
from kerf.engine.model.reasons import Reason
from kerf.engine.nodeclaim.state_table import INITIALIZED
from kerf.engine.record.decisions import ProposedMovesResult
from kerf.engine.scheduling.pods.evictability import FOREVER, protected_until
from kerf.engine.state.nodeclaims.unavailable import doubts_end
from kerf.engine.state.provisioning_window import window_closes_at
from kerf.engine.state.state import State

VERSION = 20
MIN_INTERVAL = 10_000
"""Between two passes, at least (D-16). Milliseconds."""
SETTLE_TIME = 1_000
"""After a change a pass waits this long (ms) for what belongs to the same change."""
MAX_QUIET_WAIT = 5_000
"""A pass waits up to so long (ms) until the node of the latest pod event is Consolidatable and no node is nominated any
more, so that the nodes of one scale-in are judged together. Otherwise the next pass would find the dearest ones when
cheap ones go already."""
NO_DESTINATION = (DisruptionCode.NO_PLACE, DisruptionCode.NO_USABLE_NODEPOOL)
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
    due = max([due, *(at for at in _quiet_soon(state) if due < at <= due + MAX_QUIET_WAIT)])
    return max(due, window_closes_at(facts)) if facts.batch_opened else due


def _quiet_soon(state: State) -> Iterator[int]:
    """When the node of the latest pod event becomes Consolidatable, and when the latest nomination of a node ends (ms
    since the epoch)."""
    in_service = [claim for claim in state.facts.claims.values() if claim.state == INITIALIZED]
    latest = max([claim.last_pod_event for claim in in_service], default=0)
    yield from [quiet_at(claim, state) for claim in in_service if claim.last_pod_event == latest]
    yield max([claim.nominated_until for claim in in_service], default=0)


def run_pass(state: State, now: int, tell: Tell | None = None) -> ProposedMovesResult:
    """One pass over the state at `now` (ms since the epoch). `tell` is told of the sets of nodes that the search one
    after the other tries."""
    real = cluster_of(state, now)
    proposed = [underway.move for _, underway in sorted(state.facts.moves.items()) if not underway.started]
    cluster = with_moves(real, proposed)
    refused: dict[str, Reason] = {}
    eligible = judge_nodes(cluster)
    not_empty = find_candidates(cluster, eligibility.emptiness, known=eligible).excluded
    moves, cluster = replace_drifted_static(cluster, state, refused)
    drifted, cluster = replace_drifted(cluster, refused)
    next_rotation = now + ROTATION if not drifted and _simulated_in_vain(refused) else 0
    moves += [without_late_pods(move, real, proposed) for move in drifted]
    known = None if moves else eligible
    chosen, waves = cheapest_commands(cluster, known, refused, tell)
    moves += proposed_moves(cluster, chosen.commands, waves, known)
    reasons = {**chosen.kept, **reasons_of_empty_nodes(cluster, not_empty), **refused}
    said = tuple(verdicts(state, cluster, reasons, moves, proposed))
    short = _short_of_budget([*chosen.kept.values(), *refused.values()])
    moved = [name for name, reason in chosen.kept.items() if reason.code == DisruptionCode.MOVED_LATELY]
    look_at = soonest(next_rotation, _next_change(state, cluster, short, now, frozenset(moved)))
    return ProposedMovesResult(tuple(moves), said, look_at, chosen.exhausted)


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


def _next_change(state: State, cluster: Cluster, short: frozenset[str], now: int, moved: frozenset[str]) -> int:
    """The earliest time (ms since the epoch) at which a pass may decide otherwise although nothing is observed.

    `short` are the NodePools whose budgets do not suffice, `moved` the nodes whose pods came too short a while ago.
    """
    facts = state.facts
    times = [hold.until for hold in facts.holds.values() if hold.again or facts.moves_changed > hold.since]
    times += doubts_end(facts)
    for claim in facts.claims.values():
        if claim.state == INITIALIZED:
            times += (quiet_at(claim, state), claim.nominated_until)
    shielded = (pod for node in cluster.nodes if node.managed for pod in node.pods if pod.do_not_disrupt)
    times += map(protected_until, shielded)
    times += [settled_at(node) for node in cluster.nodes if node.name in moved]
    times += [window_ends(facts.pools[name], now) for name in sorted(short & facts.pools.keys())]
    return min((at for at in times if now < at < min(NEVER, FOREVER)), default=0)
