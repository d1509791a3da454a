"""Finding one's way on the explorer's page: Back and Forward, what is being read, what is in sight."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import expect

from tests.support.explorer.page import opened, show

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
    page.keyboard.press("j")
    expect(page.locator("#subject")).to_contain_text("nodeclaim")
    assert page.evaluate("history.length") == steps + 1
    page.keyboard.press("ArrowRight")
    expect(page.locator("#clock")).not_to_have_text(left)
    page.go_back()
    expect(page.locator("#clock")).to_have_text(left)
    expect(page.locator("#close")).to_be_hidden()


def test_what_is_read_is_said_in_place_of_what_was_shown_before(page: Any, links: Links) -> None:
    held = list[Any]()
    opened(page, links("demo"))
    page.wait_for_selector("#text[aria-busy=false] .title")
    page.route("**/api/v1/explain?*", lambda route: held.append(route))
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
    held = list[Any]()
    page.route("**/api/v1/status*", lambda route: held.append(route))
    page.route("**/api/v1/findings*", lambda route: held.append(route))
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
