"""The explorer's page: what leads where, by mouse, keyboard and link; who is let in; themes and widths."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.support.explorer.page import ask, opened
from tests.support.repository import ROOT
from tests.support.servers.explorer import TOKEN

LINK = re.compile(r"http://127\.0\.0\.1:\d+/#token=\S+")
Links = Callable[[str], str]
NewPage = Callable[..., Any]


def test_the_link_that_the_command_prints_opens_the_page(page: Any, records: Callable[[str], Path]) -> None:
    command = [sys.executable, "-m", "kerf", "ui", str(records("hostile"))]
    served = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert served.stdout is not None
    try:
        link = LINK.search(served.stdout.readline())
        assert link
        opened(page, link.group())
        expect(page.locator("#record")).to_have_text("hostile.kerf")
        assert "token" not in page.url, "it would go into the browser's history"
        page.goto("about:blank")  # a page that follows the record would keep the server from ending at once
    finally:
        served.terminate()
        served.communicate(timeout=20)


def test_a_link_leads_back_to_a_moment_and_a_selection(page: Any, links: Links) -> None:
    opened(page, links("demo"))
    page.keyboard.press("j")
    page.wait_for_selector("#subject:has-text('nodeclaim')")
    end = page.text_content("#clock")
    page.keyboard.press("ArrowLeft")
    page.wait_for_function("end => document.getElementById('clock').textContent !== end", arg=end)
    page.wait_for_selector("#text[aria-busy=false]")
    page.wait_for_function("end => !location.search.includes(end)", arg=end[11:].replace(":", "%3A"))
    chosen, clock, title = page.url, page.text_content("#clock"), page.text_content("#text .title")
    page.goto(chosen)
    page.wait_for_selector("#text[aria-busy=false] .title")
    assert (page.text_content("#clock"), page.text_content("#text .title")) == (clock, title)
    explained = ask(
        page, f"explain?name={page.text_content('#subject').replace(' ', '/')}&at={clock.replace(' ', 'T')}Z"
    )
    assert [line["text"] for line in explained["text"]] == page.locator("#text p").all_text_contents()


def test_without_the_token_it_asks_for_it(new_page: NewPage, links: Links) -> None:
    page = new_page()
    page.goto(links("demo").partition("#")[0])
    page.wait_for_selector("#locked[open]")
    page.fill("#token", "guessed")
    page.keyboard.press("Enter")
    page.wait_for_selector("#locked[open]")
    page.fill("#token", TOKEN)
    page.keyboard.press("Enter")
    page.wait_for_selector("#nodes > *")


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_the_page(new_page: NewPage, links: Links, width: int, scheme: str) -> None:
    page = opened(new_page(viewport={"width": width, "height": 800}, color_scheme=scheme), links("demo"))
    page.keyboard.press("j")
    for tab in range(1, 7):
        page.keyboard.press(str(tab))
        page.wait_for_selector("#text[aria-busy=false] > *")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.get_attribute("html", "data-theme") == scheme


def test_two_boxes_stand_in_a_row_of_a_phone(new_page: NewPage, links: Links) -> None:
    page = opened(new_page(viewport={"width": 390, "height": 844}), links("demo"))
    widths = page.locator(".node").evaluate_all("boxes => boxes.map(box => box.offsetWidth)")
    assert 0 < 2 * max(widths) + 8 <= page.evaluate("document.getElementById('nodes').clientWidth")


def test_the_keyboard_leads_everywhere(page: Any, links: Links) -> None:
    opened(page, links("demo"))
    end = page.text_content("#clock")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#clock")).not_to_have_text(end)
    page.keyboard.press("j")
    expect(page.locator("#subject")).to_contain_text("nodeclaim")
    first = page.text_content("#subject")
    page.keyboard.press("j")
    expect(page.locator("#subject")).not_to_have_text(first)
    page.keyboard.press("k")
    expect(page.locator("#subject")).to_have_text(first)
    page.keyboard.press("+")
    page.wait_for_url("**from=*")
    page.keyboard.press("0")
    page.wait_for_url(lambda url: "from=" not in url)
    page.keyboard.press("p")
    page.wait_for_url("**pin=*")
    page.keyboard.press("Escape")
    page.wait_for_url(lambda url: "sel=" not in url)
    theme = page.get_attribute("html", "data-theme")
    page.keyboard.press("t")
    assert page.get_attribute("html", "data-theme") != theme
    page.keyboard.press("/")
    page.keyboard.type("default-")
    page.wait_for_selector("#found li")
    page.keyboard.press("Enter")
    expect(page.locator("#subject")).to_contain_text("default")
    page.locator("#search").blur()
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#help")).to_be_hidden()


def test_what_is_selected_comes_into_view(page: Any, links: Links) -> None:
    """The lane of a node and its box, wherever the node was chosen."""
    opened(page, links("day"))
    name = ask(page, "status")["status"]["nodes"][-1]["name"]
    page.fill("#search", name)
    page.locator("#found li", has_text=name).first.click()
    expect(page.locator(".node", has_text=name)).to_be_in_viewport()
    assert page.evaluate("document.getElementById('lanes-scroll').scrollTop") > 0


def test_every_control_is_reached_by_tab_and_says_what_it_is(page: Any, links: Links) -> None:
    opened(page, links("demo"))
    names = page.evaluate("""[...document.querySelectorAll("button, select, input, [tabindex]")]
        .filter(one => one.checkVisibility())
        .map(one => (one.getAttribute("aria-label") || one.textContent || one.title || "").trim())""")
    assert len(names) > 10
    assert "" not in names


def test_a_decision_shows_what_the_api_says_and_is_decided_again(page: Any, links: Links) -> None:
    opened(page, links("demo"))
    position = next(found["position"] for found in ask(page, "log?limit=1000")["events"] if "a place" in found["text"])
    told = ask(page, f"decision?position={position}")
    page.goto(f"{page.url.partition('?')[0]}?sel=decision/{position}")
    page.wait_for_selector(".funnel")
    assert page.locator(".graph li").all_text_contents()[-1].endswith(told["consequences"][-1]["text"])
    assert page.locator(".graph li").count() == len(told["causes"]) + 1 + len(told["consequences"])
    (funnel,) = told["pieces"][0]["funnels"]
    steps = page.locator(".funnel >> nth=0").locator("tbody tr")
    assert [int(row.locator("td").nth(1).text_content().replace(",", "")) for row in steps.all()][1:] == [
        step["left"] for step in funnel["steps"]
    ]
    page.click("text=Decide again")
    page.wait_for_selector(".again .good")
    assert page.text_content(".again .good") == ask(page, f"again?position={position}")["text"][0]["text"]


def test_a_budgets_name_leads_to_the_budget_and_not_to_the_pod_that_is_called_like_it(page: Any, links: Links) -> None:
    opened(page, links("budget"))
    page.locator(".node .what").first.click()
    said = page.locator("#text .title", has_text="it is still here")
    expect(said).to_contain_text("pod default/d may not be evicted: PodDisruptionBudget default/d allows none")
    expect(said.locator("a")).to_have_text(["default/d", "default/d"])
    said.locator("a").nth(1).click()
    expect(page.locator("#subject")).to_have_text("poddisruptionbudget default/d")
    told = ask(page, "explain?name=poddisruptionbudget/default/d")["text"]
    expect(page.locator("#text > p")).to_have_text([line["text"] for line in told], use_inner_text=False)
    page.locator("#text a", has_text="n1").first.click()
    expect(page.locator("#subject")).to_have_text("node n1")


def test_why_a_node_stays_is_read_in_full_and_no_word_of_a_verdict_is_broken(page: Any, links: Links) -> None:
    opened(page, links("budget"))
    stays = page.locator(".node .stays")
    expect(stays).to_have_text("stays: PodDisruptionBudget used up")
    assert stays.evaluate("one => one.scrollHeight <= one.clientHeight && one.scrollWidth <= one.clientWidth")
    (claim,) = (node["claim"] for node in ask(page, "status")["status"]["nodes"])
    methods = ask(page, f"explain?name=nodeclaim/{claim}")["explanation"]["methods"]
    position = next(method["history"][-1]["position"] for method in methods if method.get("history"))
    page.goto(f"{page.url.partition('?')[0]}?sel=decision/{position}")
    action = page.locator(".verdicts .word").first
    expect(action).to_be_visible()
    assert action.evaluate("one => one.getClientRects().length") == 1


@pytest.fixture(scope="module")
def export(records: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `--export` writes."""
    folder = tmp_path_factory.mktemp("export") / "page"
    command = [sys.executable, "-m", "kerf", "ui", str(records("demo")), "--export", str(folder)]
    subprocess.run(command, check=True, cwd=ROOT, capture_output=True)
    return folder


@pytest.fixture
def exported(page: Any, export: Path) -> Any:
    """The page of an export, opened from disk."""
    page.goto((export / "index.html").as_uri())
    page.wait_for_selector("#nodes > *")
    return page


@pytest.mark.slow
def test_an_export_is_read_from_disk_in_each_view(exported: Any) -> None:
    page = exported
    assert "Not in it" in page.text_content("#exported")
    expect(page.locator(".card")).to_have_count(1)
    page.keyboard.press("5")
    expect(page.locator("#text")).to_contain_text("Deployment other/inflate: 0 → 5 pods")
    page.keyboard.press("4")
    page.wait_for_selector("#text .event.now")
    page.keyboard.press("j")
    page.keyboard.press("2")
    page.wait_for_selector("#text >> text=NodeClaim")
    page.keyboard.press("3")
    page.wait_for_selector(".story li")
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector(".pod, .node, #nodes p")
    page.wait_for_url("**#at=*")
    assert "?" not in page.url
    page.keyboard.press("/")
    page.keyboard.type("spot_interrupted")
    page.locator("#found li", has_text="has to go").click()
    page.wait_for_selector("#text .graph")
    page.click("text=Decide again")
    page.wait_for_selector(".again .good")


@pytest.mark.slow
def test_an_export_says_what_it_cannot_answer(exported: Any) -> None:
    exported.keyboard.press("6")
    exported.fill("#value", "x=1")
    exported.keyboard.press("Enter")
    exported.wait_for_selector("#text >> text=not in this export")
    exported.keyboard.press("Escape")


def test_a_change_is_tried_in_the_form_and_told_beside_what_was_decided(page: Any, links: Links) -> None:
    opened(page, links("demo"))
    at = next(
        event["at_time"] for event in ask(page, "log?limit=1000")["events"] if "cannot be scheduled" in event["text"]
    )
    page.goto(f"{page.url.partition('?')[0]}?tab=whatif&at={at}")
    page.click(".example:has-text('no-capacity')")
    page.fill("#value", "m5.large")
    page.keyboard.press("Enter")
    page.wait_for_selector(".side")
    told = ask(page, f"whatif?flag=no-capacity&change=m5.large&at={at}")
    assert [side.inner_text().partition("\n")[2] for side in page.locator(".side").all()] == [
        told["unchanged"], told["changed"],
    ]  # fmt: skip
    expect(page.locator("#command")).to_have_text(f"$ {told['command']}")


def test_a_manifest_is_applied_in_the_form(page: Any, links: Links) -> None:
    opened(page, links("budget"))
    page.locator("#tabs button[data-tab=whatif]").click()
    (pool,) = {node["node_pool"] for node in ask(page, "status")["status"]["nodes"]}
    expect(page.locator("#value")).to_have_attribute("placeholder", re.compile(f"^nodepool/{pool}\\."))
    page.select_option("#flag", "apply")
    expect(page.locator("#value")).to_be_hidden()
    manifest = "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {namespace: default, name: d}, spec: {}}"
    page.fill("#manifest", manifest)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(".side")
    expect(page.locator("#command")).to_contain_text("--apply=- ")


def test_whoever_copies_a_figure_gets_the_command_that_prints_it(page: Any, links: Links) -> None:
    opened(page, links("demo"))
    copied = page.evaluate("""() => {
        getSelection().selectAllChildren(document.getElementById("totals"));
        const event = new ClipboardEvent("copy", {clipboardData: new DataTransfer(), bubbles: true, cancelable: true});
        document.dispatchEvent(event);
        return event.clipboardData.getData("text/plain");
    }""")
    assert copied.startswith("nodes: 1, $")
    assert f"\n$ {ask(page, 'status')['command']} --at " in copied


def test_reasons_are_found_and_lead_to_their_moment(page: Any, links: Links) -> None:
    opened(page, links("demo"))
    page.keyboard.press("/")
    page.keyboard.type("spot_interrupted")
    found = page.locator("#found li", has_text="has to go")
    expect(found).to_be_visible()
    found.click()
    expect(page.locator("#clock")).to_contain_text("00:06:00")
    expect(page.locator("#subject")).to_contain_text("decision")
    page.wait_for_selector("#text .graph")


def test_what_the_pointer_is_on_is_told_and_shown_in_curves_and_lanes(page: Any, links: Links) -> None:
    """A mark of the curves tells what the lane's tells, and leads to why."""
    opened(page, links("demo"))
    (mark,) = (mark for mark in marks(page) if mark["kind"] == "interruption")
    record, box = ask(page, "record"), page.locator("#curves").bounding_box()
    share = (mark["at"] - record["since"]) / (record["until"] - record["since"])
    page.mouse.move(box["x"] + 168 + share * (box["width"] - 176), box["y"] + 22)
    expect(page.locator("#tip")).to_contain_text(mark["text"])
    page.mouse.down()
    page.mouse.up()
    expect(page.locator("#subject")).to_have_text(f"nodeclaim {mark['claims'][0]}")
    expect(page.locator("#text")).to_contain_text("interrupted")


def marks(page: Any) -> list[dict[str, Any]]:
    """What is marked in the whole record."""
    told = ask(page, "timeline")
    level, width = told["coarsest"], 2 ** told["coarsest"]
    numbers = range(told["since"] // width, told["until"] // width + 1)
    return [mark for number in numbers for mark in ask(page, f"tile?level={level}&number={number}")["marks"]]
