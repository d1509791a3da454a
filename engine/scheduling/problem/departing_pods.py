"""Which pods of nodes on their way out are planned for now, and which later (S-46…S-50, D-89, D-132).

A pod that may not be evicted yet is planned for so long before it leaves as a new node takes to be in service. Launched
at once, its node would stand empty for hours, expire before the pod comes, and be launched again.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.disruption_reasons import DisruptionCode
from kerf.engine.model.durations import format_time
from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.model.reasons import Reason
from kerf.engine.nodeclaim.claim import NodeClaim
from kerf.engine.record.decisions import Unplaced
from kerf.engine.scheduling.pods.evictability import FOREVER, EvictionRules, forced_at, protected_until
from kerf.engine.scheduling.problem.problem import PendingPod
from kerf.engine.scheduling.reasons import SchedulingCode, reason
from kerf.engine.state.provisioning_window import going_nodes, going_pods, is_going
from kerf.engine.state.state import Facts, State

MIN_LEAD = 300_000
"""So long (ms) before a pod leaves it is planned for at the least. Nodes take a minute or two to be in service, and a
launch may fail and be tried elsewhere."""
MAX_LEAD = 900_000
"""So long (ms) at the most. A node that takes longer has missed its registration (L-179)."""


class LaterPods(Struct, frozen=True):
    """The pods that are not planned for yet, with the reasons. `until`: when the first of them is (ms since the epoch);
    0 if time alone brings none."""

    groups: tuple[Unplaced, ...] = ()
    until: int = 0


class _Leaving(Struct, frozen=True):
    """A pod of a going node. `at`: when it leaves at the latest; `planned_at`: from when on it is planned for. Both are
    ms since the epoch, FOREVER if only a change lets it go. `budgets` keep it; if there are none, do-not-disrupt does.
    """

    pod: Pod
    node: str
    at: int
    planned_at: int
    budgets: tuple[str, ...] = ()


def departing_pods(state: State, now: int) -> dict[str, list[Pod]]:
    """The pods that are planned for at `now`, by going node in the order of `going_nodes`, then by namespace and
    name."""
    pods: dict[str, list[Pod]] = {}
    for leaving in _Departures(state, now, _going(state)).all():
        if leaving.planned_at <= now:
            pods.setdefault(leaving.node, []).append(leaving.pod)
    return pods


def later_pods(state: State, now: int) -> LaterPods:
    """The pods of going nodes that are planned for only later."""
    later = [leaving for leaving in _Departures(state, now, _going(state)).all() if leaving.planned_at > now]
    groups: dict[tuple[object, ...], list[_Leaving]] = {}
    for leaving in later:
        groups.setdefault((leaving.node, leaving.at, leaving.planned_at, leaving.budgets), []).append(leaving)
    return LaterPods(
        tuple(Unplaced(tuple(leaving.pod.uid for leaving in group), (_reason(group[0]),)) for group in groups.values()),
        min((leaving.planned_at for leaving in later if leaving.planned_at < FOREVER), default=0),
    )


def kept_pods(claim: NodeClaim, planned: Container[str], state: State, now: int) -> Reason | None:
    """What keeps pods (`planned`, uids) on a node whose drain is about to begin, so that it would be in vain: none of
    them leaves within MIN_LEAD, or one never does and no deadline ends the drain. None if it may begin."""
    pods = [pod for pod in going_pods(state, claim.node) if pod.uid in planned]
    grace = claim.termination_grace_period
    draining = replace(claim, deadline=None if grace is None else now + grace)
    found = _Departures(state, now, [(claim.node, draining, pods)]).all()
    later = [leaving for leaving in found if leaving.at > now + MIN_LEAD]
    never = [leaving for leaving in later if leaving.at == FOREVER]
    if not later or (len(later) < len(found) and not never):
        return None
    first = (never or later)[0]
    if first.budgets:
        code = DisruptionCode.POD_BUDGET_EXHAUSTED if len(first.budgets) == 1 else DisruptionCode.SEVERAL_POD_BUDGETS
        return Reason.of(code, pod=first.pod.key, budgets=list(first.budgets))
    return Reason.of(DisruptionCode.POD_DO_NOT_DISRUPT, pod=first.pod.key)


def _going(state: State) -> list[tuple[str, NodeClaim | None, list[Pod]]]:
    """The nodes on their way out, each with its claim and the pods that will need another place."""
    going = [*going_nodes(state), *((node, None) for node in _left_behind(state))]
    return [(node, claim, going_pods(state, node)) for node, claim in going]


def _left_behind(state: State) -> list[str]:
    """The Nodes that are gone while pods of theirs are not, which a plan has a place for already. The pod garbage
    collector removes these within a minute, and their successors take that place."""
    facts = state.facts
    nodes = {facts.pods[uid].node for uid in facts.targets if uid in facts.pods}
    return sorted(node for node in nodes if node and node not in facts.nodes and not is_going(state, node))


def waiting_nodes(state: State, now: int) -> dict[str, int]:
    """The going nodes (by name) whose pods stay for as long as PodDisruptionBudgets keep them: no interruption was
    announced, and no deadline is near. Until when that is so (ms since the epoch), FOREVER without a deadline."""
    lead = launch_lead(state.facts)
    until = {
        node: FOREVER if claim is None or claim.deadline is None else claim.deadline - lead
        for node, claim in going_nodes(state)
        if claim is None or not claim.interruption
    }
    return {node: at for node, at in until.items() if at > now}


def held_until(pods: Iterable[PendingPod], state: State, now: int) -> int:
    """When the first of these pods no longer has to be beside held ones (ms since the epoch); 0 if time brings none."""
    nodes = {node for pod in pods if pod.beside is not None for node in pod.beside.nodes}
    found = (at for node, at in waiting_nodes(state, now).items() if node in nodes) if nodes else ()
    return min((at for at in found if at < FOREVER), default=0)


def launch_lead(facts: Facts) -> int:
    """How long before a pod leaves it is planned for (ms): as long as the slowest of today's claims took from its
    request to its initialization, but at least MIN_LEAD and at most MAX_LEAD."""
    took = [claim.initialized - claim.created for claim in facts.claims.values() if claim.initialized]
    return min(MAX_LEAD, max([MIN_LEAD, *took]))


class _Departures:
    """When pods of nodes that go leave."""

    def __init__(self, state: State, now: int, going: list[tuple[str, NodeClaim | None, list[Pod]]]) -> None:
        self._state, self._now, self._going = state, now, going

    def all(self) -> list[_Leaving]:
        """Once one pod is planned for, those that leave within MAX_LEAD are too: together they need fewer nodes."""
        now = self._now
        found = [self._leaving(pod, node, claim) for node, claim, pods in self._going for pod in pods]
        if all(leaving.planned_at > now for leaving in found):
            return found
        return [replace(leaving, planned_at=now) if leaving.at <= now + MAX_LEAD else leaving for leaving in found]

    def _leaving(self, pod: Pod, node: str, claim: NodeClaim | None) -> _Leaving:
        """An interrupted node gives its pods no time, whatever protects them; one that is gone has none left."""
        if (claim is not None and claim.interruption) or node not in self._state.facts.nodes:
            return _Leaving(pod, node, self._now, self._now)
        at, budgets = self._allowed_at(pod)
        if claim is not None and claim.deadline is not None:
            grace = self._rules.shapes[pod.shape].grace
            at = min(at, max(self._now, forced_at(claim.deadline, pod, grace) or claim.deadline))
        planned_at = at if at in (self._now, FOREVER) else at - self._lead(pod)
        return _Leaving(pod, node, at, planned_at, budgets)

    def _allowed_at(self, pod: Pod) -> tuple[int, tuple[str, ...]]:
        """From when on an eviction may succeed, and the PodDisruptionBudgets that rule it out (S-48, S-49)."""
        at = self._now if self._rules.disruptable(pod) else protected_until(pod)
        if at == FOREVER:
            return FOREVER, ()
        budgets = replace(self._rules, now=at).never_letting_go(pod)
        return FOREVER if budgets else at, tuple(budget.key for budget in budgets)

    def _lead(self, pod: Pod) -> int:
        """A pod that has its place already keeps it, also when nodes are in service sooner by now."""
        return MAX_LEAD if self._state.facts.targets.get(pod.uid) else self._launch_lead

    @cached_property
    def _launch_lead(self) -> int:
        return launch_lead(self._state.facts)

    @cached_property
    def _rules(self) -> EvictionRules:
        shapes = {pod.shape: self._state.indexes.blobs.shape(pod.shape) for _, _, pods in self._going for pod in pods}
        budgets = sorted(self._state.facts.pdbs.values(), key=lambda b: (b.namespace, b.name, b.uid))
        return EvictionRules(shapes, tuple(budgets), self._now)


def _reason(leaving: _Leaving) -> Reason:
    known = leaving.at < FOREVER
    shown = {"leaves": format_time(leaving.at), "planned": format_time(leaving.planned_at)} if known else {}
    if leaving.budgets:
        return reason(SchedulingCode.KEPT_BY_BUDGET, node=leaving.node, budgets=list(leaving.budgets), **shown)
    return reason(SchedulingCode.KEPT_BY_ANNOTATION, node=leaving.node, **shown)
