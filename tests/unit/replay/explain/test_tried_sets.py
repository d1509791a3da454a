"""Which sets of nodes a disruption pass tried (wish 16)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from kerf.adapters.cli.render.explain.decision import MAX_SETS_SHOWN, decision_text
from kerf.engine.disruption import disruption_pass
from kerf.engine.model.disruption_reasons import DisruptionCode
from kerf.engine.model.reasons import Reason
from kerf.engine.record.decisions import Decision, ProposedMovesResult
from kerf.engine.state.load import load
from kerf.projections.prose.reasons import sentence
from kerf.replay.explain.decision import DecisionExplanation, explain_decision
from kerf.replay.explain.funnels import decision_at
from kerf.replay.explain.tried_sets import TriedSet, tried_sets
from tests.support.memory import MemoryStore
from tests.support.simulation.run import HOUR, Run, scale, workshop


class _Lines:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def line(self, text: str, style: str = "") -> None:
        self.lines.append(text)


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    """Pods come one after the other, each lot onto a node of its own, and half of them go."""
    given = workshop(*(scale(f"{5 * n}m", 4 * n) for n in range(1, 6)), scale("40m", 9))
    for document in given:
        if document["kind"] == "NodePool":
            document["spec"]["disruption"]["budgets"] = [{"nodes": "2"}]
    return Run(given, until=HOUR).memory


def passes(store: MemoryStore) -> Iterator[tuple[int, Decision]]:
    for entry in store.scan():
        if isinstance(entry.payload, Decision) and isinstance(entry.payload.result, ProposedMovesResult):
            yield entry.position, entry.payload


def first_choice(store: MemoryStore) -> tuple[int, Decision]:
    """The first pass that proposed to move pods."""
    return next(
        (position, made)
        for position, made in passes(store)
        if isinstance(made.result, ProposedMovesResult) and any(m.why == "underutilized" for m in made.result.proposed)
    )


def tried_in(store: MemoryStore) -> tuple[TriedSet, ...]:
    found = tried_sets(store, first_choice(store)[1])
    assert found
    return found


def test_the_sets_that_were_chosen_come_first_and_are_those_of_the_decision(store: MemoryStore) -> None:
    _, made = first_choice(store)
    assert isinstance(made.result, ProposedMovesResult)
    claims = load(store, made.looked_at).facts.claims
    chosen = [set(tried.nodes) for tried in tried_in(store) if tried.chosen]
    moved = [{claims[name].node for name in move.claims} for move in made.result.proposed if move.why != "empty"]
    assert chosen
    assert all(nodes in moved for nodes in chosen)
    assert [tried.chosen for tried in tried_in(store)] == sorted(
        (tried.chosen for tried in tried_in(store)), reverse=True
    )


def test_each_set_tells_what_it_saves_or_why_it_cannot_go(store: MemoryStore) -> None:
    tried = [one for _, made in passes(store) for one in tried_sets(store, made) or ()]
    assert any(len(one.nodes) > 1 for one in tried)
    assert any(one.reason is not None for one in tried)
    assert all((one.reason is None) == bool(one.action) for one in tried)
    assert all(one.savings > 0 for one in tried if one.reason is None)


def test_nothing_is_told_of_other_decisions_and_of_other_versions(store: MemoryStore) -> None:
    _, made = first_choice(store)
    older = replace(made, version=disruption_pass.VERSION - 1)
    assert tried_sets(store, older) is None
    other = next(
        e.payload for e in store.scan() if isinstance(e.payload, Decision) and e.payload.decider == "provision"
    )
    assert tried_sets(store, other) is None


def test_the_explanation_of_the_decision_shows_the_sets(store: MemoryStore) -> None:
    position, _ = first_choice(store)
    printer: Any = _Lines()
    decision_text(printer, explain_decision(store, position), [])
    begins = printer.lines.index(next(line for line in printer.lines if line.startswith("it tried ")))
    chosen = next(tried for tried in tried_in(store) if tried.chosen)
    assert printer.lines[begins + 1].startswith(f"  {', '.join(chosen.nodes[:5])}: chosen: ")
    sets = [line for line in printer.lines[begins + 1 :] if line.startswith("  ip-")]
    assert len(sets) <= MAX_SETS_SHOWN


def test_to_be_told_changes_no_decision(store: MemoryStore) -> None:
    position, made = first_choice(store)
    state = load(store, made.looked_at)
    told: list[tuple[str, ...]] = []
    result = disruption_pass.run_pass(state, made.now, lambda names, _: told.append(names))
    assert told
    assert result == decision_at(store, position).result


def test_single_nodes_that_cannot_go_are_shown_where_nothing_else_was_tried() -> None:
    stays = Reason.of(DisruptionCode.NO_NODE)
    tried = tuple(TriedSet(nodes=(f"n{number:02}",), reason=stays) for number in range(MAX_SETS_SHOWN + 2))
    printer: Any = _Lines()
    found = DecisionExplanation(
        position=1, decider="disruption", now=0, looked_at=0, version=1, version_today=1, same=None,
        result=ProposedMovesResult((), (), 0), intents=0, repeats=0, plans=(), tried=tried,
    )  # fmt: skip
    decision_text(printer, found, [])
    assert sum(line.startswith("  n") for line in printer.lines) == MAX_SETS_SHOWN
    assert printer.lines[-1] == "  2 more: --json has them all"
    assert f"  n00: {sentence(stays)}" in printer.lines
