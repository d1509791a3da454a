"""`kerf at`, `explain` and `story`: what was so at a moment, and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest


def test_at_shows_the_state(kerf: Any, record: Path) -> None:
    code, out, _ = kerf("at", record, "+38.6s")
    assert code == 0
    assert "1 initialized" in out
    assert "m5.large" in out
    code, out, _ = kerf("at", record, "12", "--json")
    assert json.loads(out)["position"] == 12


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        ("pod", "default/a", "m5.large is the cheapest of the 3 types that can take all of them, at $0.0960/h"),
        ("node", "n1", "it had to go because of: empty"),
        ("decision", "12", "for 5 pods"),
    ],
)
def test_explain(kerf: Any, record: Path, kind: str, name: str, said: str) -> None:
    code, out, _ = kerf("explain", record, kind, name)
    assert code == 0
    assert said in out
    code, out, _ = kerf("explain", record, kind, name, "--json")
    assert code == 0
    assert isinstance(json.loads(out), dict)


@pytest.mark.parametrize(("kind", "name"), [("node", "n1"), ("pod", "default/a"), ("decision", "12")])
def test_explain_takes_kind_and_name_in_one_as_kubectl_does(kerf: Any, record: Path, kind: str, name: str) -> None:
    assert kerf("explain", record, f"{kind}/{name}") == kerf("explain", record, kind, name)


@pytest.mark.parametrize("kind", ["nodes", "no", "Node"])
def test_kinds_are_taken_as_kubectl_takes_them(kerf: Any, record: Path, kind: str) -> None:
    for command in ("explain", "story"):
        plain = kerf(command, record, "node", "n1")
        assert plain[0] == 0
        assert kerf(command, record, f"{kind}/n1") == kerf(command, record, kind, "n1") == plain
    assert kerf("log", record, "--subject", f"{kind}/n1") == kerf("log", record, "--subject", "node/n1")


@pytest.mark.parametrize(
    "command",
    [("explain", "{record}", "node/n1", "--at"), ("story", "{record}", "node/n1", "--at"), ("at", "{record}")],
)
def test_an_answer_as_of_after_the_last_entry_says_that_it_is_as_of_that_entry(
    kerf: Any, record: Path, command: tuple[str, ...]
) -> None:
    asked = [word.format(record=record) for word in command]
    code, out, err = kerf(*asked, "+20h")
    assert (code, bool(out)) == (0, True)
    assert "after the record's last entry (position " in err
    code, out, err = kerf(*asked, "+900h")
    assert (code, out, "The record runs from" in err) == (2, "", True)
    for known in ("-1s", "-0s", "end", "40"):
        assert kerf(*asked, known)[2] == ""


def test_explain_as_of_then(kerf: Any, record: Path) -> None:
    _, out, _ = kerf("explain", record, "node", "n1", "--at", "31")
    assert "5 pods on it to move: default/a, default/b, default/c, default/d, default/e" in out
    assert "it is still here: its pods need a node, and none is cheaper than $0.0960/h" in out


@pytest.mark.parametrize(
    ("at", "titles"),
    [
        ("31", ["it is still here: ", "what each method says", "launched for ", "its life:"]),
        ("end", ["it had to go because of: ", "launched for ", "its life:", "what was found about removing it:"]),
    ],
)
def test_why_a_node_stays_or_goes_comes_before_how_it_was_launched(
    kerf: Any, record: Path, at: str, titles: list[str]
) -> None:
    _, out, _ = kerf("explain", record, "node", "n1", "--at", at)
    found = [line for line in out.splitlines() if line.startswith(tuple(titles))]
    assert [line.startswith(title) for line, title in zip(found, titles, strict=True)] == [True] * len(titles)
    assert out.splitlines()[1].startswith(titles[0])


@pytest.mark.parametrize(("kind", "name"), [("node", "n1"), ("pod", "default/a")])
def test_story_takes_the_kind_as_a_word_of_its_own_as_explain_does(
    kerf: Any, record: Path, kind: str, name: str
) -> None:
    assert kerf("story", record, kind, name) == kerf("story", record, f"{kind}/{name}")
    assert kerf("story", record, kind, name)[0] == 0


def test_the_cost_of_a_node_that_is_gone_is_its_whole_cost(kerf: Any, record: Path) -> None:
    _, out, _ = kerf("explain", record, "node", "n1")
    assert "terminated" in out.splitlines()[0]
    assert out.splitlines()[0].endswith(" in all")
    _, out, _ = kerf("explain", record, "node", "n1", "--at", "31")
    assert out.splitlines()[0].endswith(" so far")


def test_story(kerf: Any, record: Path) -> None:
    code, out, _ = kerf("story", record, "default/a")
    assert code == 0
    assert "because of 12" in out
    _, out, _ = kerf("story", record, "n1", "--json")
    assert json.loads(out)["subject"] == "node/n1"


def test_json_is_what_the_structs_are(kerf: Any, record: Path) -> None:
    from kerf.replay.time_travel.state_summary import StateSummary

    _, out, _ = kerf("at", record, "--json")
    summary = msgspec.json.decode(out, type=StateSummary)
    told = {name: value for name, value in msgspec.json.decode(out).items() if not name.endswith("_time")}
    assert msgspec.json.decode(msgspec.json.encode(summary)) == told
