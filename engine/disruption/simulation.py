"""What happens to the pods if some nodes go (D-87…D-97): the planner is asked, and its plan judged."""

from __future__ import annotations

import math
from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.disruption.cluster import Cluster, moving_pods, what_if
from kerf.engine.disruption.pricing import Market
from kerf.engine.model.labels import RESERVED
from kerf.engine.model.reasons import Reason
from kerf.engine.record.decisions import Placement
from kerf.engine.scheduling.plan import OpenedClaim, Plan
from kerf.engine.scheduling.planner import plan, usable_pools
from kerf.engine.scheduling.problem import Problem
from kerf.engine.scheduling.reasons import Code

SHOWN = 5
"""How many pods a failure names."""


class Outcome(Struct, frozen=True):
    """`failure` says why the nodes cannot go: pods that are not pending have no place (D-96)."""

    problem: Problem
    claims: tuple[OpenedClaim, ...] = ()
    placements: tuple[Placement, ...] = ()
    failure: Reason | None = None


A_PLAN, A_POD = 40, 2
"""What a plan costs besides looking at each node, and what it costs to place a pod; to look at a node is one."""
BOUND_PODS = 20
"""So many pods are counted where they are for the cost of a node."""


class Simulator:
    """Simulations of one cluster. `work` is what the plans cost that were made: searches end by it, never by a clock.
    `most_claims`: a plan that opens more is broken off there, for such an outcome is only refused."""

    def __init__(self, cluster: Cluster, most_claims: float = math.inf) -> None:
        self.cluster = cluster
        self.work = 0
        self._most_claims = most_claims
        self._markets: dict[str, Market] = {}
        self._without_place: frozenset[str] | None = None
        self._done: dict[tuple[frozenset[str], bool], Outcome] = {}

    def following(self, cluster: Cluster) -> Simulator:
        """For a cluster that a command of this one has led to."""
        made = Simulator(cluster, self._most_claims)
        if cluster.base.unavailable == self.cluster.base.unavailable:
            made._markets = self._markets
        return made

    def market(self, pool: str) -> Market:
        """The offerings that a NodePool may use. Raises KeyError for a pool that there is none of."""
        digest = next(each.catalogue for each in self.cluster.pools if each.pool.name == pool)
        found = self._markets.get(digest)
        if found is None:
            base = self.cluster.base
            found = self._markets[digest] = Market(digest, base.catalogues[digest], base.unavailable)
        return found

    def without(self, names: Iterable[str], *, consolidating: bool = True) -> Outcome:
        """The plan for the cluster without these nodes. `consolidating`: nodes under consolidateAfter are no places for
        the pods that move (D-93)."""
        key = frozenset(names), consolidating
        found = self._done.get(key)
        if found is None:
            found = self._done[key] = self._simulate(*key)
        return found

    def _simulate(self, leaving: frozenset[str], consolidating: bool) -> Outcome:
        problem = what_if(self.cluster, leaving, respect_settling=consolidating)
        if not usable_pools(problem.pools):
            return Outcome(problem, failure=Reason("no-nodepool"))  # D-90
        planned = self._plan(problem)
        if len(planned.claims) > self._most_claims:
            return Outcome(problem, planned.claims)
        failed = self._failed(problem, planned, leaving)
        if failed:
            return Outcome(problem, failure=Reason("no-place", {"count": len(failed), "pods": failed[:SHOWN]}))
        return Outcome(problem, planned.claims, planned.placements)

    def _plan(self, problem: Problem) -> Plan:
        """Reserved capacity is used while there is any, and no pod waits for it (D-90)."""
        planned = self._planned(problem)
        short = any(each.code == Code.RESERVATION for unplaced in planned.unplaced for each in unplaced.reasons)
        if not short:
            return planned
        return self._planned(replace(problem, unavailable=problem.unavailable | {(RESERVED, "", "")}))

    def _planned(self, problem: Problem) -> Plan:
        planned = plan(problem, most_claims=self._most_claims)
        tried = len(problem.pods) - len(planned.truncated)
        self.work += A_PLAN + len(problem.nodes) + len(problem.bound) // BOUND_PODS + A_POD * tried
        return planned

    def _failed(self, problem: Problem, planned: Plan, leaving: frozenset[str]) -> list[str]:
        """The pods that have no place, pending ones apart (D-95, D-96), as namespace/name."""
        waiting = frozenset(pod.uid for pod in self.cluster.pending)
        _, gone = moving_pods(self.cluster, frozenset())
        uninitialized = frozenset(node.name for node in problem.nodes if not node.initialized)
        may_wait_there = waiting | frozenset(pod.uid for pod in gone)
        failed = {uid for each in (*planned.unplaced, *planned.ignored) for uid in each.pods} | set(planned.truncated)
        failed |= {
            uid
            for each in planned.placements
            if each.node in uninitialized
            for uid in each.pods
            if uid not in may_wait_there
        }
        names = {pod.uid: f"{pod.namespace}/{pod.name}" for pod in problem.pods}
        failed -= waiting
        if failed and leaving and self.cluster.live:
            failed -= self._homeless()
        return sorted(names[uid] for uid in failed)

    def _homeless(self) -> frozenset[str]:
        """Pods of nodes marked for deletion that have no place although nothing else moves: they hold up nobody."""
        if self._without_place is None:
            problem = what_if(self.cluster, frozenset(), respect_settling=True)
            planned = self._plan(problem)
            self._without_place = frozenset(uid for each in planned.unplaced for uid in each.pods)
        return self._without_place
