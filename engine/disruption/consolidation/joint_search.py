"""One set of nodes that is chosen as a whole, where more nodes may go than one command after the other would find.

`sequential_search` chooses commands one after the other. There a node that takes pods of one command is no candidate of
another, so which nodes stay is settled by where the first pods come to. A set that is chosen as a whole is judged by
the nodes that stay in the end: they take all its pods. So the cluster gets cheaper, with fewer evictions and without
moving a pod twice.

The set starts with the nodes that have the fewest pods for their price, but for those that cannot go at all. Then it
grows by further nodes, and nodes that are worth more replace others in it. Each node goes by a command of its own;
nodes that a Balanced NodePool finds not worth it are left out. The search ends after a number of steps.

Where the disruption budgets let all candidates go at once, the pods leave in eviction waves. Otherwise the nodes go in
rounds, as the budgets have room.
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
from kerf.engine.disruption.consolidation.budget_room import BudgetRoom
from kerf.engine.disruption.consolidation.commands import Command, decide, placed, removal
from kerf.engine.disruption.consolidation.rankings import fleet_of, net_savings, price_of_eviction, prices_of_nodes
from kerf.engine.disruption.consolidation.replacement_bound import RESOURCES
from kerf.engine.disruption.consolidation.sequential_search import MIN_SAVINGS, STEPS_PER_CHECK, ChosenCommands
from kerf.engine.disruption.consolidation.young_pods import settled_at, too_soon
from kerf.engine.disruption.eligibility import (
    Candidate,
    Candidates,
    NodeEligibility,
    find_candidates,
    judge_nodes,
    total_price,
)
from kerf.engine.disruption.rebinding import Rebinding
from kerf.engine.disruption.simulation import STEPS_PER_POD, Simulator
from kerf.engine.lifecycle.drain.eviction_waves import wave_grades
from kerf.engine.lifecycle.step import soonest
from kerf.engine.model.disruption_reasons import DisruptionCode, DisruptionReason
from kerf.engine.model.kubernetes.pods import Resources
from kerf.engine.model.reasons import Reason
from kerf.engine.scheduling.matching.resources import total

MAX_STEPS = 90_000
"""Steps of a search, at most; as those of `sequential_search`."""
MIN_NODES, MAX_NODES = 2, 300
"""How many nodes a set has, empty ones apart."""
MAX_TAKEN_OUT = 20
"""How many nodes that cannot go at all a search passes over in one order."""
SCHEDULERS_ASKED = 2
"""How many variants of kube-scheduler `Rebinding` asks."""


class JointRemoval(Struct, frozen=True):
    """Commands that belong to one set. All may be carried out at once, if their pods leave in these eviction `waves`;
    or they go `in_rounds`, as the budgets have room.

    `commands` is None if the search found none. `steps` is what the search took.
    """

    commands: ChosenCommands | None = None
    waves: tuple[int, ...] = ()
    steps: int = 0
    in_rounds: bool = False


def find_joint_removal(
    cluster: Cluster, known: NodeEligibility | None = None, *, rounds: int = 1, steps: int = MAX_STEPS
) -> JointRemoval:
    """The set found that is worth most: by its savings, less what its evictions count as.

    Where the budgets do not let all candidates go at once, the set has more nodes than they do, and at most `rounds`
    times as many. Equal clusters give equal sets. `known` is what `judge_nodes` says of the cluster, if that is known.
    """
    known = judge_nodes(cluster) if known is None else known
    empty = find_candidates(cluster, eligibility.emptiness, known=known)
    busy = find_candidates(cluster, eligibility.consolidation, known=known)
    if len(busy.chosen) < MIN_NODES:
        return JointRemoval()
    at_once = _all_may_go(cluster, (*empty.chosen, *busy.chosen))
    if not at_once and rounds == 1:
        return JointRemoval()
    search = _Search(cluster, empty, busy, steps, None if at_once else BudgetRoom(cluster, rounds))
    return JointRemoval(search.run(), search.waves, min(steps, steps - search.left), not at_once)


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
    """The search for one set. Without `room` all candidates may go at once."""

    def __init__(
        self, cluster: Cluster, empty: Candidates, busy: Candidates, steps: int, room: BudgetRoom | None
    ) -> None:
        self._cluster = cluster
        self._empty, self._busy = empty, busy
        totals = pool_totals(cluster, busy.eligible)
        approved = [candidate for candidate in busy.chosen if approves(_removal(candidate), totals)]
        order = sorted(approved, key=lambda one: (len(one.pods) / max(one.price, MIN_SAVINGS), one.name))
        self._idle, self._least, allowed = list(empty.chosen), 0, order
        if room is not None:
            self._idle = room.for_all(empty.chosen, DisruptionReason.EMPTY)
            room.take(self._idle)
            self._least = 1 + len(room.for_one(order, DisruptionReason.UNDERUTILIZED, ()))
            allowed = room.for_all(order, DisruptionReason.UNDERUTILIZED)
        self._order = allowed[:MAX_NODES]
        first = frozenset(one.name for one in self._order)
        self._further = [one for one in order if one.name not in first]
        self._stay: dict[str, Candidate] = {}  # what would not even go alone
        self._without_room = frozenset(one.name for one in empty.chosen).difference(one.name for one in self._idle)
        self._fleet = fleet_of(cluster)
        self._young: dict[str, Reason] = {}  # what stays for now because of its young pods
        eviction_price = price_of_eviction(self._fleet.price_of_pod)
        self._net_savings = {one.name: net_savings(_removal(one), eviction_price) for one in approved}
        moving = (cluster.shapes[pod.shape] for one in approved for pod in one.pods)
        self.waves = wave_grades(moving) if room is None else ()
        self._gone = frozenset(candidate.name for candidate in empty.chosen)
        self._rooms = self._free_on_nodes()
        self._free = [sum(rooms[axis] for rooms in self._rooms.values()) for axis in range(len(RESOURCES))]
        self._sizes: dict[str, list[int]] = {}
        self._rebinding = Rebinding(cluster, self.waves)
        self._simulator = Simulator(cluster, most_claims=1)
        self._nothing = {pool_input.pool.name: 0 for pool_input in cluster.pools}
        self.left = steps

    def _free_on_nodes(self) -> dict[str, list[int]]:
        """What is free on each node that takes pods, of each of `RESOURCES`."""
        nodes = self._cluster.nodes
        takers = [node for node in nodes if node.tracked and not node.marked and node.name not in self._gone]
        return {node.name: [max(0, node.place.available.get(each, 0)) for each in RESOURCES] for node in takers}

    def _needs(self, candidate: Candidate) -> Resources:
        return total(self._cluster.shapes[pod.shape].requests for pod in candidate.pods)

    def _size(self, candidate: Candidate) -> list[int]:
        """Of each of `RESOURCES`: what is less free without this node (its own room, and what its pods need)."""
        known = self._sizes.get(candidate.name)
        if known is None:
            needs = self._needs(candidate)
            own = self._rooms.get(candidate.name, [0] * len(RESOURCES))
            known = [room + needs.get(each, 0) for room, each in zip(own, RESOURCES, strict=True)]
            self._sizes[candidate.name] = known
        return known

    def run(self) -> ChosenCommands | None:
        if len(self._order) < max(MIN_NODES, self._least):
            return None
        going = self._prefix()
        if len(going) < self._least:  # a node with few pods may take the room of many others
            self._order.sort(key=lambda one: (self._share_of_room(one) / max(one.price, MIN_SAVINGS), one.name))
            going = self._prefix()
        if len(going) < self._least:
            return None
        while (better := next(filter(self._fits, self._changed(going)), None)) is not None:
            going = better
        settled = self._settled(going)
        if len(settled) < max(1, self._least) or (len(settled) < len(going) and not self._fits(settled)):
            return None
        return self._commands(settled)

    def _settled(self, going: list[Candidate]) -> list[Candidate]:
        """The set without nodes whose young pods cost too much once all of it is carried out (`young_pods`)."""
        while True:
            saved = total_price((*self._idle, *going))
            self._young |= {
                one.name: why
                for one in going
                if (why := too_soon(one.price, (one,), self._fleet.cheaper_by(saved - one.price), self._cluster.now))
            }
            settled = [one for one in going if one.name not in self._young]
            if len(settled) == len(going):
                return settled
            going = settled

    # ── the set ────────────────────────────────────────────────────────────────────────────────────────────────

    def _prefix(self) -> list[Candidate]:
        """The longest prefix of the order that fits, without the nodes that would not fit alone: others take their
        places in the order."""
        going = self._longest_prefix()
        for _ in range(MAX_TAKEN_OUT):
            if len(going) == len(self._order) or self.left <= 0:
                break
            stays = self._order[len(going)]
            if going and (self._fits([stays]) or self.left <= 0):  # without others it was asked as a prefix
                break
            self._take_out(stays)
            going = self._longest_prefix(len(going))
        return going

    def _take_out(self, stays: Candidate) -> None:
        self._stay[stays.name] = stays
        self._order.remove(stays)
        following = next((one for one in self._further if one.pool.name == stays.pool.name), None)
        if following is not None:
            self._further.remove(following)
            self._order.append(following)

    def _longest_prefix(self, least: int = 0) -> list[Candidate]:
        """The longest prefix that is found by steps that double, and then by bisection, if not all of the order fits.
        One of `least` nodes does."""
        most = len(self._order)
        if not self._order or self._fits(self._order):
            return list(self._order)
        step = 1
        while least + step < most:
            if not self._fits(self._order[: least + step]):
                most = least + step
                break
            least, step = least + step, 2 * step
        while most - least > 1:
            middle = (least + most) // 2
            least, most = (middle, most) if self._fits(self._order[:middle]) else (least, middle)
        return self._order[:least]

    def _changed(self, going: list[Candidate]) -> Iterator[list[Candidate]]:
        """Sets that are worth more: with a further node, or with one in place of another. Nodes outside that are worth
        most come first, for those of the set that are worth least."""
        net, names = self._net_savings, {candidate.name for candidate in going}
        outside = [candidate for candidate in self._order if candidate.name not in names]
        inside = sorted(going, key=lambda one: (net[one.name], one.name))
        for goes in sorted(outside, key=lambda one: (-net[one.name], one.name)):
            if net[goes.name] > MIN_SAVINGS:
                yield [*going, goes]
            for stays in inside:
                if self.left <= 0:
                    return
                if net[goes.name] - net[stays.name] <= MIN_SAVINGS:
                    break
                yield [*(candidate for candidate in going if candidate is not stays), goes]

    def _fits(self, going: Sequence[Candidate]) -> bool:
        """Whether all pods have places on the nodes that stay, in the plan and as kube-scheduler would place them."""
        if not self._has_room(going):
            return False
        names = self._gone | {candidate.name for candidate in going}
        pods = sum(len(candidate.pods) for candidate in going)
        asked = SCHEDULERS_ASKED if self.waves else 1
        self.left -= STEPS_PER_CHECK * len(self._cluster.nodes) + asked * STEPS_PER_POD * pods
        if self.left <= 0 or self._rebinding.unbound(names, ()):
            return False
        before = self._simulator.work
        outcome = self._simulator.without(names, affordable=self._nothing)
        self.left -= self._simulator.work - before
        return outcome.failure is None and not outcome.claims and not outcome.too_dear

    def _share_of_room(self, candidate: Candidate) -> float:
        """How much of what is free its pods take, by the resource of which that is most."""
        needs = self._needs(candidate)
        return max(needs.get(each, 0) / max(1, free) for each, free in zip(RESOURCES, self._free, strict=True))

    def _has_room(self, going: Iterable[Candidate]) -> bool:
        """Whether the nodes that stay have as much free as all pods ask for."""
        sizes = [self._size(candidate) for candidate in going]
        return all(sum(used) <= free for used, free in zip(zip(*sizes, strict=True), self._free, strict=True))

    # ── what becomes of it ─────────────────────────────────────────────────────────────────────────────────────

    def _commands(self, going: list[Candidate]) -> ChosenCommands | None:
        whole = decide(self._simulator, [*self._empty.chosen, *going])
        if isinstance(whole, Reason):
            return None
        single = [
            replace(_removal(candidate), placements=placed(whole.placements, [candidate]))
            for candidate in sorted(going, key=lambda each: each.name)
        ]
        commands = ([removal(self._idle)] if self._idle else []) + single
        removed = frozenset(candidate.name for candidate in (*self._idle, *going))
        price = math.fsum(prices_of_nodes(self._cluster, removed))
        takers = {placement.node for command in single for placement in command.placements}
        kept, now = self._kept(removed, takers), self._cluster.now
        young = [node for node in self._cluster.nodes if kept.get(node.name) in self._young.values()]
        settled = soonest(*(settled_at((node,), kept[node.name], now) for node in young))
        return ChosenCommands(tuple(commands), price, kept, self.left <= 0, settled)

    def _kept(self, removed: frozenset[str], takers: set[str]) -> dict[str, Reason]:
        """Why each other node stays."""
        kept: dict[str, Reason] = {}
        further = frozenset(one.name for one in self._further)
        for node in sorted(self._cluster.nodes, key=lambda each: each.name):
            name = node.name
            if name in removed:
                continue
            busy = self._busy.excluded.get(name)
            if busy is not None and busy.code == DisruptionReason.EMPTY:
                busy = self._empty.excluded.get(name)
            if busy is not None:
                kept[name] = busy
            elif name in self._young:
                kept[name] = self._young[name]
            elif name in takers:
                kept[name] = Reason.of(DisruptionCode.TAKES_PODS)
            elif name in self._stay:
                kept[name] = self._why_not_alone(self._stay[name])
            elif name in self._without_room or (name in further and len(self._order) < MAX_NODES):
                kept[name] = Reason.of(DisruptionCode.BUDGET, nodepool=node.node_pool)
            elif name in further:
                kept[name] = Reason.of(DisruptionCode.SEARCH_ENDED)
            elif self._net_savings.get(name, 0.0) <= 0:
                kept[name] = Reason.of(DisruptionCode.NOT_WORTH_IT)
            else:
                kept[name] = Reason.of(DisruptionCode.LEFT_OVER)
        return kept

    def _why_not_alone(self, candidate: Candidate) -> Reason:
        """Why a node does not go although nothing else does. Another search may find a replacement for it."""
        why = decide(self._simulator, [candidate])
        if isinstance(why, Reason):
            return why
        return Reason.of(DisruptionCode.SEARCH_ENDED if why.replacements else DisruptionCode.LEFT_OVER)


def _removal(candidate: Candidate) -> Command:
    """The command that removes this node without a replacement."""
    return Command(DisruptionReason.UNDERUTILIZED, (candidate,), savings=candidate.price)
