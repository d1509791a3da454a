"""Pictures of the page for the documentation. `make pictures` writes them to docs/pictures."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.explorer.page import ask, opened

WIDE, PHONE = {"width": 1040, "height": 640}, {"width": 390, "height": 844}
LARGEST, SMALLEST = 150_000, 15_000
"""Bytes of a picture: more burden every clone; an empty page has less."""
FOLDER = os.environ.get("PICTURES") and Path(os.environ["PICTURES"]).absolute()
Links = Callable[[str], str]
Show = Callable[[Any, Links], None]


def incident(page: Any, links: Links) -> None:
    """What went wrong in the demonstration, as the node's story."""
    opened(page, links("demo"))
    page.keyboard.press("n")
    page.wait_for_selector("#text >> text=launched for")
    page.keyboard.press("3")
    page.wait_for_selector(".story .now")


def decision(page: Any, links: Links) -> None:
    """The funnel of the decision that planned the first node."""
    opened(page, links("demo"))
    events = ask(page, "log?limit=1000")["events"]
    position = next(event["position"] for event in events if "a place" in event["text"])
    page.goto(f"{page.url.partition('?')[0]}?sel=decision/{position}")
    page.wait_for_selector(".funnel")
    page.locator(".funnel").first.evaluate("funnel => funnel.closest('.block').scrollIntoView()")


def day(page: Any, links: Links) -> None:
    """Many nodes, at the moment when there are most of them."""
    opened(page, links("day"))
    curves = ask(page, "curves")
    at = curves["times"][max(range(len(curves["times"])), key=lambda i: curves["nodes"][i])]
    page.goto(f"{page.url.partition('?')[0]}?tab=first&at=" + page.evaluate("at => new Date(at).toISOString()", at))
    page.wait_for_selector(".node .pod")


def compared(page: Any, links: Links) -> None:
    """The recorded run beside a model of it."""
    opened(page, links("demo"))
    page.locator("#tabs [data-tab=diff]").click()
    page.click("text=Compare the record with a model of it")
    page.wait_for_selector(".curve.modelled")


PICTURES: dict[str, tuple[Show, str, dict[str, int]]] = {
    "incident": (incident, "light", WIDE),
    "decision": (decision, "dark", WIDE),
    "day": (day, "light", WIDE),
    "compare": (compared, "dark", WIDE),
    "phone": (incident, "light", PHONE),
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_for_the_documentation(
    name: str, new_page: Callable[..., Any], wrong: list[str], links: Links, tmp_path: Path
) -> None:
    show, scheme, size = PICTURES[name]
    page = new_page(viewport=size, color_scheme=scheme)
    show(page, links)
    page.wait_for_selector("#text[aria-busy=false]")
    page.wait_for_function("() => !document.querySelector('#cluster.moving')")
    page.mouse.move(0, 0)
    picture = (FOLDER or tmp_path) / f"explorer-{name}.png"
    page.screenshot(path=picture)
    assert SMALLEST < picture.stat().st_size < LARGEST
    assert wrong == []
