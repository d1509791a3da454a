"""`kerf import`: what it prints, what it refuses, and that nothing half-written stays."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import zstandard

from kerf.adapters.cli import limits
from kerf.adapters.cli.main import main
from kerf.adapters.importers import files
from tests.support.imports.imported import SAMPLES, written

LOG = (SAMPLES / "karpenter-1.4.log").read_bytes()


def run(*tokens: object) -> int:
    return main([str(token) for token in tokens])


def test_it_says_what_was_read_and_what_is_not_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = tmp_path / "r.kerf"
    assert run("import", SAMPLES / "karpenter-1.4.log", "--record", record) == 0
    out = capsys.readouterr().out
    assert "15 read, 0 of no interest, 0 not readable" in out
    assert "2 NodeClaims (0 from before, 1 gone), 1 decision of Karpenter's to remove nodes" in out
    assert "Partial; not in it: who asked for a change" in out


def test_lines_that_cannot_be_read_are_counted_and_the_first_three_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, "log", LOG.strip(), "panic: \x1b[31mred", "goroutine 1", "{}", '{"message": 3}', "x")
    assert run("import", file, "--record", tmp_path / "r.kerf", "--json") == 0
    (read,) = json.loads(capsys.readouterr().out)["files"]
    assert (read["read"], read["unread"]) == (15, 5)
    assert [unread["number"] for unread in read["first_unread"]] == [16, 17, 18]
    assert run("import", file, "--record", tmp_path / "r.kerf") == 0
    out = capsys.readouterr().out
    assert "… and 2 more" in out
    assert "\x1b" not in out


@pytest.mark.parametrize(
    ("content", "code", "says"),
    [
        (b"", "KERF360", "no line of it is JSON"),
        (b"hello\nworld\n", "KERF360", "no line of it is JSON"),
        (b'{"kind": "List", "items": []}', "KERF360", "'kind', 'items'"),
        (b"[" * 200_000, "KERF360", "no line of it is JSON"),
        (b'{"a":' * 200_000, "KERF360", "no line of it is JSON"),
        (b"\x1f\x8b\x08\x00\x00garbage", "KERF361", "damaged or cut off"),
        (b"\x28\xb5\x2f\xfdgarbage", "KERF361", "damaged or cut off"),
        (gzip.compress(LOG)[:200], "KERF361", "damaged or cut off"),
        (b"2023-09-20T21:41:22.421Z\tINFO\tcontroller.provisioner\tx\t{}\n", "KERF361", "console form"),
        (
            b'karpenter-7d-x controller 2023-09-20T21:41:22.421Z        INFO    controller.provisioner  x  {"a": 1}\n',
            "KERF361",
            "console form",
        ),
        (b'{\n "message": "tainted node",\n "controller": "node.termination"\n}\n', "KERF360", "without a time"),
        (
            b'{"time":"2026-03-02T09:00:00Z","logger":"controller","message":"tainted node","Node":{"name":"<x>"}}',
            "KERF363",
            "are their names masked?",
        ),
        (
            b'{"level":"INFO","time":"2026-03-02T09:00:00Z","logger":"controller","message":"x"}',
            "KERF363",
            "no history",
        ),
    ],
)
def test_what_is_no_history_is_refused_with_what_it_looks_like(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, code: str, says: str
) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    assert run("import", file, "--record", tmp_path / "r.kerf") == 2
    error = capsys.readouterr().err
    assert error.startswith(f"{code}: ")
    assert says in error
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


def test_a_file_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_BYTES", 1 << 20)
    file = tmp_path / "bomb"
    file.write_bytes(zstandard.compress(b" " * (8 << 20)))
    assert run("import", file, "--record", tmp_path / "r.kerf") == 2
    assert capsys.readouterr().err.startswith("KERF362: ")


@pytest.mark.parametrize("packed", [gzip.compress(LOG), zstandard.compress(LOG), b"\xef\xbb\xbf" + LOG])
def test_f1_packed_files_are_unpacked(tmp_path: Path, packed: bytes) -> None:
    file = tmp_path / "packed"
    file.write_bytes(packed)
    assert run("import", file, "--record", tmp_path / "r.kerf") == 0


@pytest.mark.parametrize(
    "bad",
    [
        '{"level":"INFO","time":"9999-12-31T23:59:59.999+23:59","logger":"controller","message":"tainted node"}',
        '{"level":"INFO","time":"0001-01-01T00:00:00Z","logger":"controller","message":"tainted node"}',
        '{"level":"INFO","time":12,"logger":"controller","message":"tainted node"}',
        '{"message":"tainted node","Node":"\\ud800","time":"2026-03-02T09:00:00Z"}',
        '{"time":"2026-03-02T09:00:00Z","message":"created nodeclaim","NodeClaim":{"name":"../../etc\\u0000"}}',
        '{"time":"2026-03-02T09:00:00Z","message":"disrupting node(s)","reason":"x","disrupted-nodes":[1,{"Node":3}]}',
        '{"time":"2026-03-02T09:00:00Z","message":"launched nodeclaim","NodeClaim":"a","allocatable":{"cpu":"1e9999"}}',
        '{"time":"2026-03-02T09:00:00Z","message":"disrupting via consolidation delete, terminating 1 nodes a/b/c"}',
    ],
)
def test_hostile_lines_do_no_harm(tmp_path: Path, bad: str) -> None:
    record = tmp_path / "r.kerf"
    assert run("import", written(tmp_path, "log", LOG.strip(), bad), "--record", record) == 0
    assert run("verify", record) == 0


def test_only_an_imported_record_is_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = tmp_path / "r.kerf"
    record.write_bytes(b"mine")
    assert run("import", SAMPLES / "karpenter-1.4.log", "--record", record) == 2
    assert record.read_bytes() == b"mine"
    assert "KERF114" in capsys.readouterr().err
    record.unlink()
    assert run("import", SAMPLES / "karpenter-1.4.log", "--record", record) == 0
    assert run("import", SAMPLES / "karpenter-1.12.log", "--record", record) == 0


def test_commands_that_need_what_is_missing_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = tmp_path / "r.kerf"
    assert run("import", SAMPLES / "karpenter-1.4.log", "--record", record) == 0
    capsys.readouterr()
    assert run("explain", record, "pod", "shop/web-6c8f-aaaaa") == 2
    assert "KERF211: this record was imported from karpenter-log, which does not tell pods" in capsys.readouterr().err
    assert run("observe", "report", record) == 2
    assert "KERF211" in capsys.readouterr().err
    for command in ("cost", "evictions", "capacity"):
        assert run(command, record) == 2
        assert capsys.readouterr().err.startswith("KERF211: this record was imported from karpenter-log"), command
    assert run("whatif", record, "--delete", "node/ip-10-0-0-11.eu-west-1.compute.internal") == 2
    assert "KERF211" in capsys.readouterr().err
    assert run("explain", record, "node", "ip-10-0-0-11.eu-west-1.compute.internal") == 0
    out = capsys.readouterr().out
    assert "its cost is not known" in out
    assert "not known, for the record is partial" in out
    assert "its NodePool general is not there" not in out
    assert run("at", record, "end") == 0
    assert "$" not in capsys.readouterr().out
    assert run("verify", record) == 0
    assert "What another controller decided cannot be decided again" in capsys.readouterr().out


def status_of(capsys: pytest.CaptureFixture[str], tmp_path: Path, *samples: str) -> tuple[str, dict[str, Any]]:
    """The status of a record that is imported from these samples, as text and as JSON."""
    record = tmp_path / "r.kerf"
    assert run("import", *(SAMPLES / sample for sample in samples), "--record", record) == 0
    capsys.readouterr()
    assert run("status", record) == 0
    text = capsys.readouterr().out
    assert run("status", record, "--json") == 0
    return text, json.loads(capsys.readouterr().out)


def test_status_answers_what_a_log_tells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A log knows the nodes, and neither pods nor prices: nothing is guessed of these."""
    text, status = status_of(capsys, tmp_path, "karpenter-1.4.log")
    assert "whether pods wait is not known" in text
    assert "partial; not known: " in text
    assert "$" not in text
    assert "%" not in text
    assert "0 pods" not in text
    assert status["nodes"]
    assert not any(node["usage"] or node["reason"] for node in status["nodes"])


@pytest.mark.slow
def test_status_answers_what_an_audit_log_tells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It tells pods with their nodes: what is on them is known. What kubelets say of nodes is seldom in it."""
    files = ("karpenter-1.14-kwok-audit.jsonl.gz", "karpenter-1.14-kwok.log.gz")
    text, status = status_of(capsys, tmp_path, *files)
    assert "29 nodes; pods: 150 bound" in text
    assert "not ready" not in text
    assert "$" not in text
    assert max(map(len, text.splitlines())) <= 80
    assert sum(node["pods"] for node in status["nodes"]) == 150
    assert (status["window_closes"], status["waiting"]) == (0, [])


def test_diff_tells_no_prices_that_nobody_knows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And the settings that a record begins with are no change."""
    record = tmp_path / "r.kerf"
    assert run("import", SAMPLES / "karpenter-1.4.log", "--record", record) == 0
    capsys.readouterr()
    assert run("diff", record, "start") == 0
    text = capsys.readouterr().out
    assert "node " in text
    assert "$" not in text
    assert "settings" not in text
    assert "price" not in text


def test_an_imported_record_can_be_handed_on_under_pseudonyms(tmp_path: Path) -> None:
    record, bundle = tmp_path / "r.kerf", tmp_path / "r.kerfb"
    assert run("import", SAMPLES / "karpenter-1.12.log", "--record", record) == 0
    assert run("bundle", "export", record, bundle, "--pseudonymise") == 0
    assert b"general-ccccc" not in bundle.read_bytes()
    assert run("verify", bundle) == 0


def test_figures_of_an_imported_record_leave_out_what_is_not_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record, prices = tmp_path / "r.kerf", tmp_path / "prices.yaml"
    assert run("import", SAMPLES / "karpenter-1.12.log", "--record", record) == 0
    capsys.readouterr()
    assert run("churn", record) == 0
    assert "UNUSED" not in capsys.readouterr().out
    prices.write_text("m6a.xlarge/on-demand: 0.36\nm5.xlarge/on-demand: 0.2\n")
    assert run("cost", record, "--by", "type", "--prices", prices, "--json") == 0
    (large, *_) = json.loads(capsys.readouterr().out)["rows"]
    assert (large["type"], round(large["cost"], 4)) == ("m6a.xlarge", round(0.36 * (26 * 60 + 7.9) / 3600, 4))


def answered(capsys: pytest.CaptureFixture[str], *command: object) -> dict[str, Any]:
    assert run(*command, "--json") == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def rows(answer: dict[str, Any], by: str, *amounts: str) -> dict[str, tuple[float, ...]]:
    return {row[by]: tuple(row[name] for name in amounts) for row in answer["rows"]}


def test_f68_capacity_and_churn_tell_the_launches_that_a_log_says_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ice = (
        "creating instance, insufficient capacity, with fleet error(s), InsufficientInstanceCapacity: We currently do "
        "not have sufficient c6a.large capacity in the Availability Zone you requested (eu-west-1a). Try later.; "
        "MaxSpotInstanceCountExceeded: Max spot instance count exceeded"
    )
    lines = []
    for number, error in enumerate((ice, "NodeClassNotReady: the NodeClass is not ready", "some other error")):
        claim = {"NodeClaim": {"name": f"a-{number}"}}
        lines += [
            _line(number, "created nodeclaim", "provisioner", **claim, NodePool={"name": "a"}),
            _line(number, "failed launching nodeclaim", "nodeclaim.lifecycle", **claim, error=error),
        ]
    record = tmp_path / "r.kerf"
    assert run("import", written(tmp_path, "log", *lines), "--record", record) == 0
    capsys.readouterr()
    told = answered(capsys, "capacity", record)
    assert rows(told, "offering", "refused", "launches_lost")["c6a.large/eu-west-1a"] == (1, 0)
    assert rows(answered(capsys, "capacity", record, "--by", "reason"), "reason", "refused", "launches_lost") == {
        "InsufficientInstanceCapacity": (1, 1), "MaxSpotInstanceCountExceeded": (1, 0),
        "nodeclass-not-ready": (1, 1), "error": (1, 1),
    }  # fmt: skip
    assert set(rows(answered(capsys, "churn", record, "--by", "reason"), "reason")) == {
        "launch failed: insufficient-capacity", "launch failed: nodeclass-not-ready", "launch failed: error",
    }  # fmt: skip


def test_f80_capacity_tells_the_offerings_that_a_log_at_debug_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    offering = {"capacity-type": "spot", "instance-type": "c6a.large", "zone": "eu-west-1a"}
    line = _line(1, "removing offering from offerings", "x", reason="InsufficientInstanceCapacity", **offering)
    record = tmp_path / "r.kerf"
    assert run("import", written(tmp_path, "log", line), "--record", record) == 0
    capsys.readouterr()
    told = answered(capsys, "capacity", record)
    assert rows(told, "offering", "refused") == {"spot/c6a.large/eu-west-1a": (1,)}


def test_f126_evictions_of_an_audit_log_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = tmp_path / "r.kerf"
    assert run("import", SAMPLES / "audit.jsonl", "--record", record) == 0
    capsys.readouterr()
    told = answered(capsys, "evictions", record)
    assert rows(told, "workload", "evicted", "refused") == {"shop/web-6c8f": (1, 1)}


def test_loops_of_replacements_are_found_in_a_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each node is replaced by the next: what users call churn (wish 28)."""
    lines, minute = [], 0
    lines.append(_line(0, "created nodeclaim", "provisioner", NodeClaim={"name": "a-0"}, NodePool={"name": "a"}))
    for number in range(6):
        claim, after, run_id = f"a-{number}", f"a-{number + 1}", f"run-{number}"
        node = {"Node": {"name": f"n-{number}"}, "NodeClaim": {"name": claim}}
        minute += 5
        decision = {"reason": "underutilized", "decision": "replace", "replacement-node-count": 1}
        lines += [
            _line(minute, "launched nodeclaim", "x", NodeClaim={"name": claim}, **{"instance-type": "m5.large"}),
            _line(minute, "registered nodeclaim", "x", **node),
            _line(minute, "initialized nodeclaim", "x", **node),
            _line(minute + 1, "disrupting node(s)", "disruption", reconcileID=run_id, **decision,
                  **{"disrupted-nodes": [node]}),
            _line(minute + 1, "created nodeclaim", "disruption", reconcileID=run_id, NodeClaim={"name": after}),
            _line(minute + 3, "deleted nodeclaim", "x", **node),
        ]  # fmt: skip
    record = tmp_path / "r.kerf"
    assert run("import", written(tmp_path, "log", *lines), "--record", record) == 0
    capsys.readouterr()
    assert run("churn", record, "--json") == 0
    (loop,) = json.loads(capsys.readouterr().out)["loops"]
    assert loop["claims"] == [f"a-{number}" for number in range(7)]


def _line(minute: int, message: str, controller: str, **fields: object) -> str:
    time = f"2026-03-02T09:{minute:02}:00.000Z"
    return json.dumps({"time": time, "logger": "controller", "message": message, "controller": controller} | fields)


@pytest.mark.parametrize("limit", ["SECONDS", "MEGABYTES"])
def test_a_small_file_that_unpacks_to_very_much_ends_at_its_limits(
    limit: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """500 MB of empty lines, 500 kB packed, took minutes."""
    monkeypatch.setattr(limits, limit, 0.2)
    monkeypatch.setattr(limits, "TO_READ", 0)
    (tmp_path / "log.gz").write_bytes(gzip.compress(b"\n" * (20 << 20)))
    assert run("import", tmp_path / "log.gz", "--record", tmp_path / "r.kerf") == 2
    assert capsys.readouterr().err.startswith("KERF128: a file of this size may not take more than ")
    assert [path.name for path in tmp_path.iterdir()] == ["log.gz"]


def test_a_packed_file_may_take_more(tmp_path: Path) -> None:
    for name, start in (("log.gz", gzip.compress(LOG)), ("log.zst", zstandard.compress(LOG))):
        (tmp_path / name).write_bytes(start)
        assert limits._size(tmp_path / name) == 13 * len(start)
