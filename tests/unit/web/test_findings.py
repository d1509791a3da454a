"""What the page shows first: the verdict's grounds, loops, and troubles that say the same together."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="the explorer's extra is not installed")

from kerf.adapters.cli.main import main
from kerf.adapters.web.findings import FindingsAnswer, _of_trouble, findings
from kerf.adapters.web.reader import RecordReader
from kerf.engine.model.reasons import Reason
from kerf.projections.explorer.troubles import MOST_SUBJECTS, Trouble, TroublesFold
from kerf.projections.timeline.event import INFO, WARNING, Event
from tests.support.lives import claim_of, launched
from tests.support.records import stored, whole_life
from tests.support.simulation.budgets import budget, given
from tests.support.simulation.run import Run, documents, scale, workshop
from tests.support.world import World

MINUTE = 60_000


def event(position: int, code: str = "pods-without-place", level: str = WARNING, why: str = "limits") -> Event:
    return Event(
        position=position, turn=position, at=position * 1_000, code=code, level=level,
        subject=f"pod/default/p{position}", params={"who": "p"},
        reason=Reason(why, {"node_pool": "p", "resources": ["cpu"]}),
    )  # fmt: skip


def test_troubles_that_say_the_same_are_one() -> None:
    fold = TroublesFold()
    fold.apply(event(position) for position in range(1, 31))
    fold.apply([event(31, why="no-instance-types"), event(32, level=INFO)])
    first, other = fold.troubles()
    assert (first.count, first.since, first.until, first.positions) == (30, 1_000, 30_000, (1, 30))
    assert len(first.subjects) == MOST_SUBJECTS
    assert (other.why, other.count) == ("no-instance-types", 1)


def refused(position: int, error: str) -> Event:
    return Event(
        position=position, turn=position, at=position, code="pod-effect-refused", level=WARNING, subject="nodeclaim/c",
        params={"effect": "evict", "pod": f"default/p{position}", "error": error},
    )  # fmt: skip


def test_names_in_what_was_said_do_not_tell_troubles_apart() -> None:
    fold = TroublesFold()
    fold.apply([refused(1, '404 pods "a" not found'), refused(2, '404 pods "b" not found'), refused(3, "429 budget")])
    assert [(trouble.why, trouble.count) for trouble in fold.troubles()] == [("evict 404", 2), ("evict 429", 1)]


def ask(record: Path) -> FindingsAnswer:
    with closing(RecordReader(str(record))) as reader:
        return asyncio.run(reader.ask(findings))


def test_a_record_without_trouble_has_no_findings(tmp_path: Path) -> None:
    found = ask(stored(tmp_path / "life.kerf", whole_life().store))
    assert (found.verdict, found.findings, found.hidden) == ("fine", [], 0)


def test_a_drifted_node_that_a_budget_keeps_has_a_card_with_both_names(tmp_path: Path) -> None:
    (pool,) = documents("workshop/nodepool.yaml")
    pool["spec"]["template"].setdefault("metadata", {})["labels"] = {"team": "other"}
    applied = {"at": "10m", "action": "apply", "object": pool}
    budget = {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "all", "namespace": "other"},
        "spec": {"minAvailable": 5, "selector": {"matchLabels": {"app": "inflate"}}},
    }  # fmt: skip
    run = Run([*workshop(scale("10s", 5), applied, scale("40m", 4)), budget], until=60 * MINUTE)
    found = ask(stored(tmp_path / "r.kerf", run.memory))
    (card,) = (finding for finding in found.findings if finding.kind == "verdict")
    assert found.verdict == "degraded"
    assert card.text.endswith(" has drifted and is kept by PodDisruptionBudget other/all")
    assert card.subject == "poddisruptionbudget/other/all"
    assert card.until - card.since > 15 * MINUTE


def test_what_is_late_has_a_card_that_says_what_it_waits_for(tmp_path: Path) -> None:
    world = launched()
    claim = claim_of(world).name
    world.after(11 * MINUTE)
    world.pending("later", memory=10**13)
    cards = [card for card in ask(stored(tmp_path / "r.kerf", world.store)).findings if card.subject.endswith(claim)]
    assert [card.text for card in cards if card.kind == "verdict"] == [
        f"joining {claim} is late: no node has joined with its provider id yet"
    ]


def test_drains_that_a_budget_holds_are_one_card_that_leads_to_the_budget(tmp_path: Path) -> None:
    docs = given(scale("10s", 16), scale("60m", 16), more=(budget(0),))
    pool = next(document for document in docs if document["kind"] == "NodePool")
    pool["spec"]["template"]["spec"]["expireAfter"] = "10m"
    (card,) = (card for card in ask(stored(tmp_path / "r.kerf", Run(docs).memory)).findings if card.kind == "verdict")
    assert card.text.endswith(" and 1 more are late: PodDisruptionBudget other/inflate allows no eviction")
    assert card.subject == "poddisruptionbudget/other/inflate"


def test_what_costs_more_than_it_serves_names_what_holds_it_and_comes_before_what_is_usual(tmp_path: Path) -> None:
    closed = [{"nodes": "0", "schedule": "0 0 * * *", "duration": "24h"}]
    run = Run(given(scale("10s", 12), scale("20m", 1), budgets=closed), until=60 * MINUTE)
    (card,) = ask(stored(tmp_path / "pool.kerf", run.memory)).findings
    assert (card.kind, card.subject) == ("idle", "nodepool/default"), card.text
    assert "stays: budget allows none, of NodePool default" in card.text
    run = Run(given(scale("10s", 12), scale("20m", 1), more=(budget(0),)), until=60 * MINUTE)
    (card,) = ask(stored(tmp_path / "pdb.kerf", run.memory)).findings
    assert card.subject == "poddisruptionbudget/other/inflate"
    assert "stays: PodDisruptionBudget other/inflate allows no eviction" in card.text


def test_what_comes_and_goes_on_most_days_is_last() -> None:
    elsewhere = Trouble(
        code="pod-bound-elsewhere", why="", level=WARNING, text="bound elsewhere", count=1, since=1, until=1,
        positions=(1, 1), subjects=["pod/default/a"],
    )  # fmt: skip
    assert _of_trouble(elsewhere, "r.kerf").kind == "usual"


@pytest.mark.parametrize(("pods", "said"), [(1, ""), (20, ", of 20 subjects"), (21, ", of over 20 subjects")])
def test_what_a_trouble_is_about_is_not_counted_short(pods: int, said: str) -> None:
    fold = TroublesFold()
    fold.apply(event(position) for position in range(1, pods + 1))
    assert _of_trouble(fold.troubles()[0], "r.kerf").more.endswith(said or "once")


def test_pods_without_a_place_come_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = World()
    world.prepare()
    world.now += 500
    world.pending("huge", cpu=900_000)
    world.after(1_000)
    record = stored(tmp_path / "r.kerf", world.store)
    first, *others = ask(record).findings
    assert (first.kind, first.subject) == ("verdict", "pod/default/huge")
    assert "waiting" in first.text or "without a place" in first.text
    trouble = next(finding for finding in others if finding.kind == "trouble")
    assert main(trouble.command.split()[1:]) == 0
    assert trouble.text in capsys.readouterr().out
