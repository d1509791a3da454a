"""Reading the explorer's page as a person does, and asking its API for the same."""

from __future__ import annotations

import re
from typing import Any

from tests.support.servers.explorer import TOKEN


def ask(page: Any, path: str) -> Any:
    """What the API says, asked by the page: "status?at=+1m"."""
    script = """([path, token]) => fetch("/api/v1/" + path, {headers: {Authorization: "Bearer " + token}})
        .then(found => found.json())"""
    return page.evaluate(script, [path, TOKEN])


def opened(page: Any, link: str) -> Any:
    """The page, once the cluster and the panel are shown."""
    page.goto(link)
    page.wait_for_selector("#nodes > *, #error:not([hidden])")
    return page


def plain(text: str) -> str:
    """A text without the room between its words."""
    return " ".join(text.split())


def show(page: Any, tab: str) -> str:
    """Open a tab of the panel. Returns the path of the API that it shows."""
    routes = {"why": "explain|decision", "first": "findings"}.get(tab, tab)
    with page.expect_response(re.compile(rf"/api/v1/({routes})\b")) as answering:
        page.locator(f"#tabs button[data-tab={tab}]").click()
    return str(answering.value.url.partition("/api/v1/")[2])
