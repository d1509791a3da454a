"""`kerf disrupt`: one line for each cluster, in order, whatever is in the others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kerf.adapters.cli.main import main
from tests.support.repository import ROOT

EXAMPLE = ROOT / "docs" / "examples" / "disrupt" / "scale-in.json"


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_cluster_is_decided_by_every_method_and_by_kerf(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["disrupt", str(EXAMPLE), "--json"]) == 0
    (line,) = lines(capsys)
    result = line["result"]
    assert line["name"] == "scale-in"
    assert [command["candidates"] for command in result["emptiness"]["commands"]] == [["idle"]]
    assert [command["candidates"] for command in result["singleNode"]["commands"]] == [["half"]]
    assert result["first"] == "emptiness"
    assert [command["candidates"] for command in result["kerf"]["commands"]] == [["idle"], ["half"]]
    assert result["kerf"]["evictions"] == 1  # to empty both others onto `idle` saves as much, and moves three pods
    assert result["kerf"]["endPrice"] == pytest.approx(2 * 0.096)
    assert result["kerf"]["kept"]["held"]["code"] == "pod-do-not-disrupt"


def test_a_budget_keeps_the_rest_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = json.loads(EXAMPLE.read_text(encoding="utf-8"))
    scenario["nodePools"][0]["spec"]["disruption"]["budgets"] = [{"nodes": "1"}]
    given = tmp_path / "one.json"
    given.write_text(json.dumps(scenario), encoding="utf-8")
    assert main(["disrupt", str(given), "--json"]) == 0
    moves = lines(capsys)[0]["result"]["kerf"]
    assert [command["candidates"] for command in moves["commands"]] == [["half"]]
    assert moves["kept"]["idle"] == {"code": "budget", "params": {"nodepool": "default"}}


def test_a_scenario_that_cannot_be_read_is_refused_and_the_others_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = json.dumps(json.loads(EXAMPLE.read_text(encoding="utf-8")))
    bad = json.dumps({"name": "bad", "nodes": [{"node": {"metadata": {"name": 7}}}]})
    given = tmp_path / "many.jsonl"
    given.write_text(f"{bad}\nno json\n{good}\n", encoding="utf-8")
    assert main(["disrupt", str(given), "--json"]) == 1
    first, second, third = lines(capsys)
    assert first["result"]["error"].startswith("KERF")
    assert second["result"]["error"].startswith("KERF840")
    assert "error" not in third["result"]
    assert main(["disrupt", str(given)]) == 1
    assert "bad: refused" in capsys.readouterr().out


def test_people_see_the_moves_and_why_nodes_stay(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["disrupt", str(EXAMPLE)]) == 0
    out = capsys.readouterr().out
    assert "2 nodes can go, 1 pod moved" in out
    assert "held stays: pod-do-not-disrupt: pod default/batch-0" in out


def test_a_missing_file_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["disrupt", "nowhere.json"]) == 2
    assert capsys.readouterr().err.startswith("KERF840")
