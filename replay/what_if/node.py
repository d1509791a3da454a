"""Ask each voluntary disruption method what it would do with one node, and what would have to change for the node to
go.

The deciders run over the cluster as it stands, then over the cluster without the blocker that they name, and so on
until the node goes or no single change is left. Nothing is guessed.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.disruption import disruption_pass, eligibility
from kerf.engine.disruption.budgets import allowed_disruptions, empty_within_budgets
from kerf.engine.disruption.cluster import Cluster, ClusterNode, what_if
from kerf.engine.disruption.consolidation.balanced_policy import BALANCED, approves, pool_totals
from kerf.engine.disruption.consolidation.commands import Command, decide_for_kerf, removal
from kerf.engine.disruption.consolidation.replacement_bound import Bound
from kerf.engine.disruption.consolidation.sequential_search import MIN_SAVINGS
from kerf.engine.disruption.drift import replacement
from kerf.engine.disruption.eligibility import Candidate, find_candidates
from kerf.engine.disruption.simulation import SimulationOutcome, Simulator
from kerf.engine.model.disruption_reasons import NOWHERE, DisruptionCode, DisruptionReason
from kerf.engine.model.karpenter.requirements import Requirements
from kerf.engine.model.kubernetes.pods import Pod, Resources, is_reschedulable
from kerf.engine.model.reasons import Reason
from kerf.engine.record.decisions import Move
from kerf.engine.scheduling.matching.resources import total
from kerf.engine.scheduling.planner import plan
from kerf.projections.prose.explanation_codes import ExplanationCode
from kerf.replay.what_if.blockers import without_blocker, without_pod

MAX_CHANGES = 4
"""At most this many blockers are removed, one on top of the other, before the answer is that the node stays."""
MAX_PODS_TRIED = 6
"""At most this many pods are left out one by one, to see whether the node would go."""

MAX_REASONS = 4
"""At most this many reasons are given why pods have no place."""


class WouldGo(Struct, frozen=True, kw_only=True):
    """How the node would go.

    `claims` go together. `replacements` are the first choices of type for each new node, at `price` USD per hour
    together. `onto` are the nodes that take pods. `savings` is in USD per hour.
    """

    claims: tuple[str, ...]
    replacements: tuple[str, ...] = ()
    price: float = 0.0
    onto: tuple[str, ...] = ()
    savings: float = 0.0


class PodsNeed(Struct, frozen=True, kw_only=True):
    """What the node's pods need elsewhere.

    `requests` is what they ask for together. `instance_type` is the cheapest new node that would hold those without
    room elsewhere ("" for none). `nowhere` says why some have no place at all, with one reason for each NodePool and
    class of pods.
    """

    pods: int
    requests: Resources
    instance_type: str = ""
    price: float = 0.0
    nodes: int = 0
    nowhere: tuple[Reason, ...] = ()


class WithoutPod(Struct, frozen=True):
    """How the node would go if this one pod were not on it."""

    pod: str
    goes: WouldGo


class WhatWouldChange(Struct, frozen=True, kw_only=True):
    """What a method says of the node, and what would change that.

    `verdict` is what it says now, None if the node would go. `changes` are what would have to be otherwise, each on top
    of those before; `between` is what the method says after each but the last. In the end the node `goes`, or still
    stays for the reason `stays`. `alone`: it could then go by itself, but kerf's choice of moves leaves it out.
    """

    verdict: Reason | None
    changes: tuple[Reason, ...] = ()
    between: tuple[Reason, ...] = ()
    goes: WouldGo | None = None
    stays: Reason | None = None
    need: PodsNeed | None = None
    without: tuple[WithoutPod, ...] = ()
    alone: WouldGo | None = None


Answer = WouldGo | Reason
Method = Callable[[Cluster, ClusterNode], Answer]


def explore_changes(cluster: Cluster, claim: str, ask: Method, method: DisruptionReason) -> WhatWouldChange:
    """Ask a method about a node again and again, each time without the blocker that it named. `ask` is the method,
    `method` its name in budgets. The claim must be in the cluster."""
    changes: list[Reason] = []
    reasons: list[Reason] = []
    before = cluster
    while True:
        node = node_in(cluster, claim)
        answer = ask(cluster, node)
        if isinstance(answer, WouldGo):
            return WhatWouldChange(
                verdict=reasons[0] if reasons else None, changes=tuple(changes), between=tuple(reasons[1:]), goes=answer
            )
        if reasons and reasons[-1].code == answer.code:  # what was changed last is of no account
            reasons.pop()
            changes.pop()
            cluster = before
            node = node_in(cluster, claim)
            break
        repeated = any(reason.code == answer.code for reason in reasons)
        without = None if repeated or len(changes) == MAX_CHANGES else without_blocker(answer, cluster, node, method)
        if without is None:
            break
        reasons.append(answer)
        changes.append(without.change)
        before, cluster = cluster, without.cluster
    return WhatWouldChange(
        verdict=reasons[0] if reasons else answer,
        changes=tuple(changes),
        between=tuple(reasons[1:]),
        stays=answer,
        need=_pods_need(cluster, node, answer) if method == DisruptionReason.UNDERUTILIZED else None,
        without=tuple(_without_single_pods(cluster, node, answer)) if method == DisruptionReason.UNDERUTILIZED else (),
        alone=_would_go_alone(cluster, node) if method == DisruptionReason.UNDERUTILIZED else None,
    )


def node_in(cluster: Cluster, claim: str) -> ClusterNode:
    return next(node for node in cluster.nodes if node.place.claim == claim)


# ── the methods ────────────────────────────────────────────────────────────────────────────────────────────────────


def emptiness(cluster: Cluster, node: ClusterNode) -> Answer:
    """Ask emptiness (D-59, D-60). That pods run on the node is said before anything else that holds it."""
    if any(map(is_reschedulable, node.pods)):
        return Reason.of(DisruptionCode.HAS_PODS)
    candidate = _candidate(cluster, node, eligibility.emptiness, DisruptionReason.EMPTY, eventual=False)
    return candidate if isinstance(candidate, Reason) else _would_go(removal([candidate]))


def drift(cluster: Cluster, node: ClusterNode) -> Answer:
    """Ask drift (D-62…D-65). That the node has not drifted is said before anything else that holds it."""
    if not node.drifted_since:
        return Reason.of(DisruptionCode.NOT_DRIFTED)
    candidate = _candidate(cluster, node, eligibility.drift, DisruptionReason.DRIFTED, eventual=True)
    if isinstance(candidate, Reason):
        return candidate
    move = replacement.replace_node(cluster, candidate)
    return move if isinstance(move, Reason) else _would_be_replaced(move, candidate)


def consolidation(cluster: Cluster, node: ClusterNode) -> Answer:
    """Ask kerf's own choice of moves for all nodes together (D-67…D-104)."""
    candidate = _candidate(cluster, node, eligibility.consolidation, DisruptionReason.UNDERUTILIZED, eventual=False)
    if isinstance(candidate, Reason):
        return Reason.of(ExplanationCode.GOES_AS_EMPTY) if candidate.code == "empty" else candidate
    refused: dict[str, Reason] = {}
    chosen, _ = disruption_pass.cheapest_commands(cluster, None, refused)
    for command in chosen.commands:
        if node.name in command.names:
            return _would_go(command)
    return refused.get(node.name) or chosen.kept.get(node.name) or Reason.of(DisruptionCode.NOT_LOOKED_AT)


def _candidate(
    cluster: Cluster, node: ClusterNode, own: eligibility.Filter, method: DisruptionReason, *, eventual: bool
) -> Candidate | Reason:
    """Check what comes before any search: eligibility, the method's own filter, the budget."""
    candidate = eligibility.judge_node(node, cluster, eventual=eventual)
    if isinstance(candidate, Reason):
        return candidate
    why = own(candidate)
    if why is not None:
        return why
    if method == DisruptionReason.EMPTY:
        may_go = bool(empty_within_budgets([candidate], cluster))
    else:
        may_go = allowed_disruptions(cluster, method).get(candidate.pool.name, 0) > 0
    if not may_go:
        return Reason.of(DisruptionCode.BUDGET, nodepool=candidate.pool.name)
    return candidate


def _would_go(command: Command) -> WouldGo:
    return WouldGo(
        claims=tuple(sorted(candidate.node.place.claim for candidate in command.candidates)),
        replacements=tuple(new.instance_types[0] for new in command.replacements),
        price=math.fsum(new.price for new in command.replacements),
        onto=tuple(sorted({placement.node for placement in command.placements})),
        savings=command.savings,
    )


def _would_be_replaced(move: Move, candidate: Candidate) -> WouldGo:
    price = math.fsum(new.price for new in move.replacements)
    moving = frozenset(pod.uid for pod in candidate.pods)
    return WouldGo(
        claims=move.claims,
        replacements=tuple(new.instance_types[0] for new in move.replacements),
        price=price,
        onto=tuple(sorted({placement.node for placement in move.placements if moving.intersection(placement.pods)})),
        savings=candidate.price - price,
    )


# ── why its pods need a node ───────────────────────────────────────────────────────────────────────────────────────

_POD_REASONS = (
    DisruptionCode.NOTHING_CHEAPER,
    DisruptionCode.SEVERAL_REPLACEMENTS,
    *NOWHERE,
    DisruptionCode.NOT_WORTH_IT,
    DisruptionCode.TOO_FEW_SPOT_OPTIONS,
)
"""Reasons that lie in what the pods ask for."""


def _pods_need(cluster: Cluster, node: ClusterNode, why: Reason) -> PodsNeed | None:
    if why.code not in _POD_REASONS:
        return None
    moving = _moving(cluster, node)
    simulator = Simulator(cluster)
    outcome = simulator.without([node.name])
    # like consolidation, which asks no other NodePool where the first one needs several nodes (docs/tried.md)
    others = simulator.other_pools_first if len(outcome.claims) == 1 else ()
    outcomes = (outcome, *(simulator.without([node.name], first_pool=pool) for pool in others))
    cost, instance_type = min(_cheapest_type(each, simulator) for each in outcomes)
    price, instance_type = (cost, instance_type) if math.isfinite(cost) else (0.0, "")
    requests = total(cluster.shapes[pod.shape].requests for pod in moving)
    return PodsNeed(
        pods=len(moving),
        requests=requests,
        instance_type=instance_type,
        price=price,
        nodes=len(outcome.claims),
        nowhere=_reasons_without_place(outcome, cluster, node, moving),
    )


def _cheapest_type(outcome: SimulationOutcome, simulator: Simulator) -> tuple[float, str]:
    """The price of the one new node, and its type; infinity for none."""
    if len(outcome.claims) != 1:
        return math.inf, ""
    claim = outcome.claims[0]
    market, requirements = simulator.market(claim.node_pool), Requirements(claim.constraints)
    return min(((market.cheapest(name, requirements), name) for name in claim.instance_types), default=(math.inf, ""))


def _reasons_without_place(
    outcome: SimulationOutcome, cluster: Cluster, node: ClusterNode, moving: list[Pod]
) -> tuple[Reason, ...]:
    """Return the planner's reasons for the pods that have to move and have no place."""
    if outcome.failure is None or outcome.failure.code not in NOWHERE:
        return ()
    moving_uids = frozenset(pod.uid for pod in moving)
    planned = plan(what_if(cluster, frozenset([node.name]), respect_settling=True))
    groups = (group for group in (*planned.unplaced, *planned.ignored) if moving_uids.intersection(group.pods))
    reasons: list[Reason] = []
    for reason in (reason for group in groups for reason in group.reasons):
        if reason not in reasons:
            reasons.append(reason)
    return tuple(reasons[:MAX_REASONS])


def _without_single_pods(cluster: Cluster, node: ClusterNode, why: Reason) -> list[WithoutPod]:
    """Find single pods without which the node would go, the largest first. Only asked when nothing but its pods holds
    the node. Pods that differ in name and age alone leave the same behind: one of them is tried."""
    without_pods: list[WithoutPod] = []
    if why.code not in _POD_REASONS:
        return without_pods
    alike: dict[Pod, WouldGo | None] = {}
    for pod in _largest(cluster, _moving(cluster, node))[:MAX_PODS_TRIED]:
        kind = replace(pod, uid="", name="", created=0, started=0)
        if kind not in alike:
            without = without_pod(cluster, node, pod)
            alike[kind] = _would_go_alone(without, node_in(without, node.place.claim))
        goes = alike[kind]
        if goes is not None:
            without_pods.append(WithoutPod(pod.key, goes))
    return without_pods


def _would_go_alone(cluster: Cluster, node: ClusterNode) -> WouldGo | None:
    """Say how this one node would go if no other node were looked at."""
    candidate = _candidate(cluster, node, eligibility.consolidation, DisruptionReason.UNDERUTILIZED, eventual=False)
    if isinstance(candidate, Reason):
        return None
    simulator = Simulator(cluster, most_claims=1)
    decided = decide_for_kerf(simulator, [candidate], Bound(simulator).cheaper)
    if isinstance(decided, Reason) or decided.savings <= MIN_SAVINGS:
        return None
    balanced = candidate.pool.consolidation_policy == BALANCED
    totals = pool_totals(cluster, find_candidates(cluster, eligibility.consolidation).eligible) if balanced else {}
    return _would_go(decided) if approves(decided, totals) else None


def _moving(cluster: Cluster, node: ClusterNode) -> list[Pod]:
    return list(cluster.moving(node))


def _largest(cluster: Cluster, pods: list[Pod]) -> list[Pod]:
    """Sort the pods by CPU, then memory, the largest first."""

    def size(pod: Pod) -> tuple[int, int, str]:
        requests = cluster.shapes[pod.shape].requests
        return -requests.get("cpu", 0), -requests.get("memory", 0), pod.key

    return sorted(pods, key=size)
