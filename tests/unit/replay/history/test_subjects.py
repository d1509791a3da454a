"""What a name stands for, bare or with its kind; unknown and ambiguous names are refused with what is there."""

from __future__ import annotations

import pytest

from kerf.engine.model.content_digest import content
from kerf.engine.model.kubernetes.pods import Owner, Pod, PodShape
from kerf.engine.record.observations import Observation
from kerf.projections.workload_names import WorkloadName, owner_name
from kerf.replay.errors import SubjectAmbiguous, SubjectUnknown
from kerf.replay.explain.claim import ClaimExplanation
from kerf.replay.explain.pod import PodExplanation
from kerf.replay.explain.subject import explain
from kerf.replay.explain.user_objects.nodepool import PoolExplanation
from kerf.replay.explain.workload import WorkloadExplanation
from kerf.replay.history.histories import Histories
from kerf.replay.history.histories_until import histories_of
from kerf.replay.history.story import story
from kerf.replay.history.subjects import Subject, subject_of
from tests.support.records import whole_life
from tests.support.world import World

REPLICA_SET = Owner("apps/v1/ReplicaSet", "web-7d9c4b8f6b", "u1")


def waits(world: World, namespace: str, name: str, owner: Owner | None = None) -> None:
    made = PodShape(requests={"memory": 1 << 30})
    digest, _ = content(made)
    pod = Pod(f"uid-{namespace}-{name}", namespace, name, digest, created=world.now, unschedulable=True, owner=owner)
    world.see(Observation(pod, {digest: made}))


@pytest.fixture(scope="module")
def world() -> World:
    world = whole_life()
    waits(world, "default", "web-7d9c4b8f6b-x1", REPLICA_SET)
    waits(world, "default", "web-7d9c4b8f6b-x2", REPLICA_SET)
    world.after(1_000)
    world.pending("huge", memory=10**13)
    world.after(60_000)
    return world


@pytest.fixture(scope="module")
def histories(world: World) -> Histories:
    return histories_of(world.store)


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("n1", "node", "n1"), ("node/n1", "node", "n1"), ("no/n1", "node", "n1"), ("i-1", "instance", "i-1"),
        ("instance/i-1", "instance", "i-1"), ("default/a", "pod", "default/a"), ("a", "pod", "default/a"),
        ("pod/default/a", "pod", "default/a"), ("po/a", "pod", "default/a"), ("default", "nodepool", "default"),
        ("nodepools.karpenter.sh/default", "nodepool", "default"), ("np/default", "nodepool", "default"),
        ("web", "workload", "default/web"), ("deploy/web", "workload", "default/web"),
        ("deployment.apps/default/web", "workload", "default/web"),
        ("rs/web-7d9c4b8f6b", "workload", "default/web-7d9c4b8f6b"),
    ],
)  # fmt: skip
def test_a_name_stands_for(histories: Histories, text: str, kind: str, name: str) -> None:
    assert subject_of(histories, text) == Subject(kind, name)


def test_a_claim_is_found_by_its_name(histories: Histories) -> None:
    name = next(iter(histories.claims))
    assert subject_of(histories, name) == subject_of(histories, f"nc/{name}") == Subject("nodeclaim", name)


@pytest.mark.parametrize(
    ("text", "near"),
    [("n11", "n1"), ("webb", "default/web"), ("default/aa", "default/a"), ("deploy/wep", "default/web"),
     ("np/defaut", "default"), ("pod/default/wbe", "workload/default/web"), ("node/defaut", "nodepool/default")],
)  # fmt: skip
def test_an_unknown_name_is_answered_with_the_nearest(histories: Histories, text: str, near: str) -> None:
    with pytest.raises(SubjectUnknown, match=f"KERF203.*Is it .*{near}"):
        subject_of(histories, text)


@pytest.mark.parametrize("text", ["", "/", "pod/", "//", "\x1b[2Jx", "a" * 10_000, "node/default/a", "é", "pod/../a"])
def test_hostile_names_are_refused(histories: Histories, text: str) -> None:
    with pytest.raises(SubjectUnknown, match="KERF203"):
        subject_of(histories, text)


def test_a_name_of_two_namespaces_is_refused_with_both() -> None:
    world = World()
    world.prepare()
    waits(world, "default", "a")
    waits(world, "shop", "a")
    with pytest.raises(SubjectAmbiguous, match=r"KERF210.*'a' stands for several: default/a, shop/a"):
        subject_of(histories_of(world.store), "a")


@pytest.mark.parametrize(
    ("kind", "owner", "workload"),
    [
        ("apps/v1/ReplicaSet", "web-7d9c4b8f6b", "Deployment web"),
        ("apps/v1/ReplicaSet", "web-db", "ReplicaSet web-db"),
        ("apps/v1/StatefulSet", "db-7d9c4b8f6b", "StatefulSet db-7d9c4b8f6b"),
        ("batch/v1/Job", "sum-29374650", "CronJob sum"),
        ("batch/v1/Job", "once", "Job once"), ("", "", "? "),
    ],
)  # fmt: skip
def test_the_workload_of_an_owner(kind: str, owner: str, workload: str) -> None:
    found = owner_name("shop", Owner(kind, owner))
    assert isinstance(found, WorkloadName)
    assert f"{found.kind or '?'} {found.name}" == workload


def test_anything_with_a_name_is_explained(world: World) -> None:
    kinds = {"a": PodExplanation, "n1": ClaimExplanation, "i-1": ClaimExplanation, "np/default": PoolExplanation}
    for name, kind in kinds.items():
        assert isinstance(explain(world.store, name), kind), name
    pool = explain(world.store, "default")
    assert isinstance(pool, PoolExplanation)
    assert (pool.status, pool.launches) == ("ready", 2)
    assert [(refused.pods, refused.reason.code) for refused in pool.refused] == [(("default/huge",), "types-resources")]


def test_a_workload_tells_which_of_its_pods_wait_and_since_when(world: World) -> None:
    now = world.now + 600_000
    found = explain(world.store, "web", None, now)
    assert isinstance(found, WorkloadExplanation)
    assert (found.workload, found.kind, found.statuses, found.gone) == ("default/web", "Deployment", {"waiting": 2}, 0)
    (group,) = found.groups
    assert group.example is not None
    assert group.longest == group.example.waited == now - world.now + 61_000


def test_s40_a_workload_tells_why_nobody_asks_for_a_node_for_its_pods() -> None:
    """They have scheduling gates, or are another scheduler's: the workload's owner sees neither an Event nor a node."""
    world = World()
    world.prepare()
    made = PodShape(requests={"cpu": 100})
    digest, _ = content(made)
    gated = Pod("u", "default", "web-7d9c4b8f6b-x1", digest, created=world.now, owner=REPLICA_SET)
    world.see(Observation(gated, {digest: made}))
    found = explain(world.store, "deploy/web")
    assert isinstance(found, WorkloadExplanation)
    (group,) = found.groups
    assert group.status == "unbound"
    assert group.example is not None
    assert group.example.pod == gated.key


def test_the_story_of_a_nodepool_tells_when_its_nodes_came_and_went(world: World) -> None:
    told = story(world.store, "np/default")
    assert told.subject == "nodepool/default"
    assert {"nodepool-seen", "claim-requested", "claim-tainted", "claim-terminated"} <= {e.code for e in told.events}
    of_workload = story(world.store, "web")
    assert {"pod-waiting", "plan-made", "claim-requested"} <= {event.code for event in of_workload.events}


def test_a_name_that_comes_up_later_is_refused_as_such(world: World) -> None:
    for ask in (explain, story):
        with pytest.raises(SubjectUnknown, match=r"KERF203: workload default/web was not there yet \[position 12\]"):
            ask(world.store, "web", 12)
    with pytest.raises(SubjectUnknown, match="the record knows no"):
        explain(world.store, "nobody-ever", 12)


def test_a_bare_position_is_told_to_be_a_decision(histories: Histories) -> None:
    with pytest.raises(SubjectUnknown) as error:
        subject_of(histories, "113")
    assert error.value.hint == "A decision is asked for as decision/113. kerf log RECORD lists what there is"
