"""The page's decision view: all that it shows is what kerf explain and kerf verify say."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import pytest

pytest.importorskip("starlette", reason="the explorer's extra is not installed")

from kerf.adapters.cli.main import main
from kerf.adapters.web.decisions import again, decision
from kerf.adapters.web.reader import RecordReader
from kerf.replay.errors import SubjectUnknown
from kerf.replay.verify.one_turn import CANNOT, DIFFERS, SAME, verify_turn
from tests.support.records import changed, position_of, stored, tampered, whole_life
from tests.support.world import World

Answer = TypeVar("Answer")


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stored(tmp_path_factory.mktemp("records") / "life.kerf", whole_life().store)


@pytest.fixture(scope="module")
def reader(record: Path) -> Iterator[RecordReader]:
    with closing(RecordReader(str(record))) as reader:
        yield reader


@pytest.fixture(scope="module")
def plan() -> int:
    return position_of(whole_life().store, "decision.made")


def ask(reader: RecordReader, question: Callable[[RecordReader, int], Answer], position: int) -> Answer:
    return asyncio.run(reader.ask(lambda read: question(read, position)))


def test_the_counts_of_a_funnel_lead_to_what_was_chosen(reader: RecordReader, plan: int) -> None:
    found = ask(reader, decision, plan)
    (piece,) = found.pieces
    (funnel,) = piece.funnels
    assert [step.left for step in funnel.steps][-1] == funnel.left == piece.chosen_types
    assert funnel.types - sum(step.types for step in funnel.steps) == funnel.left
    assert piece.chosen[0].instance_type == "m5.large"
    assert found.same is True


def test_a_piece_of_several_kinds_says_what_each_kind_asks_for(tmp_path: Path) -> None:
    world = World()
    world.prepare()
    world.pending("a", cpu=750, memory=2 << 30)
    world.pending("b", "c", cpu=500, memory=1 << 30)
    world.after(1_000)
    place = stored(tmp_path / "kinds.kerf", world.store)
    with closing(RecordReader(str(place))) as reader:
        (piece,) = ask(reader, decision, position_of(world.store, "decision.made")).pieces
    assert piece.asked == [
        "default/a: 750m cpu, 2Gi memory",
        "default/b, default/c: 500m cpu, 1Gi memory each",
    ]


def test_causes_stand_before_a_decision_and_consequences_hang_on_it(reader: RecordReader, plan: int) -> None:
    found = ask(reader, decision, plan)
    assert [event.subject for event in found.causes] == ["pod/default/a"]
    assert all(event.position < plan for event in found.causes)
    told = {plan, *(event.position for event in found.consequences)}
    assert all(event.after in told and event.after <= event.position for event in found.consequences)
    sentences = " ".join(event.text for event in found.consequences)
    assert "is requested for 5 pods" in sentences
    assert "bound to n1" in sentences


def test_deciding_again_is_verify_of_that_turn(
    reader: RecordReader, record: Path, plan: int, capsys: pytest.CaptureFixture[str]
) -> None:
    found = ask(reader, again, plan)
    assert main(["verify", str(record), "--turn", str(plan)]) == 0
    assert [line.text for line in found.text] == capsys.readouterr().out.splitlines()
    assert found.answer == SAME


def test_a_move_says_what_the_budgets_allowed(reader: RecordReader) -> None:
    store = whole_life().store
    moves = [entry.position for entry in store.entries if getattr(entry.payload, "decider", "") == "move"]
    found = ask(reader, decision, moves[0])
    assert [move.why for move in found.moves] == ["empty"]
    assert found.budgets
    assert all("{" not in budget and "budget" in budget for budget in found.budgets)


def test_what_is_no_decision_is_refused(reader: RecordReader) -> None:
    with pytest.raises(SubjectUnknown, match="KERF203"):
        ask(reader, decision, 1)


def test_one_turn_differs_or_cannot_be_decided() -> None:
    store = whole_life().store
    plan = position_of(store, "decision.made")
    assert verify_turn(tampered(store, changed(plan, version=0)), plan).answer == CANNOT
    differs = verify_turn(tampered(store, changed(plan, looked_at=1)), plan)
    assert (differs.answer, differs.exit_code) == (DIFFERS, 1)
    assert differs.divergence is not None
    assert differs.divergence.position == plan
