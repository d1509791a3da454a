"""From documents to a world, and the example of docs/simulation.md through the real runtime."""

from __future__ import annotations

import re
from copy import deepcopy
from typing import Any

import pytest
import yaml

from kerf.adapters.simulation.build import START, build_simulation
from kerf.adapters.simulation.driver import Driver
from kerf.adapters.simulation.faults import FaultPlan, Kill, KillPoint
from kerf.adapters.simulation.simulation import Simulation
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.reasons import Reason
from kerf.engine.model.settings import Settings
from kerf.engine.record.codec import CODEC
from kerf.engine.record.decisions import Decision
from kerf.engine.record.observations import InputRefused, LaunchAnswered
from kerf.engine.runtime.runtime import Runtime
from tests.support.memory import MemoryStore
from tests.support.repository import ROOT

MINUTE = 60_000
WORLD = """
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: default}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: pool}
spec:
  template:
    spec:
      requirements: []
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 30s}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata:
      labels: {app: web}
      annotations: {controller.kubernetes.io/pod-deletion-cost: "7"}
    spec:
      containers: [{name: c, image: pause, resources: {requests: {cpu: 500m, memory: 256Mi}}}]
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: kube-system}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      containers: [{name: c, image: pause, resources: {requests: {cpu: 50m}}}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {maxUnavailable: 50%, selector: {matchLabels: {app: web}}}
"""


def documents(text: str = WORLD) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(text))


def timeline(*actions: dict[str, Any]) -> dict[str, Any]:
    head = {"apiVersion": "kerf.dev/v1alpha1", "kind": "Timeline", "metadata": {"name": "t"}}
    return {**head, "spec": {"actions": list(actions)}}


def scale(at: str, replicas: int) -> dict[str, Any]:
    return {"at": at, "action": "scale", "name": "web", "replicas": replicas}


def run(
    catalogue: Catalogue, *more: dict[str, Any], until: int, seed: int = 0, faults: FaultPlan | None = None
) -> tuple[Simulation, MemoryStore, Driver]:
    simulation = build_simulation([*documents(), *more], catalogue=catalogue, seed=seed, faults=faults)
    store = MemoryStore()

    def office(now: int) -> Runtime:
        return Runtime(store, holder="test", settings=Settings(), record="test", engine="test", now=now)

    driver = Driver(simulation, office)
    driver.run(START + until)
    return simulation, store, driver


def events(store: MemoryStore) -> list[str]:
    return [entry.type.removeprefix("claim.") for entry in store.entries if entry.type.startswith("claim.")]


def record(store: MemoryStore) -> list[bytes]:
    return [CODEC.encode(entry) for entry in store.entries]


# ── documents ───────────────────────────────────────────────────────────────────────────────────────────────


def test_documents_become_objects_with_uids_and_times(catalogue: Catalogue) -> None:
    simulation = build_simulation(documents(), catalogue=catalogue)
    api = simulation.cluster.api
    assert simulation.refused == []
    assert sorted(api.namespaces) == ["default", "kube-system"]
    assert list(api.pools) == ["pool"]
    assert [len(d.uid) for d in api.daemon_sets.values()] == [36]
    assert simulation.cloud.node_class("default") is not None
    assert {type(o.payload).__name__ for o in simulation.cloud.observe()} == {"NodeClassSeen", "CatalogueSeen"}


def test_a_bad_document_is_refused_with_its_code_and_the_others_stand(catalogue: Catalogue) -> None:
    bad_pool = documents()[1]
    bad_pool["metadata"]["name"] = "bad"
    bad_pool["spec"]["disruption"]["consolidateAfter"] = "later"
    items = {"kind": "List", "items": [bad_pool, {"apiVersion": "v1", "kind": "Gizmo", "metadata": {"name": "s"}}]}
    replica_set = {**documents()[2], "kind": "ReplicaSet"}
    simulation = build_simulation([items, replica_set, *documents()], catalogue=catalogue)
    assert [(r.code, r.source, r.object) for r in simulation.refused] == [
        ("KERF307", "manifest", "NodePool bad"),
        ("KERF302", "manifest", "Gizmo s"),
        ("KERF820", "manifest", "ReplicaSet web"),
    ]
    assert simulation.refused[0].field == "spec.disruption.consolidateAfter"
    assert list(simulation.cluster.api.pools) == ["pool"]


def test_what_a_simulation_does_without_is_ignored_with_one_note(catalogue: Catalogue) -> None:
    def head(version: str, kind: str) -> dict[str, Any]:
        return {"apiVersion": version, "kind": kind, "metadata": {"name": "x", "namespace": "shop"}}

    ignored = [head("v1", "Service"), head("v1", "ConfigMap"), head("batch/v1", "CronJob"), head("a.example/v1", "Map")]
    refused = [
        head("karpenter.sh/v1", "NodeOverlay"), head("karpenter.azure.com/v1", "Thing"), head("apps/v1", "Deploymnt"),
        head("policy/v1beta1", "PodDisruptionBudget"), head("eks.amazonaws.com/v1", "NodeClass"), head("v2", "Service"),
    ]  # fmt: skip
    simulation = build_simulation([*ignored, *refused, *documents()], catalogue=catalogue)
    assert simulation.notes == [("Service shop/x and 3 more", Reason("not-simulated"))]
    assert [refusal.code for refusal in simulation.refused] == ["KERF302"] * len(refused)


def test_half_a_head_is_refused_by_what_is_missing(catalogue: Catalogue) -> None:
    headless = [{"kind": "NodePool", "metadata": {"name": "p"}}, {"apiVersion": "v1", "metadata": {"name": "q"}}]
    simulation = build_simulation(headless, catalogue=catalogue)
    assert [(refusal.code, refusal.field, refusal.message) for refusal in simulation.refused] == [
        ("KERF302", "apiVersion", "apiVersion is missing: a NodePool has karpenter.sh/v1"),
        ("KERF302", "kind", "kind is missing"),
    ]


def test_a_node_document_is_ready_unless_it_says_otherwise_and_takes_pods(catalogue: Catalogue) -> None:
    status = {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "10"}}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "old"}, "status": status}
    conditions = [{"type": "Ready", "status": "False"}]
    broken = {**node, "metadata": {"name": "broken"}, "status": {**status, "conditions": conditions}}
    simulation = build_simulation([node, broken, *documents(), timeline(scale("0s", 2))], catalogue=catalogue)
    simulation.clock.advance(START + 10_000)
    nodes = simulation.cluster.api.nodes
    assert (nodes["old"].ready, nodes["broken"].ready) == (True, False)
    assert {pod.phase for pod in simulation.cluster.api.pods_on("old")} == {"Running"}
    assert {pod.deletion_cost for pod in simulation.cluster.api.pods.values()} == {0, 7}


def test_a_bare_pod_keeps_what_it_is_when_it_is_applied_again(catalogue: Catalogue) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": []}}
    again = {**pod, "metadata": {"name": "p", "annotations": {"karpenter.sh/do-not-disrupt": "true"}}}
    simulation = build_simulation(
        [pod, timeline({"at": "1m", "action": "apply", "object": again})], catalogue=catalogue
    )
    (first,) = simulation.cluster.api.pods.values()
    simulation.clock.advance(START + MINUTE)
    (second,) = simulation.cluster.api.pods.values()
    assert (second.uid, second.created) == (first.uid, START)
    assert second.do_not_disrupt == "true"


@pytest.mark.parametrize(
    ("action", "code"),
    [
        ({"action": "scale", "name": "nobody", "replicas": 1}, "KERF811"),
        ({"action": "vanish"}, "KERF811"),
        ({"action": "cordon", "node": "n"}, "KERF811"),
        ({"action": "delete", "kind": "Pod", "name": "p"}, "KERF811"),
        ({"action": "delete", "kind": "Secret", "name": "p"}, "KERF810"),
        ({"action": "restore-capacity"}, "KERF811"),
        ({"action": "price", "instanceType": "huge", "factor": 2}, "KERF810"),
        ({"action": "nodeclass-ready", "name": "other"}, "KERF811"),
        ({"action": "apply", "object": {"kind": "NodePool"}}, "KERF302"),
        ({"action": "throttle", "for": "soon"}, "KERF810"),
    ],
)
def test_an_action_that_cannot_be_done_is_recorded_and_the_run_goes_on(
    catalogue: Catalogue, action: dict[str, Any], code: str
) -> None:
    _, store, _ = run(catalogue, timeline({"at": "1m", **action}, scale("2m", 1)), until=10 * MINUTE)
    refused = [entry.payload for entry in store.entries if isinstance(entry.payload, InputRefused)]
    assert [(r.code, r.source) for r in refused] == [(code, "timeline")]
    assert "initialized" in events(store)


def test_what_can_never_be_done_is_refused_before_the_start(catalogue: Catalogue) -> None:
    given = timeline({"at": "1h", "action": "price", "instanceType": "huge", "factor": 2})
    (refused,) = build_simulation([given], catalogue=catalogue).refused
    assert refused.field == "spec.actions[0].instanceType"


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ({"action": "scale", "name": "wbe", "replicas": 1}, "no Deployment default/wbe to scale. Is it default/web?"),
        (
            {"action": "scale", "name": "db", "kind": "StatefulSet", "replicas": 1},
            "There is no StatefulSet: give its file, too",
        ),
        ({"action": "scale", "name": "web", "kind": "StatefulSet", "replicas": 1}, "name. Write kind: Deployment"),
        ({"action": "scael", "name": "web", "replicas": 1}, "Is it scale?"),
        ({"action": "explode"}, "Actions are apply, bad-message, capacity, "),
        ({"action": "throttle", "for": "soon"}, '. Write a Go duration such as "30m", "1h30m" or "2d"'),
        ({"action": "scale", "nmae": "web", "replicas": 1}, "unknown field `nmae`. Is it name?"),
        ({"action": "delete", "kind": "Deploymnt", "name": "web"}, "cannot delete a Deploymnt. Is it Deployment?"),
        ({"action": "interrupt", "capacityType": "spott"}, "'spott' is no capacity type. Is it spot?"),
        ({"action": "interrupt", "count": -1}, "count is at least 0, not -1. 0 stands for all"),
        ({"action": "capacity", "instanceType": "lagre"}, "no instance type lagre is sold. Is it large?"),
        ({"action": "capacity", "zone": "zone-z"}, "nothing is sold in zone zone-z. Zones are zone-a, zone-b"),
    ],
)
def test_a_refused_action_says_what_may_be_meant(catalogue: Catalogue, action: dict[str, Any], said: str) -> None:
    simulation = build_simulation([*documents(), timeline({"at": "1s", **action})], catalogue=catalogue)
    simulation.clock.advance(START + MINUTE)
    (refused,) = simulation.refused
    assert said in refused.message


# ── whole runs with the real runtime ────────────────────────────────────────────────────────────────────────


def test_a_deployment_scaled_up_gets_a_node_and_scaled_to_nothing_the_node_goes(catalogue: Catalogue) -> None:
    simulation, store, driver = run(catalogue, timeline(scale("1m", 3), scale("20m", 0)), until=40 * MINUTE)
    assert events(store) == [
        "requested", "launched", "registered", "initialized", "tainted", "drain-started", "pod-evicted",
        "drained", "terminated",
    ]  # fmt: skip
    assert simulation.cluster.api.nodes == {}
    assert simulation.cloud.alive() == []
    assert [pod for pod in simulation.cluster.api.pods.values() if not pod.deleting] == []
    assert driver.turns < 60


def test_another_image_is_rolled_out_and_the_one_before_keeps_its_replica_set(catalogue: Catalogue) -> None:
    """kube-scheduler does not look at an image. A rollout replaces the pods all the same."""

    def with_image(at: str, image: str) -> dict[str, Any]:
        web = documents()[2]
        web["spec"]["replicas"] = 3
        web["spec"]["template"]["spec"]["containers"][0]["image"] = image
        return {"at": at, "action": "apply", "object": web}

    given = timeline(with_image("1m", "pause"), with_image("5m", "pause:2"), with_image("9m", "pause"))
    seen = []
    for until in (4, 5, 8, 12):
        simulation, _, _ = run(catalogue, given, until=until * MINUTE + 100)
        pods = [pod for pod in simulation.cluster.api.pods.values() if pod.owner is not None and "web" in pod.name]
        seen.append({pod.owner.name for pod in pods if pod.owner is not None})
    before, during, after, back = seen
    assert (len(before), len(during), len(after)) == (1, 2, 1)
    assert before != after
    assert during == before | after
    assert back == before


def test_a_template_that_no_running_pod_takes_is_noted(catalogue: Catalogue) -> None:
    """Of StatefulSets and DaemonSets; a new scale, or the same once more, is no other template."""
    agent = documents()[3]
    stateful = {**documents()[2], "kind": "StatefulSet", "metadata": {"name": "db"}}
    scaled = {**stateful, "spec": {**stateful["spec"], "replicas": 2}}
    changed = deepcopy([agent, scaled])
    for document in changed:
        document["spec"]["template"]["spec"]["containers"][0]["image"] = "pause:2"

    given = [
        {"at": f"{minute}m", "action": "apply", "object": applied} for minute, applied in enumerate((agent, scaled))
    ]
    quiet, _, _ = run(catalogue, stateful, timeline(*given), until=5 * MINUTE)
    later = [{"at": "3m", "action": "apply", "object": document} for document in changed]
    told, _, _ = run(catalogue, stateful, timeline(*given, *later), until=5 * MINUTE)

    assert quiet.notes == []
    note = Reason("not-rolled-out")
    assert told.notes == [("DaemonSet kube-system/agent", note), ("StatefulSet db", note)]


@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet"])
def test_a_template_is_no_other_one_for_a_workload_that_was_deleted_before(catalogue: Catalogue, kind: str) -> None:
    """No pod of it runs any more."""
    agent = documents()[3]
    first = agent if kind == "DaemonSet" else {**documents()[2], "kind": "StatefulSet", "metadata": {"name": "db"}}
    second = deepcopy(first)
    second["spec"]["template"]["spec"]["containers"][0]["image"] = "pause:2"
    gone = {"at": "2m", "action": "delete", "kind": kind, **first["metadata"]}

    given = timeline(gone, {"at": "3m", "action": "apply", "object": second})
    simulation, _, _ = run(catalogue, *([first] if kind == "StatefulSet" else []), given, until=5 * MINUTE)

    assert (simulation.notes, simulation.refused) == ([], [])


def test_the_example_of_the_manual(catalogue: Catalogue) -> None:
    manual = (ROOT / "docs" / "simulation.md").read_text()
    (example,) = re.findall(r"```yaml\n(.*?)```", manual, re.DOTALL)
    simulation, store, _ = run(catalogue, *documents(example), until=90 * MINUTE)
    assert not [entry for entry in store.entries if isinstance(entry.payload, InputRefused)]
    assert len(simulation.cloud.instances) >= 3  # the first, and those that replace the two that are lost
    assert simulation.cloud.alive() == []
    assert simulation.cluster.api.nodes == {}


def test_the_same_seed_gives_the_same_record_and_another_seed_another(catalogue: Catalogue) -> None:
    chaos = FaultPlan(watch_late=0.2, watch_twice=0.2, watch_gap=0.02, no_capacity=0.3, launch_error=0.2)
    story = timeline(scale("1m", 6), {"at": "10m", "action": "interrupt"}, scale("30m", 0))
    first, second, other = (
        record(run(catalogue, story, until=60 * MINUTE, seed=seed, faults=chaos)[1]) for seed in (7, 7, 8)
    )
    assert first == second
    assert first != other


def test_a_quiet_week_costs_nothing(catalogue: Catalogue) -> None:
    """No polling on a period: the turns of a week are those of its first two hours (D-126: one at an hour)."""
    story = timeline(scale("1m", 3))
    _, _, short = run(catalogue, story, until=120 * MINUTE)
    simulation, store, long = run(catalogue, story, until=7 * 24 * 60 * MINUTE)
    assert long.turns == short.turns
    assert simulation.clock.now == START + 7 * 24 * 60 * MINUTE
    assert events(store)[-1] == "initialized"


@pytest.mark.parametrize("point", KillPoint)
@pytest.mark.parametrize("intent", [1, 2, 3, 4, 5, 6])
def test_killed_at_any_point_no_instance_is_launched_twice_or_forgotten(
    catalogue: Catalogue, intent: int, point: KillPoint
) -> None:
    """Design, idea 4."""
    faults = FaultPlan(kills=(Kill(intent, point),))
    story = timeline(scale("1m", 3), scale("20m", 0))
    simulation, store, driver = run(catalogue, story, until=60 * MINUTE, faults=faults)
    decided = sum(len(e.payload.intents) for e in store.entries if isinstance(e.payload, Decision))
    assert driver.deaths == (1 if intent <= decided else 0)
    assert len(simulation.cloud.instances) == 1
    assert simulation.cloud.alive() == []
    assert simulation.cluster.api.nodes == {}
    assert events(store)[-1] == "terminated"


@pytest.mark.parametrize("seed", range(6))
def test_whatever_goes_wrong_nothing_is_left_over(catalogue: Catalogue, seed: int) -> None:
    """Faults of every kind, two deaths, and two lost nodes: at the end every instance has been ended. (A node
    that never becomes ready is not among them: kerf keeps it, L-176.)"""
    faults = FaultPlan(
        watch_late=0.1, watch_twice=0.1, watch_gap=0.03, no_capacity=0.2, launch_error=0.2, throttled=0.2,
        answer_lost=0.3, never_join=0.1, slow_join=0.2, message_twice=0.5,
        kills=(Kill(4, KillPoint.AFTER_EFFECT), Kill(9, KillPoint.BEFORE_RECORD)),
    )  # fmt: skip
    story = timeline(
        scale("1m", 8), {"at": "20m", "action": "interrupt"}, {"at": "40m", "action": "vanish"}, scale("1h", 0)
    )
    simulation, store, _ = run(catalogue, story, until=4 * 60 * MINUTE, seed=seed, faults=faults)
    assert simulation.cloud.alive() == []
    started = {e.payload.instance for e in store.entries if isinstance(e.payload, LaunchAnswered)} - {""}
    assert set(simulation.cloud.instances) == started


def test_each_turn_is_told_to_a_listener(catalogue: Catalogue) -> None:
    told: list[tuple[int, int, int]] = []
    simulation = build_simulation([*documents(), timeline(scale("1m", 1))], catalogue=catalogue)
    store = MemoryStore()

    def office(now: int) -> Runtime:
        return Runtime(store, holder="test", settings=Settings(), record="test", engine="test", now=now)

    driver = Driver(simulation, office, listener=lambda now, seen, intents: told.append((now, len(seen), len(intents))))
    driver.run(START + 5 * MINUTE)
    assert len(told) == driver.turns
    assert [now for now, _, _ in told] == sorted(now for now, _, _ in told)
    assert sum(intents for _, _, intents in told) == 3  # launch, register, initialize
