"""Simulations: what happens to the pods if some nodes go (D-87…D-97). The planner makes a plan without these nodes;
this module says whether the plan is good enough."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.disruption.cluster import Cluster, what_if
from kerf.engine.disruption.prepared_simulation import PreparedSimulations, suited
from kerf.engine.disruption.pricing import Market, market_of
from kerf.engine.model.disruption_reasons import DisruptionCode
from kerf.engine.model.labels import RESERVED
from kerf.engine.model.reasons import Reason
from kerf.engine.record.decisions import Placement
from kerf.engine.scheduling.plan import OpenedClaim, Plan
from kerf.engine.scheduling.planner import MAX_POOLS_FIRST, after_equals, plan, usable_pools
from kerf.engine.scheduling.problem.problem import PendingPod, Problem
from kerf.engine.scheduling.reasons import SchedulingCode

MAX_PODS_NAMED = 5
"""How many pods a reason names."""


class SimulationOutcome(Struct, frozen=True):
    """What a plan without the nodes launches and where it places pods. `failure` says why the nodes cannot go: pods
    that are not pending have no place (D-96). `too_dear`: it would launch a node of none of the affordable types."""

    claims: tuple[OpenedClaim, ...] = ()
    placements: tuple[Placement, ...] = ()
    failure: Reason | None = None
    too_dear: bool = False


STEPS_PER_PLAN, STEPS_PER_POD = 40, 2
"""Steps that a plan costs, and that placing one pod costs. Looking at a node costs one."""
BOUND_PODS_PER_STEP = 20
"""How many bound pods are counted for one step."""


class Simulator:
    """Simulations of one cluster.

    `work` counts the steps of all plans made: searches end by it, never by a clock. A plan that opens more than
    `most_claims` claims is broken off, since such an outcome would only be refused.
    """

    def __init__(self, cluster: Cluster, most_claims: float = math.inf, *, prepared: bool = True) -> None:
        """With `prepared`, what simulations share is compiled once: for many of them."""
        self.cluster = cluster
        self.work = 0
        self._most_claims = most_claims
        self._without_place: frozenset[str] | None = None
        self.decided: dict[tuple[str, ...], Any] = {}  # what `consolidation.decide` says of candidates, by their names
        self._suited = prepared and suited(cluster)
        self._asked: dict[bool, PreparedSimulations] = {}
        self._done: dict[tuple[frozenset[str], bool, bool, str], SimulationOutcome] = {}

    def market(self, pool: str) -> Market:
        """The offerings that a NodePool may use. Raises KeyError for an unknown NodePool."""
        given = next(pool_input for pool_input in self.cluster.pools if pool_input.pool.name == pool)
        base = self.cluster.base
        return market_of(given.catalogue, base.catalogues[given.catalogue], base.unavailable_to(given))

    @cached_property
    def other_pools_first(self) -> tuple[str, ...]:
        """The NodePools that simulations may have first (`Problem.first_pool`), besides those that are anyway."""
        return tuple(pool.name for pool in after_equals(self.cluster.pools))[:MAX_POOLS_FIRST]

    def without(
        self,
        names: Iterable[str],
        *,
        consolidating: bool = True,
        affordable: Mapping[str, int] | None = None,
        first_pool: str = "",
    ) -> SimulationOutcome:
        """The outcome without these nodes. With `consolidating`, nodes under consolidateAfter take no pods that move
        (D-93). `affordable`: the types, by NodePool, of which a replacement has to be; they follow from the names and
        the `first_pool` (as in `Problem`)."""
        key = frozenset(names), consolidating, affordable is not None, first_pool
        found = self._done.get(key)
        if found is None:
            found = self._done[key] = self._simulate(key[0], consolidating, affordable, first_pool)
        return found

    def _simulate(
        self, leaving: frozenset[str], consolidating: bool, affordable: Mapping[str, int] | None, first_pool: str
    ) -> SimulationOutcome:
        if not usable_pools(self.cluster.pools):
            return SimulationOutcome(failure=Reason.of(DisruptionCode.NO_USABLE_NODEPOOL))  # D-90
        planned, asked = self._plan(leaving, consolidating, affordable, first_pool)
        if planned.too_dear:
            return SimulationOutcome(too_dear=True)
        if len(planned.claims) > self._most_claims:
            return SimulationOutcome(planned.claims)
        failed = self._failed(planned, asked, leaving)
        if failed:
            return SimulationOutcome(failure=_no_place(failed))
        return SimulationOutcome(planned.claims, planned.placements)

    def _plan(
        self,
        leaving: frozenset[str],
        consolidating: bool,
        affordable: Mapping[str, int] | None = None,
        first_pool: str = "",
    ) -> tuple[Plan, tuple[PendingPod, ...]]:
        """The plan, and the pods that it is about. It uses reserved capacity while there is any; no pod waits for it
        (D-90)."""
        asked = self._simulations(consolidating)
        answer = None if asked is None else asked.plan(leaving, self._most_claims, affordable, first_pool)
        if answer is not None and not _short(answer.planned):
            self._charge(answer.planned, len(answer.asked), answer.nodes, answer.bound)
            return answer.planned, answer.asked
        problem = replace(what_if(self.cluster, leaving, respect_settling=consolidating), first_pool=first_pool)
        planned = self._planned(problem, affordable)
        if _short(planned):
            without_reserved = replace(problem, unavailable=problem.unavailable | {(RESERVED, "", "")})
            planned = self._planned(without_reserved, affordable)
        return planned, problem.pods

    def _simulations(self, consolidating: bool) -> PreparedSimulations | None:
        if not self._suited:
            return None
        asked = self._asked.get(consolidating)
        if asked is None:
            asked = self._asked[consolidating] = PreparedSimulations(self.cluster, consolidating=consolidating)
        return asked

    def homeless(self, names: Sequence[str]) -> list[PendingPod] | None:
        """The pods of these nodes that no other node takes; None if only a simulation can tell."""
        asked = self._simulations(consolidating=True)
        return None if asked is None else asked.homeless(names)

    def _planned(self, problem: Problem, affordable: Mapping[str, int] | None) -> Plan:
        planned = plan(problem, most_claims=self._most_claims, told=False, affordable=affordable)
        self._charge(planned, len(problem.pods), len(problem.nodes), len(problem.bound))
        return planned

    def _charge(self, planned: Plan, pods: int, nodes: int, bound: int) -> None:
        self.work += (
            STEPS_PER_PLAN + nodes + bound // BOUND_PODS_PER_STEP + STEPS_PER_POD * (pods - len(planned.truncated))
        )

    def _failed(self, planned: Plan, asked: Iterable[PendingPod], leaving: frozenset[str]) -> list[PendingPod]:
        """The pods without a place, by namespace and name; pending pods do not count (D-95, D-96)."""
        waiting, gone = self._elsewhere
        failed = {uid for group in (*planned.unplaced, *planned.ignored) for uid in group.pods} | set(planned.truncated)
        failed |= {
            uid
            for placement in planned.placements
            if placement.node in self._uninitialized
            for uid in placement.pods
            if uid not in waiting and uid not in gone
        }
        failed -= waiting
        if failed and leaving and self.cluster.live:
            failed -= self._without_place_anyway()
        return sorted((pod for pod in asked if pod.uid in failed), key=_key) if failed else []

    @cached_property
    def _elsewhere(self) -> tuple[frozenset[str], frozenset[str]]:
        """The pods (uids) that are pending, and those of nodes marked for deletion."""
        pending, displaced = self.cluster.pending, self.cluster.displaced
        return frozenset(pod.uid for pod in pending), frozenset(pod.uid for pod in displaced)

    @cached_property
    def _uninitialized(self) -> frozenset[str]:
        return frozenset(node.name for node in self.cluster.nodes if not node.initialized)

    def _without_place_anyway(self) -> frozenset[str]:
        """Pods of nodes marked for deletion that have no place although nothing else moves: they hold up no move."""
        if self._without_place is None:
            planned, _ = self._plan(frozenset(), True)
            self._without_place = frozenset(uid for group in planned.unplaced for uid in group.pods)
        return self._without_place


def _key(pod: PendingPod) -> str:
    return f"{pod.namespace}/{pod.name}"


def _no_place(failed: Sequence[PendingPod]) -> Reason:
    """Why the nodes stay: for pods that have to run beside others, what keeps these (D-88)."""
    together = {_key(pod): pod.beside for pod in failed if pod.beside is not None}
    if not together:
        return Reason.of(
            DisruptionCode.NO_PLACE, count=len(failed), pods=[_key(pod) for pod in failed[:MAX_PODS_NAMED]]
        )
    return Reason.of(
        DisruptionCode.NO_PLACE_BESIDE,
        count=len(together),
        pods=list(together)[:MAX_PODS_NAMED],
        budgets=sorted({budget for beside in together.values() for budget in beside.budgets}),
        where=sorted({domain for beside in together.values() for domain in beside.where}),
    )


def _short(planned: Plan) -> bool:
    """Whether a pod waits for reserved capacity."""
    return any(
        reason.code == SchedulingCode.RESERVATION for unplaced in planned.unplaced for reason in unplaced.reasons
    )
