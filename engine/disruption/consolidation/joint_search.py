"""Nodes that go together where the budgets let all of them go: one set, judge_nodes as a whole.

Where commands are chosen one after the other (`moves`), a node that takes pods of one is no candidate of another, and
none may build on the order in which pods leave. A set that goes at once knows both: its pods have their places on what
stays in the end, and they leave by turns. So it comes down to a cheaper fleet, without moving a pod twice.

The set grows from the nodes that hold the least for what they cost; then dearer ones change places with cheaper ones
in it. Each goes by a command of its own: those whose NodePool is Balanced and finds that not worth it are left out.
The search ends by the steps done.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.disruption import eligibility
from kerf.engine.disruption.budgets import allowed_disruptions
from kerf.engine.disruption.cluster import Cluster
from kerf.engine.disruption.consolidation.balanced_policy import approves, pool_totals, price_of
from kerf.engine.disruption.consolidation.commands import Command, decide, removal
from kerf.engine.disruption.consolidation.replacement_bound import RESOURCES
from kerf.engine.disruption.consolidation.sequential_search import MIN_SAVINGS, STEPS_PER_CHECK, ChosenCommands, placed
from kerf.engine.disruption.eligibility import Candidate, Candidates, NodeEligibility, find_candidates, judge_nodes
from kerf.engine.disruption.rebinding import Rebinding
from kerf.engine.disruption.simulation import STEPS_PER_POD, Simulator
from kerf.engine.lifecycle.drain.eviction_waves import wave_grades, weight
from kerf.engine.model.disruption_reasons import DisruptionCode, DisruptionReason
from kerf.engine.model.reasons import Reason
from kerf.engine.scheduling.matching.resources import total

MAX_STEPS = 90_000
"""What a search may cost, as that for moves (`moves.WORK`)."""
MIN_NODES, MAX_NODES = 2, 300
"""Nodes of a set, but for empty ones."""
SCHEDULERS_ASKED = 2
"""So many schedulers are asked (`Rebinding`)."""


class JointRemoval(Struct, frozen=True):
    """`moves` may all be made at once, if the pods of their nodes leave by these `turns`; None if nothing was found for
    the `steps` that was done."""

    commands: ChosenCommands | None = None
    waves: tuple[int, ...] = ()
    steps: int = 0


def find_joint_removal(
    cluster: Cluster, known: NodeEligibility | None = None, *, steps: int = MAX_STEPS
) -> JointRemoval:
    """The cheapest set found; nothing is looked for where the budgets do not let all candidates go at once. Equal
    clusters give equal sets. `known`: what `judge_nodes` says of the cluster, if that is known."""
    known = judge_nodes(cluster) if known is None else known
    empty = find_candidates(cluster, eligibility.emptiness, known=known)
    busy = find_candidates(cluster, eligibility.consolidation, known=known)
    if len(busy.chosen) < MIN_NODES or not _open(cluster, (*empty.chosen, *busy.chosen)):
        return JointRemoval()
    search = _Search(cluster, empty, busy, steps)
    return JointRemoval(search.run(), search.waves, min(steps, steps - search.left))


def _open(cluster: Cluster, candidates: Iterable[Candidate]) -> bool:
    """Whether the budgets let all of them go at once."""
    counts: dict[str, int] = {}
    for candidate in candidates:
        counts[candidate.pool.name] = counts.get(candidate.pool.name, 0) + 1
    limits = [
        allowed_disruptions(cluster, reason) for reason in (DisruptionReason.EMPTY, DisruptionReason.UNDERUTILIZED)
    ]
    return all(limit.get(pool, 0) >= count for pool, count in counts.items() for limit in limits)


class _Search:
    def __init__(self, cluster: Cluster, empty: Candidates, busy: Candidates, steps: int) -> None:
        self._cluster = cluster
        self._empty, self._busy = empty, busy
        shapes, totals = cluster.shapes, pool_totals(cluster, busy.eligible)
        worth = [candidate for candidate in busy.chosen if approves(_alone(candidate), totals)]
        self._vain = frozenset(candidate.name for candidate in busy.chosen) - {candidate.name for candidate in worth}
        self.waves = wave_grades(shapes[pod.shape] for candidate in worth for pod in candidate.pods)
        self._rebinding = Rebinding(cluster, self.waves)
        self._simulator = Simulator(cluster, most_claims=1)
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
        while going and (better := self._exchanged(going)) is not None:
            going = self._with_others(better)
        return self._together(going) if going else None

    # ── the set ────────────────────────────────────────────────────────────────────────────────────────────────

    def _prefix(self) -> list[Candidate]:
        """The longest one that bisection finds, if not all of them fit."""
        least, most = 0, len(self._order)
        if self._fits(self._order):
            return self._order
        while most - least > 1:
            middle = (least + most) // 2
            least, most = (middle, most) if self._fits(self._order[:middle]) else (least, middle)
        return self._order[:least]

    def _with_others(self, going: list[Candidate]) -> list[Candidate]:
        """And each that may go beside those before it."""
        names = {candidate.name for candidate in going}
        for candidate in self._order:
            if candidate.name not in names and self._fits([*going, candidate]):
                going = [*going, candidate]
        return going

    def _exchanged(self, going: list[Candidate]) -> list[Candidate] | None:
        """With a dearer node in the place of a cheaper one; None if there is no such pair."""
        for stays, goes in self._pairs(going):
            if self.left <= 0:
                return None
            changed = [*(candidate for candidate in going if candidate is not stays), goes]
            if self._fits(changed):
                return changed
        return None

    def _pairs(self, going: list[Candidate]) -> Iterator[tuple[Candidate, Candidate]]:
        """(one of the set, a dearer one): the dearest and emptiest first, for the cheapest and fullest."""
        names = {candidate.name for candidate in going}
        kept = sorted(
            (candidate for candidate in self._order if candidate.name not in names),
            key=lambda candidate: -candidate.price,
        )
        cheap = sorted(going, key=lambda candidate: (candidate.price, -self._load[candidate.name], candidate.name))
        for goes in kept:
            yield from ((each, goes) for each in cheap if each.price < goes.price - MIN_SAVINGS)

    def _fits(self, going: Sequence[Candidate]) -> bool:
        """Whether all pods have places on what stays, by the plan and by the scheduler's own way."""
        if not self._roomy(going):
            return False
        names = self._idle | {candidate.name for candidate in going}
        cost = STEPS_PER_CHECK * len(self._cluster.nodes) + SCHEDULERS_ASKED * STEPS_PER_POD * sum(
            len(candidate.pods) for candidate in going
        )
        self.left -= cost
        if self.left <= 0 or self._rebinding.unbound(names, ()):
            return False
        before = self._simulator.work
        outcome = self._simulator.without(names)
        self.left -= self._simulator.work - before
        return outcome.failure is None and not outcome.claims

    def _roomy(self, going: Sequence[Candidate]) -> bool:
        """Whether what stays has as much free as all their pods ask for."""
        names = {candidate.name for candidate in going}
        free = [room for name, room in self._free.items() if name not in names]
        return all(
            sum(self._needs[name].get(each, 0) for name in names) <= sum(max(0, room.get(each, 0)) for room in free)
            for each in RESOURCES
        )

    # ── what becomes of it ─────────────────────────────────────────────────────────────────────────────────────

    def _together(self, going: list[Candidate]) -> ChosenCommands | None:
        whole = decide(self._simulator, [*self._empty.chosen, *going])
        if isinstance(whole, Reason):
            return None
        single = [
            replace(_alone(candidate), placements=placed(whole.placements, [candidate]))
            for candidate in sorted(going, key=lambda each: each.name)
        ]
        commands = ([removal(self._empty.chosen)] if self._empty.chosen else []) + single
        removed = self._idle | {candidate.name for candidate in going}
        types = self._cluster.types()
        stay = [node for node in self._cluster.nodes if node.name not in removed and not node.marked]
        price = math.fsum(price_of(node, types) for node in stay)
        takers = {placement.node for command in single for placement in command.placements}
        return ChosenCommands(tuple(commands), price, self._kept(removed, takers), self.left <= 0)

    def _kept(self, removed: frozenset[str], takers: set[str]) -> dict[str, Reason]:
        """Why each other node stays."""
        kept: dict[str, Reason] = {}
        for name in sorted(node.name for node in self._cluster.nodes if node.name not in removed):
            busy = self._busy.excluded.get(name)
            if busy is not None and busy.code == DisruptionReason.EMPTY:
                busy = self._empty.excluded.get(name)
            left = DisruptionCode.NOT_WORTH_IT if name in self._vain else DisruptionCode.LEFT_OVER
            kept[name] = busy or Reason.of(DisruptionCode.TAKES_PODS if name in takers else left)
        return kept


def _alone(candidate: Candidate) -> Command:
    """That it goes, without a replacement."""
    return Command(DisruptionReason.UNDERUTILIZED, (candidate,), savings=candidate.price)
