"""The explorer's page over time in a real browser: moving the cursor, choosing a part, a record that grows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from kerf.adapters.simulation.build import START
from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.engine.record.store import Append
from kerf.projections.prose.amounts import duration, moment
from tests.support.explorer.page import ask
from tests.support.records import whole_life
from tests.support.servers.explorer import explorer
from tests.support.simulation.run import Run, scale, workshop

RESTS = "() => !document.querySelector('#cluster.moving')"
MOVES = """() => document.querySelector('#cluster.moving')
    && ["exactness", "totals"].map(id => document.getElementById(id).textContent)"""
MINUTE = 60_000
Links = Callable[[str], str]


@pytest.fixture
def link(links: Links) -> str:
    return links("life")


@pytest.fixture
def page(new_page: Callable[..., Any], wrong: list[str]) -> Iterator[Any]:
    """A page far from Greenwich, on which nothing may go wrong."""
    yield new_page(timezone_id="America/New_York")
    assert wrong == []


def test_what_is_drawn_while_the_cursor_moves_is_told_apart_from_the_exact_state(page: Any, link: str) -> None:
    page.goto(link)
    page.wait_for_selector("#nodes > *")
    box = page.locator("#curves").bounding_box()
    left, width, y = box["x"] + 180, box["width"] - 190, box["y"] + 40
    page.wait_for_timeout(300)  # what the page opened with is no move
    page.mouse.move(left, y)
    page.mouse.down()
    for step in range(20):
        page.mouse.move(left + width * (0.2 + 0.02 * step), y)
    moving, totals = page.wait_for_function(MOVES).json_value()
    page.mouse.up()
    page.wait_for_function(RESTS)
    assert moving != "exact" == page.text_content("#exactness")
    at = page.text_content("#clock").replace(" ", "T") + "Z"
    status = ask(page, f"status?at={at}")["status"]
    nodes = f"nodes: {status['totals']['nodes']}, ${status['totals']['price']:.4f}/h"
    assert page.text_content("#totals").startswith(nodes)
    assert totals.startswith(nodes)


def test_a_part_is_chosen_by_a_drag_with_shift_and_stands_in_the_link(page: Any, link: str) -> None:
    page.goto(link)
    page.wait_for_selector("#nodes > *")
    box = page.locator("#lanes").bounding_box()
    left, width, y = box["x"] + 168, box["width"] - 168, box["y"] + 60
    page.keyboard.down("Shift")
    page.mouse.move(left + width * 0.25, y)
    page.mouse.down()
    page.mouse.move(left + width * 0.5, y, steps=4)
    page.mouse.up()
    page.keyboard.up("Shift")
    page.wait_for_function("() => location.search.includes('from=')")
    told = page.evaluate("['from', 'to'].map((n) => Date.parse(new URLSearchParams(location.search).get(n)))")
    span = ask(page, "timeline")
    whole = span["until"] - span["since"]
    assert told[0] == pytest.approx(span["since"] + whole * 0.25, abs=whole * 0.01)
    assert told[1] == pytest.approx(span["since"] + whole * 0.5, abs=whole * 0.01)


def test_the_link_has_the_machines_own_time(page: Any, link: str) -> None:
    page.goto(link)
    page.wait_for_selector("#nodes > *")
    utc = page.text_content("#clock")
    page.click("#zone")
    page.wait_for_function("() => location.search.includes('zone=local')")
    local = page.text_content("#clock")
    assert utc[11:13] != local[11:13]
    page.reload()
    page.wait_for_selector("#nodes > *")
    assert page.text_content("#clock") == local


def test_play_moves_the_cursor_to_the_end(page: Any, link: str) -> None:
    page.goto(link)
    page.wait_for_selector("#nodes > *")
    end = page.text_content("#clock")
    page.keyboard.press("ArrowLeft")
    page.wait_for_function("end => document.getElementById('clock').textContent !== end", arg=end)
    page.select_option("#speed", "3600")
    page.click("#play")
    page.wait_for_function("end => document.getElementById('clock').textContent === end", arg=end)
    page.wait_for_function(RESTS)
    assert page.get_attribute("#play", "aria-label") == "Play"


def test_a_page_at_the_end_goes_on_with_a_record_that_grows(page: Any, tmp_path: Path) -> None:
    memory = whole_life().store
    turns = [tuple(turn) for _, turn in groupby(memory.entries, key=lambda entry: entry.turn)]
    half = len(turns) // 2
    path = tmp_path / "live.kerf"
    writer = SQLiteStore(path, "create")
    writer.append(Append(turns[0], memory.blobs))
    for turn in turns[1:half]:
        writer.append(Append(turn, {}))
    with closing(writer), explorer(path) as link:
        page.goto(link)
        page.wait_for_selector("#nodes > *")
        page.wait_for_selector("#lanes-scroll")
        before = page.text_content("#clock")
        for turn in turns[half:]:
            writer.append(Append(turn, {}))
        end = moment(memory.entries[-1].at).replace("T", " ").removesuffix("Z")
        page.wait_for_function("end => document.getElementById('clock').textContent === end", arg=end)
        page.wait_for_function(RESTS)
        assert before < end
        status = ask(page, "status")["status"]
        page.wait_for_function("n => document.querySelectorAll('.node').length === n", arg=len(status["nodes"]))
        drawn = page.evaluate("import('./time/lanes.js').then((lanes) => lanes.shownLanes().map((lane) => lane.end))")
        assert drawn == [memory.entries[-1].at]
        page.goto("about:blank")  # before the server ends


def test_a_page_follows_a_simulation_that_writes(page: Any, tmp_path: Path) -> None:
    path = tmp_path / "simulated.kerf"
    with closing(SQLiteStore(path, "create")) as store:
        run = Run(workshop(scale("1m", 5), scale("20m", 9), scale("40m", 0)), until=10 * MINUTE, store=store)
        with explorer(path) as link:
            page.goto(link)
            page.wait_for_selector(".node")
            page.wait_for_selector("#lanes-scroll")
            seen = []
            for minutes in (12, 25, 39, 60):
                run.driver.run(START + minutes * MINUTE)
                end = next(store.scan(store.last_position() - 1)).at
                clock = moment(end).replace("T", " ").removesuffix("Z")
                page.wait_for_function("end => document.getElementById('clock').textContent === end", arg=clock)
                page.wait_for_function(RESTS)
                status = ask(page, "status")["status"]
                page.wait_for_function("n => document.querySelectorAll('.node').length === n", arg=len(status["nodes"]))
                expect(page.locator("#verdict")).to_have_text(status["verdict"]["level"])
                seen.append(len(status["nodes"]))
            assert seen[0] < seen[1] == seen[2]
            assert seen[3] == 0
            page.goto("about:blank")  # before the server ends


def test_durations_are_rounded_as_in_the_texts_beside_them(page: Any, link: str) -> None:
    page.goto(link)
    page.wait_for_selector("#nodes > *")
    asked = [0, 59_999, 60_000, 119_999, 3_600_000, 5_399_999, 86_400_000, 93_600_000]
    told = page.evaluate("(all) => import('./shared/view.js').then(({ duration }) => all.map(duration))", asked)
    assert told == [duration(milliseconds // 1000 * 1000) for milliseconds in asked]


def test_the_axis_of_several_days_tells_which_day_begins(page: Any, link: str) -> None:
    page.goto(link)
    page.wait_for_selector("#nodes > *")
    script = """([days]) => Promise.all([import('./shared/draw.js'), import('./shared/view.js')]).then(
        ([{ axisText }, { view, iso }]) => {
            const from = Date.parse("2026-01-01T00:00:00Z");
            Object.assign(view, { zone: "utc", from, to: from + days * 86_400_000 });
            return [24, 36].map((hours) => axisText(from + hours * 3_600_000, 43_200_000));
        })"""
    assert page.evaluate(script, [3]) == ["01-02", "12:00"]
    assert page.evaluate(script, [1]) == ["00:00", "12:00"]


def test_long_names_of_lanes_are_told_apart_by_their_end(page: Any, link: str) -> None:
    page.goto(link)
    page.wait_for_selector("#nodes > *")
    script = """(pool) => import('./time/lanes.js').then(({ laneName }) => laneName(
        document.createElement('canvas').getContext('2d'),
        { claim: `${pool}-x7k2m`, node_pool: pool, instance_type: "m5.large" }, 168))"""
    assert page.evaluate(script, "general") == "general-x7k2m  m5.large"
    assert page.evaluate(script, "a-team-with-a-very-long-name-for-its-nodes") == "x7k2m  m5.large"
