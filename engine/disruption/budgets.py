"""Disruption budgets: how many nodes of a NodePool may go at once, per reason (D-43…D-53).

Every node that is not ready or on its way out consumes, whatever the cause: there is one figure of consumption per
NodePool (D-50).
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from kerf.engine.errors import InputError
from kerf.engine.model.cron import next_after, parse
from kerf.engine.model.disruption_reasons import BUDGET_REASONS, DisruptionCode, DisruptionReason
from kerf.engine.model.karpenter.nodepools import Budget, NodePool
from kerf.engine.model.reasons import Reason

UNLIMITED = 2_147_483_647

MOST_AHEAD = 200
"""No more nodes of a NodePool wait for room than so many, but for those of the first round."""

_LONGEST = 20  # digits of a number of nodes


class Allowance(Struct, frozen=True):
    """`nodes` may go for one reason; `faults` say which budgets could not be read, and then nothing may (L-22)."""

    nodes: int
    faults: tuple[Reason, ...] = ()


class Use(Struct, frozen=True):
    """Nodes of one NodePool: `total` count (D-49), `consuming` are not ready or on their way out (D-50)."""

    total: int = 0
    consuming: int = 0


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


def left(pool: NodePool, reason: DisruptionReason, use: Use, now: int, rounds: int = 1) -> int:
    """How many further nodes may go now (D-51), or, with more `rounds` than one, after others have gone."""
    nodes = allowance(pool, reason, use.total, now).nodes
    return max(0, max(nodes, min(rounds * nodes, MOST_AHEAD)) - use.consuming)


def value(budget: Budget, total: int, now: int) -> int:
    """One budget of a pool of so many nodes (D-47). Raises `InputError` KERF314 if it cannot be read."""
    return _nodes(budget.nodes, total) if active(budget, now) else UNLIMITED


def active(budget: Budget, now: int) -> bool:
    """D-45: whether the first firing after now - duration has been. A schedule that never fires is always active
    (D-46). Raises `InputError` KERF314 if the schedule cannot be read, or stands without a duration."""
    if budget.schedule is None and budget.duration is None:
        return True
    if budget.schedule is None or budget.duration is None:
        hint = "Give both for a window, neither for always"
        raise InputError("a budget has a schedule or a duration without the other", code="KERF314", hint=hint)
    firing = next_after(parse(budget.schedule), now - budget.duration)
    return firing is None or firing <= now


def _nodes(text: str, total: int) -> int:
    number = text.removesuffix("%")
    if not number.isascii() or not number.isdigit() or len(number) > _LONGEST:
        hint = 'Write a number of nodes as text, or a percentage: "5" or "10%"'
        raise InputError(f"{text[:_LONGEST]!r} is no share of nodes", code="KERF314", hint=hint)
    if number == text:
        return int(number)
    return -(-int(number) * total // 100)


class Ledger:
    """What is left of the budgets while moves are chosen: `take` spends one node of a NodePool for every reason at
    once (D-50)."""

    def __init__(self, pools: Iterable[NodePool], used: dict[str, Use], now: int, rounds: int = 1) -> None:
        self._left = {
            (pool.name, reason): left(pool, reason, used.get(pool.name, Use()), now, rounds)
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
