"""`kerf import --timeline`: what captures, traces and audit logs tell of workloads runs in a simulation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from kerf.adapters.cli.importing.workload_timeline import WorkloadTimeline, workload_timeline
from kerf.adapters.cli.main import main
from kerf.adapters.importers.formats import read_history
from kerf.adapters.simulation.timeline.timeline import decode_timeline
from tests.support.imports.imported import SAMPLES
from tests.support.repository import ROOT

WORKSHOP = [ROOT / "docs" / "examples" / "workshop" / name for name in ("nodepool.yaml", "ec2nodeclass.yaml")]


def made_of(file: Path, jobs_run_for: int = 0) -> WorkloadTimeline:
    made = workload_timeline([read_history(file)], jobs_run_for)
    assert made is not None
    return made


def actions(made: WorkloadTimeline) -> list[tuple[Any, ...]]:
    """Each action: when, what, of what, and how many replicas there are to be."""
    found: list[tuple[Any, ...]] = []
    for action in made.document["spec"]["actions"]:
        given = action.get("object", {})
        name = given.get("metadata", action)["name"]
        replicas = given.get("spec", action).get("replicas")
        found.append((action["at"], action["action"], name, replicas))
    return found


def job_template(made: WorkloadTimeline, name: str) -> dict[str, Any]:
    objects = [action["object"] for action in made.document["spec"]["actions"] if action["action"] == "apply"]
    (job,) = (each for each in objects if each["metadata"]["name"] == name)
    return dict(job["spec"]["template"]["metadata"]["annotations"])


def written(folder: Path, *events: dict[str, Any]) -> Path:
    """An audit log."""
    file = folder / "audit.jsonl"
    head = {"kind": "Event", "apiVersion": "audit.k8s.io/v1", "stage": "ResponseComplete", "level": "RequestResponse"}
    lines = [json.dumps({**head, "auditID": f"a{number}", **event}) for number, event in enumerate(events)]
    file.write_text("\n".join(lines))
    return file


def event(
    minute: int, verb: str, resource: str, name: str, body: dict[str, Any], group: str = "apps"
) -> dict[str, Any]:
    at = f"2026-03-02T09:{minute:02}:00.000000Z"
    return {
        "verb": verb,
        "user": {"username": "alice"},
        "objectRef": {"resource": resource, "namespace": "shop", "name": name, "apiGroup": group, "apiVersion": "v1"},
        "responseStatus": {"code": 201 if verb == "create" else 200},
        "responseObject": body,
        "requestReceivedTimestamp": at,
        "stageTimestamp": at,
    }


def workload(kind: str, name: str, **more: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "x", "image": "x"}]}}
    api = "batch/v1" if kind == "Job" else "apps/v1"
    spec = {"template": template, **more.pop("spec", {})}
    metadata = {"name": name, "namespace": "shop", "uid": f"uid-{name}", "resourceVersion": "7"}
    return {"apiVersion": api, "kind": kind, "metadata": metadata | more.pop("metadata", {}), "spec": spec, **more}


def test_f31_a_capture_is_applied_and_scaled_when_it_was() -> None:
    made = made_of(SAMPLES / "kubereplay.json")
    assert actions(made) == [
        ("0s", "apply", "deployment-0", 3), ("5m0.12s", "apply", "deployment-1", 2), ("7m0.5s", "apply", "job-0", None),
        ("10m0.75s", "scale", "deployment-0", 9), ("30m0.4s", "apply", "deployment-2", 2),
        ("40m0s", "scale", "deployment-0", 4),
    ]  # fmt: skip
    assert (made.until - made.since, made.workloads) == (3_600_250, 4)


def test_f14_each_pod_of_a_job_runs_for_its_share_of_what_the_job_took() -> None:
    """Four pods, two at a time, took 95 s."""
    assert job_template(made_of(SAMPLES / "kubereplay.json"), "job-0") == {"kerf.dev/runs-for": "47.5s"}


def test_f19_jobs_whose_end_is_not_known_are_left_out_unless_it_is_said_how_long_they_run() -> None:
    assert made_of(SAMPLES / "kubereplay.json").left_out == {"Job whose end is not known": 1}
    made = made_of(SAMPLES / "kubereplay.json", 300_000)
    assert not made.left_out
    assert job_template(made, "job-1") == {"kerf.dev/runs-for": "5m0s"}
    assert job_template(made, "job-0") == {"kerf.dev/runs-for": "47.5s"}


def test_f53_a_trace_has_the_lives_of_bare_pods_and_the_ends_of_objects() -> None:
    made = made_of(SAMPLES / "simkube-v2.sktrace")
    (pod,) = (a["object"] for a in made.document["spec"]["actions"] if a.get("object", {}).get("kind") == "Pod")
    assert pod["metadata"]["annotations"] == {"kerf.dev/runs-for": "5m0s"}
    assert actions(made)[-1][:3] == ("10m0s", "delete", "web")


def test_f53_pods_of_a_tracked_job_run_for_the_usual_length_of_their_lives(tmp_path: Path) -> None:
    at = 1_772_442_000
    lives = [{"Finished": [at + 5, at + 65]}, {"Finished": [at + 5, at + 105]}, {"Running": at + 5}]
    trace = {
        "version": 2, "config": {"trackedObjects": {}},
        "events": [{"ts": at, "applied_objs": [workload("Job", "night")], "deleted_objs": []}],
        "index": {}, "pod_lifecycles": {("batch/v1.Job", "shop/night"): {7: lives}},
    }  # fmt: skip
    file = tmp_path / "trace"
    file.write_bytes(msgspec.msgpack.encode(trace))
    assert job_template(made_of(file), "night") == {"kerf.dev/runs-for": "1m0s"}


def test_an_audit_log_tells_what_users_and_autoscalers_did_and_not_what_controllers_made_of_it(tmp_path: Path) -> None:
    revised = workload("Deployment", "web", spec={"replicas": 5}, status={"replicas": 2}, metadata={"generation": 2})
    log = written(
        tmp_path,
        event(0, "create", "deployments", "web", workload("Deployment", "web", spec={"replicas": 2})),
        event(1, "create", "deployments", "agent",
              workload("Deployment", "agent", metadata={"ownerReferences": [{"kind": "Agent", "name": "a"}]})),
        event(5, "update", "deployments", "web", revised),
        event(6, "update", "deployments", "web", {**revised, "status": {"replicas": 5}}),
        event(9, "delete", "deployments", "web", {"kind": "Status", "status": "Success"}),
    )  # fmt: skip
    made = made_of(log)
    assert actions(made) == [("0s", "apply", "web", 2), ("5m0s", "scale", "web", 5), ("9m0s", "delete", "web", None)]
    (applied, *_) = made.document["spec"]["actions"]
    assert applied["object"]["metadata"] == {"name": "web", "namespace": "shop"}
    assert "status" not in applied["object"]


def test_an_object_of_which_an_audit_log_tells_only_a_change_is_left_out(tmp_path: Path) -> None:
    patch = {**event(0, "patch", "deployments", "api", {}), "requestObject": {"spec": {"replicas": 3}}}
    del patch["responseObject"]
    web = event(1, "create", "deployments", "web", workload("Deployment", "web"))
    made = made_of(written(tmp_path, patch, web))
    assert made.left_out == {"Deployment whose pods are not told": 1}
    assert [name for _, _, name, _ in actions(made)] == ["web"]


def test_an_audit_log_tells_how_long_a_cron_jobs_jobs_took(tmp_path: Path) -> None:
    owned = {"ownerReferences": [{"kind": "CronJob", "name": "night"}]}
    job = workload("Job", "night-1", spec={"completions": 2}, metadata=owned)
    took = {"startTime": "2026-03-02T09:00:00Z", "completionTime": "2026-03-02T09:10:00Z"}
    log = written(
        tmp_path,
        event(0, "create", "jobs", "night-1", job, "batch"),
        event(10, "update", "jobs", "night-1", {**job, "status": took}, "batch"),
    )
    assert job_template(made_of(log), "night-1") == {"kerf.dev/runs-for": "5m0s"}


def test_a_timeline_of_several_files_begins_with_what_was_told_first(tmp_path: Path) -> None:
    later = written(tmp_path, event(5, "create", "deployments", "web", workload("Deployment", "web")))
    histories = [read_history(later), read_history(SAMPLES / "karpenter-1.4.log")]  # 09:00:01.21
    made = workload_timeline(histories)
    assert made is not None
    assert [(at, what) for at, what, *_ in actions(made)] == [("4m58.79s", "apply")]


@pytest.mark.parametrize(
    ("document", "left_out"),
    [
        (workload("Deployment", "dns", metadata={"namespace": "kube-system"}), "Deployment of the cluster itself"),
        (workload("ReplicaSet", "own"), "ReplicaSet that a simulation does not need or know"),
    ],
)  # fmt: skip
def test_what_is_not_repeated_is_counted_by_why(tmp_path: Path, document: dict[str, Any], left_out: str) -> None:
    applied = [workload("Deployment", "web"), document]
    file = tmp_path / "trace"
    file.write_bytes(msgspec.msgpack.encode({
        "version": 2, "config": {"trackedObjects": {}}, "index": {}, "pod_lifecycles": {},
        "events": [{"ts": 1_772_442_000, "applied_objs": applied, "deleted_objs": []}],
    }))  # fmt: skip
    made = made_of(file)
    assert made.left_out == {left_out: 1}
    assert [name for _, _, name, _ in actions(made)] == ["web"]


@pytest.mark.parametrize("sample", ["kubereplay.json", "simkube-v1.sktrace", "simkube-v2.sktrace"])
def test_a_simulation_runs_the_timeline_and_refuses_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], sample: str
) -> None:
    timeline = tmp_path / "week.yaml"
    assert main(["import", str(SAMPLES / sample), "--timeline", str(timeline)]) == 0
    assert "Next: kerf simulate YOUR-NODEPOOLS.yaml" in capsys.readouterr().out
    document = yaml.safe_load(timeline.read_text())
    assert not decode_timeline(document)[1]

    assert main(["simulate", *map(str, WORKSHOP), str(timeline), "--json", "--until", "2h"]) == 0
    assert json.loads(capsys.readouterr().out)["nodes"]["launched"]


@pytest.mark.parametrize(
    ("tokens", "code"),
    [
        ([SAMPLES / "karpenter-1.4.log", "--timeline", "x.yaml"], "KERF363"),
        ([SAMPLES / "kubereplay.json"], "KERF200"),
        ([SAMPLES / "kubereplay.json", "--timeline", "there.yaml"], "KERF1"),
        ([SAMPLES / "kubereplay.json", "--timeline", "x.yaml", "--jobs-run-for", "soon"], "KERF307"),
    ],
)
def test_bad_input_is_refused_with_a_code_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tokens: list[Any], code: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.yaml").write_text("mine")
    assert main(["import", *map(str, tokens)]) == 2
    assert code in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["there.yaml"]
    assert (tmp_path / "there.yaml").read_text() == "mine"
