"""Manifests made to harm: each is refused with a code, the others are read, and reading takes linear time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from kerf.adapters.cli.input import bounded_yaml, documents
from kerf.adapters.cli.input.bounded_yaml import MAX_DEPTH, read_yaml
from kerf.adapters.cli.input.documents import read_documents
from kerf.adapters.cli.main import main
from tests.support import hostile

GOOD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: good}\n"


def only_problem(tmp_path: Path, text: str) -> str:
    """What is wrong with the first of two documents. The second is good, and is read."""
    file = tmp_path / "x.yaml"
    file.write_text(f"{text}\n---\n{GOOD}")
    found = read_documents([file])
    assert [document["metadata"]["name"] for document in found.good] == ["good"]
    (refused,) = found.refused
    assert refused.error.code == "KERF331"
    return str(refused.error)


@pytest.mark.parametrize(
    "text",
    [
        "a: " + "[" * 40_000,
        "a: " + "[" * 40_000 + "]" * 40_000,
        "[" * 40_000 + "]" * 40_000,
        "{" + '"a":{' * 40_000 + "}" * 40_001,
        "a: " + "{b: " * 40_000 + "}" * 40_000,
        "- " * 40_000 + "a",
        "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1),
    ],
    ids=["lists", "closed lists", "JSON lists", "JSON objects", "objects", "block lists", "one level too many"],
)
def test_a_document_of_too_many_levels_is_refused(tmp_path: Path, text: str) -> None:
    assert "levels deep" in only_problem(tmp_path, text)


def test_a_document_of_as_many_levels_as_allowed_is_read() -> None:
    read = read_yaml("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    for _ in range(MAX_DEPTH - 1):
        (read,) = read
    assert read == []


def test_a_deep_document_does_not_end_the_process(tmp_path: Path) -> None:
    """It ended with a segmentation fault, which no exception handler sees."""
    file = tmp_path / "deep.yaml"
    file.write_text("a: " + "[" * 40_000)
    command = [sys.executable, "-m", "kerf", "validate", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert "KERF331" in done.stdout


def test_a_document_of_too_many_values_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """10 MB of "- 1" took over 0.8 GB and 20 s. JSON takes a tenth of it."""
    monkeypatch.setattr(bounded_yaml, "MAX_VALUES", 100)
    text = "a:\n" + "- 1\n" * 100
    assert "the document has more than 100 values (write it as JSON" in only_problem(tmp_path, text)
    assert read_yaml(json.dumps({"a": [1] * 100})) == {"a": [1] * 100}


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["validate", "/dev/zero"], "KERF330"),
        (["check", "/dev/zero", str(hostile.SOUND)], "KERF221"),
        (["sweep", "/dev/zero", str(hostile.SOUND)], "KERF242"),
        (["cost", str(hostile.SOUND), "--prices", "/dev/zero"], "KERF212"),
    ],
)
def test_a_file_without_end_is_refused(
    command: list[str], code: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """/dev/zero as a policy took 6 GB."""
    monkeypatch.setattr(bounded_yaml, "MAX_FILE", 1 << 20)
    assert main(command) == 2
    assert f"{code}: " in (told := capsys.readouterr().err)
    assert "it has more than 1 MB" in told


def test_aliases_of_a_long_text_are_refused(tmp_path: Path) -> None:
    """1 MB of aliases stood for 4.7 GB."""
    text = f"a: &a {'x' * 10_000}\nb: [{', '.join(['*a'] * 5_000)}]"
    assert "aliases stand for more than 1,000,000 characters" in only_problem(tmp_path, text)


def test_aliases_of_aliases_are_refused(tmp_path: Path) -> None:
    levels = [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert "aliases stand for more than" in only_problem(tmp_path, "\n".join(["l0: &l0 [x]", *levels]))


def test_an_alias_within_what_it_stands_for_is_refused(tmp_path: Path) -> None:
    assert "an alias stands within what it stands for" in only_problem(tmp_path, "a: &a [*a]")


def test_aliases_as_people_write_them_are_read() -> None:
    assert read_yaml("a: &a {x: 1}\nb: *a") == {"a": {"x": 1}, "b": {"x": 1}}


@pytest.mark.parametrize("text", ["a: " + "9" * 5_000, "a: 2001-99-99", "a: !!python/object:os.system x", "a: \x1b"])
def test_values_that_yaml_cannot_make_are_refused(tmp_path: Path, text: str) -> None:
    assert only_problem(tmp_path, text)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("!!bool maybe", "bool"),
        ('!!int ""', "int"),
        ('!!int "_"', "int"),
        ('!!float ""', "float"),
        ("!!timestamp x", "timestamp"),
        ("!!map [a]", "map"),
        ("!!map x", "map"),
    ],
)
def test_a_tag_that_does_not_suit_its_value_is_refused(tmp_path: Path, value: str, kind: str) -> None:
    """Each ended the command as a defect of kerf (KERF900)."""
    problem = only_problem(tmp_path, f"b: 1\na: {value}")
    assert f"the value cannot be read as {kind}" in problem
    assert "x.yaml:2" in problem


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("spec:\n  weight: .nan", 2, "spec.weight: expected a number that JSON has, got nan"),
        ("spec:\n  limits:\n    cpu: .inf", 3, "spec.limits.cpu: expected a number that JSON has, got inf"),
        ("spec:\n- a: 1\n- b: -.inf", 3, "spec[1].b: expected a number that JSON has, got -inf"),
        ('{"spec": {"weight": NaN}}', 1, "spec.weight: expected a number that JSON has, got nan"),
        ('{"spec": [1, -Infinity]}', 1, "spec[1]: expected a number that JSON has, got -inf"),
        ('{"spec": {"maxPods": 1e999}}', 1, "spec.maxPods: expected a number that JSON has, got inf"),
    ],
)
def test_a_number_that_json_does_not_have_is_refused(tmp_path: Path, text: str, line: int, told: str) -> None:
    """It became null, and so counted as absent."""
    file = tmp_path / "x.yaml"
    file.write_text(f"{text}\n---\n{GOOD}")
    found = read_documents([file])
    assert [document["metadata"]["name"] for document in found.good] == ["good"]
    (refused,) = found.refused
    assert (refused.error.code, refused.error.where) == ("KERF303", f"{file}:{line}")
    assert refused.error.message == told


def test_a_text_that_is_called_like_no_number_is_a_text() -> None:
    assert read_yaml("{a: NaN, b: '.nan', c: Infinity}") == {"a": "NaN", "b": ".nan", "c": "Infinity"}


def test_a_file_with_too_many_documents_is_refused_from_there_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "MAX_DOCUMENTS", 3)
    file = tmp_path / "many.yaml"
    file.write_text("---\n".join([GOOD] * 5))
    found = read_documents([file])
    assert len(found.good) == 3
    (refused,) = found.refused
    assert (refused.error.code, refused.error.where) == ("KERF331", f"{file}:13")


def test_lines_are_counted_once_however_many_documents_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each document's line was counted from the file's beginning: 45 s for 5,000 documents in 50 MB."""
    looked_at = 0

    class Text(str):
        def count(self, *args: object) -> int:
            nonlocal looked_at
            _, start, end = args
            assert isinstance(start, int)
            assert isinstance(end, int)
            looked_at += end - start
            return str.count(self, "\n", start, end)

    text = Text("---\n".join([GOOD] * 200))
    parts = list(documents._parts(text))
    assert [line for line, _ in parts[:3]] == [1, 5, 9]
    assert looked_at <= len(text)


def test_the_depth_of_json_is_counted_without_recursion() -> None:
    deep: list[object] = ["x"]
    for _ in range(MAX_DEPTH):
        deep = [deep]
    with pytest.raises(yaml.YAMLError, match="levels deep"):
        bounded_yaml._check_depth(deep)
    assert read_yaml(json.dumps(deep[0])) == deep[0]
