"""A changed template shows in what the latest pod of a workload asks for."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kerf.engine.model.kubernetes.pods import AffinityTerm, Owner, Pod, PodShape, VolumeRef
from kerf.engine.record.entries import Entry
from kerf.engine.record.errors import BlobMissing
from kerf.engine.record.observations import Observation
from kerf.projections.timeline.changed_workloads import ChangedWorkloads
from kerf.projections.timeline.event import event_sentence
from tests.support.world import World

SHAPES = {
    "old": PodShape(requests={"cpu": 500}, labels={"app": "web", "pod-template-hash": "5d8"}),
    "new": PodShape(requests={"cpu": 750}, labels={"app": "web", "pod-template-hash": "6f4"}),
    "apart": PodShape(
        requests={"cpu": 500},
        labels={"app": "web", "pod-template-hash": "7a1"},
        anti_affinity=(AffinityTerm("kubernetes.io/hostname"),),
    ),
    "first": PodShape(volumes=(VolumeRef("data", claim="data-db-0"),)),
    "second": PodShape(volumes=(VolumeRef("data", claim="data-db-1"),)),
}
WEB = Pod("1", "shop", "web-5d8f9b-a", "old", created=1, owner=Owner("apps/v1/ReplicaSet", "web-5d8f9b"))
GREATER = "pods of Deployment shop/web ask for something else: requests.cpu 500m → 750m"


def entries_of(*pods: Pod) -> list[Entry]:
    world = World()
    for pod in pods:
        world.see(Observation(pod, dict(SHAPES)))
    return world.store.entries


def told(*pods: Pod) -> list[str]:
    workloads = ChangedWorkloads(SHAPES.__getitem__)
    return [event_sentence(event) for entry in entries_of(*pods) for event in workloads.apply(entry)]


def another(pod: Pod, number: int, **changes: object) -> Pod:
    return replace(pod, uid=str(number), name=f"{pod.name[:-1]}{number}", created=number, **changes)


def test_the_first_pod_that_asks_for_something_else_tells_what() -> None:
    new = another(WEB, 3, shape="new", owner=Owner("apps/v1/ReplicaSet", "web-6f4c7d"))
    assert told(WEB, another(WEB, 2), new, replace(WEB, phase="Running"), another(new, 4)) == [GREATER]
    back = another(WEB, 5)
    assert told(WEB, new, back)[1].endswith("requests.cpu 750m → 500m")


def test_a_required_term_has_no_weight_as_in_its_manifest() -> None:
    (only,) = told(WEB, another(WEB, 2, shape="apart"))
    assert only.endswith("ask for something else: antiAffinity[0].topologyKey none → kubernetes.io/hostname")


def test_an_annotation_that_is_kept_for_disruption_is_told() -> None:
    (only,) = told(WEB, another(WEB, 2, do_not_disrupt="true"))
    assert only.endswith("doNotDisrupt none → true")


@pytest.mark.parametrize("owner", [Owner("apps/v1/DaemonSet", "agent"), None])
def test_pods_of_daemonsets_and_of_nobody_are_told_elsewhere(owner: Owner | None) -> None:
    assert told(replace(WEB, owner=owner), another(WEB, 2, shape="new", owner=owner)) == []


def test_pods_with_volumes_of_their_own_ask_for_the_same() -> None:
    db = Pod("1", "shop", "db-0", "first", created=1, owner=Owner("apps/v1/StatefulSet", "db"))
    assert told(db, replace(db, uid="2", name="db-1", shape="second", created=2)) == []


def test_nothing_is_told_of_what_a_part_of_a_record_does_not_hold() -> None:
    def nothing(digest: str) -> PodShape:
        raise BlobMissing(digest)

    workloads = ChangedWorkloads(nothing)
    entries = entries_of(WEB, another(WEB, 2, shape="new"))
    assert [event for entry in entries for event in workloads.apply(entry)] == []
