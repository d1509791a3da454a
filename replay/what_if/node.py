"""What each method that kerf may choose to use would do with one node now, and what it would do without the obstacle
that it names: the deciders run over the cluster as it stands, then over the cluster with one thing changed, and so on
until the node goes or nothing single is left to change. Nothing here guesses."""

from __future__ import annotations

import math
from collections.abc import Callable

from msgspec import Struct

from kerf.engine.disruption import disruption_pass, eligibility
from kerf.engine.disruption.cluster import Cluster, ClusterNode, what_if
from kerf.engine.disruption.consolidation.balanced_policy import approves, pool_totals
from kerf.engine.disruption.consolidation.commands import Command, decide, on_offer, removal
from kerf.engine.disruption.consolidation.karpenter_methods import allowed
from kerf.engine.disruption.consolidation.sequential_search import LEAST
from kerf.engine.disruption.eligibility import Candidate, census
from kerf.engine.disruption.simulation import Outcome, Simulator
from kerf.engine.model.disruption_reasons import DisruptionReason
from kerf.engine.model.kubernetes.pods import Pod, Resources, is_reschedulable
from kerf.engine.model.reasons import Reason
from kerf.engine.record.decisions import Move
from kerf.engine.scheduling.matching.requirements import Requirements
from kerf.engine.scheduling.matching.resources import total
from kerf.engine.scheduling.planner import plan
from kerf.replay.what_if.blockers import lift, without_pod

MOST_CHANGES = 4
"""So many obstacles are taken away, one on top of the other, before the answer is that it stays."""
MOST_PODS = 6
"""So many pods are tried one by one: would the node go without this one?"""

MOST_REASONS = 4
"""So many reasons are given why pods have no place."""


class Goes(Struct, frozen=True, kw_only=True):
    """How the node would go. `claims` go with it; `replacements` are the first choices of type for each new node, at
    `price` USD per hour together; `onto` are the nodes that take pods. `savings` in USD per hour."""

    claims: tuple[str, ...]
    replacements: tuple[str, ...] = ()
    price: float = 0.0
    onto: tuple[str, ...] = ()
    savings: float = 0.0


class Need(Struct, frozen=True, kw_only=True):
    """What its pods that have to move ask for together, and the cheapest new node that would hold those that find no
    room elsewhere ("" if there is none). `nowhere`: why some of them have no place at all, one reason for each NodePool
    and class of pods."""

    pods: int
    requests: Resources
    instance_type: str = ""
    price: float = 0.0
    nodes: int = 0
    nowhere: tuple[Reason, ...] = ()


class Without(Struct, frozen=True):
    """The node would go if this one pod were not on it."""

    pod: str
    goes: Goes


class Way(Struct, frozen=True, kw_only=True):
    """`verdict`: what the method says now, None if the node would go. `changes`: what would have to be otherwise, each
    on top of the ones before, and `between` what the method says after each but the last. In the end it `goes`, or
    still stays for the reason `stays`. `alone`: it could go by itself then, but is none of those that go together."""

    verdict: Reason | None
    changes: tuple[Reason, ...] = ()
    between: tuple[Reason, ...] = ()
    goes: Goes | None = None
    stays: Reason | None = None
    need: Need | None = None
    without: tuple[Without, ...] = ()
    alone: Goes | None = None


Decided = Goes | Reason
Asking = Callable[[Cluster, ClusterNode], Decided]


def explore(cluster: Cluster, claim: str, ask: Asking, method: DisruptionReason) -> Way:
    """`ask` is the method, `method` its name in budgets. The claim has to be one of the cluster."""
    changes: list[Reason] = []
    said: list[Reason] = []
    while True:
        node = node_in(cluster, claim)
        found = ask(cluster, node)
        if isinstance(found, Goes):
            return Way(verdict=said[0] if said else None, changes=tuple(changes), between=tuple(said[1:]), goes=found)
        if said and said[-1].code == found.code:  # what was changed last is of no account
            said.pop()
            changes.pop()
            break
        repeated = any(each.code == found.code for each in said)
        lifted = None if repeated or len(changes) == MOST_CHANGES else lift(found, cluster, node, method)
        if lifted is None:
            break
        said.append(found)
        changes.append(lifted.change)
        cluster = lifted.cluster
    return Way(
        verdict=said[0] if said else found,
        changes=tuple(changes),
        between=tuple(said[1:]),
        stays=found,
        need=_need(cluster, node, found) if method == DisruptionReason.UNDERUTILIZED else None,
        without=tuple(_lighter(cluster, node, found)) if method == DisruptionReason.UNDERUTILIZED else (),
        alone=_alone(cluster, node) if method == DisruptionReason.UNDERUTILIZED else None,
    )


def node_in(cluster: Cluster, claim: str) -> ClusterNode:
    return next(each for each in cluster.nodes if each.place.claim == claim)


# ── the methods ────────────────────────────────────────────────────────────────────────────────────────────────────


def emptiness(cluster: Cluster, node: ClusterNode) -> Decided:
    """D-59, D-60. That pods run there comes before what else would hold the node."""
    if any(map(is_reschedulable, node.pods)):
        return Reason("has-pods")
    found = _candidate(cluster, node, eligibility.emptiness, DisruptionReason.EMPTY, eventual=False)
    return found if isinstance(found, Reason) else _goes(removal([found]))


def drift(cluster: Cluster, node: ClusterNode) -> Decided:
    """D-62…D-65. That it has not drifted comes before what else would hold the node."""
    if not node.drifted_since:
        return Reason("not-drifted")
    found = _candidate(cluster, node, eligibility.drift, DisruptionReason.DRIFTED, eventual=True)
    if isinstance(found, Reason):
        return found
    move = disruption_pass.drift(cluster, found)
    return move if isinstance(move, Reason) else _replaced(move, found)


def consolidation(cluster: Cluster, node: ClusterNode) -> Decided:
    """kerf's own choice of moves for all nodes together (D-67…D-104)."""
    found = _candidate(cluster, node, eligibility.consolidation, DisruptionReason.UNDERUTILIZED, eventual=False)
    if isinstance(found, Reason):
        return Reason("goes-as-empty") if found.code == "empty" else found
    refused: dict[str, Reason] = {}
    chosen, _ = disruption_pass.own_moves(cluster, None, refused)
    for command in chosen.commands:
        if node.name in command.names:
            return _goes(command)
    return refused.get(node.name) or chosen.kept.get(node.name) or Reason("not-looked-at")


def _candidate(
    cluster: Cluster, node: ClusterNode, own: eligibility.Filter, method: DisruptionReason, *, eventual: bool
) -> Candidate | Reason:
    """What comes before any search: eligibility, the method's own filter, the budget."""
    found = eligibility.judge(node, cluster, eventual=eventual)
    if isinstance(found, Reason):
        return found
    why = own(found)
    if why is not None:
        return why
    if allowed(cluster, method).get(found.pool.name, 0) <= 0:
        return Reason("budget", {"nodepool": found.pool.name})
    return found


def _goes(command: Command) -> Goes:
    return Goes(
        claims=tuple(sorted(each.node.place.claim for each in command.candidates)),
        replacements=tuple(new.instance_types[0] for new in command.replacements),
        price=math.fsum(new.price for new in command.replacements),
        onto=tuple(sorted({each.node for each in command.placements})),
        savings=command.savings,
    )


def _replaced(move: Move, candidate: Candidate) -> Goes:
    price = math.fsum(new.price for new in move.replacements)
    moving = frozenset(pod.uid for pod in candidate.pods)
    return Goes(
        claims=move.claims,
        replacements=tuple(new.instance_types[0] for new in move.replacements),
        price=price,
        onto=tuple(sorted({each.node for each in move.placements if moving.intersection(each.pods)})),
        savings=candidate.price - price,
    )


# ── why its pods need a node ───────────────────────────────────────────────────────────────────────────────────────

_NEEDED = ("nothing-cheaper", "several-replacements", "no-place", "not-worth-it", "too-few-spot-options")
"""Reasons that lie in what the pods ask for."""


def _need(cluster: Cluster, node: ClusterNode, why: Reason) -> Need | None:
    if why.code not in _NEEDED:
        return None
    moving = _moving(cluster, node)
    simulator = Simulator(cluster)
    outcome = simulator.without([node.name])
    claims = outcome.claims
    kind, price = "", 0.0
    if len(claims) == 1:
        market, wanted = simulator.market(claims[0].node_pool), Requirements(claims[0].constraints)
        offers = ((market.cheapest(name, wanted), name) for name in claims[0].instance_types)
        cost, kind = min(offers, default=(math.inf, ""))
        price, kind = (cost, kind) if math.isfinite(cost) else (0.0, "")
    requests = total(cluster.shapes[pod.shape].requests for pod in moving)
    return Need(
        pods=len(moving),
        requests=requests,
        instance_type=kind,
        price=price,
        nodes=len(claims),
        nowhere=_nowhere(outcome, cluster, node, moving),
    )


def _nowhere(outcome: Outcome, cluster: Cluster, node: ClusterNode, moving: list[Pod]) -> tuple[Reason, ...]:
    """The planner's reasons about pods that have to move and cannot."""
    if outcome.failure is None or outcome.failure.code != "no-place":
        return ()
    mine = frozenset(pod.uid for pod in moving)
    planned = plan(what_if(cluster, frozenset([node.name]), respect_settling=True))
    groups = (each for each in (*planned.unplaced, *planned.ignored) if mine.intersection(each.pods))
    found: list[Reason] = []
    for reason in (reason for group in groups for reason in group.reasons):
        if reason not in found:
            found.append(reason)
    return tuple(found[:MOST_REASONS])


def _lighter(cluster: Cluster, node: ClusterNode, why: Reason) -> list[Without]:
    """Single pods without which the node would go, the largest first; only where all obstacles of another kind are
    off."""
    found: list[Without] = []
    if why.code not in _NEEDED:
        return found
    for pod in _largest(cluster, _moving(cluster, node))[:MOST_PODS]:
        less = without_pod(cluster, node, pod)
        goes = _alone(less, node_in(less, node.place.claim))
        if goes is not None:
            found.append(Without(pod.key, goes))
    return found


def _alone(cluster: Cluster, node: ClusterNode) -> Goes | None:
    """How this one node would go, were it the only one that anybody looks at."""
    found = census(cluster, eligibility.consolidation)
    candidate = next((each for each in found.chosen if each.name == node.name), None)
    if candidate is None or allowed(cluster, DisruptionReason.UNDERUTILIZED)[candidate.pool.name] <= 0:
        return None
    simulator = Simulator(cluster)
    tried = decide(simulator, [candidate])
    if isinstance(tried, Command) and tried.replacements:
        tried = on_offer(tried, simulator.market(tried.replacements[0].claim.node_pool))
    if isinstance(tried, Reason) or tried.savings <= LEAST:
        return None
    return _goes(tried) if approves(tried, pool_totals(cluster, found.eligible)) else None


def _moving(cluster: Cluster, node: ClusterNode) -> list[Pod]:
    rules = cluster.rules
    return [pod for pod in node.pods if rules.moves(pod)]


def _largest(cluster: Cluster, pods: list[Pod]) -> list[Pod]:
    """By CPU, then memory."""

    def size(pod: Pod) -> tuple[int, int, str]:
        requests = cluster.shapes[pod.shape].requests
        return -requests.get("cpu", 0), -requests.get("memory", 0), pod.key

    return sorted(pods, key=size)
