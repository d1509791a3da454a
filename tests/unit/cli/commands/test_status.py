"""`kerf status`: what it prints, how wide, for which records, and that it goes on while a controller writes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from kerf.adapters.cli.render.width import text_width
from kerf.adapters.store.files.golden import write_golden
from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.engine.model.karpenter.nodeoverlays import NodeOverlay
from kerf.engine.model.karpenter.nodepools import RequirementSpec
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.labels import INSTANCE_TYPE
from kerf.engine.record.observations import Observation
from kerf.engine.record.store import Append
from tests.support.lives import half_empty, in_service
from tests.support.records import stored
from tests.support.repository import ROOT
from tests.support.world import World


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    world = half_empty()
    world.pending("huge", memory=10**13)
    world.after(1_000)
    return stored(tmp_path_factory.mktemp("records") / "life.kerf", world.store)


def test_the_text_has_80_columns_and_no_colour(kerf: Any, record: Path) -> None:
    code, out, err = kerf("status", record, "--at", "+30m")
    assert (code, "\x1b" in out) == (0, False)
    assert "is answered as if nothing had happened since" in err
    lines = out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0] == "degraded: 1 pod without a place (default/huge)"
    assert "  default/huge: 1 pod for 19m59s, 9,313.2Gi memory" in out
    assert "WAITING" in lines
    assert "NODES" in lines


@pytest.mark.parametrize(("asked", "most"), [("60", 60), ("200", 200), ("0", 80), ("wide", 80), ("9" * 9_999, 99_999)])
def test_columns_say_how_wide_the_text_is_also_in_a_pipe(
    kerf: Any, record: Path, asked: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", asked)
    lines = kerf("status", record, "--at", "+30m")[1].splitlines()
    assert max(map(len, lines)) <= most
    assert kerf("--help")[1].splitlines()[-1].rstrip() == f"╰{'─' * (most - 2)}╯"


@pytest.mark.parametrize(("terminal", "width"), [(60, 60), (200, 80), (10, 40)])
def test_on_a_terminal_text_is_as_wide_as_it_and_80_columns_at_most(
    terminal: int, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr("sys.stdout.fileno", lambda: 1)
    monkeypatch.setattr("os.get_terminal_size", lambda _: os.terminal_size((terminal, 24)))
    assert text_width() == width


def test_a_nodepool_tells_nodes_that_are_coming_apart(kerf: Any) -> None:
    """As the line at the top does."""
    golden = ROOT / "tests" / "golden" / "workshop-scale-up-and-down"
    code, out, _ = kerf("status", golden, "--at", "+1m5s")
    assert (code, out.count("0 nodes and 1 coming")) == (0, 2)


def test_a290_what_was_refused_is_told_with_when_it_is_asked_for_again(kerf: Any) -> None:
    """A cheaper type was refused; it is not asked for, then in doubt, and may replace the node then."""
    golden = ROOT / "tests" / "golden" / "no-capacity"
    asked_again, replaced_again = "2026-01-01T00:04:03.318Z", "2026-01-01T00:07:03.318Z"
    for when, what, until in (
        ("+3m", "without capacity lately, not asked for", asked_again),
        ("+5m", "refused when last asked for, replacing no node", replaced_again),
    ):
        code, out, _ = kerf("status", golden, "--at", when)
        flowing = " ".join(out.split())
        assert (code, max(map(len, out.splitlines())) <= 80) == (0, True)
        assert (
            f"{what} (all with capacity type on-demand, instance type m5.large) until {until}: on-demand m5.large"
            in flowing
        )
        assert f"stays: nothing cheaper, refused ones count again at {replaced_again}; r5.large" in flowing
    _, out, _ = kerf("explain", golden, "node/ip-10-0-0-5", "--at", "+5m")
    assert f"something cheaper was refused when last asked for: tried again at {replaced_again}" in out


def test_long_names_keep_to_80_columns(kerf: Any, tmp_path: Path) -> None:
    """Pseudonyms, say."""
    world = half_empty()
    name = "node-" + "x" * 55
    world.see(Observation(Node(name, uid="u-long", ready=True)))
    code, out, _ = kerf("status", stored(tmp_path / "r.kerf", world.store))
    assert (code, f"  {name}\n" in out) == (0, True)
    assert max(map(len, out.splitlines())) <= 80


def test_a_price_of_a_nodeoverlay_is_told(kerf: Any, tmp_path: Path) -> None:
    """By the node in status, and by explain: nothing else shows that the price is not the cloud's."""
    world = World(node_overlays=True)
    world.prepare()
    large = RequirementSpec(INSTANCE_TYPE, "In", ("m5.xlarge",))
    world.see(Observation(NodeOverlay("discount", requirements=(large,), price=0.01)))
    world.pending("a")
    world.after(1_000)
    ((ref, order),) = world.launches()
    world.answer_launch(ref, order)
    record = stored(tmp_path / "r.kerf", world.store)
    said = "priced by NodeOverlay discount ($0.1920/h without)"
    assert said in " ".join(kerf("status", record)[1].split())
    assert said in kerf("explain", record, order.claim)[1]


def test_a_node_that_takes_no_more_pods_says_how_many_it_takes(kerf: Any, tmp_path: Path) -> None:
    """Its CPU and memory are half empty."""
    world = World()
    world.prepare()
    small, large = ({"cpu": 8_000, "memory": 2**33, "pods": pods} for pods in (2, 110))
    for name, room in (("n1", small), ("n2", large)):
        world.see(Observation(Node(name, ready=True, allocatable=room)))
        for pod in "ab":
            world.pending(f"{name}{pod}")
            world.bind(f"{name}{pod}", name)
    out = kerf("status", stored(tmp_path / "r.kerf", world.store))[1]
    assert (out.count("2 of 2 pods"), out.count("2 pods")) == (1, 2)


def test_the_hour_before_tells_what_a_state_does_not(kerf: Any, tmp_path: Path) -> None:
    """Five pods' node is interrupted: the state afterwards says nothing of that."""
    record = ROOT / "tests" / "golden" / "spot-interruption"
    code, out, _ = kerf("status", record, "--json")
    recent = json.loads(out)["recent"]
    told = json.loads(kerf("churn", record, "--json")[1])["total"]
    evicted = json.loads(kerf("evictions", record, "--json")[1])["total"]["evicted"]
    assert (code, recent["launched"], recent["evicted"]) == (0, told["launched"], evicted)
    assert sum(recent["gone"].values()) == told["gone"] > 0
    words = " ".join(kerf("status", record)[1].split())
    assert f"{recent['launched']} nodes launched, " in words
    assert f" gone ({', '.join(f'{number} {why}' for why, number in recent['gone'].items())}), " in words
    assert "in the hour before" not in kerf("status", record, "--at", "+1s")[1]


def test_every_form_of_a_record_has_the_same_status(kerf: Any, record: Path, tmp_path: Path) -> None:
    wanted = kerf("status", record, "--json")[1]
    assert kerf("bundle", "export", record, tmp_path / "b.kerfb")[0] == 0
    opened = SQLiteStore(record, "read")
    write_golden(opened, tmp_path / "golden")
    opened.close()
    for form in (tmp_path / "b.kerfb", tmp_path / "golden", f"sqlite://{record}"):
        assert kerf("status", form, "--json")[1] == wanted
    assert json.loads(wanted)["at_time"].startswith("2023-11-14T")


def test_a_live_record_is_watched(kerf: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world, path = in_service(), tmp_path / "live.kerf"
    stored(path, world.store).chmod(0o600)
    written, looks = len(world.store.entries), 0

    def wait(_: float) -> None:
        nonlocal looks
        looks += 1
        if looks == 3:
            raise KeyboardInterrupt
        if looks == 1:
            world.pending("late")
            writer = SQLiteStore(path, "write")
            added = tuple(world.store.entries[written:])
            writer.append(Append(added, dict(world.store.blobs)))
            writer.close()

    monkeypatch.setattr("kerf.adapters.cli.render.moment.status_view.time.sleep", wait)
    code, out, _ = kerf("status", path, "--watch", "--json")
    first, second = map(json.loads, out.splitlines())
    assert code == 130
    assert (first["totals"]["pods"], second["totals"]["pods"]) == ({"running": 5}, {"running": 5, "waiting": 1})


def test_what_nobody_writes_is_shown_once(kerf: Any, record: Path, tmp_path: Path) -> None:
    kerf("bundle", "export", record, tmp_path / "b.kerfb")
    assert kerf("status", tmp_path / "b.kerfb", "--watch") == kerf("status", tmp_path / "b.kerfb")


def test_watch_and_at_are_not_given_together(kerf: Any, record: Path) -> None:
    assert kerf("status", record, "--watch", "--at", "10:00")[0] == 2


def test_names_cannot_steer_the_terminal(kerf: Any, tmp_path: Path) -> None:
    world = World()
    world.prepare()
    world.pending("web\x1b[2J\u202e", memory=10**13)
    world.after(1_000)
    _, out, _ = kerf("status", stored(tmp_path / "hostile.kerf", world.store))
    assert "\\x1b[2J" in out
    assert not {"\x1b", "\u202e"} & set(out)


def test_many_nodes_are_cut_to_the_emptiest_unless_all_are_asked_for(kerf: Any, tmp_path: Path) -> None:
    world = World()
    world.prepare()
    names = [f"ip-10-0-0-{number}.eu.internal" for number in range(30)]
    world.see(*(Observation(Node(name, ready=True, allocatable={"cpu": 1})) for name in names))
    path = stored(tmp_path / "many.kerf", world.store)
    _, out, _ = kerf("status", path)
    assert "NODES (the emptiest 20 of 30)" in out
    assert "… and 10 more: --all" in out
    assert "eu.internal" not in out
    _, everything, _ = kerf("status", path, "--all")
    assert everything.count("  ip-10-0-0-") == 30


CUT = ROOT / "tests" / "records" / "0.1.0" / "cut.kerfb"


@pytest.mark.parametrize("command", [("status",), ("diff", "-1m"), ("explain", "np/default"), ("story", "np/default")])
def test_a_cut_record_answers_from_its_base_on(kerf: Any, command: tuple[str, ...]) -> None:
    name, *rest = command
    code, out, err = kerf(name, CUT, *rest)
    assert (code, bool(out), err) == (0, True, "")


@pytest.mark.parametrize("command", [("status", "--at", "start"), ("diff", "start"), ("at", "1")])
def test_what_a_cut_has_removed_is_refused(kerf: Any, command: tuple[str, ...]) -> None:
    name, *rest = command
    code, out, err = kerf(name, CUT, *rest)
    assert (code, out, err.split(":")[0]) == (2, "", "KERF118")
