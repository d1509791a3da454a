"""YAML and JSON as kubectl reads them, and what to do where they are neither."""

from __future__ import annotations

from pathlib import Path

import pytest

from kerf.adapters.cli.input.bounded_yaml import read_yaml
from kerf.adapters.cli.input.documents import Documents, read_documents


def read(tmp_path: Path, text: str) -> Documents:
    file = tmp_path / "x.yaml"
    file.write_text(text)
    return read_documents([file])


def test_a_key_that_yaml_reads_as_true_is_a_text() -> None:
    assert read_yaml("labels: {on: a, off: b, true-ish: c}") == {"labels": {"true": "a", "false": "b", "true-ish": "c"}}


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("kind: Pod\nmetadata:\n  name: {{ .Values.name }}\n", 'such as with "helm template"'),
        ("kind: Pod\n{{- if .Values.on }}\nmetadata: {}\n{{- end }}\n", 'such as with "helm template"'),
        ("kind: Pod\nmetadata:\n\tname: a\n", "Write spaces in place of the tab"),
        ("kind: Pod\n metadata:\n", "Mend the indentation"),
    ],
)
def test_what_is_no_yaml_says_what_to_do(tmp_path: Path, text: str, hint: str) -> None:
    (refused,) = read(tmp_path, text).refused
    assert hint in refused.error.hint


def test_json_documents_may_follow_one_another(tmp_path: Path) -> None:
    """As `cat a.json b.json | kubectl apply -f -` takes them."""
    found = read(tmp_path, '\n{"kind": "A",\n "n": {}}\n{"kind": "B"} {"kind": "List", "items": [{"kind": "C"}]}\n')
    assert [document["kind"] for document in found.good] == ["A", "B", "C"]
    assert [place.rpartition(":")[2] for place in found.places] == ["2", "4", "4[0]"]
    assert found.refused == []


@pytest.mark.parametrize("text", ['{"kind": "A"}\n{"kind": NaN}\n', '{"kind": "A"} x\n', '{"kind": "A"}\n[1]\n'])
def test_json_that_goes_on_as_something_else_is_refused(tmp_path: Path, text: str) -> None:
    found = read(tmp_path, text)
    assert (len(found.good), len(found.refused)) in {(0, 1), (1, 1)}


@pytest.mark.parametrize(
    ("text", "form"), [("hello", "a text"), ("- a", "a list"), ("5", "a number"), ("on", "true or false")]
)
def test_what_is_no_object_is_called_what_it_is(tmp_path: Path, text: str, form: str) -> None:
    (document,) = read(tmp_path, text).refused
    assert document.error.message == f"the document is {form}, and no object"
    (item,) = read(tmp_path, "kind: List\nitems: [null]").refused
    assert item.error.message == "the item is null, and no object"
