"""kerf capture on an API server that lists what a test says."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kerf.adapters.cli.capture.listing import NODE_CLASSES
from kerf.adapters.cli.main import main
from kerf.adapters.kubernetes.watch.watched_kinds import NODECLAIMS, observed
from kerf.engine.model.settings import Settings
from tests.support.repository import ROOT
from tests.support.servers.fake_kubernetes import Document, FakeApi, serving
from tests.support.servers.karpenter_cluster import node, node_class, node_pool, served, small_cluster

pytestmark = pytest.mark.real_time


def captured(api: FakeApi, folder: Path, *flags: str) -> tuple[int, Path]:
    """The exit code, and the bundle, of a capture of this API server."""
    file = folder / "now.kerfb"

    async def run() -> int:
        async with serving(api) as session:
            settings = folder / "kubeconfig"
            settings.write_text(json.dumps(kubeconfig(session.host)))
            return await asyncio.to_thread(main, ["capture", str(file), "--kubeconfig", str(settings), *flags])

    return asyncio.run(run()), file


def kubeconfig(server: str) -> Document:
    return {
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": server}}],
        "users": [{"name": "test", "user": {"token": "secret"}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
    }  # fmt: skip


def types_file(folder: Path) -> Path:
    """Two types in one zone, in KWOK's format."""
    file = folder / "types.json"
    file.write_text(json.dumps([_type("m5.large", "2", 0.096), _type("m5.xlarge", "4", 0.192)]))
    return file


def _type(name: str, cpu: str, price: float) -> Document:
    bought = {"topology.kubernetes.io/zone": "us-west-2a", "karpenter.sh/capacity-type": "on-demand"}
    requirements = [{"key": key, "operator": "In", "values": [value]} for key, value in bought.items()]
    return {
        "name": name, "architecture": "amd64", "operatingSystems": ["linux"],
        "resources": {"cpu": cpu, "memory": "8Gi"}, "offerings": [{"price": price, "requirements": requirements}],
    }  # fmt: skip


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    code = main(arguments)
    out = capsys.readouterr()
    assert code == 0, out.err
    return out.out


def json_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    return json.loads(said(capsys, *arguments, "--json"))


def test_a_cluster_is_captured_and_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Issue 16, point 8: status, log, explain, whatif and verify of a cluster in which nothing was installed."""
    code, file = captured(served(small_cluster()), tmp_path, "--types", str(types_file(tmp_path)))
    assert (code, "2 Nodes, 3 Pods, 1 NodePool, 2 NodeClaims" in capsys.readouterr().out) == (0, True)

    status = json_of(capsys, "status", str(file))
    assert {node["name"]: round(node["price"], 3) for node in status["nodes"]} == {
        "ip-10-0-0-1": 0.096,
        "ip-10-0-0-2": 0.096,
    }
    (waiting,) = status["waiting"]
    assert (waiting["workload"], waiting["outlook"], len(waiting["places"])) == ("default/web-1", "on-its-way", 1)
    (move,) = status["under_way"]
    assert (move["kind"], move["subjects"]) == ("move", ["default-empty"])

    assert "a place is found for 1 pod: 1 new node" in said(capsys, "log", str(file))
    assert "it would go: saving $0.0960/h" in said(capsys, "explain", str(file), "ip-10-0-0-2")
    assert "same: today's engine decides all of it" in said(capsys, "verify", str(file))

    text = said(capsys, "whatif", str(file), "--set", "nodepool/default.spec.limits.cpu=4")
    assert "Without the change: a provisioning pass" in text
    assert "1 node launched" in text
    assert "With the change:    a provisioning pass" in text
    assert "1 pod without a place" in text


def test_replay_takes_a_capture_which_has_no_history_to_judge_it_by(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, file = captured(served(small_cluster()), tmp_path, "--types", str(types_file(tmp_path)))
    assert code == 0
    change = "nodepool/default.spec.limits.cpu=4"
    answer = json_of(capsys, "replay", str(file), "--until", "+30m", "--set", change)
    assert (answer["errors"], answer["holds"]) == ({}, True)
    assert answer["unchanged"]["launched"] > answer["changed"]["launched"] == 0
    text = said(capsys, "replay", str(file), "--until", "+30m", "--set", change)
    assert "How good the model is cannot be told" in text
    assert "RECORDED" not in text
    assert "2 nodes of the beginning taken over at today's prices" in text


def test_it_asks_to_read_and_keeps_no_secret(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """docs/record-contents.md: no environment, images, user data or token is in the bundle."""
    api = served(small_cluster())
    code, file = captured(api, tmp_path, "--types", str(types_file(tmp_path)))
    assert code == 0
    assert {(method, "watch" in query) for method, _, query, _ in api.asked} == {("GET", False)}
    held = said(capsys, "log", str(file), "--json") + said(capsys, "whatif", str(file), "--export", str(tmp_path / "m"))
    held += (tmp_path / "m").read_text()
    assert "default-full" in held
    assert "hush" not in held
    assert "secret" not in held


def test_what_may_not_be_listed_is_no_absence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without the PodDisruptionBudgets every node would look free to go: there is no bundle."""
    code, file = captured(served(small_cluster(), forbidden=("PodDisruptionBudget", "Pod")), tmp_path)
    error = capsys.readouterr().err
    assert (code, file.exists()) == (2, False)
    assert "KERF601" in error
    assert "poddisruptionbudgets (policy/v1), pods (v1)" in error
    assert "docs/capture.md" in error


def test_credentials_that_are_over_are_no_missing_rights(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    api = served(small_cluster())
    unauthorized = (401, {"kind": "Status", "message": "Unauthorized", "code": 401})
    api.answers = {key: [unauthorized] for key in api.answers}
    code, file = captured(api, tmp_path)
    refused = capsys.readouterr().err
    assert (code, file.exists()) == (2, False)
    assert "KERF601: the API server does not know who asks (401: Unauthorized)" in refused
    assert "ClusterRole" not in refused


def test_what_serves_no_nodes_and_pods_is_no_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A proxy at another path, say: an empty cluster would be *fine*."""
    code, file = captured(FakeApi(), tmp_path)
    assert (code, file.exists()) == (2, False)
    assert "KERF601: it serves neither nodes nor pods: this is no Kubernetes API" in capsys.readouterr().err


def test_a_cluster_without_nodepools_says_that_nothing_is_planned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a Karpenter before 1.0, say."""
    api = served(small_cluster())
    del api.answers["GET /apis/karpenter.sh/v1/nodepools"]
    assert captured(api, tmp_path)[0] == 0
    assert "There is no NodePool of karpenter.sh/v1" in capsys.readouterr().out


def test_a_pod_has_waited_since_its_creation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """docs/capture.md. It was created on the first of January."""
    code, file = captured(served(small_cluster()), tmp_path, "--types", str(types_file(tmp_path)))
    assert code == 0
    (waiting,) = json_of(capsys, "status", str(file))["waiting"]
    assert json_of(capsys, "explain", str(file), "web-1-c")["waited"] == waiting["waited"] > 24 * 3_600_000


def test_a_file_that_is_there_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "now.kerfb").write_text("mine")
    api = served(small_cluster())
    code, file = captured(api, tmp_path)
    assert (code, file.read_text(), api.asked) == (2, "mine", [])
    assert "KERF114" in capsys.readouterr().err


def test_no_kubeconfig(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["capture", str(tmp_path / "x.kerfb"), "--kubeconfig", str(tmp_path / "none")]) == 2
    assert "KERF603" in capsys.readouterr().err


def test_a_class_that_is_not_resolved_has_no_market(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is unknown is said: no zones, no instance types, no prices."""
    documents = [node_class(zone=""), node_pool(), *node("ip-10-0-0-1", "default-full")]
    code, file = captured(served(documents), tmp_path)
    shown = capsys.readouterr().out
    assert code == 0
    assert "Instance types and prices are not known" in shown
    assert "not in it: " in shown
    assert json_of(capsys, "status", str(file))["totals"]["nodes"] == 1
    assert main(["cost", str(file)]) == 2
    assert "KERF211: this record was captured from a live cluster" in capsys.readouterr().err


def test_types_of_a_file_or_of_the_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where prices are from is said."""
    documents = [node_class(), node_pool(), *node("ip-10-0-0-1", "default-full")]
    code, file = captured(served(documents), tmp_path)
    shown = capsys.readouterr().out
    assert (code, "us-east-1 on-demand price table" in shown, "spot prices are a model" in shown) == (0, True, True)
    assert "what the cloud really offers" in said(capsys, "log", str(file))
    assert main(["capture", str(tmp_path / "b"), "--types", str(tmp_path / "none")]) == 2


def test_an_object_that_cannot_be_read_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    documents = small_cluster()
    documents[1]["spec"]["disruption"]["consolidateAfter"] = "soon"
    code, _ = captured(served(documents), tmp_path, "--types", str(types_file(tmp_path)))
    assert code == 0
    assert "cannot be read, NodePool/default: KERF307" in capsys.readouterr().out


def test_the_documented_role_lists_what_is_listed_and_no_more() -> None:
    page = (ROOT / "docs/capture.md").read_text()
    role = yaml.safe_load(page.partition("```yaml\n")[2].partition("```")[0])
    granted = {
        (group, resource, verb)
        for rule in role["rules"] if "resourceNames" not in rule
        for group in rule["apiGroups"] for resource in rule["resources"] for verb in rule["verbs"]
    }  # fmt: skip
    everything = Settings(node_overlays=True, capacity_buffers=True, ignore_dra_requests=False)
    kinds = (*NODE_CLASSES, *observed(everything), NODECLAIMS)
    wanted = {(_group(kind.api), kind.path.rpartition("/")[2], "list") for kind in kinds}
    assert granted == wanted
    assert [rule["verbs"] for rule in role["rules"] if "resourceNames" in rule] == [["get"]]


def _group(api: str) -> str:
    version = api.rpartition("/")[0]
    return version.rpartition("/")[0]
