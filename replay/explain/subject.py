"""Explain whatever a name stands for: a pod, workload, node, NodeClaim, NodePool, NodeClass, instance,
PodDisruptionBudget, or a decision."""

from __future__ import annotations

from collections.abc import Callable

from kerf.engine.record.store import Store
from kerf.engine.state.state import State
from kerf.replay.errors import PositionUnknown
from kerf.replay.explain.claim import ClaimExplanation, explain_claim, explain_node
from kerf.replay.explain.decision import DecisionExplanation, explain_decision
from kerf.replay.explain.pod import PodExplanation, explain_known_pod
from kerf.replay.explain.user_objects.budget import BudgetExplanation, explain_budget
from kerf.replay.explain.user_objects.nodeclass import NodeClassExplanation, explain_node_class
from kerf.replay.explain.user_objects.nodepool import PoolExplanation, explain_pool
from kerf.replay.explain.workload import WorkloadExplanation, explain_workload
from kerf.replay.history.subjects import BUDGET, CLAIM, INSTANCE, NODE, NODE_CLASS, POD, POOL, subject_at
from kerf.replay.record_names.named_entries import NamedEntries
from kerf.replay.subject_names import kind_of
from kerf.replay.time_travel.moments import LONGEST_NUMBER, is_position, state_at

Explanation = (
    PodExplanation
    | WorkloadExplanation
    | ClaimExplanation
    | PoolExplanation
    | NodeClassExplanation
    | BudgetExplanation
    | DecisionExplanation
)
_DECISION = "decision"


def explain(
    store: Store,
    text: str,
    position: int | None = None,
    now: int = 0,
    named: NamedEntries | None = None,
    at_hand: Callable[[], State] | None = None,
) -> Explanation:
    """Explain what a name stands for (see `subjects.subject_of`), or "decision/POSITION", as of a position (the end by
    default) at the time `now` (see `state_at`). `named` finds the entries up to there, if the record has an index;
    `at_hand` gives the state there, at that time, if somebody has it.

    Raises PositionUnknown (KERF202), SubjectUnknown (KERF203) and SubjectAmbiguous (KERF210).
    """
    word, _, rest = text.partition("/")
    if kind_of(word) == _DECISION and rest:
        return explain_decision(store, _position(rest), named)
    histories, subject = subject_at(store, text, position, named)
    name, state = subject.name, at_hand() if at_hand is not None else state_at(store, position, now)
    if subject.kind == CLAIM:
        return explain_claim(store, name, position, now, histories, state)
    if subject.kind == NODE:
        return explain_node(store, name, position, now, histories, state)
    if subject.kind == INSTANCE:
        claims = [claim.name for claim in histories.claims.values() if claim.instance == name]
        return explain_claim(store, claims[-1], position, now, histories, state)
    if subject.kind == POD:
        return explain_known_pod(store, histories, state, histories.pods[histories.pods.uids_of(name)[-1]])
    if subject.kind == POOL:
        return explain_pool(store, histories, state, name)
    if subject.kind == BUDGET:
        return explain_budget(histories, state, name)
    if subject.kind == NODE_CLASS:
        return explain_node_class(state, name)
    return explain_workload(store, histories, state, name)


def _position(text: str) -> int:
    if not is_position(text) or len(text) > LONGEST_NUMBER:
        raise PositionUnknown(f"{text[:100]!r} is not a position", hint="kerf log RECORD --all shows the positions")
    return int(text)
