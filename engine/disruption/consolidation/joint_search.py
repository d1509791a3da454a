"""One set of nodes that is removed at once, where the disruption budgets let all candidates go.

`sequential_search` chooses commands one after the other. There a node that takes pods of one command is no candidate of
another, and no command may rely on the order in which pods leave. A set that goes at once may: its pods are placed on
the nodes that stay in the end, and they leave in eviction waves. So the cluster gets cheaper without moving a pod
twice.

The set grows from the nodes that hold the least for their price. Then dearer nodes replace cheaper ones in it. Each
node goes by a command of its own; nodes that a Balanced NodePool finds not worth it are left out. The search ends after
a number of steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.disruption import eligibility
from kerf.engine.disruption.budgets import allowed_disruptions
from kerf.engine.disruption.cluster import Cluster
from kerf.engine.disruption.consolidation.balanced_policy import approves, pool_totals
from kerf.engine.disruption.consolidation.commands import Command, decide, placed, removal
from kerf.engine.disruption.consolidation.rankings import prices_of_nodes
from kerf.engine.disruption.consolidation.replacement_bound import RESOURCES
from kerf.engine.disruption.consolidation.sequential_search import MIN_SAVINGS, STEPS_PER_CHECK, ChosenCommands
from kerf.engine.disruption.eligibility import Candidate, Candidates, NodeEligibility, find_candidates, judge_nodes
from kerf.engine.disruption.rebinding import Rebinding
from kerf.engine.disruption.simulation import STEPS_PER_POD, Simulator
from kerf.engine.lifecycle.drain.eviction_waves import wave_grades, weight
from kerf.engine.model.disruption_reasons import DisruptionCode, DisruptionReason
from kerf.engine.model.reasons import Reason
from kerf.engine.scheduling.matching.resources import total

MAX_STEPS = 90_000
"""Steps of a search, at most; as those of `sequential_search`."""
MIN_NODES, MAX_NODES = 2, 300
"""How many nodes a set has, empty ones apart."""
SCHEDULERS_ASKED = 2
"""How many variants of kube-scheduler `Rebinding` asks."""


class JointRemoval(Struct, frozen=True):
    """Commands that may all be carried out at once, if their pods leave in these eviction `waves`.

    `commands` is None if the search found none. `steps` is what the search took.
    """

    commands: ChosenCommands | None = None
    waves: tuple[int, ...] = ()
    steps: int = 0


def find_joint_removal(
    cluster: Cluster, known: NodeEligibility | None = None, *, steps: int = MAX_STEPS
) -> JointRemoval:
    """The cheapest set found. Where the budgets do not let all candidates go at once, there is no search.

    Equal clusters give equal sets. `known` is what `judge_nodes` says of the cluster, if that is known.
    """
    known = judge_nodes(cluster) if known is None else known
    empty = find_candidates(cluster, eligibility.emptiness, known=known)
    busy = find_candidates(cluster, eligibility.consolidation, known=known)
    if len(busy.chosen) < MIN_NODES or not _all_may_go(cluster, (*empty.chosen, *busy.chosen)):
        return JointRemoval()
    search = _Search(cluster, empty, busy, steps)
    return JointRemoval(search.run(), search.waves, min(steps, steps - search.left))


def _all_may_go(cluster: Cluster, candidates: Iterable[Candidate]) -> bool:
    """Whether the budgets let all candidates go at once."""
    counts: dict[str, int] = {}
    for candidate in candidates:
        counts[candidate.pool.name] = counts.get(candidate.pool.name, 0) + 1
    limits = [
        allowed_disruptions(cluster, reason) for reason in (DisruptionReason.EMPTY, DisruptionReason.UNDERUTILIZED)
    ]
    return all(limit.get(pool, 0) >= count for pool, count in counts.items() for limit in limits)


class _Search:
    """The search for one set."""

    def __init__(self, cluster: Cluster, empty: Candidates, busy: Candidates, steps: int) -> None:
        self._cluster = cluster
        self._empty, self._busy = empty, busy
        shapes, totals = cluster.shapes, pool_totals(cluster, busy.eligible)
        worth = [candidate for candidate in busy.chosen if approves(_removal(candidate), totals)]
        names = frozenset(candidate.name for candidate in busy.chosen)
        self._not_worth_it = names - {candidate.name for candidate in worth}
        self.waves = wave_grades(shapes[pod.shape] for candidate in worth for pod in candidate.pods)
        self._rebinding = Rebinding(cluster, self.waves)
        self._simulator = Simulator(cluster, most_claims=1)
        self._nothing = {pool_input.pool.name: 0 for pool_input in cluster.pools}
        self.left = steps
        self._needs = {
            candidate.name: total(shapes[pod.shape].requests for pod in candidate.pods) for candidate in worth
        }
        self._load = {
            candidate.name: weight(self._needs[candidate.name]) / max(candidate.price, MIN_SAVINGS)
            for candidate in worth
        }
        self._order = sorted(worth, key=lambda candidate: (self._load[candidate.name], candidate.name))[:MAX_NODES]
        self._idle = frozenset(candidate.name for candidate in empty.chosen)
        takers = [node for node in cluster.nodes if node.tracked and not node.marked and node.name not in self._idle]
        self._free = {node.name: node.place.available for node in takers}

    def run(self) -> ChosenCommands | None:
        if len(self._order) < MIN_NODES:
            return None
        going = self._with_others(self._prefix())
        while going and (better := self._with_dearer_node(going)) is not None:
            going = self._with_others(better)
        return self._commands(going) if going else None

    # ── the set ────────────────────────────────────────────────────────────────────────────────────────────────

    def _prefix(self) -> list[Candidate]:
        """The longest prefix of the order that bisection finds, if not all of it fits."""
        least, most = 0, len(self._order)
        if self._fits(self._order):
            return self._order
        while most - least > 1:
            middle = (least + most) // 2
            least, most = (middle, most) if self._fits(self._order[:middle]) else (least, middle)
        return self._order[:least]

    def _with_others(self, going: list[Candidate]) -> list[Candidate]:
        """The set with each further candidate that may go beside those before it."""
        names = {candidate.name for candidate in going}
        for candidate in self._order:
            if candidate.name not in names and self._fits([*going, candidate]):
                going = [*going, candidate]
        return going

    def _with_dearer_node(self, going: list[Candidate]) -> list[Candidate] | None:
        """The set with a dearer node in place of a cheaper one; None if there is no such pair."""
        for stays, goes in self._pairs(going):
            if self.left <= 0:
                return None
            changed = [*(candidate for candidate in going if candidate is not stays), goes]
            if self._fits(changed):
                return changed
        return None

    def _pairs(self, going: list[Candidate]) -> Iterator[tuple[Candidate, Candidate]]:
        """Pairs (node of the set, dearer node outside). The dearest and emptiest outside come first, for the cheapest
        and fullest of the set."""
        names = {candidate.name for candidate in going}
        kept = sorted(
            (candidate for candidate in self._order if candidate.name not in names),
            key=lambda candidate: -candidate.price,
        )
        cheap = sorted(going, key=lambda candidate: (candidate.price, -self._load[candidate.name], candidate.name))
        for goes in kept:
            yield from ((stays, goes) for stays in cheap if stays.price < goes.price - MIN_SAVINGS)

    def _fits(self, going: Sequence[Candidate]) -> bool:
        """Whether all pods have places on the nodes that stay, in the plan and as kube-scheduler would place them."""
        if not self._has_room(going):
            return False
        names = self._idle | {candidate.name for candidate in going}
        pods = sum(len(candidate.pods) for candidate in going)
        self.left -= STEPS_PER_CHECK * len(self._cluster.nodes) + SCHEDULERS_ASKED * STEPS_PER_POD * pods
        if self.left <= 0 or self._rebinding.unbound(names, ()):
            return False
        before = self._simulator.work
        outcome = self._simulator.without(names, affordable=self._nothing)
        self.left -= self._simulator.work - before
        return outcome.failure is None and not outcome.claims and not outcome.too_dear

    def _has_room(self, going: Sequence[Candidate]) -> bool:
        """Whether the nodes that stay have as much free as all pods ask for."""
        names = {candidate.name for candidate in going}
        free = [room for name, room in self._free.items() if name not in names]
        return all(
            sum(self._needs[name].get(resource, 0) for name in names)
            <= sum(max(0, room.get(resource, 0)) for room in free)
            for resource in RESOURCES
        )

    # ── what becomes of it ─────────────────────────────────────────────────────────────────────────────────────

    def _commands(self, going: list[Candidate]) -> ChosenCommands | None:
        whole = decide(self._simulator, [*self._empty.chosen, *going])
        if isinstance(whole, Reason):
            return None
        single = [
            replace(_removal(candidate), placements=placed(whole.placements, [candidate]))
            for candidate in sorted(going, key=lambda each: each.name)
        ]
        commands = ([removal(self._empty.chosen)] if self._empty.chosen else []) + single
        removed = self._idle | {candidate.name for candidate in going}
        price = math.fsum(prices_of_nodes(self._cluster, removed))
        takers = {placement.node for command in single for placement in command.placements}
        return ChosenCommands(tuple(commands), price, self._kept(removed, takers), self.left <= 0)

    def _kept(self, removed: frozenset[str], takers: set[str]) -> dict[str, Reason]:
        """Why each other node stays."""
        kept: dict[str, Reason] = {}
        for name in sorted(node.name for node in self._cluster.nodes if node.name not in removed):
            busy = self._busy.excluded.get(name)
            if busy is not None and busy.code == DisruptionReason.EMPTY:
                busy = self._empty.excluded.get(name)
            left = DisruptionCode.NOT_WORTH_IT if name in self._not_worth_it else DisruptionCode.LEFT_OVER
            kept[name] = busy or Reason.of(DisruptionCode.TAKES_PODS if name in takers else left)
        return kept


def _removal(candidate: Candidate) -> Command:
    """The command that removes this node without a replacement."""
    return Command(DisruptionReason.UNDERUTILIZED, (candidate,), savings=candidate.price)
