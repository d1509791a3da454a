"""`kerf check`: records and simulations held against a policy, as text, JSON, JUnit and Markdown."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

from kerf.adapters.cli.checking.subjects import subjects
from kerf.adapters.cli.main import main
from tests.support.repository import ROOT

SPOT = ROOT / "tests/golden/spot-interruption"
WORKSHOP = ROOT / "docs/examples/workshop"
POLICY = """
policy:
  - name: nobody is evicted
    never_evicts: true
  - max_nodes: 5
"""
TIMELINE = """
apiVersion: kerf.dev/v1alpha1
kind: Timeline
metadata: {name: five}
spec:
  actions: [{at: 1m, action: scale, namespace: other, name: inflate, replicas: 5}]
"""


@pytest.fixture
def policy(tmp_path: Path) -> str:
    (tmp_path / "policy.yaml").write_text(POLICY)
    return str(tmp_path / "policy.yaml")


def test_a_broken_assertion_ends_with_1_and_names_the_command(policy: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", policy, str(SPOT)]) == 1
    title, broken, where, why, *_, summary = capsys.readouterr().out.splitlines()
    assert (title, broken.split(), summary) == (
        str(SPOT),
        ["broken", "nobody", "is", "evicted"],
        "1 assertion holds, 1 broken",
    )
    assert "was evicted from default-" in where
    assert f"why: kerf explain {SPOT} nodeclaim/default-" in why


def test_records_and_manifests_are_held_together(
    policy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "timeline.yaml").write_text(TIMELINE)
    kept = tmp_path / "kept.kerf"
    arguments = [str(WORKSHOP), str(tmp_path / "timeline.yaml"), "--until", "10m", "--record", str(kept)]
    assert main(["check", policy, str(SPOT), *arguments, "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    outcomes = {record["record"]: [one["outcome"] for one in record["results"]] for record in report["records"]}
    assert outcomes == {str(SPOT): ["broken", "holds"], str(kept): ["holds", "holds"]}
    assert report["records"][0]["results"][0]["breaches"][0]["at_time"].startswith("2026-01-01T")
    assert main(["verify", str(kept)]) == 0, "the record of the simulation is kept"


def test_junit_names_records_and_assertions(policy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "check.xml"
    for _ in range(2):  # a file of the run before is replaced
        assert main(["check", policy, str(SPOT), "--junit", str(file)]) == 1
    suites = Xml.parse(file).getroot()
    assert suites.tag == "testsuites"
    assert [suites.get(count) for count in ("tests", "failures", "errors")] == ["2", "1", "0"]
    cases = suites.findall("testsuite/testcase")
    assert [case.get("name") for case in cases] == ["nobody is evicted", "max_nodes 5"]
    failure = cases[0].find("failure")
    assert failure is not None
    assert "was evicted" in failure.get("message", "")
    assert "why: kerf explain" in (failure.text or "")


def test_markdown_lets_no_name_become_markup(policy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "policy.yaml").write_text('policy: [{max_nodes: 0, name: "<b>|x|</b>"}]')
    assert main(["check", policy, str(SPOT), "--markdown"]) == 1
    printed = capsys.readouterr().out
    assert printed.startswith("### kerf check: 0 assertions hold, 1 broken\n")
    assert r"| ❌ broken | \<b\>\|x\|\</b\> |" in printed
    assert "<br>`kerf status " in printed


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["policy.yaml", "nowhere.kerf"], "KERF113"),
        (["nowhere.yaml", str(SPOT)], "KERF221"),
        (["policy.yaml", str(SPOT), "--until", "1h"], "no manifests to simulate"),
        (["policy.yaml", str(SPOT), "--record", "x.kerf"], "no manifests to simulate"),
        (["bad.yaml", str(SPOT)], "bad.yaml: line 2, column 1"),
        (["record.kerf", "policy.yaml"], "The policy comes first"),
        (["policy.yaml", "bad-pool.yaml"], "KERF"),
    ],
)
def test_bad_input_is_refused_with_a_code(
    policy: str,
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.yaml").write_text("policy: [")
    (tmp_path / "record.kerf").write_bytes(b"SQLite format 3\0\x10\xff")
    pool = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: x}\nspec: {weight: many}\n"
    (tmp_path / "bad-pool.yaml").write_text(pool)
    assert main(["check", *arguments]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "x.kerf").exists()


def test_a_database_has_no_password_in_results() -> None:
    """They go into JUnit's XML, and into comments on pull requests."""
    (subject,) = subjects(["postgresql://reader:hush@db.example.com/kerf?schema=kerf"], None, None)
    assert subject.name == "postgresql://reader@db.example.com/kerf?schema=kerf"


def test_names_find_nothing_among_pseudonyms_which_is_no_success(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is not of a name holds as ever."""
    bundle, policy = tmp_path / "safe.kerfb", tmp_path / "names.yaml"
    assert main(["bundle", "export", str(SPOT), str(bundle), "--pseudonymise"]) == 0
    policy.write_text(
        "policy: [{max_nodes: 9, for: {pool: default}}, {max_evictions: 99, for: {workload: other/inflate}},"
        " {max_nodes: 9}, {max_nodes: 9, for: {zone: mars}}]"
    )
    capsys.readouterr()
    assert main(["check", str(policy), str(bundle), "--json"]) == 2
    (record,) = json.loads(capsys.readouterr().out)["records"]
    assert [one["outcome"] for one in record["results"]] == ["unknown", "unknown", "holds", "holds"]
    assert "nothing of pool default, for its names are pseudonyms" in record["results"][0]["note"]
    assert main(["check", str(policy), str(SPOT)]) == 0


def test_a_whatif_is_told_as_markdown(capsys: pytest.CaptureFixture[str]) -> None:
    change = ["--set", "nodepool/default.spec.limits.cpu=1"]
    assert main(["whatif", str(SPOT), "--at", "+1m", *change, "--markdown"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("### kerf whatif, at 2026-01-01T00:01:00.000Z (position ")
    assert "|  | without the change | with the change |" in lines
    plan = lines[lines.index("```diff") + 1 : lines.index("```")]
    assert any(line.startswith("- default-") for line in plan), "what is not launched any more"
    assert lines[-1].startswith("_Exact is this one decision")


def test_a_manifest_that_is_applied_says_which_fields_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool = (WORKSHOP / "nodepool.yaml").read_text()
    (tmp_path / "pool.yaml").write_text(pool.replace("consolidateAfter: 1m", "consolidateAfter: 5m"))
    (tmp_path / "same.yaml").write_text(pool)
    scaled = str(ROOT / "tests/golden/workshop-scale-up-and-down")
    (tmp_path / "new.yaml").write_text(pool.replace("name: default", "name: defalt", 1))
    for file, told in (
        ("new.yaml", "NodePool defalt is new: the record has default"),
        ("pool.yaml", "NodePool default: spec.disruption.consolidateAfter 1m0s → 5m0s"),
        ("same.yaml", "NodePool default: as it is in the record"),
    ):
        assert main(["whatif", scaled, "--at", "+5m", "--apply", str(tmp_path / file), "--markdown"]) == 0
        assert f"- `{told}`" in capsys.readouterr().out
