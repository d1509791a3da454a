"""In what forms Karpenter's log comes: wrapped lines, broken ones, what stores of logs export, other encodings."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kerf.adapters.cli.importing.record import import_files
from kerf.adapters.importers.errors import Unreadable, Unrecognised
from kerf.engine.record.claim_events import Registered
from tests.support.imports.imported import SAMPLES, imported, log_line, named, payloads, told, written


def test_f2_a_grafana_export_is_turned_round(tmp_path: Path) -> None:
    with imported(tmp_path, "karpenter-loki.json") as (summary, store):
        assert summary.imported.versions == ("1.4.0",)
        assert [t for t in told(store) if "is requested" in t] == [
            "general-aaaaa is requested", "general-bbbbb is requested: c6a.large or 1 more",
        ]  # fmt: skip
        assert "general-bbbbb is launched; as what is not known" in told(store)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda text: f"2026-03-02T09:00:00.123456789Z stdout F {text}",
        lambda text: f"2026-03-02T09:00:00.1Z {text}",
        lambda text: f"karpenter-7d-x controller {text}",
        lambda text: f'2026-03-02T10:00:00+01:00 {{app="karpenter", pod="karpenter-7d-x"}} {text}',
        lambda text: f"| 1772442000707 | 2026-03-02T09:00:00.707Z stdout F {text}     | karpenter-7d-x.controller |",
        lambda text: f'"{text}"',
        lambda text: text.replace(', "', ',\n "').replace(": {", ":\n  {"),
        lambda text: "  {" + f"{text[1:60]}\r\n{text[60:]}",
        lambda text: json.dumps({"log": text + "\n", "stream": "stdout", "time": "2026-03-02T09:00:00Z"}),
        lambda text: json.dumps({"log": text, "log_processed": json.loads(text), "kubernetes": {"pod_name": "x"}}),
        lambda text: json.dumps({"@timestamp": "2026-03-02T09:00:00Z", "message": text, "level": "info"}),
        lambda text: json.dumps({"jsonPayload": json.loads(text), "timestamp": "2026-03-02T09:00:00Z"}),
        lambda text: json.dumps({"labels": {"pod": "x"}, "line": text, "timestamp": "2026-03-02T09:00:00Z"}),
        lambda text: json.dumps({"__REALTIME_TIMESTAMP": "1772442000000000", "MESSAGE": text}, separators=(",", ":")),
        lambda text: json.dumps({"_index": "logs", "_source": {"@timestamp": "2026-03-02T09:00:00Z", "log": text}}),
        lambda text: json.dumps([json.loads(text)], indent=1),
        lambda text: "\n".join(json.dumps(json.loads(part), indent=2) for part in (text, text)),
        lambda text: json.dumps([{"line": text, "timestamp": "1772442000000000000"}]),
    ],
)
def test_f2_wrappers_are_peeled(tmp_path: Path, wrap: object) -> None:
    made = log_line("09:00:01.000", "created nodeclaim", "provisioner", **named("a-1"))
    file = written(tmp_path, "wrapped", wrap(made))  # type: ignore[operator]
    with imported(tmp_path, file) as (_, store):
        assert "a-1 is requested" in told(store)


@pytest.mark.parametrize("form", ["csv", "json"])
def test_a_result_of_cloudwatch_logs_insights_is_read(tmp_path: Path, form: str) -> None:
    """The newest line first, as the console exports it; columns in any order."""
    lines = (SAMPLES / "karpenter-1.4.log").read_text().splitlines()
    rows = [
        {"@logStream": "karpenter", "@message": line, "@timestamp": json.loads(line)["time"].replace("T", " ")[:-1]}
        for line in reversed(lines)
    ]
    text = io.StringIO()
    table = csv.DictWriter(text, list(rows[0]))
    table.writeheader()
    table.writerows(rows)
    file = written(tmp_path, "insights", text.getvalue() if form == "csv" else json.dumps(rows))
    with imported(tmp_path, file) as (_, store):
        exported = [entry.payload for entry in store.scan(2)]
    (tmp_path / "imported.kerf").unlink()
    with imported(tmp_path, "karpenter-1.4.log") as (_, store):
        assert [entry.payload for entry in store.scan(2)] == exported


def _typed(value: Any) -> dict[str, Any]:
    """A value as OpenTelemetry writes it."""
    if isinstance(value, dict):
        return {"kvlistValue": {"values": [{"key": key, "value": _typed(inner)} for key, inner in value.items()]}}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_typed(inner) for inner in value]}}
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}


def _of_otel(*bodies: dict[str, Any]) -> str:
    records = [{"timeUnixNano": "1772451000100000000", "body": body} for body in bodies]
    return json.dumps({"resourceLogs": [{"resource": {}, "scopeLogs": [{"logRecords": records}]}]})


def _table_of(column: str, lines: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    table = csv.writer(text)
    table.writerow(["when", column])
    table.writerows([known["time"], json.dumps(known)] for known in lines)
    return text.getvalue()


def _apart(known: dict[str, Any]) -> dict[str, Any]:
    """A line as Datadog keeps it: the message beside the other fields, the level and the time under other names."""
    others = {key: value for key, value in known.items() if key not in ("message", "level", "time")}
    return {"timestamp": known["time"], "status": known["level"], "message": known["message"], "attributes": others}


EXPORTS: dict[str, Callable[[list[dict[str, Any]]], str]] = {
    "datadog-api": lambda lines: json.dumps({"data": [{"id": "x", "attributes": _apart(of)} for of in lines[::-1]]}),
    "datadog-archive": lambda lines: "\n".join(json.dumps(_apart(known)) for known in lines),
    "datadog-table": lambda lines: _table_of("Content", lines),
    "loki-api": lambda lines: json.dumps(
        {
            "data": {
                "result": [{"stream": {}, "values": [["1772451000100000000", json.dumps(of)] for of in lines[::-1]]}]
            }
        }
    ),
    "opensearch-api": lambda lines: json.dumps(
        {"took": 1, "hits": {"hits": [{"_id": "x", "_source": {"log": json.dumps(of)}} for of in lines]}}, indent=1
    ),
    "otel": lambda lines: "\n".join(_of_otel({"stringValue": json.dumps(known)}) for known in lines),
    "otel-objects": lambda lines: _of_otel(*(_typed(known) for known in lines)),
    "splunk-json": lambda lines: "\n".join(json.dumps({"result": {"_raw": json.dumps(of)}}) for of in lines),
    "splunk-table": lambda lines: _table_of("_raw", lines),
    "splunk-hec": lambda lines: "\n".join(json.dumps({"time": 1772451000.1, "event": known}) for known in lines),
    "azure": lambda lines: json.dumps({"tables": [{"rows": [[of["time"], json.dumps(of)] for of in lines]}]}),
}


@pytest.mark.parametrize("export", EXPORTS)
def test_f2_what_a_store_of_logs_exports_reads_as_the_log_itself(tmp_path: Path, export: str) -> None:
    text = (SAMPLES / "karpenter-1.12.log").read_text()
    file = written(tmp_path, "export", EXPORTS[export]([json.loads(line) for line in text.splitlines()]))
    (plain := tmp_path / "plain").mkdir()
    with imported(plain, "karpenter-1.12.log") as (before, expected), imported(tmp_path, file) as (summary, store):
        assert told(store)[1:] == told(expected)[1:]  # but for the record's id
        assert summary.imported.read == before.imported.read


@pytest.mark.parametrize("inner", [5, {"values": 5}, {"values": [{"value": {"intValue": []}}]}], ids=str)
def test_values_that_are_not_opentelemetrys_do_no_harm(tmp_path: Path, inner: Any) -> None:
    file = tmp_path / "export"
    file.write_text(_of_otel({"kvlistValue": inner}))
    with pytest.raises(Unrecognised, match="resourceLogs"):
        import_files([file], tmp_path / "r.kerf")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_f1_a_file_that_powershell_wrote_is_read(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "log"
    text = (SAMPLES / "karpenter-1.12.log").read_text().replace("\n", "\r\n")
    file.write_bytes(("\ufeff" + text).encode(encoding))
    with imported(tmp_path, file) as (summary, _):
        assert (summary.imported.read, summary.imported.unread) == (19, 0)
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(Unreadable, match="begins as UTF-16"):
        import_files([file], tmp_path / "cut.kerf")


def test_a_table_that_is_no_log_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, "table", '@timestamp,@message\n2026-03-02,"hello\n')
    with pytest.raises(Unrecognised):
        import_files([file], tmp_path / "r.kerf")


def test_f2_a_line_whose_rest_is_missing_takes_no_other_with_it(tmp_path: Path) -> None:
    made, joined = (
        log_line("09:00:01.000", "created nodeclaim", "provisioner", **named("a-1")),
        log_line("09:00:30.000", "registered nodeclaim", Node={"name": "ip-1"}, **named("a-1")),
    )
    lost = log_line("09:00:02.000", "launched nodeclaim", **named("a-1"))[:70]
    with imported(tmp_path, written(tmp_path, "log", made, lost, "of another container", joined)) as (summary, store):
        assert "a-1 is requested" in told(store)
        assert [claim.claim for claim in payloads(store, Registered)] == ["a-1"]
        assert summary.imported.unread == 2


def test_f2_a_line_in_parts_is_joined(tmp_path: Path) -> None:
    made = log_line("09:00:01.000", "created nodeclaim", "provisioner", **named("a-1"))
    stamp = "2026-03-02T09:00:00.123456789Z stdout"
    with imported(tmp_path, written(tmp_path, "cri", f"{stamp} P {made[:50]}", f"{stamp} F {made[50:]}")) as (_, store):
        assert "a-1 is requested" in told(store)
