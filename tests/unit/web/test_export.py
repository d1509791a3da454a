"""The page of an incident as files: one classic script, answers asked beforehand, and what is not in there is said."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

pytest.importorskip("starlette", reason="the explorer's extra is not installed")

from kerf.adapters.cli.main import main
from kerf.adapters.store.sqlite.store import SQLiteStore
from kerf.adapters.web.export.folder import POLICY, FolderInUse, export
from kerf.adapters.web.export.script import NoClassicScript, classic_script
from kerf.adapters.web.static.files import page_files
from tests.support.records import five_pods_run, stored, whole_life

MODULES = {
    "main.js": 'import * as a from "./part/a.js";\nimport { b as c } from "./b.js";\nimport "./effect.js";\na.f(c);\n',
    "part/a.js": 'import { b } from "../b.js";\nexport function f() { return b; }\nexport const g = 1;\n',
    "b.js": "export let b = 2;\n",
    "effect.js": "globalThis.x = 1;\n",
}


def test_modules_become_one_script_in_the_order_of_their_imports() -> None:
    script = classic_script(MODULES, "main.js")
    order = re.findall(r'^modules\["(.*?)"\] = \(\(\) => \{', script, re.MULTILINE)
    assert order == ["b.js", "part/a.js", "effect.js", "main.js"]
    assert 'const { b: c } = modules["b.js"];' in script
    assert 'const a = modules["part/a.js"];' in script
    assert "get g() { return g; }" in script
    assert not re.search(r"^(import|export)\b", script, re.MULTILINE)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"b.js": 'import { f } from "./part/a.js";\nexport let b = f;\n'}, "circle"),
        ({"b.js": "export default 2;\n"}, "not read"),
        ({"b.js": 'export { x } from "./part/a.js";\n'}, "not read"),
    ],
)
def test_what_is_not_read_is_refused(changes: dict[str, str], why: str) -> None:
    with pytest.raises(NoClassicScript, match=why):
        classic_script(MODULES | changes, "main.js")


def test_the_page_has_no_circle_of_imports() -> None:
    modules = {path: file.read_text("utf-8") for path, file in page_files().items() if path.endswith(".js")}
    assert len(classic_script(modules, "main.js")) > 10_000


@pytest.mark.parametrize("there", [False, True])
def test_a_full_disk_is_one_coded_line_and_leaves_nothing(
    there: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    record, folder = stored(tmp_path / "life.kerf", whole_life().store), tmp_path / "page"
    if there:
        folder.mkdir()
    write = Path.write_text

    def write_some(path: Path, text: str, *, encoding: str) -> int:
        if path.name == "kerf.js":
            write(path, text[:100], encoding=encoding)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(path, text, encoding=encoding)

    monkeypatch.setattr(Path, "write_text", write_some)
    assert main(["ui", str(record), "--export", str(folder)]) == 2
    said = f"KERF105: it cannot be written: No space left on device [{folder}]"
    assert capsys.readouterr().err.startswith(said)
    assert list(folder.iterdir()) == [] if there else not folder.exists()


def test_a_record_is_not_read_anew_for_each_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a short record that took most of the time: an export asks of all its names."""
    record, read = stored(tmp_path / "life.kerf", whole_life().store), []

    def counted(store: SQLiteStore, after: int = 0, until: int | None = None, *only: Any) -> Iterator[Any]:
        read.append(not only and after == 0 and (until is None or until > store.last_position() // 2))
        return scan(store, after, until, *only)

    scan = SQLiteStore.scan
    monkeypatch.setattr(SQLiteStore, "scan", counted)
    export(str(record), tmp_path / "page")
    names = answers_in(tmp_path / "page")["explain"]
    assert 0 < sum(read) < 2 * len(names)


@pytest.mark.slow
def test_the_folder_has_a_page_and_its_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record, folder = stored(tmp_path / "life.kerf", whole_life().store), tmp_path / "page"
    assert main(["ui", str(record), "--export", str(folder)]) == 0
    assert "it needs no server" in capsys.readouterr().out
    index = (folder / "index.html").read_text()
    assert POLICY in index
    assert "module" not in index
    named = set(re.findall(r'(?:src|href)="([^"]+)"', index))
    assert named == {file.name for file in folder.iterdir()} - {"index.html"}
    answers = answers_in(folder)
    assert "Not in it: what if" in answers["note"]
    assert answers["decision"].keys() == answers["again"].keys()
    assert all(again["answer"] == "same" for again in answers["again"].values())
    assert any(name.startswith("nodepool/") for name in answers["story"])


@pytest.mark.slow
def test_pods_on_their_nodes_can_be_asked_for(tmp_path: Path) -> None:
    record, folder = stored(tmp_path / "run.kerf", five_pods_run().store), tmp_path / "page"
    assert main(["ui", str(record), "--export", str(folder)]) == 0
    answers = answers_in(folder)
    pods = {pod["pod"] for told in answers["status"] for pods in told["answer"]["boxes"].values() for pod in pods}
    assert len(pods) == 5
    assert {f"pod/{pod}" for pod in pods} <= answers["explain"].keys()


def answers_in(folder: Path) -> dict[str, Any]:
    """The answers that an export holds, of all its files."""
    answers: dict[str, Any] = {}
    for file in folder.glob("data*.js"):
        told = file.read_text()
        answers |= msgspec.json.decode(msgspec.json.decode(told[told.index("JSON.parse(") + 11 : told.rindex("));")]))
    return answers


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["my.kerf", "--from", "+1h"], "--from and --until are of an exported page"),
        (["my.kerf", "--until", "+1h"], "--from and --until are of an exported page"),
        (["--cluster", "--export", "page"], "--export writes the page of a record, not of a cluster"),
    ],
)
def test_flags_of_an_exported_page_are_not_passed_over(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.delenv("KERF_STORE", raising=False)
    assert main(["ui", *arguments]) == 2
    assert capsys.readouterr().err.startswith(f"KERF200: {said}")


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    with pytest.raises(FolderInUse, match="KERF865"):
        export("record.kerf", tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["mine"]
