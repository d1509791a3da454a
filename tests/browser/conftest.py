"""A browser, the explorer's servers, and pages on which nothing may go wrong."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, chdir
from pathlib import Path
from typing import Any

import pytest

from tests.support.explorer.records import RECORDS
from tests.support.servers.explorer import explorer

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or ""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed (set CHROMIUM to its path)")
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(missing)


@pytest.fixture(scope="session")
def records(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A record by the name of its kind, made once."""
    folder, made = tmp_path_factory.mktemp("records"), dict[str, Path]()

    def record(kind: str) -> Path:
        if kind not in made:
            made[kind] = RECORDS[kind](folder)
        return made[kind]

    return record


@pytest.fixture(scope="session")
def links(records: Callable[[str], Path]) -> Iterator[Callable[[str], str]]:
    """The link to the page of a record, by its kind. Each server runs until the last test, in the records' folder: the
    commands on the page name no folder."""
    serving = dict[str, str]()
    with chdir(records("life").parent), ExitStack() as stack:

        def link(kind: str) -> str:
            if kind not in serving:
                place = records(kind)
                own = place.relative_to(Path.cwd()) if place.is_relative_to(Path.cwd()) else place
                serving[kind] = stack.enter_context(explorer(own))
            return serving[kind]

        yield link


@pytest.fixture(scope="session")
def playwright() -> Iterator[Any]:
    """Playwright, and its event loop, which runs until the last test: between the tests of a browser this thread is
    said to run none, so that those of the same process may run theirs."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        loop = asyncio.get_running_loop()
        asyncio._set_running_loop(None)
        yield started, loop
        asyncio._set_running_loop(loop)


@pytest.fixture
def _loop(playwright: Any) -> Iterator[None]:
    asyncio._set_running_loop(playwright[1])
    yield
    asyncio._set_running_loop(None)


@pytest.fixture(scope="session")
def launch(playwright: Any) -> Iterator[Callable[[], Any]]:
    """Gives the browser, which one test starts for all."""
    started: list[Any] = []

    def browser() -> Any:
        if not started:
            options = {"executable_path": CHROMIUM, "args": ["--no-sandbox", "--disable-lcd-text"]}
            started.append(playwright[0].chromium.launch(**options))
        return started[0]

    yield browser
    asyncio._set_running_loop(playwright[1])
    for one in started:
        one.close()
    asyncio._set_running_loop(None)


@pytest.fixture
def browser(launch: Callable[[], Any], _loop: None) -> Any:
    return launch()


@pytest.fixture
def wrong() -> list[str]:
    """What went wrong on the pages of a test: errors, and what the Content-Security-Policy stopped."""
    return []


@pytest.fixture
def new_page(browser: Any, wrong: list[str]) -> Iterator[Callable[..., Any]]:
    """Opens pages with a context of their own."""
    opened = []

    def page(**options: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
        opened.append(context)
        made = context.new_page()
        made.on("pageerror", lambda error: wrong.append(str(error)))
        made.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None)
        made.on("dialog", lambda dialog: wrong.append(f"a dialog: {dialog.message}"))
        return made

    yield page
    for context in opened:
        context.close()


@pytest.fixture
def page(new_page: Callable[..., Any], wrong: list[str]) -> Iterator[Any]:
    """A page on which nothing may go wrong."""
    yield new_page()
    assert wrong == []
