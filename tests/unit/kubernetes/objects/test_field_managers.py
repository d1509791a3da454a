"""Who changed a NodePool, as its managedFields tell it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Raw, Struct
from msgspec.structs import replace

from kerf.adapters.kubernetes.objects.field_managers import Writers, presumed_actor
from kerf.adapters.kubernetes.watch.reflector import Change, as_it_is
from kerf.engine.model.karpenter.capacity_buffers import CapacityBuffer
from kerf.engine.model.karpenter.ec2nodeclasses import EC2NodeClass, EC2NodeClassSpec
from kerf.engine.model.karpenter.nodeoverlays import NodeOverlay
from kerf.engine.model.kubernetes.daemonsets import DaemonSet
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.kubernetes.pods import Taint
from kerf.engine.record.observations import ControllerSaid
from tests.support.world import pool


def written(*fields: tuple[str, str, str]) -> Raw:
    entries = [{"manager": manager, "time": time, "subresource": part} for manager, time, part in fields]
    return Raw(msgspec.json.encode({"metadata": {"name": "default", "managedFields": entries}}))


@pytest.mark.parametrize(
    ("fields", "actor"),
    [
        ([("kubectl-edit", "2026-01-02T00:00:00Z", ""), ("argocd", "2026-01-01T00:00:00Z", "")], "kubectl-edit"),
        ([("kubectl", "2026-01-01T00:00:00Z", ""), ("karpenter", "2026-01-02T00:00:00Z", "")], "kubectl"),
        ([("kubectl", "2026-01-01T00:00:00Z", ""), ("helm", "2026-01-02T00:00:00Z", "status")], "kubectl"),
        ([("kerf", "2026-01-01T00:00:00Z", "")], ""),
        ([], ""),
    ],
)
def test_the_latest_writer_of_the_spec_that_is_no_controller(fields: Any, actor: str) -> None:
    assert presumed_actor(written(*fields))[0] == actor


@pytest.mark.parametrize("text", [b"{}", b'{"metadata": null}', b'{"metadata": {"managedFields": 3}}'])
def test_nobody_is_named_where_nobody_is_known(text: bytes) -> None:
    assert presumed_actor(Raw(text)) == ("", "")


def test_a_change_of_the_spec_names_its_presumed_actor() -> None:
    """Not a change of the status alone, nor the first sight of a NodePool."""
    passed_on: list[str] = []
    writers = Writers("nodepool", lambda name, data: passed_on.append(name), as_it_is)
    writers.seen("default", written(("kubectl-edit", "2026-01-02T00:00:00Z", "")))
    was, now = pool("default", generation=1), pool("default", generation=2)
    told = writers.changed(Change("nodepool", "default", was, now))
    assert [type(seen.payload) for seen in told] == [type(now), ControllerSaid]
    said = told[1].payload
    assert isinstance(said, ControllerSaid)
    assert (said.actor, said.node_pools, "presumed" in said.text) == ("kubectl-edit", ("default",), True)
    assert len(writers.changed(Change("nodepool", "default", None, now))) == 1
    assert len(writers.changed(Change("nodepool", "default", was, pool("default", generation=1, ready=False)))) == 1
    assert len(writers.changed(Change("nodepool", "default", now, None))) == 1
    writers.seen("default", None)
    assert len(writers.changed(Change("nodepool", "default", was, now))) == 1
    assert passed_on == ["default", "default"]


EARLY, LATE = ("kubectl-edit", "2026-01-02T00:00:00Z", ""), ("argocd", "2026-01-03T00:00:00Z", "")
BUDGET = PodDisruptionBudget("u1", "default", "web", max_unavailable="1", disruptions_allowed=1)
NODE_CLASS = EC2NodeClass("main", EC2NodeClassSpec(), generation=1)
LOGS, ROOM = DaemonSet("u2", "ops", "logs", "a"), CapacityBuffer("u3", "a", "b")
OVERLAY = NodeOverlay("spot", price=0.1, generation=1)
NODE = Node("n1", annotations={"karpenter.sh/do-not-disrupt": "true"})


@pytest.mark.parametrize(
    ("kind", "was", "now", "about"),
    [
        ("pdb", BUDGET, replace(BUDGET, max_unavailable="0"), {"budgets": ("default/web",)}),
        ("node", Node("n1"), NODE, {"nodes": ("n1",)}),
        ("nodeclass", NODE_CLASS, replace(NODE_CLASS, generation=2), {"node_classes": ("main",)}),
        ("nodeoverlay", OVERLAY, replace(OVERLAY, price=0.2, generation=2), {"overlays": ("spot",)}),
        ("daemonset", LOGS, replace(LOGS, shape="b"), {"daemonsets": ("ops/logs",)}),
        ("capacitybuffer", ROOM, replace(ROOM, replicas=1, generation=1), {"buffers": ("a/b",)}),
    ],
)  # fmt: skip
def test_whoever_changes_what_kerf_decides_by_is_presumed(kind: str, was: Struct, now: Struct, about: Any) -> None:
    writers = Writers(kind, None, as_it_is)
    writers.seen("key", written(EARLY))
    writers.seen("key", written(EARLY, LATE))
    said = writers.changed(Change(kind, "key", was, now))[-1].payload
    assert isinstance(said, ControllerSaid)
    assert (said.actor, {name: getattr(said, name) for name in about}) == ("argocd", about)
    assert len(writers.changed(Change(kind, "key", now, was))) == 1, "nobody has written since"


def test_a_status_has_no_presumed_actor() -> None:
    writers = Writers("pdb", None, as_it_is)
    writers.seen("key", written(LATE))
    now = replace(BUDGET, disruptions_allowed=0, expected_pods=3)
    assert len(writers.changed(Change("pdb", "key", BUDGET, now))) == 1


def test_what_a_controller_changes_on_a_node_is_not_the_work_of_whom_the_first_list_names() -> None:
    writers, kubelet = Writers("node", None, as_it_is), ("kubelet", "2026-01-04T00:00:00Z", "")
    writers.seen("n1", written(EARLY))
    writers.seen("n1", written(EARLY, kubelet))
    tainted = Node("n1", taints=(Taint("node.kubernetes.io/unreachable", effect="NoExecute"),))
    assert len(writers.changed(Change("node", "n1", Node("n1"), tainted))) == 1


def test_whoever_creates_an_object_is_presumed_but_not_of_the_first_list() -> None:
    writers = Writers("pdb", None, as_it_is)
    writers.seen("key", written(LATE))
    assert len(writers.changed(Change("pdb", "key", None, BUDGET))) == 1
    writers.listed = lambda: True
    writers.seen("other", written(LATE))
    said = writers.changed(Change("pdb", "other", None, BUDGET))[-1].payload
    assert isinstance(said, ControllerSaid)
    assert (said.actor, said.text) == (
        "argocd",
        "created PodDisruptionBudget default/web: presumed, by its managedFields",
    )


def test_nobody_creates_a_node_but_its_kubelet() -> None:
    writers = Writers("node", None, as_it_is)
    writers.listed = lambda: True
    writers.seen("n1", written(("cilium", "2026-01-02T00:00:00Z", "")))
    assert len(writers.changed(Change("node", "n1", None, Node("n1")))) == 1
