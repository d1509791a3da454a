"""Each view, on a record of each kind, says what the API says."""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from kerf.projections.prose.amounts import moment
from tests.support.explorer.page import ask, opened, plain, show
from tests.support.explorer.records import HOSTILE, RECORDS
from tests.support.records import stored
from tests.support.servers.explorer import explorer
from tests.support.simulation.run import Run, scale, workshop

BROKEN = ("corrupt", "empty")
"""Records of which the API says what is wrong with them."""
Links = Callable[[str], str]


@pytest.mark.parametrize("kind", [kind for kind in RECORDS if kind not in BROKEN])
def test_each_view_says_what_the_api_says(kind: str, page: Any, links: Links) -> None:
    opened(page, links(kind))
    record, answer = ask(page, "record"), ask(page, "status")
    status = answer["status"]
    assert record["record"].endswith(page.text_content("#record"))
    expect(page.locator("#clock")).to_have_text(record["until_time"].replace("T", " ").replace("Z", ""))
    expect(page.locator("#verdict")).to_have_text(status["verdict"]["level"])
    expect(page.locator(".node")).to_have_count(len(status["nodes"]))
    _see_every_node(page)
    expect(page.locator(".pod")).to_have_count(sum(len(pods) for pods in answer["boxes"].values()))
    expect(page.locator(".waits")).to_have_count(len(status["waiting"]))
    assert f"${status['totals']['price']:.4f}/h" in page.text_content("#totals")
    for node in status["nodes"]:
        box = page.locator(".node", has_text=node["name"])
        bought = f"{node['instance_type']} ${node['price']:.4f}" if node["instance_type"] else "no type yet"
        assert bought in box.inner_text()
    for workload in status["waiting"]:
        assert plain(workload["why"]) in plain(page.inner_text("#waiting"))
    _panel_says_what_the_api_says(page, "first", "log", "diff")
    page.keyboard.press("j")
    expect(page.locator("#subject")).to_contain_text("nodeclaim ")
    _panel_says_what_the_api_says(page, "why", "story")


def _see_every_node(page: Any) -> None:
    """Scroll past all nodes: a box gets its pods when it comes near."""
    for node in page.locator(".node").all():
        node.scroll_into_view_if_needed()


def _panel_says_what_the_api_says(page: Any, *tabs: str) -> None:
    for tab in tabs:
        answer = ask(page, show(page, tab))
        texts = [told["text"] for part in ("findings", "events", "text") for told in answer.get(part, ())]
        if command := answer.get("command"):
            expect(page.locator("#command")).to_have_text(f"$ {command}")
        shown = plain(page.text_content("#text"))
        assert [text for text in texts if plain(text) not in shown] == [], tab


def test_nodes_on_their_way_are_counted_apart_and_not_all_named(page: Any, tmp_path: Path) -> None:
    run = Run(workshop(scale("10s", 60)), until=20_000)
    with explorer(stored(tmp_path / "coming.kerf", run.memory)) as served:
        opened(page, served)
        (workload,) = ask(page, "status")["status"]["waiting"]
        places = workload["places"]
        expect(page.locator("#totals")).to_contain_text(f"nodes: 0 and {len(places)} coming, $")
        expect(page.locator("#nodes h3")).to_contain_text(f"default 0 nodes and {len(places)} coming, $")
        expect(page.locator(".waits")).to_contain_text(f": {', '.join(places[:3])} and {len(places) - 3} more")


def test_a_capacity_type_is_no_link_to_a_node_pool_of_its_name(page: Any, tmp_path: Path) -> None:
    documents = deepcopy(workshop(scale("10s", 5), capacity_type="spot"))
    next(document for document in documents if document["kind"] == "NodePool")["metadata"]["name"] = "spot"
    with explorer(stored(tmp_path / "spot.kerf", Run(documents, until=60_000).memory)) as served:
        opened(page, served)
        page.wait_for_function("import('./time/lanes.js').then(({ shownLanes }) => shownLanes().length)")
        linked = """(said) => import('./panel/sentences.js').then(({ linked }) =>
            [...linked(said).querySelectorAll('a')].map((link) => link.textContent))"""
        assert page.evaluate(linked, "m5.large (spot) in us-west-2a") == []
        assert page.evaluate(linked, "m5.large (spot) of NodePool spot") == ["spot"]
        assert page.evaluate(linked, "  spot  cpu 50%") == ["spot"]


def test_what_comes_before_damage_is_shown_and_the_damage_is_said(new_page: Callable[..., Any], links: Links) -> None:
    page = opened(new_page(), links("corrupt"))
    timeline = ask(page, "timeline")
    expect(page.locator("#reading")).to_have_text(timeline["fault"])
    assert "damaged" in timeline["fault"]
    before = moment(timeline["until"] - 1)
    expect(page.locator("#clock")).to_have_text(before.replace("T", " ").replace("Z", ""))
    status = ask(page, f"status?at={before}")["status"]
    expect(page.locator("#verdict")).to_have_text(status["verdict"]["level"])
    answer = ask(page, show(page, "log"))
    assert answer["events"]
    expect(page.locator("#text .event")).to_have_count(len(answer["events"]))


def test_what_is_wrong_with_an_empty_record_is_said(new_page: Callable[..., Any], links: Links) -> None:
    page = opened(new_page(), links("empty"))
    error = ask(page, "record")["error"]
    said = page.text_content("#error")
    assert error["message"] in said
    assert error["code"] in said


def test_a_server_that_has_ended_is_told_with_what_to_do(
    new_page: Callable[..., Any], records: Callable[[str], Path]
) -> None:
    with explorer(records("life")) as link:
        page = opened(new_page(), link)
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#error")).to_have_text(re.compile(r"^kerf does not answer\. .*start kerf ui again.*"))


def test_hostile_names_are_shown_as_they_are(page: Any, links: Links) -> None:
    """Names are text: nothing in them becomes an element. What would turn the text around is shown as an escape."""
    opened(page, links("hostile"))
    for tab in ("first", "log", "diff"):
        show(page, tab)
    page.locator(".pod").first.click()
    expect(page.locator("#subject")).to_have_text(f"pod default/{HOSTILE[0]}")
    for tab in ("why", "story"):
        show(page, tab)
    page.fill("#search", "<")
    expect(page.locator("#found li")).to_have_count(2)
    assert {f"pod default/{name}" for name in HOSTILE[:2]} == set(page.locator("#found li").all_text_contents())
    page.keyboard.press("Escape")
    page.locator("#waiting button", has_text="yaml").click()
    expect(page.locator("#subject")).to_have_text("pod default/a\\u202e.yaml")
    assert "name=pod%2Fdefault%2Fa%E2%80%AE.yaml" in show(page, "why")
    page.locator(".pod").first.hover()
    expect(page.locator("#tip")).to_contain_text(HOSTILE[0])
    assert page.locator("img, b:has-text('bold'), script:not([src])").count() == 0
    assert "\u202e" not in page.inner_text("body")


def test_a_model_that_is_shown_can_be_made_again(page: Any, links: Links) -> None:
    opened(page, links("demo"))
    page.locator("#tabs [data-tab=diff]").click()
    page.click("text=Compare the record with a model of it")
    page.wait_for_selector(".curve.modelled")
    expect(page.locator("#text .actions")).to_have_text("Model it again")


def test_what_is_refused_is_said_once_to_its_end(new_page: Callable[..., Any], links: Links) -> None:
    page = opened(new_page(), links("life"))
    page.locator("#tabs [data-tab=whatif]").click()
    page.locator("#flag").select_option("price")
    page.fill("#value", "m5.lrge=1")
    page.keyboard.press("Enter")
    expect(page.locator("#text .warning")).to_have_text(re.compile(r"^KERF208: there is no .* m5\.lrge .*\?$"))
