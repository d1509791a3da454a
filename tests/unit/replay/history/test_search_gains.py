"""What the search for cheaper plans gained: pass by pass, by `kerf log --effort`, and in the metrics."""

from __future__ import annotations

import msgspec
import pytest

from kerf.adapters.cli.main import main
from kerf.replay.history.search_gains import search_gains
from tests.support.metrics import counted, value
from tests.support.repository import ROOT
from tests.support.world import Mi, World

GOLDEN = ROOT / "tests/golden/pools-weights-limits"
OLD = ROOT / "tests/records/0.1.0/golden-volumes.kerfb"
GAINED, TOUCHES = "kerf_search_gain_dollars_per_hour_total", "kerf_search_touches_total"


def planned(effort: int) -> World:
    """Five pods, of which the first plan takes one large node."""
    world = World(effort=effort)
    world.prepare()
    world.pending("a", "b", "c", "d", "e", memory=2_600 * Mi)
    world.after(1_000)
    return world


def test_a_pass_tells_what_its_search_gained_and_spent() -> None:
    world = planned(effort=100)
    (gain,) = search_gains(world.store.entries)
    assert (gain.nodes > 0, gain.pods) == (True, 5)
    assert gain.gained == gain.first_price - gain.price >= 0
    assert 0 < gain.bound <= gain.price
    assert gain.touches > 0
    found = counted(world)
    assert value(found, GAINED) == pytest.approx(gain.gained)
    assert value(found, TOUCHES) == gain.touches


def test_a_pass_without_effort_is_left_out() -> None:
    world = planned(effort=0)
    assert list(search_gains(world.store.entries)) == []
    assert value(counted(world), TOUCHES) == 0


def test_the_log_tells_each_pass_and_the_sum(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", str(GOLDEN), "--effort", "--json"]) == 0
    gains = [msgspec.json.decode(line) for line in capsys.readouterr().out.splitlines()]
    assert main(["log", str(GOLDEN), "--effort"]) == 0
    *passes, total = capsys.readouterr().out.splitlines()
    assert len(passes) == len(gains) > 1
    touches = sum(gain["touches"] for gain in gains)
    assert total.startswith(f"{len(gains)} passes searched: ")
    steps = sum(gain["steps"] for gain in gains)
    assert total.endswith(f" gained with {touches:,} touches, about {steps:,.0f} steps of --effort")
    for gain, line in zip(gains, passes, strict=True):
        assert f"{gain['touches']:,} touches (about {gain['steps']:,.0f} steps)" in line
        assert 0 < gain["steps"] <= 100


def test_a_record_of_before_has_its_gains_without_touches(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", str(OLD), "--effort"]) == 0
    *passes, total = capsys.readouterr().out.splitlines()
    assert passes
    assert not any("touches" in line for line in passes)
    assert total.endswith("with 0 touches")
