"""Finding one's way on the explorer's page: Back and Forward, what is being read, what is in sight."""

from __future__ import annotations

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
