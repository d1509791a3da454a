"""Which events belong to the story of a pod, workload, node, claim, NodePool, NodeClass or
PodDisruptionBudget."""

from __future__ import annotations

import sys

from msgspec import Struct
from msgspec.structs import replace

from kerf.engine.model.kubernetes.pods import Selector
from kerf.engine.scheduling.matching.label_selectors import selector_matches
from kerf.engine.state.objects.pod_disruption_budgets import BUDGET_CODES
from kerf.projections.differences.documents import Shapes
from kerf.projections.timeline.event import Event
from kerf.replay.history.budget_history import names_budget
from kerf.replay.history.histories import Histories
from kerf.replay.history.pod_histories import PodHistory
from kerf.replay.history.replacement_chain import ChainLink, replacement_chain
from kerf.replay.history.subjects import POD, POOL, WORKLOAD, Subject
from kerf.replay.history.told_events import ToldEvents

_LAUNCH_EVENTS = frozenset(
    [
        "claim-requested", "launch-refused", "offering-refused", "launch-adopted", "claim-launched",
        "claim-launch-failed", "claim-launch-timed-out", "claim-registered", "claim-initialized",
    ]
)  # fmt: skip
_REMOVAL_EVENTS = frozenset(
    [
        "claim-condemned", "claim-tainted", "claim-reason-raised", "claim-drain-started", "claim-instance-vanished",
        "deletion-asked", "deletion-seen", "controller-decided", "controller-gave-up", "interruption-announced",
    ]
)  # fmt: skip

_END_EVENTS = frozenset(["claim-drained", "claim-terminated", "claim-untainted"])
_POOL_EVENTS = frozenset(
    [
        "claim-requested", "launch-refused", "offering-refused", "claim-launch-failed", "claim-launch-timed-out",
        "claim-tainted", "claim-instance-vanished", "claim-terminated",
    ]
)  # fmt: skip
_MOVE_EVENTS = ("move-started", "move-abandoned")
_REFUSED, _FORCED = "pod-effect-refused", "claim-pod-forced"
_LEFT_OVER = frozenset(["pods-without-place", "pods-ignored", "pods-later"])
"""What a plan says of pods that it found no place for: in their stories alone, since a plan may have hundreds."""


class Selection(Struct, frozen=True):
    """Which events belong to a story.

    All events of `subjects` do. Of each of `helpers`, only the codes given, each up to a position. `plans` are
    positions of decisions. `causes` are pods that wait, until the position of the plan that they brought about. Of the
    nodes of `chain`, their moves belong to it.
    """

    subjects: frozenset[str]
    helpers: dict[str, dict[str, int]]
    plans: frozenset[int]
    causes: dict[str, int]
    chain: tuple[ChainLink, ...] = ()

    def all_subjects(self) -> set[str]:
        """Return whatever an event may be about that belongs to the story, but for its plans."""
        chain = (f"nodeclaim/{link.claim}" for link in self.chain)
        return {*self.subjects, *self.helpers, *self.causes, *chain}

    def __contains__(self, event: Event) -> bool:
        if event.subject in self.subjects or self.subjects.intersection(event.related):
            return event.code != "plan-made" or event.position in self.plans
        if event.code in _MOVE_EVENTS and any(f"nodeclaim/{link.claim}" in event.related for link in self.chain):
            return True
        if event.subject in self.helpers:
            return event.position < self.helpers[event.subject].get(event.code, 0)
        if event.subject in self.causes:
            return event.code == "pod-waiting" and event.position < self.causes[event.subject]
        return event.position in self.plans and event.code not in _LEFT_OVER


class BudgetSelection(Struct, frozen=True):
    """What belongs to the story of a PodDisruptionBudget `name`: what happened to it, what was decided because of it,
    and what was refused to its pods, or done to them against it. `selectors` are those that it has had.

    `plans` are the positions of such events, where they were looked for before."""

    subject: str
    name: str
    selectors: tuple[Selector | None, ...]
    histories: Histories
    shapes: Shapes
    plans: frozenset[int] = frozenset()
    helpers: dict[str, dict[str, int]] = {}
    causes: dict[str, int] = {}
    chain: tuple[ChainLink, ...] = ()

    @property
    def subjects(self) -> frozenset[str]:
        return frozenset([self.subject])

    def all_subjects(self) -> set[str]:
        return {self.subject}

    def __contains__(self, event: Event) -> bool:
        if event.subject == self.subject or self.subject in event.related:
            return True
        if event.reason is not None and names_budget(event.reason, self.name):
            return True
        refused = event.code == _REFUSED and str(event.params.get("error", "")).startswith(BUDGET_CODES)
        return (refused or event.code == _FORCED) and self._covers(str(event.params["pod"]))

    def _covers(self, pod: str) -> bool:
        """Return whether the budget has selected a pod of this name (namespace/name)."""
        if pod.partition("/")[0] != self.name.partition("/")[0]:
            return False
        pods = (self.histories.pods[uid] for uid in self.histories.pods.uids_of(pod))
        labels = [self.shapes(pod.shape).labels for pod in pods if pod.shape]
        return any(selector_matches(selector, one) for selector in self.selectors for one in labels)

    def within(self, told: ToldEvents) -> BudgetSelection:
        """Return the same with the positions at which something is told of it."""
        found = {position for position in told.every() if any(event in self for event in told.of(position))}
        for plan in told.plans:
            groups = (*plan.payload.result.unplaced, *plan.payload.result.later)
            if any(names_budget(reason, self.name) for group in groups for reason in group.reasons):
                found.add(plan.position)
        return replace(self, plans=frozenset(found))


def budget_selection(histories: Histories, found: Subject, shapes: Shapes) -> BudgetSelection:
    """Select what the story of a PodDisruptionBudget tells."""
    selectors = tuple(selector for _, selector in histories.budgets[found.name].selectors)
    return BudgetSelection(str(found), found.name, selectors, histories, shapes)


def selection_of(histories: Histories, found: Subject) -> Selection:
    """Select what the story of anything but a PodDisruptionBudget tells."""
    subject = str(found)
    if found.kind == POD:
        return _pod_selection(histories, [histories.pods[uid] for uid in histories.pods.uids_of(found.name)])
    if found.kind == WORKLOAD:
        return _pod_selection(histories, histories.pods.of_workload(found.name))
    if found.kind == POOL:
        return _pool_selection(histories, found)
    claims = [c for c in histories.claims.values() if subject in c.subjects()]
    if not claims:
        return Selection(frozenset([subject]), {}, frozenset(), {})
    subjects = frozenset(name for claim in claims for name in claim.subjects())
    causes = {f"pod/{pod}": claim.decision for claim in claims for pod in histories.pod_names(claim.pods)}
    chain = replacement_chain(histories, [claim.name for claim in claims])
    helpers: dict[str, dict[str, int]] = {}
    for link in chain:
        for helper in histories.claims[link.claim].subjects():
            if helper not in subjects:
                helpers[helper] = dict.fromkeys(_LAUNCH_EVENTS | _REMOVAL_EVENTS | _END_EVENTS, sys.maxsize)
    return Selection(subjects, helpers, frozenset(claim.decision for claim in claims if claim.decision), causes, chain)


def _pool_selection(histories: Histories, pool: Subject) -> Selection:
    """Select what happened to a NodePool, and when its nodes came and went."""
    claims = [claim for claim in histories.claims.values() if claim.node_pool == pool.name]
    coming_and_going = dict.fromkeys(_POOL_EVENTS, sys.maxsize)
    helpers = {f"nodeclaim/{claim.name}": coming_and_going for claim in claims}
    return Selection(frozenset([str(pool)]), helpers, frozenset(), {})


def _pod_selection(histories: Histories, pods: list[PodHistory]) -> Selection:
    helpers: dict[str, dict[str, int]] = {}
    for pod in pods:
        planned = [histories.claims[decision.place] for decision in pod.decisions if decision.place in histories.claims]
        for helper in (name for claim in planned for name in claim.subjects()):
            helpers.setdefault(helper, {}).update(dict.fromkeys(_LAUNCH_EVENTS, sys.maxsize))
        for claim_name in histories.claims_of_node.get(pod.node, []):
            for helper in histories.claims[claim_name].subjects():
                helpers.setdefault(helper, {}).update(dict.fromkeys(_REMOVAL_EVENTS, pod.gone or sys.maxsize))
    plans = frozenset(decision.position for pod in pods for decision in pod.decisions)
    return Selection(frozenset(f"pod/{pod.key}" for pod in pods), helpers, plans, {})
