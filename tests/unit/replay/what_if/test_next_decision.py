"""An exact what-if is the next decision of a cluster that was changed at that moment."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.record.decisions import Decision
from kerf.engine.record.entries import Entry
from kerf.engine.record.observations import CatalogueSeen, NodeClaimDeletionSeen, ObjectGone
from kerf.replay.errors import ChangeRefused
from kerf.replay.time_travel.moments import state_at
from kerf.replay.what_if.changes import Change, set_pool_field
from kerf.replay.what_if.next_decision import Course, LeftOut, does_something, next_decision
from kerf.replay.what_if.object_changes import ASKED_BY, applied, deleted
from kerf.replay.what_if.offering_changes import set_price
from tests.support.memory import MemoryStore
from tests.support.simulation.run import Run, scale, workshop

MINUTE = 60_000
WAITING, RUNNING, SCALED_IN = "10.5s", "90s", "3m"
"""While pods wait, while they run on a new node, and after four of five have gone."""
TODAY = (scale("10s", 5), scale("150s", 1))


def pool(change: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """The workshop's NodePool, changed."""
    document: dict[str, Any] = next(document for document in workshop() if document["kind"] == "NodePool")
    change(document["spec"])
    return document


def other_pool(spec: dict[str, Any]) -> None:
    spec["template"]["metadata"] = {"labels": {"team": "a"}}
    spec["disruption"]["consolidateAfter"] = "0s"


def limited(spec: dict[str, Any]) -> None:
    spec["limits"] = {"cpu": 1}


def other_types(spec: dict[str, Any]) -> None:
    for requirement in spec["template"]["spec"]["requirements"]:
        if requirement["key"] == "node.kubernetes.io/instance-type":
            requirement["values"] = ["r5.large"]


def soon(spec: dict[str, Any]) -> None:
    spec["disruption"] = {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "1s"}


def apply_at(at: str, change: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    return {"at": at, "action": "apply", "object": pool(change)}


TYPES = "spec.template.spec.requirements[node.kubernetes.io/instance-type].values"
CASES: dict[str, tuple[dict[str, Any], type, list[Change]]] = {
    "limits": (apply_at(WAITING, limited), NodePool, [set_pool_field("default", "spec.limits.cpu", 1)]),
    "types": (apply_at(WAITING, other_types), NodePool, [set_pool_field("default", TYPES, ["r5.large"])]),
    "a manifest": (apply_at(WAITING, limited), NodePool, [applied(pool(limited), "nodepool.yaml")]),
    "drift": (apply_at(RUNNING, other_types), NodePool, [set_pool_field("default", TYPES, ["r5.large"])]),
    "nowhere to go": (apply_at(RUNNING, other_pool), NodePool, [applied(pool(other_pool), "nodepool.yaml")]),
    "consolidateAfter": (
        apply_at(SCALED_IN, soon),
        NodePool,
        [set_pool_field("default", "spec.disruption.consolidateAfter", "1s")],
    ),
    "price": (
        {"at": WAITING, "action": "price", "instanceType": "m5.large", "factor": 1.5},
        CatalogueSeen,
        [set_price("m5.large", "+50%")],
    ),
}


def simulated(*actions: dict[str, Any]) -> MemoryStore:
    return Run(deepcopy(workshop(*TODAY, *actions)), until=15 * MINUTE).memory


@pytest.fixture(scope="module")
def unchanged() -> MemoryStore:
    return simulated()


def next_after(store: MemoryStore, position: int) -> list[Entry]:
    """The decisions that do something, of the first turn after a position that has one."""
    found = [entry for entry in store.scan(position - 1) if does_something(entry.payload)]
    return [entry for entry in found if entry.turn == found[0].turn]


@pytest.mark.parametrize("case", CASES)
def test_it_is_the_next_decision_of_a_cluster_that_was_changed_then(unchanged: MemoryStore, case: str) -> None:
    action, observed, changes = CASES[case]
    changed = simulated(action)
    seen = next(entry for entry, known in zip(changed.scan(), unchanged.scan(), strict=False) if entry != known)
    assert isinstance(seen.payload, observed)
    course = next_decision(unchanged, seen.position - 1, changes, now=seen.at)
    assert (case == "nowhere to go") == (not course.decisions)
    expected = next_after(changed, seen.position)
    assert _decided(course) == [entry.payload for entry in expected]
    assert [entry.position for entry in course.decisions] == [entry.position for entry in expected]
    assert not expected or course.at == expected[0].at


@pytest.mark.parametrize("same", [True, False])
def test_what_the_record_changes_later_of_the_same_object_is_named(same: bool) -> None:
    """The change stays, also one that is none at first: the plan would read as if the record had no such change."""
    edited = simulated(apply_at(WAITING, limited))
    seen = next(entry for entry in edited.scan(10) if isinstance(entry.payload, NodePool))
    change = set_pool_field("default", "spec.limits.cpu", "1k" if same else "2k")
    course = next_decision(edited, seen.position - 1, [change], now=seen.at - 100)
    assert course.left_out == (LeftOut("nodepool", "default", seen.position, seen.at),)
    assert next_decision(edited, seen.position - 1, now=seen.at - 100).left_out == ()
    assert next_decision(edited, seen.position, [change]).left_out == (), "it comes before the change"


def _decided(course: Course) -> list[Decision]:
    return [entry.payload for entry in course.decisions]


def test_answers_reach_the_same_intents_though_a_change_moves_their_positions() -> None:
    """A node is ended while the change comes: until its end is answered it counts against the budget of the others."""
    day = (scale("10s", 5), scale("150s", 12), scale("6m", 3))
    plain = Run(deepcopy(workshop(*day)), until=10 * MINUTE).memory
    changed = Run(deepcopy(workshop(*day, apply_at("8m", other_types))), until=10 * MINUTE).memory
    seen = next(entry for entry, known in zip(changed.scan(), plain.scan(), strict=False) if entry != known)
    course = next_decision(plain, seen.position - 1, [set_pool_field("default", TYPES, ["r5.large"])], now=seen.at)
    expected = next_after(changed, seen.position)
    assert [entry.payload.decider for entry in expected] == ["moves", "move"]
    assert _decided(course) == [entry.payload for entry in expected]


def test_a_deleted_nodeclaim_goes_as_in_a_cluster_in_which_it_was_deleted(unchanged: MemoryStore) -> None:
    changed = simulated({"at": RUNNING, "action": "delete", "kind": "NodeClaim", "actor": ASKED_BY})
    seen = next(entry for entry in changed.scan() if isinstance(entry.payload, NodeClaimDeletionSeen))
    claim = seen.payload.claim
    course = next_decision(unchanged, seen.position - 1, [deleted(f"nodeclaim/{claim}")], now=seen.at)
    assert _decided(course)[0].result == next_after(changed, seen.position)[0].payload.result


def test_without_a_change_it_is_what_the_record_holds(unchanged: MemoryStore) -> None:
    decisions = [entry for entry in unchanged.scan() if does_something(entry.payload)]
    assert len(decisions) >= 4
    for decision in decisions:
        course = next_decision(unchanged, decision.turn - 1)
        assert decision in course.entries


@pytest.mark.parametrize("kind", ["deployment", "deploy", "deployments.apps", "rs"])
def test_a_deleted_workload_takes_its_pods_along(unchanged: MemoryStore, kind: str) -> None:
    """As it does with kubectl delete. The record has no Deployment as an object: the owners of its pods name it."""
    first, *rest = unchanged.scan()
    moment = max(entry.turn for entry in rest if entry.at <= first.at + 90_000)
    pods = state_at(unchanged, moment).facts.pods
    owner = next(pod.owner for pod in pods.values() if pod.owner is not None)
    change = deleted(f"{kind}/{owner.name if kind == 'rs' else 'inflate'}")
    assert [item.payload for item in change(state_at(unchanged, moment)).observations] == [
        ObjectGone("pod", uid) for uid in pods
    ]
    assert not next_decision(unchanged, moment, [change]).after.facts.pods


def test_a_deleted_daemonset_takes_its_pods_along() -> None:
    container = {"name": "agent", "image": "agent", "resources": {"requests": {"cpu": "100m"}}}
    labels = {"app": "agent"}
    agent = {
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent", "namespace": "kube-system"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }  # fmt: skip
    run = Run([*workshop(scale("10s", 1)), agent])
    moment = list(run.memory.scan())[-1].position
    before = state_at(run.memory, moment).facts
    (daemons,) = before.daemonsets.values()
    of_it = {uid for uid, pod in before.pods.items() if pod.owner is not None and pod.owner.name == "agent"}
    assert of_it
    gone = deleted(f"daemonset/{daemons.name}")(state_at(run.memory, moment)).observations
    assert {item.payload for item in gone} == {
        ObjectGone("daemonset", daemons.uid), *(ObjectGone("pod", uid) for uid in of_it)
    }  # fmt: skip


def test_a_workload_of_another_kind_is_not_deleted(unchanged: MemoryStore) -> None:
    with pytest.raises(ChangeRefused, match="there is no statefulset inflate"):
        deleted("sts/inflate")(state_at(unchanged, list(unchanged.scan())[-1].position))
