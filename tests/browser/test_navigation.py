"""Finding one's way on the explorer's page: Back and Forward, what is being read, what is in sight."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import expect

from kerf.projections.prose.amounts import moment
from tests.support.explorer.page import ask, opened, show

Links = Callable[[str], str]


def test_back_leads_to_the_selection_before_and_forward_returns(page: Any, links: Links) -> None:
    opened(page, links("demo"))
    page.keyboard.press("j")
    expect(page.locator("#subject")).to_contain_text("nodeclaim")
    first = page.text_content("#subject")
    page.keyboard.press("j")
    expect(page.locator("#subject")).not_to_have_text(first)
    second = page.text_content("#subject")
    show(page, "story")
    page.go_back()
    expect(page.locator("#tabs [aria-selected=true]")).to_have_text("Why")
    expect(page.locator("#subject")).to_have_text(second)
    page.go_back()
    expect(page.locator("#subject")).to_have_text(first)
    page.go_back()
    expect(page.locator("#tabs [aria-selected=true]")).to_have_text("Look first")
    assert "sel=" not in page.url
    for _ in range(2):
        page.go_forward()
    expect(page.locator("#subject")).to_have_text(second)


def test_back_returns_to_the_moment_of_the_selection_and_a_moved_cursor_is_no_step(page: Any, links: Links) -> None:
    opened(page, links("demo"))
    page.keyboard.press("ArrowLeft")
    steps = page.evaluate("history.length")
    for _ in range(3):
        before = page.text_content("#clock")
        page.keyboard.press("ArrowLeft")
        expect(page.locator("#clock")).not_to_have_text(before)
    left = page.text_content("#clock")
    page.locator("#legend button").first.click()  # a NodePool: it is there at any moment
    expect(page.locator("#subject")).to_contain_text("nodepool")
    assert page.evaluate("history.length") == steps + 1
    page.keyboard.press("ArrowRight")
    expect(page.locator("#clock")).not_to_have_text(left)
    page.go_back()
    expect(page.locator("#clock")).to_have_text(left)
    expect(page.locator("#close")).to_be_hidden()


def test_what_is_read_is_said_in_place_of_what_was_shown_before(page: Any, links: Links) -> None:
    opened(page, links("demo"))
    page.wait_for_selector("#text[aria-busy=false] .title")
    held = hold(page, "explain?*")
    page.keyboard.press("j")
    expect(page.locator("#subject")).to_contain_text("nodeclaim")
    name = page.text_content("#subject")
    expect(page.locator("#text")).to_have_text(re.compile(f"Reading why {name} is as it is at .* …"))
    page.wait_for_timeout(300)  # the question is asked a moment later
    held.pop().continue_()
    page.wait_for_selector("#text[aria-busy=false]")
    expect(page.locator("#text")).to_contain_text(name.partition(" ")[2])
    assert page.locator("#text .reading").count() == 0


def test_a_page_that_waits_for_its_first_answers_says_what_it_reads_of_which_record(page: Any, links: Links) -> None:
    held = hold(page, "status*", "findings*")
    page.goto(links("demo"))
    expect(page.locator("#lead")).to_have_text(re.compile(r"Reading the cluster's state at .* from demo\.kerf …"))
    expect(page.locator("#text")).to_have_text("Reading what stands out in demo.kerf …")
    expect(page.locator("#exactness")).to_be_hidden()
    page.wait_for_timeout(300)
    assert len(held) == 2
    for route in held:
        route.continue_()
    page.wait_for_selector("#nodes > *")
    page.wait_for_selector("#text[aria-busy=false]")
    assert page.locator(".reading").count() == 0
    expect(page.locator("#exactness")).to_be_visible()


def hold(page: Any, *questions: str) -> list[Any]:
    """The questions to the API that wait for `continue_()`, as they come."""
    held = list[Any]()

    def keep(route: Any) -> None:
        held.append(route)

    for question in questions:
        page.route(f"**/api/v1/{question}", keep)
    return held


def test_a_finding_inside_what_is_shown_keeps_the_part_of_the_record(page: Any, links: Links) -> None:
    opened(page, links("demo"))
    found = ask(page, "findings")["findings"]
    page.wait_for_selector("#text[aria-busy=false] .card")
    page.locator("#text .card").first.click()
    page.wait_for_url("**sel=*")
    expect(page.locator("#clock")).to_have_text(clock(found[0]["at"]))
    assert "from=" not in page.url
    span = ask(page, "timeline")
    page.goto(f"{page.url.partition('?')[0]}?from={moment(span['until'] - 1000)}&to={moment(span['until'])}")
    page.wait_for_selector("#text[aria-busy=false] .card")
    assert found[0]["at"] < span["until"] - 1000
    page.keyboard.press("n")
    page.wait_for_url("**from=*sel=*")
    shown = page.evaluate("['from', 'to'].map((n) => Date.parse(new URLSearchParams(location.search).get(n)))")
    assert shown[0] <= found[0]["at"] <= shown[1]


def test_the_header_says_which_moment_is_pinned(page: Any, links: Links) -> None:
    opened(page, links("demo"))
    end = page.text_content("#clock")
    expect(page.locator("#pin")).to_have_attribute("aria-pressed", "false")
    page.keyboard.press("p")
    expect(page.locator("#pin")).to_have_text(f"pin {end[11:19]}")
    expect(page.locator("#pin")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("p")
    expect(page.locator("#pin")).to_have_text("pin")


def test_a_tip_covers_no_text_of_the_panel_and_goes_when_the_lanes_scroll(page: Any, links: Links) -> None:
    opened(page, links("day"))
    box = page.locator("#lanes").bounding_box()
    page.mouse.move(box["x"] + box["width"] - 12, box["y"] + 80)
    expect(page.locator("#tip")).to_be_visible()
    tip, panel = page.locator("#tip").bounding_box(), page.locator("#panel").bounding_box()
    assert tip["x"] + tip["width"] <= panel["x"]
    page.locator("#lanes-scroll").evaluate("lanes => { lanes.scrollTop = 40; }")
    expect(page.locator("#tip")).to_be_hidden()


def test_the_tab_story_says_why_it_cannot_be_opened(page: Any, links: Links) -> None:
    opened(page, links("demo"))
    story = page.locator("#tabs [data-tab=story]")
    expect(story).to_be_disabled()
    expect(story).to_have_attribute("title", re.compile("Select a pod, node"))
    page.keyboard.press("j")
    expect(story).to_be_enabled()
    expect(story).to_have_attribute("title", re.compile("What happened to it"))


def test_lanes_that_last_come_first_and_a_button_leads_to_the_others(page: Any, links: Links) -> None:
    opened(page, links("day"))
    page.keyboard.press("j")  # the first lane
    more = page.locator("#more-lanes")
    expect(more).to_have_text(re.compile(r"▾ \d+ more"))
    lanes = page.evaluate("import('./time/lanes.js').then((lanes) => lanes.shownLanes())")
    lasting = [lane["claim"] for lane in lanes if not lane["end"]]
    assert 0 < len(lasting) < len(lanes)
    assert page.text_content("#subject").partition(" ")[2] in lasting
    for _ in range(40):
        if more.is_hidden():
            break
        more.click()
        page.wait_for_timeout(100)
    expect(more).to_be_hidden()
    end = "lanes => lanes.scrollTop + lanes.clientHeight >= lanes.scrollHeight - 4"
    assert page.locator("#lanes-scroll").evaluate(end)


def test_lanes_of_the_cursors_moment_come_first_and_the_button_covers_none(page: Any, links: Links) -> None:
    page.set_viewport_size({"width": 1280, "height": 620})
    opened(page, links("day"))
    lanes = page.evaluate("import('./time/lanes.js').then((lanes) => lanes.shownLanes())")
    pool = min(lane["node_pool"] for lane in lanes)
    lanes = [lane for lane in lanes if lane["node_pool"] == pool]
    early = min(lane["end"] for lane in lanes if lane["end"]) - 1_000
    begun = [lane for lane in lanes if lane["spans"][0]["at"] <= early]
    there = {lane["claim"] for lane in begun if not lane["end"] or lane["end"] > early}
    assert any(lane["end"] for lane in begun)
    assert any(not lane["end"] for lane in lanes if lane["claim"] not in there)
    page.evaluate(f"import('./shared/view.js').then(({{ change }}) => change({{ at: {early} }}))")
    page.wait_for_timeout(700)
    first = set()
    for _ in there:
        page.keyboard.press("j")
        first.add(page.text_content("#subject").partition(" ")[2])
    assert first == there
    above, button = page.locator("#lanes-scroll").bounding_box(), page.locator("#more-lanes").bounding_box()
    assert above["y"] + above["height"] <= button["y"] + 0.5


def test_the_box_of_a_drifted_node_says_since_when(page: Any, links: Links) -> None:
    opened(page, links("drifted"))
    assert page.locator(".node .drifted").count() == 0
    at = next(event["at"] for event in ask(page, "log?limit=1000")["events"] if "has drifted" in event["text"])
    page.goto(f"{page.url.partition('?')[0]}?at={moment(at + 500)}")
    page.wait_for_selector(".node .drifted")
    drifted = [
        node["name"] for node in ask(page, f"status?at={moment(at + 500)}")["status"]["nodes"] if node["drifted_since"]
    ]
    assert drifted == [text.strip() for text in page.locator(".node:has(.drifted) strong").all_text_contents()]
    page.locator(".node:has(.drifted) strong").hover()
    expect(page.locator("#tip")).to_contain_text(f"drifted since {clock(at)}")


def clock(at: int) -> str:
    return moment(at).replace("T", " ").removesuffix("Z")
