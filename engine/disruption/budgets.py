"""Disruption budgets: how many nodes of a NodePool may go at once, per reason (D-43…D-53).

Every node that is not ready or on its way out consumes, whatever the cause: there is one figure of consumption per
NodePool (D-50). Two kinds of nodes take nothing from the NodePool when they go as empty:

- one that is unused goes where the budgets let any node go, whatever is consumed, and consumes nothing itself
- one that is not ready consumes already. It goes unless more is consumed than the budgets let go
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from kerf.engine.disruption.cluster import Cluster
from kerf.engine.disruption.eligibility import Candidate
from kerf.engine.errors import InputError
from kerf.engine.lifecycle.step import soonest
from kerf.engine.model.cron import next_after, parse
from kerf.engine.model.disruption_reasons import BUDGET_REASONS, DisruptionCode, DisruptionReason
from kerf.engine.model.karpenter.nodepools import Budget, NodePool
from kerf.engine.model.reasons import Reason
from kerf.engine.scheduling.made_once import once

UNLIMITED = 2_147_483_647

MAX_PROPOSED_AHEAD = 200
"""Nodes of one NodePool that may be proposed before the budgets have room for them, at most."""

_MAX_DIGITS = 20  # of a number of nodes


class Allowance(Struct, frozen=True):
    """`nodes` may go for one reason; `faults` say which budgets could not be read, and then nothing may (L-22)."""

    nodes: int
    faults: tuple[Reason, ...] = ()


class Use(Struct, frozen=True):
    """Nodes of one NodePool: `total` count (D-49), `consuming` are not ready or on their way out (D-50). `lasting` of
    these may consume for long: they do not go, or pods keep them that may not leave yet."""

    total: int = 0
    consuming: int = 0
    lasting: int = 0

    def with_node(self, *, goes: bool, ready: bool, kept: bool = False) -> Use:
        """Counts another node: whether it is on its way out, whether it is ready, and whether pods keep it there."""
        consumes = goes or not ready
        return Use(self.total + 1, self.consuming + consumes, self.lasting + (consumes and (kept or not goes)))

    def without_one(self) -> Use:
        """Does not count one of the nodes that are not ready."""
        return Use(self.total, self.consuming - 1, self.lasting - 1)


def allowance(pool: NodePool, reason: DisruptionReason, total: int, now: int) -> Allowance:
    """What the pool's budgets allow for one reason, before what is consumed (D-47, D-48)."""
    faults: list[Reason] = []
    least = UNLIMITED
    for index, budget in enumerate(pool.budgets):
        try:
            nodes = value(budget, total, now)
        except InputError as error:
            faults.append(Reason.of(DisruptionCode.BAD_BUDGET, nodepool=pool.name, budget=index, error=error.message))
            continue
        if not budget.reasons or reason.karpenter in budget.reasons:
            least = min(least, nodes)
    return Allowance(0 if faults else least, tuple(faults))


def remaining(pool: NodePool, reason: DisruptionReason, use: Use, now: int, rounds: int = 1) -> int:
    """How many further nodes of a NodePool may go now (D-51).

    With `rounds` above 1: how many may be proposed, if others may follow as soon as those before them have gone. What
    does not go soon takes its part of each round.
    """
    nodes = max(0, allowance(pool, reason, use.total, now).nodes - use.lasting)
    return max(0, max(nodes, min(rounds * nodes, MAX_PROPOSED_AHEAD)) - (use.consuming - use.lasting))


def budget_usage(cluster: Cluster) -> dict[str, Use]:
    """How many nodes of each NodePool count for its budgets, and how many of these use them up (D-49, D-50)."""
    return once(cluster, "budget usage", lambda: _budget_usage(cluster))


def _budget_usage(cluster: Cluster) -> dict[str, Use]:
    use_of_pool: dict[str, Use] = {}
    for node in cluster.nodes:
        if node.managed and node.initialized and not node.terminating and node.node_pool:
            use = use_of_pool.get(node.node_pool, Use())
            use_of_pool[node.node_pool] = use.with_node(
                goes=(node.marked or node.queued) and not node.unused, ready=node.ready, kept=node.kept
            )
    return use_of_pool


def allowed_disruptions(cluster: Cluster, reason: DisruptionReason) -> dict[str, int]:
    """How many nodes of each NodePool may go now (D-51)."""
    used = budget_usage(cluster)
    return {
        pool_input.pool.name: remaining(pool_input.pool, reason, used.get(pool_input.pool.name, Use()), cluster.now)
        for pool_input in cluster.pools
    }


def within_budgets(candidates: Iterable[Candidate], limits: dict[str, int]) -> list[Candidate]:
    """The candidates that the limits (by NodePool) leave room for, in their order (D-60, D-68)."""
    remains = dict(limits)
    allowed = []
    for candidate in candidates:
        if remains.get(candidate.pool.name, 0) > 0:
            remains[candidate.pool.name] -= 1
            allowed.append(candidate)
    return allowed


def takes_nothing(candidate: Candidate) -> bool:
    """Whether the NodePool has no node less for its pods when the candidate goes as empty."""
    return candidate.node.unused or (candidate.empty and not candidate.node.ready)


def empty_within_budgets(candidates: Iterable[Candidate], cluster: Cluster) -> list[Candidate]:
    """The empty candidates that may go now: first those that take nothing, each kind in its order (D-60)."""
    used = budget_usage(cluster)
    free, others = [], []
    for candidate in candidates:
        if not takes_nothing(candidate):
            others.append(candidate)
            continue
        use = used.get(candidate.pool.name, Use())
        beside = Use(use.total) if candidate.node.unused else use.without_one()
        if remaining(candidate.pool, DisruptionReason.EMPTY, beside, cluster.now) > 0:
            free.append(candidate)
    return [*free, *within_budgets(others, allowed_disruptions(cluster, DisruptionReason.EMPTY))]


def value(budget: Budget, total: int, now: int) -> int:
    """One budget of a pool of so many nodes (D-47). Raises `InputError` KERF314 if it cannot be read."""
    return _nodes(budget.nodes, total) if active(budget, now) else UNLIMITED


def active(budget: Budget, now: int) -> bool:
    """Whether the budget is in force: its schedule has fired within its duration before now (D-45).

    A schedule that never fires is always active (D-46). Raises `InputError` KERF314 if the schedule cannot be read, or
    stands without a duration.
    """
    if budget.schedule is None and budget.duration is None:
        return True
    if budget.schedule is None or budget.duration is None:
        hint = "Give both for a window, neither for always"
        raise InputError("a budget has a schedule or a duration without the other", code="KERF314", hint=hint)
    firing = next_after(parse(budget.schedule), now - budget.duration)
    return firing is None or firing <= now


def window_ends(pool: NodePool, now: int) -> int:
    """When the first of the pool's budgets that are in force now may end (D-45), in ms since the epoch; 0 for never."""
    ends = [0]
    for budget in pool.budgets:
        try:
            if budget.schedule is not None and budget.duration is not None and active(budget, now):
                fired = next_after(parse(budget.schedule), now - budget.duration)
                ends.append(0 if fired is None else fired + budget.duration)
        except InputError:
            continue
    return soonest(*ends)


def _nodes(text: str, total: int) -> int:
    number = text.removesuffix("%")
    if not number.isascii() or not number.isdigit() or len(number) > _MAX_DIGITS:
        hint = 'Write a number of nodes as text, or a percentage: "5" or "10%"'
        raise InputError(f"{text[:_MAX_DIGITS]!r} is no share of nodes", code="KERF314", hint=hint)
    if number == text:
        return int(number)
    return -(-int(number) * total // 100)


class Ledger:
    """What is left of the budgets while moves are chosen: `take` spends one node of a NodePool for every reason at
    once (D-50)."""

    def __init__(self, pools: Iterable[NodePool], used: dict[str, Use], now: int, rounds: int = 1) -> None:
        self._left = {
            (pool.name, reason): remaining(pool, reason, used.get(pool.name, Use()), now, rounds)
            for pool in pools
            for reason in BUDGET_REASONS
        }

    def left(self, pool: str, reason: DisruptionReason) -> int:
        return self._left.get((pool, reason), 0)

    def take(self, pool: str) -> None:
        for reason in BUDGET_REASONS:
            if (pool, reason) in self._left:
                self._left[pool, reason] = max(0, self._left[pool, reason] - 1)

    def copy(self) -> Ledger:
        made = Ledger((), {}, 0)
        made._left = dict(self._left)
        return made
