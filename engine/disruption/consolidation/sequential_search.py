"""kerf's own consolidation: a set of commands for the whole cluster, for the lowest price with the fewest evictions.

Karpenter tries prefixes of one list, and carries out one command at a time. Here commands are chosen one after the
other, each on the cluster as the commands before it leave it. They share the disruption budgets, so that all of them
may be carried out at the same time. No pod is moved twice: a node that takes pods of one command is no candidate of
another.

The search is greedy. It runs under three rankings as long as it has steps, and the cheapest result wins. It ends after
a number of steps, never by a clock.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.disruption import eligibility
from kerf.engine.disruption.cluster import Cluster
from kerf.engine.disruption.consolidation.after_command import after
from kerf.engine.disruption.consolidation.balanced_policy import Totals, approves, hopeless, pool_totals
from kerf.engine.disruption.consolidation.budget_room import BudgetRoom
from kerf.engine.disruption.consolidation.commands import Command, decide_for_kerf, placed, removal
from kerf.engine.disruption.consolidation.karpenter_methods import longest_prefix
from kerf.engine.disruption.consolidation.rankings import (
    Rank,
    Ranking,
    by_node,
    by_savings,
    by_worth,
    fleet_of,
    orders_of,
    price_of_eviction,
    prices_of_nodes,
)
from kerf.engine.disruption.consolidation.replacement_bound import Bound
from kerf.engine.disruption.consolidation.young_pods import settled_at, too_soon
from kerf.engine.disruption.eligibility import Candidate, NodeEligibility, find_candidates, judge_nodes, total_price
from kerf.engine.disruption.simulation import STEPS_PER_POD, Simulator
from kerf.engine.lifecycle.step import soonest
from kerf.engine.model.disruption_reasons import NOWHERE, DisruptionCode, DisruptionReason
from kerf.engine.model.reasons import Reason

MAX_STEPS = 30_000
"""Steps of one choice, at most (`Simulator.work`), so that it takes about as long in any cluster."""
MAX_NODES = 100
"""Nodes of one command, at most."""
STEPS_PER_CHECK = 4
"""Steps that asking `fits` costs for each node of the cluster."""
MIN_SAVINGS = 1e-9
"""A command that saves less (USD per hour) is not worth making."""

TOO_MANY = (DisruptionCode.SEVERAL_REPLACEMENTS, *NOWHERE)
"""Why a set of nodes cannot go, nor one that has more nodes besides."""
NEEDS_A_NODE = (*TOO_MANY, DisruptionCode.NOTHING_CHEAPER, DisruptionCode.SPOT_TO_SPOT_OFF)
"""Why a node cannot go whose pods do not all fit on other nodes."""

Tried = tuple[float, tuple[str, ...], list[Candidate]]
"""A set of nodes to try: the best rank that a command of them can have, their names, the candidates."""
Order = tuple[float, float, int, list[str]]
"""By which sets are tried: that best rank, the highest price, the fewest nodes, their names in their order."""
Fits = Callable[[Sequence[Command]], bool]
Tell = Callable[[tuple[str, ...], Command | Reason], None]
"""Is told of each set of nodes (by names) that is tried: the command for it, or why it cannot go."""


class ChosenCommands(Struct, frozen=True):
    """The commands in the order in which they were chosen; all may be carried out at once.

    `end_price` is that of all nodes that are left, replacements included (USD per hour). `kept` says why each other
    node stays. `exhausted`: the steps ended before everything was tried. `settled_at` is when a set of nodes that stays
    because of its young pods may go (ms since the epoch, 0 if there is none).
    """

    commands: tuple[Command, ...]
    end_price: float
    kept: dict[str, Reason]
    exhausted: bool = False
    settled_at: int = 0

    @property
    def evictions(self) -> int:
        return sum(command.evictions for command in self.commands)


def choose_commands(
    cluster: Cluster,
    *,
    steps: int = MAX_STEPS,
    known: NodeEligibility | None = None,
    rounds: int = 1,
    fits: Fits | None = None,
    tell: Tell | None = None,
) -> ChosenCommands:
    """The commands to carry out now. Equal clusters give equal commands.

    `known` is what `judge_nodes` says of the cluster, if that is known. With several `rounds`, that many times as many
    nodes are chosen as the budgets let go at once; the others wait for the budgets. `fits` says whether commands may be
    carried out together. The searches end when `steps` are done. `tell` changes nothing.
    """
    start = _Start(cluster, known, rounds, fits, tell)
    found: list[ChosenCommands] = []
    for ranking in (by_savings, by_worth, by_node):
        search = _Search(start, ranking, steps)
        found.append(search.run())
        steps = search.left
        if steps <= 0 or not found[0].commands:
            break  # under another ranking it would be the same, if no command was found
    best = min(
        found,
        key=lambda outcome: (
            round(outcome.end_price + start.eviction_price * outcome.evictions, 9),
            outcome.evictions,
            len(outcome.commands),
        ),
    )
    return replace(best, settled_at=soonest(*(outcome.settled_at for outcome in found)))


class _Start:
    """What the searches under all rankings begin with."""

    def __init__(
        self,
        cluster: Cluster,
        known: NodeEligibility | None,
        rounds: int,
        fits: Fits | None,
        tell: Tell | None,
    ) -> None:
        self.room = BudgetRoom(cluster, rounds)
        self.fits, self.tell = fits, tell
        self.fleet = fleet_of(cluster)
        self.eviction_price = price_of_eviction(self.fleet.price_of_pod)
        known = judge_nodes(cluster) if known is None else known
        self.cluster = cluster
        self.simulator = Simulator(cluster, most_claims=1)
        self.empty = find_candidates(cluster, eligibility.emptiness, known=known)
        self.busy = find_candidates(cluster, eligibility.consolidation, known=known)
        self.anything = bool(self.empty.chosen or self.busy.chosen)
        self.bounds = Bound(self.simulator) if self.anything else None
        self.after: dict[tuple[Simulator, tuple[str, ...]], _After] = {}  # by the cluster before, and the names that go
        self.totals: Mapping[str, Totals] = pool_totals(cluster, self.busy.eligible) if self.anything else {}


class _After(Struct, frozen=True):
    """The cluster that a command leads to."""

    command: Command
    simulator: Simulator
    bounds: Bound


class _Search:
    """One greedy search: takes the command that ranks first, until none is left."""

    def __init__(self, start: _Start, ranking: Ranking, steps: int) -> None:
        self._first = start.cluster
        self._after = start.after
        self._simulator = start.simulator
        self._bounds = start.bounds
        self._ranking, self._eviction_price, self._fleet = ranking, start.eviction_price, start.fleet
        self.left = steps
        self._empty, self._busy, self._totals = start.empty, start.busy, start.totals
        self._room = start.room.copy()
        self._fits, self._tell = start.fits, start.tell
        self._unfit: set[tuple[str, ...]] = set()  # what would leave pods over
        self._failed: dict[tuple[str, ...], Reason] = {}  # what there is no room for, or no gain in; room only shrinks
        self._commands: list[Command] = []
        self._settled: set[str] = set()  # nodes that go, or take pods that move
        self._refusals: dict[str, Reason] = {}
        self._settled_at = 0
        self._open: list[Tried] | None = None
        self._prefix: tuple[Command | None] | None = None  # what `longest_prefix` finds, until a command is taken
        self._alone: dict[tuple[str, ...], tuple[Order, tuple[str, ...]]] = {}
        self._ways: dict[tuple[str, ...], tuple[Rank, Command]] = {}  # how sets may go, until a command is taken

    def run(self) -> ChosenCommands:
        while self._bounds is not None and (command := self._best(self._bounds)) is not None:
            if self._leaves_none_over(command):
                self._take(command)
            else:
                self._unfit.add(command.names)
        removed = frozenset(name for taken in self._commands for name in taken.names)
        launched = [new.price for taken in self._commands for new in taken.replacements]
        price = math.fsum([*prices_of_nodes(self._first, removed), *launched])
        return ChosenCommands(tuple(self._commands), price, self._kept(removed), self.left <= 0, self._settled_at)

    def _leaves_none_over(self, command: Command) -> bool:
        if self._fits is None or self.left <= 0 or command.reason == DisruptionReason.EMPTY:
            return True
        made = [*self._commands, command]
        self.left -= STEPS_PER_CHECK * len(self._first.nodes) + STEPS_PER_POD * sum(taken.evictions for taken in made)
        if self._fits(made):
            return True
        if self._tell is not None:
            self._tell(command.names, Reason.of(DisruptionCode.LEFT_OVER))
        if len(command.candidates) == 1:
            self._refusals[command.names[0]] = Reason.of(DisruptionCode.LEFT_OVER)
        return False

    def _take(self, command: Command) -> None:
        self._open = self._prefix = None
        self._ways.clear()
        self._commands += self._parts(command)
        self._room.take(command.candidates)
        self._settled |= {candidate.name for candidate in command.candidates}
        self._settled |= {placement.node for placement in placed(command.placements, command.candidates)}
        own = frozenset(pod.uid for candidate in command.candidates for pod in candidate.pods)
        if any(uid not in own for new in command.replacements for uid in new.claim.pods):
            self._failed.clear()  # pods that waited for a place need none any more
        following = self._following(command)
        self._simulator, self._bounds = following.simulator, following.bounds

    def _following(self, command: Command) -> _After:
        """The cluster after the command. Searches that took the same commands before share it, and all answers about
        it."""
        key = self._simulator, command.names
        known = self._after.get(key)
        if known is None or known.command != command:
            cluster = after(self._simulator.cluster, command, len(self._commands))
            simulator = Simulator(cluster, most_claims=1)
            known = self._after[key] = _After(command, simulator, Bound(simulator, self._bounds))
        return known

    def _parts(self, command: Command) -> list[Command]:
        """The command as one command for each node, where it has no replacement and the policies allow that: then no
        node waits for another. Placements are kept for pods that move; pending pods find their nodes by themselves."""
        parts = [command]
        if command.reason != DisruptionReason.EMPTY and not command.replacements:
            single = [
                Command(command.reason, (candidate,), (), command.placements, candidate.price)
                for candidate in command.candidates
            ]
            each_may_go = all(approves(part, self._totals) and self._young(part) is None for part in single)
            parts = single if each_may_go else parts
        return [replace(part, placements=placed(part.placements, part.candidates)) for part in parts]

    def _best(self, bounds: Bound) -> Command | None:
        """The command that ranks first among those tried."""
        best: tuple[Rank, Command] | None = None
        empties = self._room.for_one(self._empty.chosen, DisruptionReason.EMPTY, self._settled)
        if empties:
            best = self._ranked(removal(empties))
        longest = self._longest(bounds)
        if longest is not None:
            best = min(filter(None, (best, self._ranked(longest))), key=lambda each: each[0])
        for least, names, tried in self._sets(bounds):
            if self.left <= 0:
                break
            if names in self._unfit or names in self._failed:
                continue
            if best is not None and least >= best[0][0]:
                break
            found = self._decided(names, tried, bounds)
            if not isinstance(found, Reason) and (best is None or found[0] < best[0]):
                best = found
        return None if best is None else best[1]

    def _ranked(self, command: Command) -> tuple[Rank, Command]:
        return self._rank(command), command

    def _rank(self, command: Command) -> Rank:
        return self._ranking(command, self._eviction_price), float(command.evictions), command.names

    def _longest(self, bounds: Bound) -> Command | None:
        """The command that Karpenter's search finds: with it, the result is never dearer than Karpenter's."""

        def decided(candidates: list[Candidate]) -> Command | Reason:
            return self._certain_refusal(candidates, bounds) or decide_for_kerf(
                self._simulator, candidates, bounds.cheaper
            )

        if self.left <= 0:
            return None
        if self._prefix is None:
            before = self._simulator.work
            within = self._room.for_one(self._busy.chosen, DisruptionReason.UNDERUTILIZED, self._settled)
            self._prefix = (longest_prefix(decided, within, self._totals),)
            self.left -= self._simulator.work - before
        (found,) = self._prefix
        if found is None or found.savings <= MIN_SAVINGS or found.names in self._unfit:
            return None
        return found if self._too_soon(found) is None else None

    def _bound(self, candidates: list[Candidate]) -> float:
        """The best rank that a command for these nodes can have: that of removing them without a replacement."""
        whole = Command(DisruptionReason.UNDERUTILIZED, tuple(candidates), savings=total_price(candidates))
        return self._ranking(whole, self._eviction_price)

    def _decided(
        self, names: tuple[str, ...], candidates: list[Candidate], bounds: Bound
    ) -> tuple[Rank, Command] | Reason:
        known = self._ways.get(names) or self._failed.get(names)
        if known is not None:
            return known
        tried: Command | Reason = self._certain_refusal(candidates, bounds) or self._simulated(candidates, bounds)
        if self._tell is not None:
            self._tell(names, tried)
        if isinstance(tried, Command):
            found = self._ways[names] = self._ranked(tried)
            return found
        self._failed[names] = tried
        if len(candidates) == 1:
            self._refusals[candidates[0].name] = tried
        return tried

    def _certain_refusal(self, candidates: list[Candidate], bounds: Bound) -> Reason | None:
        """Why these nodes certainly cannot go: found without simulating them together."""
        found = bounds.refusal(candidates)
        if found is not None or len(candidates) == 1:
            return found
        alone = (self._failed.get((candidate.name,)) for candidate in candidates)
        found = next((why for why in alone if why is not None and why.code in TOO_MANY), None)
        return found or self._without_common_node(candidates, bounds)

    def _without_common_node(self, candidates: list[Candidate], bounds: Bound) -> Reason | None:
        """Why a node of the set cannot go, if pods of it need a new node that is none for the pods of others: all have
        to go onto the same one."""
        cheaper = bounds.cheaper(candidates, total_price(candidates)).types
        pools = frozenset(pool for pool, types in cheaper.items() if types)
        if pools.intersection(*map(bounds.pools_of, candidates)):
            return None
        for candidate in candidates:
            if self.left <= 0:
                return None
            alone = self._decided((candidate.name,), [candidate], bounds)
            if isinstance(alone, Reason) and alone.code in NEEDS_A_NODE:
                pools &= bounds.pools_of(candidate)
                if not pools:
                    return alone
        return None

    def _simulated(self, candidates: list[Candidate], bounds: Bound) -> Command | Reason:
        before = self._simulator.work
        tried = decide_for_kerf(self._simulator, candidates, bounds.cheaper)
        self.left -= self._simulator.work - before
        if isinstance(tried, Command) and (tried.savings <= MIN_SAVINGS or not approves(tried, self._totals)):
            return Reason.of(DisruptionCode.NOT_WORTH_IT)
        return tried if isinstance(tried, Reason) else self._too_soon(tried) or tried

    def _too_soon(self, command: Command) -> Reason | None:
        """As `_young`. Notes when the nodes may go."""
        why = self._young(command)
        if why is not None:
            self._settled_at = soonest(self._settled_at, settled_at(command.candidates, why, self._first.now))
        return why

    def _young(self, command: Command) -> Reason | None:
        return too_soon(command.savings, command.candidates, self._fleet, self._first.now)

    def _sets(self, bounds: Bound) -> list[Tried]:
        """The sets of nodes to try, best possible rank first. They stay the same until a command is taken."""
        if self._open is None:
            found: dict[tuple[str, ...], list[Candidate]] = {}
            for candidates in self._candidate_sets(bounds):
                found.setdefault(_names(candidates), candidates)
            ranked = sorted(self._in_order(names, candidates) for names, candidates in found.items())
            self._open = [(order[0], names, found[names]) for order, names in ranked]
        return self._open

    def _in_order(self, names: tuple[str, ...], candidates: list[Candidate]) -> tuple[Order, tuple[str, ...]]:
        """A set's place in the order in which sets are tried, and its names. That of a single node stays."""
        if names in self._alone:
            return self._alone[names]
        listed = [candidate.name for candidate in candidates]
        order = (self._bound(candidates), -total_price(candidates), len(candidates), listed), names
        if len(candidates) == 1:
            self._alone[names] = order
        return order

    def _candidate_sets(self, bounds: Bound) -> Iterator[list[Candidate]]:
        chosen = self._room.for_any(self._busy.chosen, self._settled)
        yield from ([candidate] for candidate in chosen if not hopeless(candidate, self._totals))
        for order in orders_of(chosen):
            kept = self._room.for_one(order, DisruptionReason.UNDERUTILIZED, self._settled)[:MAX_NODES]
            yield from (kept[:size] for size in range(2, self._most(kept, bounds) + 1))

    def _most(self, candidates: list[Candidate], bounds: Bound) -> int:
        """How many of these may go together, found by bisection: with more of them, too, their pods need several new
        nodes, or have no place."""
        sizes = range(len(candidates), 1, -1)
        low, high = 1, next((size for size in sizes if bounds.refusal(candidates[:size]) is None), 1)
        while low < high and self.left > 0:
            middle = (low + high + 1) // 2
            found = self._decided(_names(candidates[:middle]), candidates[:middle], bounds)
            if isinstance(found, Reason) and found.code in TOO_MANY:
                high = middle - 1
            else:
                low = middle
        return low

    def _kept(self, removed: frozenset[str]) -> dict[str, Reason]:
        """Why each other node stays: the latest reason."""
        kept: dict[str, Reason] = {}
        idle = frozenset(candidate.name for candidate in self._empty.chosen)
        vain = frozenset(candidate.name for candidate in self._busy.chosen if hopeless(candidate, self._totals))
        for node in sorted(self._first.nodes, key=lambda each: each.name):
            name = node.name
            if name in removed:
                continue
            empty, busy = self._empty.excluded.get(name), self._busy.excluded.get(name)
            if busy is not None and busy.code == DisruptionReason.EMPTY:
                busy = empty
            if busy is not None:
                kept[name] = busy  # it would stay although it took no pods
            elif name in self._settled:
                kept[name] = Reason.of(DisruptionCode.TAKES_PODS)
            elif self._room.is_full(node.node_pool):
                kept[name] = Reason.of(DisruptionCode.BUDGET, nodepool=node.node_pool)
            elif name in self._refusals:
                kept[name] = self._refusals[name]
            elif name in idle:  # nothing was asked about it, nor about the next, though there is room for consolidation
                kept[name] = Reason.of(DisruptionCode.BUDGET, nodepool=node.node_pool)
            else:
                kept[name] = Reason.of(DisruptionCode.NOT_WORTH_IT if name in vain else DisruptionCode.SEARCH_ENDED)
        return kept


def _names(candidates: Iterable[Candidate]) -> tuple[str, ...]:
    return tuple(sorted(candidate.name for candidate in candidates))
