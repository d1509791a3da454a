"""`kerf plan`: one line for each scenario, in order, whatever is in the others (issue, point 12)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from kerf.adapters.cli.commands.plan import NOMINATED
from kerf.adapters.cli.main import main
from tests.support.repository import ROOT

EXAMPLES = ROOT / "docs/examples/plan"


def planned(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[dict[str, Any]]]:
    code = main(["plan", *arguments, "--json"])
    return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_single_document_over_many_lines(capsys: pytest.CaptureFixture[str]) -> None:
    code, lines = planned(capsys, str(EXAMPLES / "workshop.json"))
    assert code == 0
    claims = lines[0]["result"]["newNodeClaims"]
    assert [claim["cheapestInstanceType"] for claim in claims] == ["m5.large"]
    assert claims[0]["pods"] == [f"inflate-{index}" for index in range(5)]
    assert set(lines[0]) == {"name", "family", "summary", "result", "kerf"}


@pytest.mark.parametrize("name", ["workshop.json", "many.jsonl"])
def test_scenarios_of_a_pipe_are_those_of_the_file(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`… | kerf plan -`: a pipe can be read only once."""
    pipe = tmp_path / name
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=((EXAMPLES / name).read_bytes(),))
    writer.start()
    found = planned(capsys, str(pipe))
    writer.join()
    assert found == planned(capsys, str(EXAMPLES / name))


@pytest.mark.parametrize("content", [b'{"name": "\x80"}', b'{"name": "a"}\n{"name": "\xff"}', b'["\x80"]'])
def test_what_is_no_utf_8_is_refused(content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "scenarios").write_bytes(content)
    code, lines = planned(capsys, str(tmp_path / "scenarios"))
    assert code == 1
    assert lines[-1]["result"]["error"].startswith("KERF840")
    assert main(["plan", str(EXAMPLES / "workshop.json"), "--catalogues", str(tmp_path / "scenarios")]) == 2


def test_one_line_each_in_order_and_a_bad_one_stops_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    code, lines = planned(capsys, str(EXAMPLES / "many.jsonl"))
    assert code == 1
    assert [line["name"] for line in lines] == ["fits", "too-large", "bad-quantity"]
    assert [line["result"].get("error", "")[:8] for line in lines] == ["", "", "KERF306:"]
    assert all(set(line) == {"name", "family", "summary", "result", "kerf"} for line in lines)
    assert lines[1]["kerf"]["unplaced"][0]["reasons"][0]["code"] == "types-resources"


def test_people_are_told_the_nearest_miss_and_programs_with_the_trace(capsys: pytest.CaptureFixture[str]) -> None:
    main(["plan", str(EXAMPLES / "many.jsonl")])
    said = capsys.readouterr().out
    assert "      nearest miss: 1 type would do if the pods asked for " in said
    _, lines = planned(capsys, str(EXAMPLES / "many.jsonl"), "--trace")
    (told,) = lines[1]["kerf"]["unplaced"][0]["reasons"]
    assert f"nearest miss: {told['nearestMiss']}" in said
    _, lines = planned(capsys, str(EXAMPLES / "many.jsonl"))
    assert "nearestMiss" not in lines[1]["kerf"]["unplaced"][0]["reasons"][0]


def test_lines_that_are_no_scenarios_get_their_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = (EXAMPLES / "many.jsonl").read_text().splitlines()[0]
    file = tmp_path / "scenarios.jsonl"
    file.write_text(f'{{"name": "cut o\n\n[1, 2]\n{good}\n"text"\n')
    code, lines = planned(capsys, str(file))
    assert code == 1
    assert [line["result"].get("error", "")[:7] for line in lines] == ["KERF840", "KERF840", "", "KERF840"]
    assert lines[0]["name"] == "scenarios.jsonl:1"


def test_a_list_of_scenarios(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenarios = [json.loads(line) for line in (EXAMPLES / "many.jsonl").read_text().splitlines()]
    file = tmp_path / "scenarios.json"
    file.write_text(json.dumps([*scenarios[:2], 7], indent=2))
    code, lines = planned(capsys, str(file))
    assert code == 1
    assert [line["name"] for line in lines] == ["fits", "too-large", "scenarios.json[2]"]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_list_on_one_line_is_a_list_too(
    indent: int | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = json.loads((EXAMPLES / "workshop.json").read_bytes())
    file = tmp_path / "list.json"
    file.write_text(json.dumps([scenario, 7, scenario], indent=indent))
    code, lines = planned(capsys, str(file))
    assert code == 1
    assert ["error" in line["result"] for line in lines] == [False, True, False]
    assert lines[1]["name"] == "list.json[1]"


@pytest.mark.parametrize("command", ["plan", "disrupt"])
@pytest.mark.parametrize("text", ["", "\n\n", "[]"])
def test_a_file_without_scenarios_says_so(
    command: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "empty.json"
    file.write_text(text)
    assert main([command, str(file)]) == 1
    assert "KERF840: there is no scenario in the file" in capsys.readouterr().out


@pytest.mark.parametrize("ends", ["", "]" * 100_000])
def test_json_that_is_nested_too_deeply_is_one_coded_line(
    ends: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "deep.json"
    file.write_text("[" * 100_000 + ends)
    assert main(["plan", str(file)]) == 2
    err = capsys.readouterr().err
    assert err.startswith("KERF840: the JSON is nested too deeply")
    assert err.count("\n") == 1


@pytest.mark.parametrize("option", ["--effort=-1", "--max-steps=0"])
def test_a_search_of_fewer_than_no_steps_is_usage(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", str(EXAMPLES / "workshop.json"), option]) == 2
    assert capsys.readouterr().err.startswith("KERF200: ")


def test_a_named_catalogue_has_to_be_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = json.loads((EXAMPLES / "workshop.json").read_text())
    types = scenario["instanceTypes"]["inline"]
    file, catalogues = tmp_path / "s.json", tmp_path / "catalogues.json"
    file.write_text(json.dumps({**scenario, "instanceTypes": {"catalogue": "mine"}}))
    code, lines = planned(capsys, str(file))
    assert code == 1
    assert lines[0]["result"]["error"].startswith("KERF841: there is no catalogue mine")
    assert "Known ones: aws, kwok" in lines[0]["result"]["error"]
    assert "--catalogues" in lines[0]["result"]["error"]
    catalogues.write_text(json.dumps({"catalogues": {"mine": types}}))
    code, lines = planned(capsys, str(file), "--catalogues", str(catalogues))
    assert (code, lines[0]["summary"]["nodes"]) == (0, 1)


@pytest.mark.parametrize(
    ("catalogue", "zones", "kind"),
    [("aws", ["eu-west-1a"], "c5.large"), ("aws", None, "c5.large"), ("kwok", ["test-zone-b"], "c-4x-amd64-linux")],
)
def test_the_types_of_ec2_and_kwok_need_no_file(
    catalogue: str, zones: list[str] | None, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = json.loads((EXAMPLES / "workshop.json").read_text())
    asked = {"catalogue": catalogue, "names": [kind], "zones": zones}
    scenario["nodePools"][0]["spec"]["template"]["spec"]["requirements"] = []
    file = tmp_path / "s.json"
    file.write_text(json.dumps({**scenario, "instanceTypes": asked}))
    code, (line,) = planned(capsys, str(file))
    assert (code, line["result"]["newNodeClaims"][0]["instanceTypes"]) == (0, [kind])
    file.write_text(json.dumps({**scenario, "instanceTypes": {**asked, "names": ["huge"]}}))
    assert "has no instance type huge" in planned(capsys, str(file))[1][0]["result"]["error"]


def test_an_amount_beyond_64_bits_is_an_amount(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = json.loads((EXAMPLES / "workshop.json").read_text())
    scenario["pods"][0]["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "100E", "memory": "1e30"}
    file = tmp_path / "s.json"
    file.write_text(json.dumps(scenario))
    code, lines = planned(capsys, str(file))
    assert (code, lines[0]["summary"]) == (
        0,
        {"nodes": 1, "totalCheapestPrice": 0.096, "podsOnExistingNodes": 0, "unschedulableCount": 1},
    )


def test_a_file_that_is_not_there_is_one_coded_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "no/such/file.json"]) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert error.startswith("KERF840: cannot read the file")
    assert error.count("\n") == 1


@pytest.mark.parametrize("command", ["plan", "disrupt"])
def test_a_folder_goes_to_simulate_and_what_is_missing_is_called_as_on_the_help_page(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, str(tmp_path)]) == 2
    assert capsys.readouterr().err.endswith("kerf simulate takes folders of manifests\n")
    assert main([command]) == 2
    assert capsys.readouterr().err == f"KERF200: kerf {command} needs SCENARIOS. Try --help\n"


def test_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", str(EXAMPLES / "many.jsonl")]) == 1
    text = capsys.readouterr().out
    assert "fits: 1 new node for $0.0850 an hour" in text
    assert "no place for huge-0" in text
    assert "bad-quantity: refused\n  KERF306: " in text


def test_s40_pods_are_told_their_nodes_unless_asked_otherwise(capsys: pytest.CaptureFixture[str]) -> None:
    asked = str(EXAMPLES / "workshop.json")
    told, left_alone = planned(capsys, asked)[1], planned(capsys, asked, "--no-nominate")[1]
    assert (told[0]["kerf"]["nominated"], left_alone[0]["kerf"]["nominated"]) == (True, False)
    main(["plan", asked])
    assert capsys.readouterr().out.endswith(f"{NOMINATED}\n")
    main(["plan", asked, "--no-nominate"])
    assert NOMINATED not in capsys.readouterr().out


@pytest.mark.slow
def test_plan_needs_neither_the_cloud_nor_its_mock() -> None:
    """Issue, "Figures": kerf plan under 120 MB, without boto3 and moto."""
    script = (
        "import re, sys\n"
        "from pathlib import Path\n"
        "from kerf.adapters.cli.main import main\n"
        f"code = main(['plan', {str(EXAMPLES / 'workshop.json')!r}, '--json'])\n"
        "bad = {'boto3', 'botocore', 'moto'} & set(sys.modules)\n"
        # VmHWM is this program's own; ru_maxrss would count what pytest held when it started it
        "peak = int(re.search(r'VmHWM:\\s+(\\d+) kB', Path('/proc/self/status').read_text())[1]) / 1024\n"
        "sys.exit(0 if code == 0 and not bad and peak < 120 else f'{code} {bad} {peak}')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_terminal_without_unicode_gets_question_marks() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [sys.executable, "-m", "kerf", "--help"], env=environment, capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert b"plan" in done.stdout


def broken(folder: Path, text: str, capsys: pytest.CaptureFixture[str], name: str = "s.json") -> str:
    """The one error of a file."""
    file = folder / name
    file.write_text(text)
    code, (line,) = planned(capsys, str(file))
    assert code == 1
    error: str = line["result"]["error"]
    return error


@pytest.mark.parametrize(
    ("before", "after", "wrong"),
    [
        ('"name": "workshop",', '"name": "workshop",\n  ,', "[s.json:3:3]"),
        ('"now": "2026-01-15T12:00:00Z",', '"now" "2026-01-15T12:00:00Z",', "expecting ':' delimiter [s.json:3:9]"),
        ("\n}", ",\n}", "a comma too many before this [s.json:"),
        ("\n}", "\n", "[s.json:"),
    ],
)
def test_a_document_of_many_lines_that_is_broken_is_one_error_with_its_line_and_column(
    before: str, after: str, wrong: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = json.dumps(json.loads((EXAMPLES / "workshop.json").read_bytes()), indent=2)
    assert before in text
    head, _, tail = text.rpartition(before) if before == "\n}" else text.partition(before)
    error = broken(tmp_path, head + after + tail, capsys)
    assert error.startswith("KERF840: the file is not JSON: ")
    assert wrong in error


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pool.yaml", "{kind: NodePool}\n"),
        ("pool", "# mine\n---\nkind: NodePool\n"),
        ("pool.json", "apiVersion: karpenter.sh/v1\nkind: NodePool\n"),
    ],
)
def test_yaml_goes_to_simulate(name: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    error = broken(tmp_path, text, capsys, name)
    assert error.startswith(f"KERF840: the file is no JSON, but YAML [{name}]. Scenarios are JSON")
    assert error.endswith("kerf simulate takes manifests")


def test_a_record_goes_to_whatif(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = tmp_path / "record.kerf"
    record.write_bytes(b"SQLite format 3\x00\x10\x00\xff")
    code, (line,) = planned(capsys, str(record))
    assert code == 1
    assert line["result"]["error"] == (
        "KERF840: the file is no UTF-8 text (byte 18) [record.kerf]. Scenarios are JSON (docs/plan.md); "
        "kerf whatif RECORD --export FILE writes one of a record"
    )
