"""axe finds nothing serious in any view, in both themes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from kerf.adapters.store.open import open_record
from tests.support.explorer.page import opened, show

AXE = Path(__file__).with_name("axe") / "axe.min.js"
DIGEST = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
SERIOUS = ("serious", "critical")
Links = Callable[[str], str]


def test_axe_is_the_published_one() -> None:
    assert hashlib.sha256(AXE.read_bytes()).hexdigest() == DIGEST


class Audit:
    """What axe says of a page, by view."""

    def __init__(self, page: Any, found: dict[str, list[str]] | None = None) -> None:
        self._page = page
        self.found = {} if found is None else found
        page.evaluate(AXE.read_text(encoding="utf-8"))

    def look(self, view: str) -> None:
        for theme in ("light", "dark"):
            self._page.evaluate("theme => { document.documentElement.dataset.theme = theme; }", theme)
            found = self._page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
            serious = [
                f"{violation['id']}: {node['html'][:150]} {node['failureSummary'][:300]}"
                for violation in found
                if violation["impact"] in SERIOUS
                for node in violation["nodes"]
            ]
            if serious:
                self.found[f"{view}, {theme}"] = serious


def a_decision(record: Path) -> int:
    """The position of the first that plans nodes for pods."""
    with closing(open_record(record)) as store:
        return next(entry.position for entry in store.scan() if entry.type == "decision.made")


def test_axe_finds_nothing_serious_in_any_view(page: Any, links: Links, records: Callable[[str], Path]) -> None:
    audit = Audit(opened(page, links("demo")))
    for tab in ("first", "log", "diff"):
        show(page, tab)
        audit.look(tab)
    page.locator("#tabs button[data-tab=whatif]").click()
    expect(page.locator("#change")).to_be_visible()
    audit.look("whatif")
    page.keyboard.press("j")
    for tab in ("why", "story"):
        show(page, tab)
        audit.look(tab)
    page.goto(f"{links('demo').partition('#')[0]}?sel=decision/{a_decision(records('demo'))}")
    expect(page.locator("#text")).to_contain_text("Decide again")
    audit = Audit(page, audit.found)
    audit.look("decision")
    page.fill("#search", "default")
    page.wait_for_selector("#found li")
    audit.look("found")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    page.wait_for_selector("#help[open]")
    audit.look("help")
    assert audit.found == {}


@pytest.mark.parametrize("kind", ["empty", "corrupt", "hostile"])
def test_axe_finds_nothing_serious_where_a_record_cannot_be_shown(
    kind: str, new_page: Callable[..., Any], links: Links
) -> None:
    audit = Audit(opened(new_page(), links(kind)))
    audit.look(kind)
    assert audit.found == {}


def test_axe_finds_nothing_serious_where_the_token_is_asked_for(new_page: Callable[..., Any], links: Links) -> None:
    page = new_page()
    page.goto(links("demo").partition("#")[0])
    page.wait_for_selector("#locked[open]")
    audit = Audit(page)
    audit.look("locked")
    assert audit.found == {}
