"""`kerf simulate` refuses bad documents one by one, and the rest goes on (issue, point 12 and "Bad input")."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kerf.adapters.cli.input.documents import read_documents
from kerf.adapters.cli.main import main
from tests.support.repository import ROOT
from tests.support.simulation.command import WORKSHOP, codes, entries, example, simulated, written


def test_bad_documents_are_refused_one_by_one_and_the_rest_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Malformed and contradictory manifests, an unknown API version, a bad quantity, an unknown enum, bad actions."""
    record = tmp_path / "run.kerf"
    code, outcome = simulated(capsys, WORKSHOP, example("refused.yaml"), "--record", str(record))
    assert code == 1
    assert outcome["nodes"]["launched"] == 1  # the Deployment's pod got its node all the same
    by_object: dict[str, list[str]] = {}
    for refused in outcome["refused"]:
        by_object.setdefault(refused["object"].partition(" of ")[0], []).append(refused["code"])
    assert by_object == {
        "NodePool from-the-future": ["KERF302"],
        "Pod bad-quantity": ["KERF306"],
        "NodePool contradictory": ["KERF309", "KERF312", "KERF305", "KERF310"],
        "Timeline mixed": ["KERF810", "KERF810", "KERF811"],
        "document 4": ["KERF331"],
        "document 5": ["KERF331"],
    }
    assert len(outcome["refused"]) == 11
    assert "| eleven mistakes, each" in (ROOT / "docs/simulate.md").read_text()
    fields = {refused["field"] for refused in outcome["refused"]}
    assert "spec.template.spec.requirements[0].operator" in fields
    assert "spec.containers[0].resources.requests[memory]" in fields
    recorded = [entry.payload.code for entry in entries(record, "input.refused")]
    assert sorted(recorded) == sorted(codes(outcome))


def test_text_that_is_no_manifest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path, "just words\n---\n- a\n- list\n---\n\n---\n# only a comment\n", "a.yaml")
    (tmp_path / "b.yaml").write_bytes(b"\xff\xfe not utf-8 \x80")
    written(tmp_path, '{"kind": "Pod", ', "c.json")
    code, outcome = simulated(capsys, str(tmp_path))
    assert code == 1
    assert codes(outcome) == ["KERF331"] * 4


@pytest.mark.parametrize(
    ("content", "refused"),
    [
        (b"just words", "KERF331: the document is a text, and no object ["),
        (b"SQLite format 3\x00\xff", "KERF331: the file is no UTF-8 text (byte 16). Give YAML or JSON"),
        (b"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {}", "KERF304: "),
    ],
)
def test_without_a_document_that_is_accepted_nothing_is_simulated(
    content: bytes, refused: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, record = tmp_path / "a.yaml", tmp_path / "a.kerf"
    file.write_bytes(content)
    assert main(["simulate", str(file), "--record", str(record)]) == 1
    out, err = capsys.readouterr()
    assert (out, record.exists()) == ("", False)
    assert err.startswith(refused)
    assert err.endswith("Nothing is simulated: no document was accepted\n")
    code, outcome = simulated(capsys, str(file))
    assert (code, outcome["duration"], len(outcome["refused"])) == (1, 0.0, 1)


def test_where_nothing_is_simulated_each_refusal_names_its_object(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files of a folder have the same fields."""
    file = tmp_path / "a.yaml"
    file.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\n'")
    assert main(["simulate", str(file)]) == 1
    pod, text, _ = capsys.readouterr().err.splitlines()
    assert text.endswith(f"[document 2 of {file} {file}:5]")
    assert pod.endswith("[Pod a spec]")


def test_a_document_that_says_not_what_it_is_is_refused_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = written(tmp_path, "metadata: {name: x}")
    code, outcome = simulated(capsys, files, "--until", "5m")
    assert code == 1
    (refused,) = outcome["refused"]
    assert (refused["code"], refused["object"]) == ("KERF302", f"{files}:1")


def test_a_list_refuses_its_items_one_by_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}
    items = [namespace, {"apiVersion": "v1", "kind": "Gizmo", "metadata": {"name": "g"}}]
    file = written(tmp_path, json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), "list.json")
    code, outcome = simulated(capsys, file)
    assert (code, codes(outcome)) == (1, ["KERF302"])


@pytest.mark.parametrize(
    "document",
    [
        "kind: List\nitems: 7",
        "kind: List\nitems: [7, null, [1]]",
        "kind: [a]\nmetadata: {name: x}",
        "apiVersion: v1\nkind: Pod\nmetadata: nobody",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\nspec: {template: 4}",
        "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: x}\nspec: {template: {spec: {requirements: 7}}}",
        "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: x}\nstatus: {conditions: [7]}",
        "apiVersion: kerf.dev/v1alpha1\nkind: Timeline\nspec: {actions: [7, {at: 1s, action: apply, object: {}}]}",
        "apiVersion: kerf.dev/v1alpha1\nkind: Timeline\nmetadata: 3\nspec: 4",
        "? [a, b]\n: c",
        "when: 2026-01-01",
        "{a: &a [*a]}",
    ],
)
def test_documents_of_wrong_shapes_are_refused(
    document: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, outcome = simulated(capsys, WORKSHOP, written(tmp_path, document), example("workshop.yaml"))
    assert code == 1
    assert codes(outcome)
    assert outcome["nodes"]["launched"] == 1


@pytest.mark.parametrize("merged", [False, True])
def test_a_bomb_of_aliases_is_refused_and_the_rest_goes_on(
    merged: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    levels = ["a0: &a0 {x: y}"]
    for level in range(1, 12):
        inside = ", ".join([f"*a{level - 1}"] * 9)
        levels.append(f"a{level}: &a{level} " + (f"{{<<: [{inside}]}}" if merged else f"[{inside}]"))
    bomb = written(tmp_path, "\n".join(["apiVersion: v1", "kind: Namespace", *levels]))
    code, outcome = simulated(capsys, bomb, WORKSHOP, example("workshop.yaml"))
    assert (code, codes(outcome), outcome["nodes"]["launched"]) == (1, ["KERF331"], 1)


def test_a_few_aliases_are_what_they_stand_for(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("a: &a {x: 1}\nb: [*a, *a]\nc: {<<: *a, y: 2}\n")
    found = read_documents([file])
    assert (found.good, found.refused) == ([{"a": {"x": 1}, "b": [{"x": 1}] * 2, "c": {"x": 1, "y": 2}}], [])


def test_a_missing_file_is_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "no/such.yaml"]) == 2
    assert capsys.readouterr().err.startswith("KERF330: cannot read the file")
