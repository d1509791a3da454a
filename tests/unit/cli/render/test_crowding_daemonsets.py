"""Who explains why a pod has no place names the DaemonSets that take the room: pods, NodePools, what-ifs,
Events and simulations.

The plan's reason says only that no type has enough; the DaemonSets are looked up as it is told.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kerf.adapters.cli.render.explain.explanation import pool_text
from kerf.adapters.cli.render.explain.pod import pod_text
from kerf.adapters.cli.render.output import Printer
from kerf.adapters.cli.render.what_if.whatif import whatif_text
from kerf.engine.model.content_digest import content
from kerf.engine.model.kubernetes.daemonsets import DaemonSet
from kerf.engine.model.kubernetes.pods import PodShape
from kerf.engine.record.decisions import Decision
from kerf.engine.record.observations import Observation
from kerf.engine.state.load import load
from kerf.engine.state.state import State
from kerf.replay.explain.pod import explain_pod
from kerf.replay.explain.user_objects.nodepool import explain_pool
from kerf.replay.history.histories_until import histories_of
from kerf.replay.what_if.changes import Applied
from kerf.replay.what_if.whatif import what_if
from tests.support.events import told
from tests.support.simulation.command import WORKSHOP, simulated, written
from tests.support.world import World

NAMED = "has enough cpu; without DaemonSets 1 type would be large enough: kube-system/agent takes 700m cpu"
NOT_NAMED = "has enough cpu\n"


def agent() -> Observation:
    shape = PodShape(requests={"cpu": 700})
    digest, _ = content(shape)
    return Observation(DaemonSet("d1", "kube-system", "agent", digest), {digest: shape})


def crowded(cpu: int = 3_500, *, daemonset: bool = True) -> World:
    """A pod waits for this much; the largest type has 3,930m, of which the DaemonSet takes 700m."""
    world = World()
    world.prepare()
    if daemonset:
        world.see(agent())
    world.pending("web", cpu=cpu)
    world.after(1_000)
    return world


def printed(world: World, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """The explanations of the pod and of the NodePool."""
    pod_text(Printer(), explain_pod(world.store, "default/web"))
    of_pod = capsys.readouterr().out
    state = load(world.store)
    pool_text(Printer(), explain_pool(world.store, histories_of(world.store), state, "default"))
    return of_pod, capsys.readouterr().out


def test_explanations_of_a_pod_and_of_a_nodepool_name_them(capsys: pytest.CaptureFixture[str]) -> None:
    of_pod, of_pool = printed(crowded(), capsys)
    assert f"{NAMED}\n" in of_pod
    assert "1 pod not taken (default/web)" in of_pool
    assert f"{NAMED}\n" in of_pool


def test_they_are_not_blamed_for_a_pod_that_no_type_could_hold(capsys: pytest.CaptureFixture[str]) -> None:
    for text in printed(crowded(4_000), capsys):
        assert NOT_NAMED in text
        assert "without DaemonSets" not in text


def test_a_what_if_names_the_daemonset_that_it_applies(capsys: pytest.CaptureFixture[str]) -> None:
    def apply(state: State) -> Applied:
        return Applied("daemonset/agent created", (agent(),))

    world = crowded(daemonset=False)
    decided = next(entry.position for entry in world.store.entries if isinstance(entry.payload, Decision))
    whatif_text(Printer(), what_if(world.store, decided, [apply]))
    out = capsys.readouterr().out
    assert "1 pod (default/web) without a place: NodePool default: none of the 4 types" in out
    assert f"{NAMED}\n" in out


def test_s170_a_pods_event_names_them() -> None:
    (event,) = [event for event in told(crowded()) if event.reason == "FailedScheduling"]
    assert event.message.endswith(NAMED)


MANIFESTS = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: kube-system}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      containers: [{name: c, image: x, resources: {requests: {cpu: 700m}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec:
  containers: [{name: c, image: x, resources: {requests: {cpu: 3500m}}}]
"""


def test_the_report_of_a_simulation_names_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, found = simulated(capsys, WORKSHOP, written(tmp_path, MANIFESTS), "--until", "5m")
    (waiting,) = found["waiting"]
    (why,) = waiting["reasons"]
    assert why["text"].endswith(NAMED)
