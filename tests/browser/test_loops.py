"""Tests of a browser run in one process with others."""

from __future__ import annotations

import asyncio
from typing import Any


def test_another_tests_loop_runs_while_playwrights_waits(playwright: Any) -> None:
    assert asyncio.run(asyncio.sleep(0, "ran")) == "ran"


def test_playwright_goes_on_after_it(page: Any) -> None:
    page.goto("data:text/html,<title>on</title>")
    assert page.title() == "on"
