"""The explorer's server: who may ask, what it answers, and that it writes nothing."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Iterator
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Any, cast

import pytest

pytest.importorskip("starlette", reason="the explorer's extra is not installed")
from starlette.testclient import TestClient

from kerf.adapters.cli.main import main
from kerf.adapters.store.open import open_record
from kerf.adapters.web import app as app_module
from kerf.adapters.web import commands as commands_module
from kerf.adapters.web import questions, searching
from kerf.adapters.web import reader as reader_module
from kerf.adapters.web.access import HEADERS, Access, token_check
from kerf.adapters.web.app import QUESTIONS, app
from kerf.adapters.web.reader import RecordReader
from kerf.adapters.web.static.files import media_type, page_files
from kerf.adapters.web.timeline import picture
from kerf.adapters.web.timeline.live import news
from tests.support.records import position_of, stored, whole_life

TOKEN, HOST = "right", "127.0.0.1:1"
MINE = {"Authorization": f"Bearer {TOKEN}"}
PLAN = position_of(whole_life().store, "decision.made")
ASKED = {
    "record": {}, "timeline": {}, "tile": {"level": "20", "number": "1000000"}, "fill": {"level": "20", "number": "1"},
    "curves": {"points": "10"}, "step": {"at": "1"}, "status": {"at": "+1m"}, "log": {"limit": "5"},
    "explain": {"name": "nodepool/default"}, "story": {"name": "nodepool/default"},
    "diff": {"before": "start", "after": "end"}, "search": {"q": "def"},
    "findings": {}, "decision": {"position": str(PLAN)}, "again": {"position": str(PLAN)},
}  # fmt: skip
"""A question of each route."""
URL = "postgresql://kerf:hush@db/kerf"


LIMITED = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  limits: {cpu: 1}
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements: []
"""


LATELY = "in the hour before: "
"""What a command counts of the hour before, a page that shows the timeline does not."""


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stored(tmp_path_factory.mktemp("my records") / "life.kerf", whole_life().store)


@pytest.fixture(scope="module")
def page(record: Path) -> Iterator[TestClient]:
    with closing(RecordReader(str(record))) as reader:
        served = app(reader, Access(token_check(TOKEN), frozenset([HOST])))
        yield TestClient(served, base_url=f"http://{HOST}", raise_server_exceptions=False)


def get(page: TestClient, name: str, query: dict[str, str]) -> Any:
    return page.get(f"/api/v1/{name}", params=query, headers=MINE)


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_route_answers_and_needs_the_token(page: TestClient, name: str) -> None:
    assert get(page, name, ASKED[name]).status_code == 200
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": TOKEN}):
        refused = page.get(f"/api/v1/{name}", params=ASKED[name], headers=headers)
        assert refused.status_code == 401
        assert set(refused.json()) == {"error"}


def test_the_answers_are_those_of_the_commands(
    page: TestClient, record: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, key, tokens in (
        ("status", "status", ["status", str(record), "--at", "+1m", "--json"]),
        ("explain", "explanation", ["explain", str(record), "nodepool/default", "--json"]),
        ("story", "story", ["story", str(record), "nodepool/default", "--json"]),
        ("diff", "difference", ["diff", str(record), "start", "end", "--json"]),
    ):
        assert main(tokens) == 0
        wanted = json.loads(capsys.readouterr().out)
        if name == "status":
            wanted["recent"] = None
        assert get(page, name, ASKED[name]).json()[key] == wanted, name
        assert main(tokens[:-1]) == 0
        printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
        text = "\n".join(line["text"].rstrip() for line in get(page, name, ASKED[name]).json()["text"])
        assert text == "\n".join(line for line in printed if not line.startswith(LATELY)), name


@pytest.mark.parametrize("path", ["/", "/main.js", "/api/v1/record", "/api/openapi.json", "/nothing"])
def test_another_host_or_origin_is_refused_everywhere(page: TestClient, path: str) -> None:
    assert page.get(path, headers=MINE | {"Host": "evil.example"}).status_code == 421
    for origin in ("http://evil.example", "null", f"http://{HOST}.evil.example"):
        assert page.get(path, headers=MINE | {"Origin": origin}).status_code == 403
    assert page.get(path, headers=MINE | {"Origin": f"http://{HOST}"}).status_code in (200, 404)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_can_be_written(page: TestClient, method: str) -> None:
    assert page.request(method, "/api/v1/record", headers=MINE).status_code == 405


def test_every_answer_has_the_headers(page: TestClient) -> None:
    for path in ("/", "/main.js", "/api/v1/record", "/nothing", "/..%2Fapp.py"):
        answer = page.get(path, headers=MINE)
        assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS, path


def test_files_are_those_of_the_page_alone(page: TestClient) -> None:
    assert page.get("/").text.startswith("<!doctype html>")
    for path, file in page_files().items():
        answer = page.get(f"/{path}")
        assert (answer.content, answer.headers["Content-Type"]) == (file.read_bytes(), media_type(path)), path
    outside = ("/app.py", "/../app.py", "/..%2Fapp.py", "/static/main.js", "/%2Fetc%2Fpasswd", "/%2Fmain.js")
    for path in (*outside, "/files.py", "/time", "/time/", "/time%2F..%2Fmain.js", "/time%2F..%2F..%2Fapp.py"):
        assert page.get(path).status_code == 404


def test_what_is_known_is_not_sent_again(page: TestClient) -> None:
    first = get(page, "curves", {})
    again = page.get("/api/v1/curves", headers=MINE | {"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_the_command_of_a_log_prints_its_events(page: TestClient, capsys: pytest.CaptureFixture[str]) -> None:
    span = get(page, "record", {}).json()
    middle = str((span["since"] + span["until"]) // 2)
    for query in ({"since": middle}, {"until": middle}, {"since": middle, "subject": "nodepool/default"}):
        found = get(page, "log", query | {"limit": "1000"}).json()
        main(shlex.split(found["command"])[1:])
        printed = capsys.readouterr().out.splitlines()
        assert len(printed) == len(found["events"]), query
        assert all(line.endswith(event["text"]) for line, event in zip(printed, found["events"], strict=True))


def test_what_if_is_the_command(page: TestClient, record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = get(page, "whatif", {"flag": "set", "change": "nodepool/default.spec.limits.cpu=1", "at": "+1s"})
    assert answer.status_code == 200
    main(["whatif", str(record), "--set", "nodepool/default.spec.limits.cpu=1", "--at", "+1s"])
    assert [line["text"] for line in answer.json()["text"]] == capsys.readouterr().out.splitlines()


def test_what_if_applies_the_manifest_that_it_is_given(
    page: TestClient, record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = tmp_path / "manifest.yaml"
    manifest.write_text(LIMITED, encoding="utf-8")
    answer = get(page, "whatif", {"flag": "apply", "change": LIMITED, "at": "+1s"}).json()
    assert main(["whatif", str(record), f"--apply={manifest}", "--at", "+1s"]) == 0
    told, printed = [line["text"] for line in answer["text"]], capsys.readouterr().out.splitlines()
    assert told == printed
    assert answer["changed"] != answer["unchanged"]
    assert answer["command"].endswith(" --apply=- --at=+1s < manifest.yaml")


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"flag": "apply", "change": "/etc/passwd"}, "KERF"),
        ({"flag": "apply", "change": "-"}, "KERF"),
        ({"flag": "apply", "change": "a" * 8_001}, "KERF200"),
        ({"flag": "add-pods", "change": "/etc/passwd"}, "KERF200"),
        ({"flag": "export", "change": "/tmp/x"}, "KERF200"),
        ({"flag": "set", "change": "nodepool/nobody.spec.weight=1"}, "KERF"),
        ({"flag": "set"}, "KERF200"),
        ({"flag": "set", "change": "a=b", "at": "--export=/tmp/x"}, "KERF2"),
    ],
)
def test_what_if_reads_and_writes_no_file(page: TestClient, query: dict[str, str], code: str) -> None:
    answer = get(page, "whatif", query)
    assert "root:" not in answer.text
    assert answer.status_code == 400
    assert answer.json()["error"]["code"].startswith(code)


def test_a_password_in_the_records_url_is_never_shown(record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(*arguments: str) -> tuple[int, str, str]:
        assert arguments[-1] == URL, "the command needs it"
        return 0, "as before", ""

    monkeypatch.setattr(reader_module, "open_record", lambda _: open_record(record))
    monkeypatch.setattr(commands_module, "_run", run)
    with closing(RecordReader(URL)) as reader:
        page = TestClient(app(reader, Access(token_check(TOKEN), frozenset([HOST]))), base_url=f"http://{HOST}")
        for name, query in (ASKED | {"whatif": {"flag": "set", "change": "a=b"}}).items():
            answer = get(page, name, query)
            assert answer.status_code == 200, name
            assert "hush" not in answer.text, name
        assert get(page, "record", {}).json()["record"] == "postgresql://kerf@db/kerf"


@pytest.mark.asyncio
async def test_the_reader_of_a_growing_record_is_told() -> None:
    class Growing:
        last, read = 3, 0.5

        async def ask(self, question: Any) -> tuple[int, float, bool]:
            return self.last, self.read, False

    reader = Growing()
    told = news(cast(RecordReader, reader))
    assert await anext(told) == "event: position\ndata: 3\n\n"
    assert await anext(told) == "event: read\ndata: 0.5\n\n"
    reader.last = 5
    assert await anext(told) == "event: position\ndata: 5\n\n"
    await told.aclose()


@pytest.mark.parametrize(
    ("name", "query", "code"),
    [
        ("status", {"at": "yesterday"}, "KERF202"),
        ("status", {"when": "end"}, "KERF200"),
        ("status", {"at": "x" * 1000}, "KERF200"),
        ("explain", {}, "KERF200"),
        ("explain", {"name": "pod/nobody"}, "KERF203"),
        ("curves", {"points": "many"}, "KERF200"),
        ("curves", {"since": "9" * 5000}, "KERF200"),
        ("diff", {"before": "end", "after": "start"}, "KERF202"),
    ],
)
def test_bad_questions_get_a_coded_error(page: TestClient, name: str, query: dict[str, str], code: str) -> None:
    answer = get(page, name, query)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)
    assert answer.json()["error"]["hint"]


def test_a_defect_is_a_coded_answer_without_a_traceback(
    page: TestClient, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A record of a stranger may bring one about."""

    def broken(*_: object) -> None:
        raise RecursionError("too deep at postgresql://kerf:hush@db/kerf")

    monkeypatch.setattr(RecordReader, "state", broken)
    monkeypatch.setattr(app_module, "news", broken)
    answer = get(page, "status", {})
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "KERF605")
    assert "hush" not in answer.text
    assert get(page, "live", {}).text == "event: failed\ndata: KERF605\n\n"
    assert "Traceback" not in capsys.readouterr().err


def test_the_description_names_every_route_and_parameter(page: TestClient) -> None:
    described = page.get("/api/openapi.json", headers=MINE).json()
    assert {path.removeprefix("/api/v1/") for path in described["paths"]} == {*QUESTIONS, "whatif", "modelled"}
    for name, query in ASKED.items():
        operation = described["paths"][f"/api/v1/{name}"]["get"]
        assert set(query) <= {parameter["name"] for parameter in operation["parameters"]}
        assert operation["summary"]
    text = json.dumps(described)
    references = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert references <= set(described["components"]["schemas"])


def test_search_finds_names_and_what_was_said(page: TestClient) -> None:
    names = get(page, "search", {"q": "default/a"}).json()
    assert names[0]["name"] == "default/a"
    said = get(page, "search", {"q": "5 PODS"}).json()
    assert any("5 pods" in found["text"] and found["kind"] == "decision" for found in said)


def test_a_search_does_not_wait_until_all_is_read(record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture, "SHORT", 0)
    monkeypatch.setattr(picture, "read_kept", lambda store: None)
    with closing(RecordReader(str(record))) as reader:
        found = asyncio.run(reader.ask(lambda read: searching.search(read, "5 pods")))
        assert any("5 pods" in each.text for each in found)
        assert not reader.picture.complete


def test_search_finds_that_first_of_which_there_is_little(page: TestClient) -> None:
    """Pods are called like their workload and NodePool: hundreds of them would hide these."""
    found = get(page, "search", {"q": "def"}).json()
    kinds = [kind for kind, _ in groupby(name["kind"] for name in found if not name["text"])]
    assert kinds == [
        kind for kind in ("nodepool", "nodeclass", "workload", "nodeclaim", "node", "pod") if kind in kinds
    ]
    assert {"nodepool", "nodeclaim", "pod"} <= set(kinds)


def test_a_story_has_its_events_in_sentences(page: TestClient) -> None:
    story = get(page, "story", {"name": "n1"}).json()
    told = [line["text"] for line in story["text"]]
    assert all(any(event["text"] in line for line in told) for event in story["events"])
    assert len(story["events"]) > 5


def test_why_is_told_of_the_state_that_status_was_asked_for_and_leaves_it_as_it_was(record: Path) -> None:
    last = next(entry.payload.claim for entry in whole_life().store.scan() if entry.type == "claim.requested")
    asked = [
        (question, parameters | {"at": at})
        for at in ("+10m", "+5m", "+10m", "end")
        for question, parameters in (
            (questions.status, {}),
            (questions.explain, {"name": f"nodeclaim/{last}"}),
            (questions.explain, {"name": "nodepool/default"}),
        )
    ]
    with closing(RecordReader(str(record))) as reader:
        told = [question(reader, **parameters) for question, parameters in asked]
    for (question, parameters), answer in zip(asked, told, strict=True):
        with closing(RecordReader(str(record))) as fresh:
            assert question(fresh, **parameters) == answer, parameters
