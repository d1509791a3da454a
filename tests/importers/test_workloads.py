"""kubereplay's captures and SimKube's traces become records of workloads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kerf.adapters.importers.errors import Unreadable
from kerf.engine.model.kubernetes.workloads import Workload
from kerf.engine.record.observations import ObjectGone
from kerf.replay.verify.verify import verify
from tests.support.imports.imported import SAMPLES, entries_of, imported, payloads, told

AT = 1_772_442_000_000  # 2026-03-02T09:00:00Z


def sizes(store: Any) -> list[tuple[int, str, int]]:
    """Each size that a workload had, with the second in which it got it."""
    return [((e.at - AT) // 1000, e.payload.name, e.payload.replicas) for e in entries_of(store, Workload)]


def test_the_sample_of_kubereplay_reads_as_documented(tmp_path: Path) -> None:
    with imported(tmp_path, "kubereplay.json") as (summary, store):
        assert sizes(store) == [
            (0, "deployment-0", 3), (300, "deployment-1", 2), (600, "deployment-0", 9), (1800, "deployment-2", 2),
            (2400, "deployment-0", 4),
        ]  # fmt: skip
        lines = "\n".join(told(store))
        assert "job kubereplay/job-0 arrives: 4 pods, 2 at a time; it ran for 1m35s" in lines
        assert "job kubereplay/job-1 arrives: 1 pods, 1 at a time; its end is not known" in lines
        assert payloads(store, ObjectGone) == []
        assert (summary.imported.since - AT, summary.imported.until - AT) == (0, 3_600_250)
        assert verify(store).exit_code == 0


def test_f27_a_delete_of_an_earlier_workload_is_told_and_not_done(tmp_path: Path) -> None:
    with imported(tmp_path, "kubereplay.json") as (_, store):
        earlier = "kubereplay: a delete of kubereplay/deployment-2 is of an earlier workload of that name"
        assert any(line.startswith(earlier) for line in told(store))


def test_f28_a_term_that_selects_labels_of_before_is_told(tmp_path: Path) -> None:
    with imported(tmp_path, "kubereplay.json") as (_, store):
        assert any("deployment-0: its spread over topology.kubernetes.io/zone selects labels" in t for t in told(store))


@pytest.mark.parametrize(
    "event",
    [
        3, {}, {"type": "create"}, {"type": [], "kind": [[]], "key": {}, "timestamp": "2026-03-02T09:00:00Z"},
        {"type": "scale", "kind": "Deployment", "key": "a/b", "timestamp": "x"},
        {"type": "create", "kind": "Deployment", "key": "a/b", "timestamp": "2026-03-02T09:00:00Z", "deployment": []},
        {"type": "create", "kind": "Deployment", "key": "a/b", "timestamp": "2026-03-02T09:00:00Z",
         "deployment": {"spec": {"replicas": "many", "template": {"spec": {"containers": 7}}}}},
    ],
)  # fmt: skip
def test_bad_events_of_a_capture_are_counted(tmp_path: Path, event: object) -> None:
    capture = json.loads((SAMPLES / "kubereplay.json").read_bytes())
    capture["events"].insert(0, event)
    file = tmp_path / "capture"
    file.write_text(json.dumps(capture))
    with imported(tmp_path, file) as (summary, _):
        assert (summary.workloads, summary.files[0].unread) == (3, 1)


def test_the_sample_of_simkube_2_reads_as_documented(tmp_path: Path) -> None:
    with imported(tmp_path, "simkube-v2.sktrace") as (_, store):
        assert sizes(store) == [(0, "web", 2), (60, "web", 5), (300, "web", 1)]
        assert [(e.at - AT) // 1000 for e in entries_of(store, ObjectGone)] == [600]
        lines = [line for line in told(store) if line.startswith("simkube: ")]
        assert [line for line in lines if "a pod of shop/web ends" in line] == [
            "simkube: a pod of shop/web ends, after 238 s", "simkube: a pod of shop/web ends, after 303 s",
            "simkube: a pod of shop/web ends, after 239 s",
        ]  # fmt: skip
        assert lines.count("simkube: a pod of shop/web begins to run") == 4
        assert "simkube: pod batch/report-1 ends, after 300 s" in lines
        assert verify(store).exit_code == 0


def test_the_sample_of_simkube_1_reads_as_documented(tmp_path: Path) -> None:
    with imported(tmp_path, "simkube-v1.sktrace") as (_, store):
        assert sizes(store) == [(0, "web", 2), (60, "web", 5), (300, "web", 1)]
        assert payloads(store, ObjectGone) == []


def test_f52_objects_that_hide_one_another_are_noticed(tmp_path: Path) -> None:
    trace = msgspec.msgpack.decode((SAMPLES / "simkube-v2.sktrace").read_bytes())
    trace["index"]["apps/v1.StatefulSet"] = {"shop/db": 1}
    file = tmp_path / "trace"
    file.write_bytes(msgspec.msgpack.encode(trace))
    with imported(tmp_path, file) as (_, store):
        assert "simkube: the trace's index has objects that no event shows: shop/db" in told(store)


@pytest.mark.parametrize("change", [{"version": 3}, {"version": None}])
def test_a_trace_of_another_version_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    trace = msgspec.msgpack.decode((SAMPLES / "simkube-v2.sktrace").read_bytes())
    file = tmp_path / "trace"
    file.write_bytes(msgspec.msgpack.encode(trace | change))
    with pytest.raises(Unreadable, match="KERF361: this is a SimKube trace of version"), imported(tmp_path, file):
        pass


@pytest.mark.parametrize("size", [20, 200, 1_000])
def test_a_trace_that_is_cut_off_is_refused(tmp_path: Path, size: int) -> None:
    file = tmp_path / "trace"
    file.write_bytes((SAMPLES / "simkube-v2.sktrace").read_bytes()[:size])
    with pytest.raises(Unreadable, match="damaged"), imported(tmp_path, file):
        pass


@pytest.mark.parametrize("ts", [-1, 0, 2**62, "soon", None])
def test_times_out_of_range_are_counted(tmp_path: Path, ts: object) -> None:
    trace = msgspec.msgpack.decode((SAMPLES / "simkube-v2.sktrace").read_bytes())
    trace["events"].append({"ts": ts, "applied_objs": [], "deleted_objs": []})
    file = tmp_path / "trace"
    file.write_bytes(msgspec.msgpack.encode(trace))
    with imported(tmp_path, file) as (summary, _):
        assert summary.files[0].unread == 1
