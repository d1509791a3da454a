"""The API server's audit log becomes a record, with the actors; beside Karpenter's log it adds pods and people."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import Pod
from kerf.engine.model.kubernetes.workloads import Workload
from kerf.engine.record.claim_events import Adopted, Launched, Requested, Tainted
from kerf.engine.record.observations import ControllerDecided, ControllerSaid, NodeClaimDeletionSeen
from kerf.engine.state.load import load
from kerf.replay.explain.claim import explain_claim
from kerf.replay.verify.verify import verify
from tests.support.imports.imported import SAMPLES, entries_of, imported, payloads, told, written

AT = 1_772_442_000_000  # 2026-03-02T09:00:00Z


def event(at: str, verb: str, resource: str, name: str = "", *, user: str = "alice", **more: Any) -> str:
    """One line. `response` is the object; `request` what was asked; `sub` the subresource."""
    group = {"nodeclaims": "karpenter.sh", "deployments": "apps"}.get(resource, "")
    reference = {"resource": resource, "namespace": "" if resource in ("nodes", "nodeclaims") else "shop"}
    reference |= {"name": name, "apiGroup": group, "subresource": more.get("sub", "")}
    return json.dumps({
        "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse", "stage": "ResponseComplete",
        "auditID": more.get("id", f"{at}-{verb}-{resource}-{name}"), "verb": verb, "user": {"username": user},
        "userAgent": more.get("agent", ""), "objectRef": {key: value for key, value in reference.items() if value},
        "responseStatus": {"code": more.get("code", 200)}, "requestURI": more.get("uri", "/"),
        "requestObject": more.get("request"), "responseObject": more.get("response"),
        "requestReceivedTimestamp": f"2026-03-02T{at}Z",
    })  # fmt: skip


def pod(name: str, **metadata: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}
    return {"kind": "Pod", "metadata": {"name": name, "namespace": "shop", "uid": f"u-{name}"} | metadata, "spec": spec}


def test_f1_an_indented_batch_of_the_webhook_is_read(tmp_path: Path) -> None:
    with imported(tmp_path, "audit.jsonl") as (_, store):
        expected = told(store)[1:]
    (tmp_path / "imported.kerf").unlink()
    items = [json.loads(text) for text in (SAMPLES / "audit.jsonl").read_text().splitlines()]
    batch = {"kind": "EventList", "apiVersion": "audit.k8s.io/v1", "metadata": {}, "items": items}
    with imported(tmp_path, written(tmp_path, "batch", json.dumps(batch, indent=2))) as (_, store):
        assert told(store)[1:] == expected


def test_the_sample_reads_as_documented(tmp_path: Path) -> None:
    with imported(tmp_path, "audit.jsonl") as (summary, store):
        lines = told(store)
        assert "alice: creates deployment shop/web, 2 replicas" in lines
        assert "alice: scales deployment shop/web from 2 to 1" in lines
        assert [w.replicas for w in payloads(store, Workload)] == [2, 1]
        bound = {(p.name, p.node[:12]) for p in payloads(store, Pod) if p.node}
        assert bound == {("web-6c8f-aaaaa", "ip-10-0-0-12"), ("web-6c8f-bbbbb", "ip-10-0-0-12")}
        (node,) = [e for e in entries_of(store, Node) if not e.payload.deleting]
        assert (node.at - AT, node.payload.labels["node.kubernetes.io/instance-type"]) == (30_000, "c6a.large")
        assert "gone: shop/web-6c8f-bbbbb" in lines
        assert not any("probe" in line for line in lines)  # a dry run
        assert "system:serviceaccount:karpenter:karpenter: evicts pod shop/web-6c8f-aaaaa" in lines
        assert any("may not evict pod shop/web-6c8f-aaaaa" in line for line in lines)
        assert [t.why for t in payloads(store, Tainted)] == ["deleted"]
        assert summary.files[0].unread == 0
        assert verify(store).exit_code == 0


def test_f113_who_deleted_it_is_the_user_who_was_acted_for(tmp_path: Path) -> None:
    with imported(tmp_path, "audit.jsonl") as (_, store):
        assert [d.actor for d in payloads(store, NodeClaimDeletionSeen)] == ["bob (through ci-bot)"]
        explained = explain_claim(store, "general-bbbbb")
        assert explained.removed == "deleted (bob (through ci-bot))"


def test_the_order_of_servers_does_not_matter(tmp_path: Path) -> None:
    """The sample of CloudWatch is a pair of the other sample's events, from two streams."""
    with imported(tmp_path, "audit-cloudwatch.json") as (summary, store):
        assert summary.files[0].read == 2
        assert [s.actor for s in payloads(store, ControllerSaid) if s.level == "info"] == ["alice"]


def test_f122_an_apply_that_was_answered_201_created_the_object(tmp_path: Path) -> None:
    web = {"kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}, "spec": {"replicas": 3}}
    file = written(tmp_path, "log", event("09:00:00.000000", "patch", "deployments", "web", response=web, code=201))
    with imported(tmp_path, file) as (_, store):
        assert "alice: creates deployment shop/web, 3 replicas" in told(store)


def test_f127_a_pod_ends_with_the_kubelets_delete(tmp_path: Path) -> None:
    kubelet = "system:node:n-1"
    file = written(
        tmp_path, "log",
        event("09:00:00.000000", "create", "pods", "a", response=pod("a"), code=201),
        event("09:01:00.000000", "delete", "pods", "a"),
        event("09:01:30.000000", "delete", "pods", "a", user=kubelet, request={"gracePeriodSeconds": 0}),
    )  # fmt: skip
    with imported(tmp_path, file) as (_, store):
        assert [line for line in told(store) if "shop/a" in line] == [
            "there: shop/a", "alice: deletes pod shop/a", "terminating: shop/a", "gone: shop/a",
        ]  # fmt: skip


def test_a_pod_keeps_its_arrival_until_it_is_bound(tmp_path: Path) -> None:
    """As in a record of the watch: later versions of it tell when it changed, not when it came."""
    refused = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}
    lines = [
        event("10:00:00", "create", "pods", "a", response=pod("a", resourceVersion="7")),
        event("10:00:01", "patch", "pods", "a", sub="status", request={"status": refused}),
        event("10:00:02", "create", "pods", "a", sub="binding", request={"target": {"kind": "Node", "name": "n1"}}),
    ]
    with imported(tmp_path, written(tmp_path, "audit.jsonl", "\n".join(lines))) as (_, store):
        seen = [(found.unschedulable, found.node, found.arrival) for found in payloads(store, Pod)]
    assert seen == [(False, "", 7), (True, "", 7), (True, "n1", 0)]


def test_f132_a_node_that_somebody_deletes_is_the_cause(tmp_path: Path) -> None:
    node = {"metadata": {"name": "n-1", "ownerReferences": [{"kind": "NodeClaim", "name": "a-1"}],
                         "finalizers": ["karpenter.sh/termination"],
                         "labels": {"node.kubernetes.io/instance-type": "m5.large"}},
            "spec": {"providerID": "aws:///eu-west-1a/i-1"}}  # fmt: skip
    karpenter = "system:serviceaccount:kube-system:karpenter"
    file = written(
        tmp_path, "log",
        event("09:00:00.000000", "create", "nodes", "n-1", user="system:node:n-1", response=node, code=201),
        event("09:05:00.000000", "delete", "nodes", "n-1", user="carol"),
        event("09:05:01.000000", "delete", "nodeclaims", "a-1", user=karpenter),
    )  # fmt: skip
    with imported(tmp_path, file) as (_, store):
        assert [(t.claim, t.why, t.detail) for t in payloads(store, Tainted)] == [
            ("a-1", "deleted", "carol (its Node)")
        ]


def test_f136_a_name_that_the_server_made_up_is_known_by_the_next_event(tmp_path: Path) -> None:
    def made(cpu: str) -> dict[str, Any]:
        spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}
        return {"metadata": {"generateName": "web-", "labels": {"app": "web"}}, "spec": spec}

    bind = {"target": {"name": "n-1"}}
    file = written(
        tmp_path, "log",
        event("09:00:00.000000", "create", "pods", request=made("1"), code=201, id="1"),
        event("09:00:00.000001", "create", "pods", request=made("1"), code=201, id="2"),
        event("09:00:01.000000", "create", "pods", "web-aaaaa", sub="binding", request=bind, code=201),
        event("09:00:01.000000", "create", "pods", "other-bbbbb", sub="binding", request=bind, code=201),
    )  # fmt: skip
    with imported(tmp_path, file) as (_, store):
        assert [(p.name, p.node) for p in payloads(store, Pod)] == [("web-aaaaa", "n-1")]


def test_what_repeats_and_what_failed_counts_once_or_not(tmp_path: Path) -> None:
    created = event("09:00:00.000000", "create", "pods", "a", response=pod("a"), code=201)
    refused = event("09:00:01.000000", "create", "pods", "b", response=pod("b"), code=409)
    dry = event("09:00:02.000000", "create", "pods", "c", response=pod("c"), code=201, uri="/api?dryRun=All")
    with imported(tmp_path, written(tmp_path, "log", created, created, refused, dry, '{"kind": "Event')) as (
        read,
        store,
    ):
        assert [p.name for p in payloads(store, Pod)] == ["a"]
        assert (read.files[0].read, read.files[0].other, read.files[0].unread) == (1, 3, 1)


@pytest.mark.slow
def test_a_real_run_is_read_whole(tmp_path: Path) -> None:
    """500 pods of ten workloads, scaled to 150; 29 of 86 NodeClaims were left."""
    with imported(tmp_path, "karpenter-1.14-kwok-audit.jsonl.gz") as (summary, store):
        assert (summary.claims, summary.gone, summary.adopted) == (86, 57, 0)
        state = load(store)
        assert (len(state.facts.pods), len(state.facts.claims), len(state.facts.nodes)) == (150, 29, 29)
        assert {t.why for t in payloads(store, Tainted)} == {"empty", "underutilized"}
        assert all(claim.instance_type for claim in state.facts.claims.values())


@pytest.mark.slow
def test_f148_beside_the_log_it_adds_pods_to_the_decisions(tmp_path: Path) -> None:
    both = ("karpenter-1.14-kwok.log.gz", "karpenter-1.14-kwok-audit.jsonl.gz")
    with imported(tmp_path, *both) as (summary, store):
        assert (summary.claims, summary.gone, summary.adopted, summary.decisions) == (86, 57, 0, 22)
        assert len(load(store).facts.pods) == 150
        assert "pods" not in summary.imported.lacks
        assert "decisions" not in summary.imported.lacks
        assert len(payloads(store, Requested)) == len(payloads(store, Launched)) == 86
        assert payloads(store, Adopted) == []
        assert len(payloads(store, ControllerDecided)) == 22
        assert verify(store).exit_code == 0
