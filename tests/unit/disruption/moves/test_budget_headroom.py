"""Whether the budgets have room for a proposed move (D-43, D-49…D-51)."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from kerf.engine.disruption.cluster import Cluster
from kerf.engine.disruption.cluster_from_state import cluster_of
from kerf.engine.disruption.moves import due_moves
from kerf.engine.disruption.moves.budget_headroom import BudgetHeadroom, budget_use
from kerf.engine.disruption.moves.due_moves import validate_due_moves
from kerf.engine.model.disruption_reasons import DisruptionCode
from kerf.engine.model.karpenter.nodepools import Budget, NodePool
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.reasons import Reason
from kerf.engine.record.claim_events import Adopted, Tainted, Terminated
from kerf.engine.record.decisions import Move, TerminateInstance
from kerf.engine.record.observations import InstanceSeen, ObjectGone, RecordStarted
from kerf.engine.runtime.react import next_due, react
from kerf.engine.runtime.recording import record_claim_event
from kerf.engine.runtime.turn_draft import TurnDraft
from kerf.engine.state.indexes import Blobs
from kerf.engine.state.state import Facts, State, Underway
from tests.support.lives import claim_of, drained, in_service
from tests.support.world import NODE_CLASS, START


def nothing(digest: str) -> bytes:
    raise KeyError(digest)


def nodes(
    count: int, budgets: tuple[Budget, ...], *, pool: str = "default", draft: TurnDraft | None = None
) -> TurnDraft:
    """So many nodes in service."""
    if draft is None:
        draft = TurnDraft(State(Facts(), Blobs(nothing)), START)
        draft.add(RecordStarted("r", "e"))
    draft.add(NodePool(pool, NODE_CLASS, budgets=budgets))
    for number in range(count):
        name = f"{pool}-{number}"
        draft.add(
            Adopted(
                name, "initialized", pool, NODE_CLASS, instance=f"i-{name}", provider_id=f"p-{name}", node=name,
                created=START, registered=START, initialized=START,
            )
        )  # fmt: skip
        draft.add(Node(name, provider_id=f"p-{name}", created=START, ready=True))
    return draft


def move(*claims: str, why: str = "underutilized") -> Move:
    return Move(why, claims)


@pytest.mark.parametrize(
    ("budget", "going", "fits"), [("2", 0, 2), ("2", 1, 1), ("2", 2, 0), ("50%", 1, 2), ("0", 0, 0)]
)
def test_d51_what_goes_already_takes_of_the_budget(budget: str, going: int, fits: int) -> None:
    draft = nodes(6, (Budget(budget),))
    for number in range(going):
        record_claim_event(draft, Tainted(f"default-{number}", "expired"), 0)
    headroom = BudgetHeadroom(draft.state)
    names = [f"default-{number}" for number in range(3, 6)]
    most = {"2": 2, "50%": 3, "0": 0}[budget]
    for size in range(1, 4):
        assert headroom.allows(move(*names[:size])) == (size <= fits or size > most)


def test_d50_a_node_that_is_not_ready_or_not_there_takes_of_it_too() -> None:
    draft = nodes(4, (Budget("1"),))
    assert BudgetHeadroom(draft.state).allows(move("default-0"))
    draft.add(replace(draft.state.facts.nodes["default-3"], ready=False))
    assert not BudgetHeadroom(draft.state).allows(move("default-0"))
    draft.add(replace(draft.state.facts.nodes["default-3"], ready=True))
    assert BudgetHeadroom(draft.state).allows(move("default-0"))
    draft.add(ObjectGone("node", "default-3"))
    assert not BudgetHeadroom(draft.state).allows(move("default-0"))


def test_d50_d60_a_node_that_is_not_ready_needs_no_further_room_when_it_goes_as_empty() -> None:
    draft = nodes(4, (Budget("1"),))
    draft.add(replace(draft.state.facts.nodes["default-3"], ready=False))
    headroom = BudgetHeadroom(draft.state)
    assert headroom.allows(move("default-3", why="empty"))
    assert not headroom.allows(move("default-0", why="empty"))
    assert not headroom.allows(move("default-3")), "its pods would move"


def test_d49_a_node_whose_instance_ends_counts_no_more() -> None:
    """Neither as one that goes nor for the share that a percentage is of."""
    draft = nodes(10, (Budget("10%"),))
    record_claim_event(draft, Tainted("default-9", "expired"), 0)
    assert not BudgetHeadroom(draft.state).allows(move("default-0"))
    draft.add(InstanceSeen("i-default-9", "gone", claim="default-9"))
    assert BudgetHeadroom(draft.state).allows(move("default-0"))
    record_claim_event(draft, Terminated("default-9", "expired"), 0)
    assert BudgetHeadroom(draft.state).allows(move("default-0"))


def test_d44_each_reason_has_its_own_budgets() -> None:
    draft = nodes(4, (Budget("0", reasons=("Drifted",)), Budget("1", reasons=("Empty",))))
    headroom = BudgetHeadroom(draft.state)
    assert headroom.allows(move("default-0", "default-1", why="underutilized"))
    headroom.take(move("default-3"))
    assert not headroom.allows(move("default-0", why="empty"))


def test_moves_that_start_beside_one_another_share_the_room() -> None:
    """What one takes is gone for the next, and only for those that are asked of the same room."""
    draft = nodes(4, (Budget("2"),))
    headroom = BudgetHeadroom(draft.state)
    headroom.take(move("default-0"))
    assert headroom.allows(move("default-1"))
    headroom.take(move("default-1"))
    assert not headroom.allows(move("default-2"))
    assert BudgetHeadroom(draft.state).allows(move("default-2"))


def test_d51_the_room_goes_to_the_move_that_saves_most_whichever_pass_proposed_it() -> None:
    draft = nodes(10, (Budget("1"),))
    for number, savings in enumerate((0.1, 1.3, 0.2)):
        saving = replace(move(f"default-{number}", why="drifted"), savings=savings)
        draft.state.facts.moves[f"{number}.0"] = Underway(saving, START)
    assert list(validate_due_moves(draft.state, START, 9)) == ["1.0"]


def test_d110_a_validation_knows_what_started_moves_were_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the record 60038 of `make dst` found: two moves were given one room."""
    draft = nodes(2, (Budget("1"),))
    draft.state.facts.targets = {"uid-p": "default-1"}
    draft.state.facts.moves["1.0"] = Underway(move("default-0", why="drifted"), START)
    known: list[Mapping[str, str]] = []

    def validated(move: Move, cluster: Cluster, _before: object, _after: object) -> Move:
        known.append(cluster.promised)
        return move

    monkeypatch.setattr(due_moves, "validate_beside", validated)
    validate_due_moves(draft.state, START, 9)
    assert known == [{"uid-p": "default-1"}]


def test_each_pool_has_its_own_room_and_a_move_needs_all_of_it() -> None:
    draft = nodes(2, (Budget("1"),))
    nodes(2, (Budget("1"),), pool="other", draft=draft)
    record_claim_event(draft, Tainted("other-0", "expired"), 0)
    headroom = BudgetHeadroom(draft.state)
    assert headroom.allows(move("default-0"))
    assert not headroom.allows(move("default-0", "other-1"))


def test_what_no_room_would_ever_hold_waits_for_none() -> None:
    """It is judged, and withdrawn for the budget; so is a move whose NodePool or claims are gone."""
    draft = nodes(4, (Budget("1"),))
    assert BudgetHeadroom(draft.state).allows(move("default-0", "default-1"))
    assert BudgetHeadroom(draft.state).allows(move("nobody"))
    draft.add(ObjectGone("nodepool", "default"))
    assert BudgetHeadroom(draft.state).allows(move("default-0"))


def test_d110_what_one_turn_does_not_validate_is_due_in_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many moves that start at once hold up nothing else. Each looks at all nodes, and one is always validated."""
    draft = nodes(6, (Budget("6"),))
    moves, validation_delay = draft.state.facts.moves, draft.state.facts.settings.validation_delay
    for number in range(3):
        moves[f"{number}.0"] = Underway(move(f"default-{number}", why="underutilized"), START)
    started: list[str] = []

    def validated(move: Move, *_: object) -> Reason:
        started.extend(move.claims)
        return Reason.of(DisruptionCode.CHURN)

    monkeypatch.setattr(due_moves, "validate_beside", validated)
    monkeypatch.setattr(due_moves, "NODES_PER_TURN", 12)
    turn = TurnDraft(draft.state, START + validation_delay)
    react(turn)
    assert started == ["default-0", "default-1"]
    assert 0 < next_due(draft.state) <= turn.now
    monkeypatch.setattr(due_moves, "NODES_PER_TURN", 1)
    react(TurnDraft(draft.state, turn.now))
    assert started == ["default-0", "default-1", "default-2"]


def test_d158_an_ending_node_uses_up_no_budget_while_its_end_is_asked_for_again() -> None:
    world = in_service()
    state, name = world.runtime.state, claim_of(world).node_pool
    drained(world)
    assert (budget_use(state)[name].total, budget_use(state)[name].consuming) == (1, 1)
    world.answer_all()
    assert budget_use(state) == {}
    (again,) = world.after(60_000)  # it has not ended yet
    assert isinstance(again, TerminateInstance)
    assert budget_use(state) == {}
    assert [node.terminating for node in cluster_of(state, world.now).nodes] == [True]
