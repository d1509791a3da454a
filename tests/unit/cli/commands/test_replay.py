"""`kerf replay` from outside: what it prints, its JSON, the record that it keeps, and what it refuses."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kerf.adapters.cli.replaying import question
from kerf.adapters.store.open import open_record
from kerf.engine.model.kubernetes.pods import Pod
from kerf.replay.modelled import comparison
from kerf.replay.time_travel.moments import state_at
from kerf.replay.verify.verify import verify
from tests.support.records import stored
from tests.support.simulation.run import Run, scale, workshop

CHANGE = ("--set", "nodepool/default.spec.disruption.consolidateAfter=20m")


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = Run(workshop(scale("10s", 8), scale("10m", 0), scale("45m", 1)))
    return stored(tmp_path_factory.mktemp("records") / "life.kerf", run.memory)


def test_the_answer_sets_both_runs_beside_each_other_and_apart_the_record(kerf: Any, record: Path) -> None:
    code, out, err = kerf("replay", record, *CHANGE)

    assert (code, err) == (0, "")
    assert "consolidateAfter: " in out
    assert "MODELLED" in out
    assert "HOW GOOD IS THE MODEL?" in out
    assert "Assumed:" in out


def test_a_bundle_of_a_part_is_modelled_from_its_beginning(kerf: Any, record: Path, tmp_path: Path) -> None:
    """Its first entry comes after its base."""
    part = tmp_path / "part.kerfb"
    assert kerf("bundle", "export", record, part, "--since", "+5m")[0] == 0

    code, out, err = kerf("replay", part, *CHANGE, "--json")

    assert (code, err) == (0, "")
    assert json.loads(out)["unchanged"]["gone"] == 1
    assert kerf("replay", part, "--from", "1")[0] == 2


def test_json_has_figures_errors_and_the_horizon(kerf: Any, record: Path) -> None:
    code, out, _ = kerf("replay", record, *CHANGE, "--json")

    answer = json.loads(out)
    assert code == 0
    assert answer["changed"]["cost"] > answer["unchanged"]["cost"]
    assert set(answer["errors"]) == {"cost", "node_hours", "evictions"}
    assert answer["horizon_time"] == answer["until_time"]


def test_the_modelled_record_is_kept_and_verifies(kerf: Any, record: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept.kerf"

    assert kerf("replay", record, *CHANGE, "--record", kept)[0] == 0

    with closing(open_record(kept)) as store:
        assert verify(store).exit_code == 0


def test_the_modelled_record_reaches_to_the_end_and_costs_what_the_answer_says(
    kerf: Any, record: Path, tmp_path: Path
) -> None:
    """The node that consolidation does not take runs on after the last thing that happens."""
    kept, never = tmp_path / "kept.kerf", "nodepool/default.spec.disruption.consolidateAfter=Never"

    _, out, _ = kerf("replay", record, "--set", never, "--until", "+3h", "--record", kept, "--json")
    _, costs, _ = kerf("cost", kept, "--json")

    answer, cost = json.loads(out), json.loads(costs)
    assert cost["until"] == answer["until"]
    assert cost["total"]["cost"] == pytest.approx(answer["changed"]["cost"])
    assert answer["changed"]["running"] > 0


def test_a_change_that_does_not_apply_leaves_nothing_behind(kerf: Any, record: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept.kerf"

    code, out, err = kerf("replay", record, "--set", "nodepool/defaul.spec.limits.cpu=1", "--record", kept)

    assert (code, out) == (2, "")
    assert "KERF208" in err
    assert not list(tmp_path.iterdir())


def test_a_workload_that_is_deleted_stays_away(kerf: Any, record: Path, tmp_path: Path) -> None:
    """In the record it is scaled to none after ten minutes, and to one after 45. Beside that the model is unchanged."""
    kept = tmp_path / "kept.kerf"

    code, out, err = kerf(
        "replay", record, "--from", "+5m", "--delete", "deployment/inflate", "--record", kept, "--json"
    )

    answer = json.loads(out)
    assert (code, err) == (0, "")
    assert answer["changed"]["node_hours"] < answer["unchanged"]["node_hours"]
    assert (answer["changed"]["launched"], answer["unchanged"]["launched"]) == (0, 1)
    with closing(open_record(kept)) as store:
        entries = list(store.scan())
        assert not [entry for entry in entries if isinstance(entry.payload, Pod) and not entry.payload.deleting]
        assert not state_at(store, entries[-1].position).facts.pods


def test_a_model_that_is_too_far_is_refused_and_shown_marked_if_asked_for(
    kerf: Any, record: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "errors_of", lambda *_: {"cost": 0.2, "node_hours": 0.0, "evictions": 0.0})

    code, out, err = kerf("replay", record, *CHANGE)
    assert (code, out) == (2, "")
    assert "KERF214" in err

    code, out, _ = kerf("replay", record, *CHANGE, "--anyway")
    assert code == 0
    assert "does NOT hold" in out


def test_an_empty_part_is_refused(kerf: Any, record: Path) -> None:
    code, _, err = kerf("replay", record, "--from", "+30m", "--until", "+20m")

    assert code == 2
    assert "KERF202" in err


def test_runs_side_by_side_give_the_answer_of_one_after_the_other(
    kerf: Any, record: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(question, "LONG", 1)
    kept = [tmp_path / "alone.kerf", tmp_path / "together.kerf"]

    alone, together = (
        kerf("replay", record, *CHANGE, "--json", "--jobs", jobs, "--record", place)
        for jobs, place in zip((1, 2), kept, strict=True)
    )

    assert alone[0] == 0
    assert alone == together
    entries = []
    for place in kept:
        with closing(open_record(place)) as store:
            entries.append(list(store.scan()))
    assert entries[0] == entries[1]
